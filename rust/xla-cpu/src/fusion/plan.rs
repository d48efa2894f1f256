//! Plans a graph: chooses which values get memory, and the steps that write them.
//!
//! Products, reductions and pads are steps of their own. Elementwise values are computed where they are used, except
//! the operands of products, pads and changes of shape, which need memory. Memory of intermediate values is one scratch
//! operand.

use std::collections::HashMap;
use std::sync::Arc;

use purlin_array::{DType, Layout, Shape};
use purlin_program::LibraryCall;

use super::expression::{Axis, Compiler, Expression};
use super::graph::{Graph, Op};
use super::lanes::{Class, Fold};
use super::machine::width;
use super::place::{ALIGNMENT, Constants, Spot};
use super::reduce::{self, Reduce};
use super::step::{Elementwise, Library, Pad, Step};
use crate::library::{Convolution, Dot};
use crate::module::Array;

/// The most scratch memory of a fusion.
const MOST_SCRATCH_BYTES: usize = 1 << 40;

/// A planned graph.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) constants: Constants,
    pub(super) scratch_bytes: usize,
}

/// Plans `graph`. Operand `i` of the command is parameter `i`; the results follow the `parameters` parameters. With
/// `in_place`, a result may share memory with a parameter, so that results are copied there by the last steps.
///
/// # Errors
/// The reason why it cannot be executed.
pub(super) fn plan(graph: &Graph, parameters: usize, in_place: bool) -> Result<Plan, String> {
    let mut planner = Planner { graph, homes: HashMap::new(), plan: Plan::default() };
    let mut copies = Vec::new();
    for (number, &result) in graph.results.iter().enumerate() {
        let out = Spot::Operand(parameters + number);
        let source = planner.source(result);
        let is_made = !matches!(graph.values[source].op, Op::Parameter(_) | Op::Constant(_));
        if is_made && !in_place && !planner.homes.contains_key(&source) {
            planner.make(source, out)?;
            continue;
        }
        let home = planner.home(result)?;
        if in_place && matches!(home, Spot::Operand(_)) {
            return Err("a result that is a parameter, in memory of a parameter".to_owned());
        }
        copies.push((result, home, out));
    }
    for (result, home, out) in copies {
        let array = graph.array(result);
        let dims = array.physical_dims();
        let expression = planner.expression(result, &dims, identity(array), Some((result, home)))?;
        planner.plan.steps.push(Step::Elementwise(Elementwise { expression, out, dtype: array.shape.dtype() }));
    }
    Ok(planner.plan)
}

struct Planner<'a> {
    graph: &'a Graph,
    /// The memory of values that have some.
    homes: HashMap<usize, Spot>,
    plan: Plan,
}

impl<'a> Planner<'a> {
    /// The value whose bytes this one has.
    fn source(&self, mut value: usize) -> usize {
        loop {
            let node = &self.graph.values[value];
            match node.op {
                Op::Bitcast => value = node.operands[0],
                Op::Reshape if [value, node.operands[0]].iter().all(|&each| self.is_row_major(each)) => {
                    value = node.operands[0];
                }
                _ => return value,
            }
        }
    }

    fn is_row_major(&self, value: usize) -> bool {
        self.graph.array(value).layout.is_row_major()
    }

    /// The memory of a value. If it has none yet, the steps that write it are added.
    fn home(&mut self, value: usize) -> Result<Spot, String> {
        let source = self.source(value);
        if let Some(&home) = self.homes.get(&source) {
            return Ok(home);
        }
        let node = &self.graph.values[source];
        match &node.op {
            Op::Parameter(number) => {
                self.homes.insert(source, Spot::Operand(*number));
            }
            Op::Constant(bytes) => {
                let place = self.plan.constants.push(bytes);
                self.homes.insert(source, place);
            }
            _ => {
                let place = self.scratch(node.array.size_bytes())?;
                self.make(source, place)?;
            }
        }
        Ok(self.homes[&source])
    }

    fn scratch(&mut self, size_bytes: usize) -> Result<Spot, String> {
        let begin = self.plan.scratch_bytes;
        let end = begin.saturating_add(size_bytes).checked_next_multiple_of(ALIGNMENT);
        self.plan.scratch_bytes = end
            .filter(|&end| end <= MOST_SCRATCH_BYTES)
            .ok_or_else(|| format!("more than {MOST_SCRATCH_BYTES} bytes of intermediate values"))?;
        Ok(Spot::Scratch(begin))
    }

    /// Adds the steps that write a value to `out`.
    fn make(&mut self, value: usize, out: Spot) -> Result<(), String> {
        let graph = self.graph;
        let node = &graph.values[value];
        let array = &node.array;
        let step = match &node.op {
            Op::Reduce { fold, dims } => {
                let from = graph.array(node.operands[0]).dims();
                let kept: Vec<usize> = (0..from.len()).filter(|axis| !dims.contains(axis)).collect();
                let window: Vec<[usize; 3]> = (0..from.len())
                    .map(|axis| if dims.contains(&axis) { [from[axis], 1, 1] } else { [1, 1, 1] })
                    .collect();
                let mut axes = vec![None; from.len()];
                kept.iter().enumerate().for_each(|(at, &axis)| axes[axis] = Some(at));
                self.reduce(value, *fold, &axes, &window, out)?
            }
            Op::ReduceWindow { fold, window } => {
                let axes: Vec<Option<usize>> = (0..window.len()).map(Some).collect();
                self.reduce(value, *fold, &axes, window, out)?
            }
            Op::Dot(_) | Op::Convolution(_) => return self.product(value, out),
            Op::Pad(pads) => {
                let (from, fill) = (self.home(node.operands[0])?, self.home(node.operands[1])?);
                let operand = graph.array(node.operands[0]);
                let (from_strides, to_strides) = (operand.strides(), array.strides());
                let first = pads.iter().zip(&to_strides).map(|(&(low, _), stride)| low.saturating_mul(*stride));
                let first = first.fold(0, usize::saturating_add);
                let dims = operand.dims().into_iter().zip(pads).zip(from_strides.iter().zip(&to_strides));
                let dims = dims.map(|((size, &(_, step)), (&from, &to))| (size, from, step.saturating_mul(to)));
                Step::Pad(Pad {
                    from,
                    value: fill,
                    out,
                    width: width(array.shape.dtype()),
                    count: array.shape.element_count() as usize,
                    first,
                    dims: dims.collect(),
                })
            }
            Op::Reshape => return Err("a reshape of an array whose layout is not that of its dimensions".to_owned()),
            _ => {
                let dims = array.physical_dims();
                let expression = self.expression(value, &dims, identity(array), None)?;
                Step::Elementwise(Elementwise { expression, out, dtype: array.shape.dtype() })
            }
        };
        self.plan.steps.push(step);
        self.homes.insert(value, out);
        Ok(())
    }

    /// The expression of a value over an iteration space. `given` is a value with the memory that is to be used for it.
    fn expression(
        &mut self,
        value: usize,
        sizes: &[usize],
        index: Vec<Axis>,
        given: Option<(usize, Spot)>,
    ) -> Result<Expression, String> {
        let graph = self.graph;
        let mut compiler = Compiler::new(graph, sizes);
        let root = compiler.value(value, index, &mut |each| {
            if let Some((_, place)) = given.filter(|given| given.0 == each) {
                return Ok(Some(place));
            }
            if self.homes.contains_key(&self.source(each)) || !is_elementwise(&graph.values[each].op) {
                return self.home(each).map(Some);
            }
            Ok(None)
        })?;
        compiler.finish(root)
    }

    /// A reduction of a window, which moves along some axes. `axes` are the dimensions of the result that the axes of
    /// the operand have become.
    fn reduce(
        &mut self,
        value: usize,
        fold: Fold,
        axes: &[Option<usize>],
        window: &[[usize; 3]],
        out: Spot,
    ) -> Result<Step, String> {
        let graph = self.graph;
        let node = &graph.values[value];
        let (from, init) = (node.operands[0], self.home(node.operands[1])?);
        let (to_dims, from_strides) = (node.array.dims(), graph.array(from).strides());
        // The results in the order of their memory, then the window's elements, the slowest first.
        let kept: Vec<usize> = node.array.layout.minor_to_major().iter().rev().map(|&axis| axis as usize).collect();
        let mut taps: Vec<usize> = (0..window.len()).filter(|&axis| window[axis][0] != 1).collect();
        taps.sort_by_key(|&axis| std::cmp::Reverse(from_strides[axis].saturating_mul(window[axis][2])));
        let step = |axis: usize| from_strides[axis].saturating_mul(window[axis][1]);
        let stride_of = |dim: usize| (0..axes.len()).find(|&axis| axes[axis] == Some(dim)).map_or(0, step);
        // The last results are columns if they are closer in memory than the elements of a window.
        let nearest = taps.iter().map(|&axis| from_strides[axis].saturating_mul(window[axis][2])).min();
        let is_column = |dim: usize| to_dims[dim] == 1 || nearest.is_none_or(|nearest| stride_of(dim) < nearest);
        let columns = kept.iter().rev().take_while(|&&dim| is_column(dim)).count();
        let (outer, inner) = kept.split_at(kept.len() - columns);
        let size = |dims: &[usize]| dims.iter().map(|&dim| to_dims[dim]).product::<usize>();
        let reduced = taps.iter().try_fold(1_usize, |product, &axis| product.checked_mul(window[axis][0]));
        let reduced = reduced.ok_or("a window of too many elements")?;
        let mut sizes: Vec<usize> = outer.iter().map(|&dim| to_dims[dim]).collect();
        sizes.extend(taps.iter().map(|&axis| window[axis][0]));
        sizes.extend(inner.iter().map(|&dim| to_dims[dim]));
        let place_of = |dim: usize| {
            let in_outer = outer.iter().position(|&each| each == dim);
            in_outer.or_else(|| inner.iter().position(|&each| each == dim).map(|at| outer.len() + taps.len() + at))
        };
        let index = axes.iter().enumerate().map(|(axis, dim)| {
            let kept = dim.and_then(place_of).map(|at| (at, window[axis][1]));
            let tap = taps.iter().position(|&each| each == axis).map(|at| (outer.len() + at, window[axis][2]));
            Axis { offset: 0, terms: kept.into_iter().chain(tap).collect() }
        });
        let (outer, inner) = (size(outer), size(inner));
        let index = index.collect();
        // The operand of the type in which the sum is, so that only the sum is rounded.
        let expression = self.expression(from, &sizes, index, None)?;
        let parts = reduce::parts(outer, reduced, inner, expression.cost);
        let partials = if parts > 1 { self.scratch((outer * inner).saturating_mul(parts * 8))? } else { out };
        let dtype = node.array.shape.dtype();
        if Class::of(dtype) != Some(expression.class()) {
            return Err("a reduction to another kind of elements".to_owned());
        }
        Ok(Step::Reduce(Reduce { fold, expression, outer, reduced, inner, init, out, dtype, parts, partials }))
    }

    /// Adds the steps of a matrix product or a convolution. Narrow elements are widened first, so that the library
    /// needs no memory for that.
    fn product(&mut self, value: usize, out: Spot) -> Result<(), String> {
        let graph = self.graph;
        let node = &graph.values[value];
        let [lhs, rhs] = [node.operands[0], node.operands[1]].map(|operand| graph.array(operand));
        let (from, to) = (lhs.shape.dtype(), node.array.shape.dtype());
        let wide = match (from, to) {
            (DType::F16 | DType::BF16, _) => DType::F32,
            (DType::S8 | DType::U8, DType::S32) => DType::S32,
            _ => from,
        };
        if rhs.shape.dtype() != from || !(to == wide || to == from) {
            return Err(format!("a product of {} and {} to {}", lhs.shape, rhs.shape, node.array.shape));
        }
        let mut arrays = [widened(lhs, wide)?, widened(rhs, wide)?, widened(&node.array, wide)?];
        let mut call = library(&node.op, &arrays);
        if call.is_err() && matches!(node.op, Op::Dot(_)) {
            // Dimensions of one kind may be apart in memory: copies in the order of the dimensions have them together
            // more often.
            for array in &mut arrays {
                array.layout = Layout::row_major(array.shape.rank());
            }
            call = library(&node.op, &arrays);
        }
        let call = call?;
        let mut places = [(out, 0); 3];
        for (number, operand) in [node.operands[0], node.operands[1]].into_iter().enumerate() {
            let same = graph.array(operand) == &arrays[number];
            let place = if same { self.home(operand)? } else { self.converted(operand, &arrays[number])? };
            places[number] = (place, arrays[number].size_bytes());
        }
        let direct = node.array == arrays[2];
        let product = if direct { out } else { self.scratch(arrays[2].size_bytes())? };
        places[2] = (product, arrays[2].size_bytes());
        self.plan.steps.push(Step::Library(Library { call, places }));
        if !direct {
            self.convert(&arrays[2], product, &node.array, out)?;
        }
        self.homes.insert(value, out);
        Ok(())
    }

    /// Scratch memory with the elements of a value, as elements of `array`.
    fn converted(&mut self, value: usize, array: &Array) -> Result<Spot, String> {
        let graph = self.graph;
        let order: Vec<usize> = array.layout.minor_to_major().iter().rev().map(|&axis| axis as usize).collect();
        let sizes = array.physical_dims();
        let index = (0..order.len()).map(|axis| Axis::of(order.iter().position(|&each| each == axis).unwrap_or(0)));
        let source = graph.array(value);
        if source.shape.dtype() != array.shape.dtype()
            && Class::of(source.shape.dtype()) != Class::of(array.shape.dtype())
        {
            return Err(format!("elements of {} as {}", source.shape.dtype().name(), array.shape.dtype().name()));
        }
        let expression = self.expression(value, &sizes, index.collect(), None)?;
        let out = self.scratch(array.size_bytes())?;
        self.plan.steps.push(Step::Elementwise(Elementwise { expression, out, dtype: array.shape.dtype() }));
        Ok(out)
    }

    /// Converts an array in memory to another element type and layout.
    fn convert(&mut self, from: &Array, place: Spot, to: &Array, out: Spot) -> Result<(), String> {
        let mut graph = Graph::default();
        let value = graph.push(Op::Parameter(0), Vec::new(), from.clone())?;
        let (dtype, sizes) = (to.shape.dtype(), to.physical_dims());
        let mut compiler = Compiler::new(&graph, &sizes);
        let root = compiler.value(value, identity(to), &mut |_| Ok(Some(place)))?;
        let expression = compiler.finish(root)?;
        self.plan.steps.push(Step::Elementwise(Elementwise { expression, out, dtype }));
        Ok(())
    }
}

/// Whether the value of an operation is computed where it is used.
fn is_elementwise(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(_) | Op::Binary(_) | Op::Convert | Op::Copy | Op::Broadcast(_) | Op::Transpose(_) | Op::Slice(_)
    )
}

/// The index of each dimension, if the iteration space is the array in the order of its memory.
fn identity(array: &Array) -> Vec<Axis> {
    let mut axes = vec![Axis::default(); array.shape.rank()];
    for (at, &axis) in array.layout.minor_to_major().iter().rev().enumerate() {
        axes[axis as usize] = Axis::of(at);
    }
    axes
}

/// The same array with other elements.
fn widened(array: &Array, dtype: DType) -> Result<Array, String> {
    let shape = Shape::new(dtype, array.shape.dims()).map_err(|error| error.message().to_owned())?;
    Ok(Array { shape, layout: array.layout.clone() })
}

fn library(op: &Op, [lhs, rhs, out]: &[Array; 3]) -> Result<Arc<dyn LibraryCall>, String> {
    match op {
        Op::Dot(dims) => Ok(Arc::new(Dot::new(dims, lhs, rhs, out)?)),
        Op::Convolution(proto) => Ok(Arc::new(Convolution::new(proto, lhs, rhs, out)?)),
        _ => unreachable!("only products are library calls"),
    }
}
