//! The graph of a fused computation: values, each computed from earlier ones.
//!
//! [`Graph::push`] checks what it adds: the number and the shapes of operands, and every number of the operation. So
//! whatever plans or executes a graph needs no further checks of its values. A graph is bounded.

use purlin_array::DType;

use super::lanes::{Binary, Class, Fold, Unary};
use crate::module::Array;
use crate::proto::{ConvolutionProto, DotDimensionsProto};

/// The most values of a graph. Planning recurses as deep.
pub(super) const MOST_VALUES: usize = 512;

/// How a value is computed.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// The operand of that number.
    Parameter(usize),
    /// Elements in the order of the layout.
    Constant(Vec<u8>),
    Unary(Unary),
    Binary(Binary),
    Convert,
    /// The same elements, in another layout.
    Copy,
    /// Dimension `i` of the operand is this dimension of the value.
    Broadcast(Vec<usize>),
    /// Dimension `i` of the value is this dimension of the operand.
    Transpose(Vec<usize>),
    /// The same elements in the order of the dimensions.
    Reshape,
    /// The same bytes.
    Bitcast,
    /// The first element and the step, for each dimension.
    Slice(Vec<(usize, usize)>),
    /// The first index of the operand's elements and the distance between them, for each dimension. Operand 1 fills the
    /// gaps.
    Pad(Vec<(usize, usize)>),
    /// Combines the elements along these dimensions, beginning with operand 1.
    Reduce {
        fold: Fold,
        dims: Vec<usize>,
    },
    /// Combines the elements under a window that stays inside the operand, beginning with operand 1: its size, its step
    /// and the distance between its elements, for each dimension.
    ReduceWindow {
        fold: Fold,
        window: Vec<[usize; 3]>,
    },
    Dot(DotDimensionsProto),
    Convolution(Box<ConvolutionProto>),
}

/// A value: an array and how it is computed.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) op: Op,
    pub(super) operands: Vec<usize>,
    pub(super) array: Array,
}

/// Values in an order in which operands come first.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) values: Vec<Value>,
    /// The values that are results, in their order.
    pub(super) results: Vec<usize>,
}

impl Graph {
    /// Adds a value, and returns its number.
    ///
    /// # Errors
    /// The reason why the value cannot be computed.
    pub(super) fn push(&mut self, op: Op, operands: Vec<usize>, array: Array) -> Result<usize, String> {
        if self.values.len() >= MOST_VALUES {
            return Err(format!("it has more than {MOST_VALUES} instructions"));
        }
        let known: Option<Vec<&Array>> = operands.iter().map(|&number| Some(&self.values.get(number)?.array)).collect();
        let known = known.ok_or("an operand comes later")?;
        check(&op, &known, &array)?;
        self.values.push(Value { op, operands, array });
        Ok(self.values.len() - 1)
    }

    pub(super) fn array(&self, value: usize) -> &Array {
        &self.values[value].array
    }
}

/// Checks an operation: types, shapes, and that all elements that it reads exist.
fn check(op: &Op, operands: &[&Array], array: &Array) -> Result<(), String> {
    let (dtype, dims) = (array.shape.dtype(), array.dims());
    let class = Class::of(dtype).ok_or_else(|| format!("elements of {}", dtype.name()))?;
    let count = match op {
        Op::Parameter(_) | Op::Constant(_) => 0,
        Op::Binary(_) | Op::Pad(_) | Op::Reduce { .. } | Op::ReduceWindow { .. } | Op::Dot(_) | Op::Convolution(_) => 2,
        _ => 1,
    };
    if operands.len() != count {
        return Err(format!("{} operands", operands.len()));
    }
    let same_type = || operands.iter().all(|operand| operand.shape.dtype() == dtype);
    let same_dims = || operands.iter().all(|operand| operand.shape.dims() == array.shape.dims());
    let is_sound = match op {
        Op::Parameter(_) => true,
        Op::Constant(bytes) => bytes.len() == array.size_bytes(),
        Op::Unary(unary) => same_type() && same_dims() && unary.is_supported(class),
        Op::Binary(binary) => same_type() && same_dims() && binary.is_supported(class),
        Op::Convert => same_dims(),
        Op::Copy => same_type() && same_dims(),
        Op::Broadcast(axes) => {
            let from = operands[0].dims();
            same_type()
                && axes.len() == from.len()
                && are_axes(axes, dims.len())
                && axes.iter().zip(&from).all(|(&axis, &size)| dims[axis] == size)
        }
        Op::Transpose(axes) => {
            let from = operands[0].dims();
            let permuted = axes.len() == from.len() && are_axes(axes, from.len());
            same_type() && permuted && axes.iter().map(|&axis| from[axis]).eq(dims.iter().copied())
        }
        Op::Reshape => same_type() && operands[0].shape.element_count() == array.shape.element_count(),
        Op::Bitcast => same_type() && operands[0].size_bytes() == array.size_bytes(),
        Op::Slice(slices) => {
            let from = operands[0].dims();
            let fits = |((&(start, step), &size), &from): ((&(usize, usize), &usize), &usize)| {
                let last = size.saturating_sub(1).checked_mul(step).and_then(|last| last.checked_add(start));
                step > 0 && (size == 0 || last.is_some_and(|last| last < from))
            };
            let same_rank = slices.len() == from.len() && from.len() == dims.len();
            same_type() && same_rank && slices.iter().zip(&dims).zip(&from).all(fits)
        }
        Op::Pad(pads) => {
            let from = operands[0].dims();
            let fits = |((&(low, step), &size), &from): ((&(usize, usize), &usize), &usize)| {
                let last = from.saturating_sub(1).checked_mul(step).and_then(|last| last.checked_add(low));
                step > 0 && (from == 0 || last.is_some_and(|last| last < size))
            };
            let same_rank = pads.len() == from.len() && from.len() == dims.len();
            same_type() && same_rank && is_scalar(operands[1]) && pads.iter().zip(&dims).zip(&from).all(fits)
        }
        Op::Reduce { dims: axes, .. } => {
            let from = operands[0].dims();
            let kept = (0..from.len()).filter(|axis| !axes.contains(axis)).map(|axis| from[axis]);
            are_folded(operands, array) && are_axes(axes, from.len()) && kept.eq(dims.iter().copied())
        }
        Op::ReduceWindow { window, .. } => {
            let from = operands[0].dims();
            let fits = |((&[size, step, spread], &to), &from): ((&[usize; 3], &usize), &usize)| {
                let taps = size.saturating_sub(1).checked_mul(spread);
                let last = to.saturating_sub(1).checked_mul(step).zip(taps).and_then(|(at, taps)| at.checked_add(taps));
                size > 0 && (to == 0 || last.is_some_and(|last| last < from))
            };
            let same_rank = window.len() == from.len() && from.len() == dims.len();
            are_folded(operands, array) && same_rank && window.iter().zip(&dims).zip(&from).all(fits)
        }
        // The library checks the shapes of these.
        Op::Dot(_) | Op::Convolution(_) => true,
    };
    if is_sound { Ok(()) } else { Err("operands, or numbers, that do not fit".to_owned()) }
}

/// Whether a reduction may have these operands: its elements may be wider than those of operand 0, but not of another
/// kind.
fn are_folded(operands: &[&Array], array: &Array) -> bool {
    let (from, to) = (operands[0].shape.dtype(), array.shape.dtype());
    let widened = matches!((from, to), (DType::F16 | DType::BF16, DType::F32) | (DType::S8 | DType::U8, DType::S32));
    is_scalar(operands[1]) && operands[1].shape.dtype() == to && (from == to || widened)
}

fn is_scalar(array: &Array) -> bool {
    array.shape.rank() == 0
}

/// Whether the numbers are different axes of an array of that rank.
fn are_axes(axes: &[usize], rank: usize) -> bool {
    axes.iter().enumerate().all(|(at, axis)| *axis < rank && !axes[..at].contains(axis))
}
