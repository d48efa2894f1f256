//! Reads a fused computation as a graph. Whatever is unknown, or changes the meaning in a way that is not supported
//! here, is a reason to refuse, with the name of the instruction and its opcode.

use std::collections::HashMap;

use super::Fusion;
use super::graph::{Graph, Op};
use super::lanes::{Binary, Fold, Unary};
use crate::fault::{Contradiction, Reasons};
use crate::module::{Array, literal_bytes};
use crate::proto::{ConvolutionProto, FusedComputation, FusedComputations, FusedInstructionProto, WindowProto};

/// A fusion, as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    graph: Graph,
    /// The parameters of which it uses some, and the results.
    pub(crate) parameters: Vec<Option<Array>>,
    pub(crate) results: Vec<Array>,
}

impl Found {
    /// Plans it. `in_place`: a result may share memory with a parameter.
    ///
    /// # Errors
    /// The reason why it cannot be executed.
    pub(crate) fn plan(&self, in_place: bool) -> Result<Fusion, String> {
        Fusion::new(&self.graph, self.parameters.len(), in_place)
    }
}

/// Reads the computation of that number, which has so many parameters. `None`: it is not supported, and the causes are
/// added to `reasons`.
///
/// # Errors
/// `DataLoss`: its bytes are damaged, or it is missing.
pub(crate) fn read(
    computations: &FusedComputations<'_>,
    id: i64,
    parameters: usize,
    reasons: &mut Reasons,
) -> Result<Option<Found>, Contradiction> {
    let missing = |id: i64| Contradiction::new(format!("there is no computation {id}"));
    let computation = computations.decode(id)?.ok_or_else(|| missing(id))?;
    let mut is_known = computation.unknown.is_empty();
    computation.unknown.iter().for_each(|field| reasons.add(field.clone()));
    let mut reader = Reader {
        values: HashMap::new(),
        found: Found { graph: Graph::default(), parameters: vec![None; parameters], results: Vec::new() },
    };
    for instruction in &computation.instructions {
        let mut called = None;
        if let [id] = instruction.called.as_slice() {
            let computation = computations.decode(*id)?.ok_or_else(|| missing(*id))?;
            is_known &= computation.unknown.is_empty();
            computation.unknown.iter().for_each(|field| reasons.add(field.clone()));
            called = Some(computation);
        }
        let read = reader.instruction(instruction, called.as_ref(), computation.root);
        let read = read.map_err(|why| {
            format!("instruction '{}' ({}) of a ynn-fusion: {why}", instruction.name, instruction.opcode)
        });
        // Without a value, the instructions that use it cannot be read.
        if reasons.take(read).is_none() {
            return Ok(None);
        }
    }
    if reader.found.results.is_empty() {
        reasons.add("a ynn-fusion without a result");
        return Ok(None);
    }
    Ok(is_known.then_some(reader.found))
}

struct Reader {
    /// The value of each instruction, by XLA's number.
    values: HashMap<i64, usize>,
    found: Found,
}

impl Reader {
    fn instruction(
        &mut self,
        proto: &FusedInstructionProto,
        called: Option<&FusedComputation>,
        root: i64,
    ) -> Result<(), String> {
        check_fields(proto)?;
        let operands: Option<Vec<usize>> = proto.operands.iter().map(|id| self.values.get(id).copied()).collect();
        let operands = operands.ok_or("an operand that comes later")?;
        if proto.opcode == "tuple" {
            if proto.id != root {
                return Err("a tuple that is not the result".to_owned());
            }
            self.found.results = operands.iter().map(|&value| self.found.graph.array(value).clone()).collect();
            self.found.graph.results = operands;
            return Ok(());
        }
        let array = Array::new(proto.shape.as_ref().ok_or("it has no shape")?)?;
        let op = self.op(proto, &array, &operands, called)?;
        if let Op::Parameter(number) = op {
            let parameter = self.found.parameters.get_mut(number).ok_or("a parameter that there is not")?;
            if parameter.replace(array.clone()).is_some() {
                return Err("a second parameter of that number".to_owned());
            }
        }
        let value = self.found.graph.push(op, operands, array.clone())?;
        self.values.insert(proto.id, value);
        if proto.id == root {
            self.found.graph.results = vec![value];
            self.found.results = vec![array];
        }
        Ok(())
    }

    fn op(
        &self,
        proto: &FusedInstructionProto,
        array: &Array,
        operands: &[usize],
        called: Option<&FusedComputation>,
    ) -> Result<Op, String> {
        let axes = || axes(&proto.dimensions);
        Ok(match proto.opcode.as_str() {
            "parameter" => Op::Parameter(number(proto.parameter_number)?),
            "constant" => Op::Constant(literal(proto, array)?),
            "convert" => Op::Convert,
            "copy" => Op::Copy,
            "bitcast" => Op::Bitcast,
            "reshape" => Op::Reshape,
            "broadcast" => Op::Broadcast(axes()?),
            "transpose" => Op::Transpose(axes()?),
            "slice" => {
                let sizes = array.dims();
                let steps = proto.slices.iter().zip(&sizes).map(|(slice, &size)| {
                    let [start, limit, step] = [number(slice.start)?, number(slice.limit)?, number(slice.stride)?];
                    let length = limit.checked_sub(start).filter(|_| step > 0).map(|length| length.div_ceil(step));
                    if length == Some(size) { Ok((start, step)) } else { Err("limits that do not fit".to_owned()) }
                });
                if proto.slices.len() != sizes.len() {
                    return Err("limits of another number of dimensions".to_owned());
                }
                Op::Slice(steps.collect::<Result<_, _>>()?)
            }
            "pad" => {
                let padding = proto.padding.as_ref().ok_or("no padding")?;
                let from = operands.first().map_or(Vec::new(), |&operand| self.found.graph.array(operand).dims());
                let sizes = array.dims();
                if padding.dimensions.len() != from.len() || from.len() != sizes.len() {
                    return Err("padding of another number of dimensions".to_owned());
                }
                let steps = padding.dimensions.iter().zip(from).zip(sizes).map(|((pad, from), size)| {
                    let [low, high, gap] = [number(pad.low)?, number(pad.high)?, number(pad.interior)?];
                    let inner = from.saturating_sub(1).checked_mul(gap).and_then(|gaps| gaps.checked_add(from));
                    let whole = inner.and_then(|inner| inner.checked_add(low)?.checked_add(high));
                    if whole == Some(size) { Ok((low, gap + 1)) } else { Err("padding that does not fit".to_owned()) }
                });
                Op::Pad(steps.collect::<Result<_, _>>()?)
            }
            "reduce" => Op::Reduce { fold: fold(called)?, dims: axes()? },
            "reduce-window" => {
                let window = proto.window.as_ref().ok_or("no window")?;
                Op::ReduceWindow { fold: fold(called)?, window: steps(window, array)? }
            }
            "dot" => Op::Dot(proto.dot.clone().ok_or("no dimensions")?),
            "convolution" => Op::Convolution(Box::new(ConvolutionProto {
                dimensions: proto.convolution.as_deref().cloned(),
                window: proto.window.clone(),
                feature_group_count: proto.feature_group_count,
                ..Default::default()
            })),
            name => {
                if let Some((_, unary)) = Unary::ALL.iter().find(|each| each.0 == name) {
                    Op::Unary(*unary)
                } else if let Some((_, binary)) = Binary::ALL.iter().find(|each| each.0 == name) {
                    Op::Binary(*binary)
                } else {
                    return Err("an operation that is not supported".to_owned());
                }
            }
        })
    }
}

/// Refuses fields that an instruction of that opcode does not have, and those whose values are not supported.
fn check_fields(proto: &FusedInstructionProto) -> Result<(), String> {
    let is = |names: &[&str]| names.contains(&proto.opcode.as_str());
    let (product, windowed) = (is(&["dot", "convolution"]), is(&["convolution", "reduce-window"]));
    let has_others = (proto.window.is_some() && !windowed)
        || (proto.convolution.is_some() && !is(&["convolution"]))
        || (!proto.slices.is_empty() && !is(&["slice"]))
        || (proto.padding.is_some() && !is(&["pad"]))
        || (proto.dot.is_some() && !is(&["dot"]))
        || (proto.literal.is_some() && !is(&["constant"]))
        || (proto.precision.is_some() && !product)
        || (!proto.called.is_empty() && !is(&["reduce", "reduce-window"]))
        || (!proto.dimensions.is_empty() && !is(&["broadcast", "transpose", "reduce", "reshape"]))
        || (proto.feature_group_count > 1 && !is(&["convolution"]));
    if has_others {
        return Err("a field of another operation".to_owned());
    }
    if (proto.sparsity.is_some() || proto.newer.is_some()) && !is(&["convolution"]) {
        return Err("sparse operands".to_owned());
    }
    if proto.batch_group_count > 1 {
        return Err("groups of the batch".to_owned());
    }
    if proto.precision.is_some_and(|precision| precision.algorithm != 0) {
        return Err("an algorithm".to_owned());
    }
    Ok(())
}

/// The function that a reduction calls: one operation of its two parameters.
fn fold(called: Option<&FusedComputation>) -> Result<Fold, String> {
    let called = called.ok_or("it calls no computation")?;
    let unknown = || "it calls a computation that is not one operation".to_owned();
    let find = |id: i64| called.instructions.iter().find(|each| each.id == id).ok_or_else(unknown);
    let root = find(called.root)?;
    check_fields(root)?;
    let [a, b] = root.operands.as_slice() else { return Err(unknown()) };
    let (a, b) = (find(*a)?, find(*b)?);
    let mut numbers = [a.parameter_number, b.parameter_number];
    numbers.sort_unstable();
    if [a, b].iter().any(|each| each.opcode != "parameter") || numbers != [0, 1] {
        return Err(unknown());
    }
    // Sums of narrow elements round where XLA's computation says, so only one type may occur.
    if [a, b].iter().any(|each| {
        each.shape.as_ref().map(|shape| shape.element_type) != root.shape.as_ref().map(|shape| shape.element_type)
    }) {
        return Err("it calls a computation of several types".to_owned());
    }
    match root.opcode.as_str() {
        "add" => Ok(Fold::Add),
        "maximum" => Ok(Fold::Maximum),
        "minimum" => Ok(Fold::Minimum),
        "multiply" => Ok(Fold::Multiply),
        other => Err(format!("it combines by '{other}'")),
    }
}

/// The steps of a window that stays inside its array.
fn steps(window: &WindowProto, array: &Array) -> Result<Vec<[usize; 3]>, String> {
    if window.dimensions.len() != array.shape.rank() {
        return Err("a window of another number of dimensions".to_owned());
    }
    let step = |dim: &crate::proto::WindowDimensionProto| {
        if dim.padding_low != 0 || dim.padding_high != 0 || dim.base_dilation > 1 || dim.window_reversal {
            return Err("a window with padding, gaps in its array, or reversal".to_owned());
        }
        Ok([number(dim.size)?, number(dim.stride)?, number(dim.window_dilation.max(1))?])
    };
    window.dimensions.iter().map(step).collect()
}

fn literal(proto: &FusedInstructionProto, array: &Array) -> Result<Vec<u8>, String> {
    let literal = proto.literal.as_deref().ok_or("no value")?;
    let bytes = literal_bytes(literal)?;
    match &literal.shape {
        Some(shape) if Array::new(shape)? == *array => Ok(bytes),
        _ => Err("a value of another shape".to_owned()),
    }
}

fn axes(numbers: &[i64]) -> Result<Vec<usize>, String> {
    numbers.iter().map(|&axis| number(axis)).collect()
}

fn number(number: i64) -> Result<usize, String> {
    usize::try_from(number).map_err(|_| format!("a number of {number}"))
}
