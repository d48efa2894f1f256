//! An expression: elementwise operations over an iteration space, compiled to a program for a small register machine.
//!
//! The leaves of an expression are arrays in memory. Broadcasts, transposes and slices are no operations: they change
//! the strides with which a leaf is read. Every leaf is checked to lie in its array.

use purlin_array::DType;

use super::graph::{Graph, Op};
use super::lanes::{Binary, Class, Unary};
use super::place::Spot;

/// The most values of an expression, and the most that are in registers at once.
pub(super) const MOST_VALUES: usize = 192;
pub(super) const MOST_REGISTERS: usize = 16;

/// Where an index of an array's dimension comes from: a sum of indices of the iteration space, each scaled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Axis {
    pub(super) offset: usize,
    /// The dimension of the iteration space, and its factor.
    pub(super) terms: Vec<(usize, usize)>,
}

impl Axis {
    /// The index of one dimension of the iteration space.
    pub(super) fn of(dim: usize) -> Self {
        Self { offset: 0, terms: vec![(dim, 1)] }
    }
}

/// An array in memory, as the iteration space visits it.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) place: Spot,
    pub(super) dtype: DType,
    /// The first element.
    pub(super) first: usize,
    /// Sizes and strides, in elements, the slowest first. Dimensions that are one stretch of memory are merged.
    pub(super) dims: Vec<(usize, usize)>,
}

impl Leaf {
    /// Whether all elements of the iteration space are the same one.
    pub(super) fn is_scalar(&self) -> bool {
        self.dims.iter().all(|&(_, stride)| stride == 0)
    }

    /// Whether consecutive elements of the iteration space are consecutive in memory.
    pub(super) fn is_contiguous(&self) -> bool {
        matches!(self.dims.as_slice(), [(_, 1)])
    }
}

/// A step of the machine. Operands are numbers of values, and each step makes the value of its own number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Code {
    Load(usize),
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    /// Converts between classes.
    Cast(usize),
    /// Rounds f32 to f16 or bf16, or wraps i32 to s8 or u8.
    Round(DType, usize),
}

/// A step with the class of its value and the register for it. `None`: the value is in memory as it is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub(super) code: Code,
    pub(super) class: Class,
    pub(super) register: Option<u8>,
}

/// A compiled expression. The last instruction makes its value.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) leaves: Vec<Leaf>,
    pub(super) code: Vec<Instruction>,
    /// The number of registers.
    pub(super) registers: usize,
    /// The number of elements of the iteration space.
    pub(super) count: usize,
    /// The cost of one element, in additions.
    pub(super) cost: usize,
}

impl Expression {
    pub(super) fn class(&self) -> Class {
        self.code.last().expect("an expression has a value").class
    }

    /// Whether the value is a stretch of memory, which no instruction computes.
    pub(super) fn is_memory(&self) -> bool {
        self.code.len() == 1 && self.code[0].register.is_none()
    }
}

/// A compiler of one expression. `sizes` are those of the iteration space, the slowest dimension first.
#[derive(Debug)]
pub(super) struct Compiler<'a> {
    pub(super) graph: &'a Graph,
    pub(super) sizes: &'a [usize],
    leaves: Vec<Leaf>,
    code: Vec<(Code, Class)>,
    cost: usize,
    known: std::collections::HashMap<(usize, Vec<Axis>), usize>,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(graph: &'a Graph, sizes: &'a [usize]) -> Self {
        Self { graph, sizes, leaves: Vec::new(), code: Vec::new(), cost: 0, known: Default::default() }
    }

    /// Compiles a value of the graph at that index, and returns the number of its value. `home` gives the memory of
    /// those that are leaves.
    pub(super) fn value(
        &mut self,
        value: usize,
        index: Vec<Axis>,
        home: &mut dyn FnMut(usize) -> Result<Option<Spot>, String>,
    ) -> Result<usize, String> {
        let key = (value, index);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let index = key.1.clone();
        let number = match home(value)? {
            Some(place) => self.leaf(value, &index, place)?,
            None => self.computed(value, index, home)?,
        };
        self.known.insert(key, number);
        Ok(number)
    }

    fn computed(
        &mut self,
        value: usize,
        index: Vec<Axis>,
        home: &mut dyn FnMut(usize) -> Result<Option<Spot>, String>,
    ) -> Result<usize, String> {
        let graph = self.graph;
        let node = &graph.values[value];
        let dtype = node.array.shape.dtype();
        let class = class(dtype);
        match &node.op {
            Op::Unary(op) => {
                let from = self.value(node.operands[0], index, home)?;
                self.cost += op.cost();
                let number = self.push(Code::Unary(*op, from), class)?;
                self.rounded(number, dtype)
            }
            Op::Binary(op) => {
                let a = self.value(node.operands[0], index.clone(), home)?;
                let b = self.value(node.operands[1], index, home)?;
                self.cost += op.cost();
                let number = self.push(Code::Binary(*op, a, b), class)?;
                self.rounded(number, dtype)
            }
            Op::Convert => {
                let from = self.value(node.operands[0], index, home)?;
                let number = if self.code[from].1 == class { from } else { self.push(Code::Cast(from), class)? };
                self.cost += 1;
                self.rounded(number, dtype)
            }
            Op::Copy => self.value(node.operands[0], index, home),
            Op::Broadcast(axes) => {
                let index = axes.iter().map(|&axis| index[axis].clone()).collect();
                self.value(node.operands[0], index, home)
            }
            Op::Transpose(axes) => {
                let mut from = vec![Axis::default(); axes.len()];
                axes.iter().zip(index).for_each(|(&axis, index)| from[axis] = index);
                self.value(node.operands[0], from, home)
            }
            Op::Slice(slices) => {
                let index = index.into_iter().zip(slices).map(|(mut index, &(start, step))| {
                    index.offset = index.offset.saturating_mul(step).saturating_add(start);
                    index.terms.iter_mut().for_each(|(_, factor)| *factor = factor.saturating_mul(step));
                    index
                });
                self.value(node.operands[0], index.collect(), home)
            }
            _ => Err("a value without memory that is not elementwise".to_owned()),
        }
    }

    /// Adds the rounding to a type that is narrower than its class.
    fn rounded(&mut self, number: usize, dtype: DType) -> Result<usize, String> {
        let class = class(dtype);
        if class.native() == dtype {
            return Ok(number);
        }
        self.cost += 2;
        self.push(Code::Round(dtype, number), class)
    }

    fn leaf(&mut self, value: usize, index: &[Axis], place: Spot) -> Result<usize, String> {
        let array = self.graph.array(value);
        let mut first = 0_usize;
        let mut steps = vec![0_usize; self.sizes.len()];
        for (axis, stride) in index.iter().zip(array.strides()) {
            first = axis.offset.saturating_mul(stride).saturating_add(first);
            for &(dim, factor) in &axis.terms {
                steps[dim] = factor.saturating_mul(stride).saturating_add(steps[dim]);
            }
        }
        let reach = steps.iter().zip(self.sizes).map(|(step, size)| step.saturating_mul(size.saturating_sub(1)));
        let last = reach.fold(first, usize::saturating_add);
        let count = array.shape.element_count() as usize;
        if !self.sizes.contains(&0) && last >= count {
            return Err(format!("an index beyond the {count} elements of an operand"));
        }
        let mut dims: Vec<(usize, usize)> = Vec::new();
        for (&size, &step) in self.sizes.iter().zip(&steps).filter(|(size, _)| **size != 1) {
            match dims.last_mut() {
                Some((outer, stride)) if *stride == step.saturating_mul(size) => {
                    (*outer, *stride) = (outer.saturating_mul(size), step);
                }
                _ => dims.push((size, step)),
            }
        }
        let dtype = array.shape.dtype();
        self.leaves.push(Leaf { place, dtype, first, dims });
        self.cost += 1;
        self.push(Code::Load(self.leaves.len() - 1), class(dtype))
    }

    fn push(&mut self, code: Code, class: Class) -> Result<usize, String> {
        if self.code.len() >= MOST_VALUES {
            return Err(format!("an expression of more than {MOST_VALUES} values"));
        }
        self.code.push((code, class));
        Ok(self.code.len() - 1)
    }

    /// The expression of the last value. Assigns registers: a value keeps its register until its last use, and never
    /// has that of an operand, so that no loop reads what it writes.
    pub(super) fn finish(self, root: usize) -> Result<Expression, String> {
        // Values behind the root are not needed.
        let code = &self.code[..=root];
        let mut last_use = vec![root; code.len()];
        for (number, (code, _)) in code.iter().enumerate() {
            operands(code).for_each(|operand| last_use[operand] = number);
        }
        last_use[root] = usize::MAX;
        let scalar = |code: &Code| matches!(code, Code::Load(leaf) if self.leaves[*leaf].is_scalar());
        let mut free: Vec<u8> = (0..MOST_REGISTERS as u8).rev().collect();
        let take = |free: &mut Vec<u8>| free.pop().ok_or_else(|| format!("more than {MOST_REGISTERS} values at once"));
        let mut registers: Vec<Option<u8>> = vec![None; code.len()];
        // A scalar is spread over its register once, before all blocks, so no other value ever has that register.
        for (number, _) in code.iter().enumerate().filter(|(_, (code, _))| scalar(code)) {
            registers[number] = Some(take(&mut free)?);
            last_use[number] = usize::MAX;
        }
        for (number, (step, class)) in code.iter().enumerate() {
            let is_in_memory = match step {
                Code::Load(leaf) => {
                    let leaf = &self.leaves[*leaf];
                    leaf.is_contiguous() && leaf.dtype == class.native()
                }
                _ => false,
            };
            if registers[number].is_none() && !is_in_memory {
                registers[number] = Some(take(&mut free)?);
            }
            let mut done: Vec<usize> = operands(step).filter(|&operand| last_use[operand] == number).collect();
            done.dedup();
            free.extend(done.iter().filter_map(|&operand| registers[operand]));
        }
        let most = registers.iter().flatten().max().map_or(0, |&most| usize::from(most) + 1);
        let code = code.iter().zip(registers).map(|(&(code, class), register)| Instruction { code, class, register });
        let count = self.sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
        let count = count.ok_or("too many elements")?;
        Ok(Expression { code: code.collect(), leaves: self.leaves, registers: most, count, cost: self.cost.max(1) })
    }
}

fn class(dtype: DType) -> Class {
    Class::of(dtype).expect("the graph has checked the type")
}

/// The values that a step reads.
fn operands(code: &Code) -> impl Iterator<Item = usize> {
    let (a, b) = match *code {
        Code::Load(_) => (None, None),
        Code::Unary(_, a) | Code::Cast(a) | Code::Round(_, a) => (Some(a), None),
        Code::Binary(_, a, b) => (Some(a), Some(b)),
    };
    a.into_iter().chain(b)
}
