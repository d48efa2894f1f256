//! Dot: a matrix product for each entry of the batch.
//!
//! A dimension is a batch dimension (the same in all three arrays), a contracting one (summed over), or free.
//! Dimensions of one kind that are contiguous in memory are merged, so that a matrix has one stride for its rows and
//! one for its columns. If they are not contiguous, the dot is refused. Floating-point numbers of 16 bits are
//! multiplied and summed as f32, and rounded once. Sums are in another order than XLA's, so their last bits differ.
//! Large products run on several of the client's threads, divided by batch entries or by the longer side, in multiples
//! of the tiles that crate `gemm` computes.

#![allow(unsafe_code, reason = "operands are memory by address")]

use half::{bf16, f16};
use num_complex::Complex;
use purlin_array::DType;
use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::elements::{Plain, read, write};
use super::gemm::{Matrix, Product, Shared, Sizes, TILE};
use crate::module::Array;
use crate::proto::DotDimensionsProto;

/// The least work for one thread, in scalar products.
const GRAIN: usize = 1 << 19;

/// Parts of a product for each thread: few, because each part reads the other side's matrix again, and more than one,
/// because threads are not equally fast.
const PARTS_PER_THREAD: usize = 8;

/// A dot whose dimensions are checked.
#[derive(Debug)]
pub(crate) struct Dot {
    lhs: DType,
    rhs: DType,
    out: DType,
    sizes: Sizes,
    /// The strides of rows and columns, for each array.
    strides: [[usize; 2]; 3],
    batch: Vec<Batch>,
    batch_count: usize,
}

/// A batch dimension: its size, and its stride in each array, in elements.
#[derive(Debug)]
struct Batch {
    size: usize,
    strides: [usize; 3],
}

impl Dot {
    pub(crate) fn new(dims: &DotDimensionsProto, lhs: &Array, rhs: &Array, out: &Array) -> Result<Self, String> {
        let refused = |what: &str| format!("a dot of {} and {} to {}: {what}", lhs.shape, rhs.shape, out.shape);
        let [lhs_sum, rhs_sum, lhs_batch, rhs_batch] = [
            (&dims.lhs_contracting, lhs),
            (&dims.rhs_contracting, rhs),
            (&dims.lhs_batch, lhs),
            (&dims.rhs_batch, rhs),
        ]
        .map(|(axes, array)| known_axes(axes, array));
        let kinds = (lhs_sum, rhs_sum, lhs_batch, rhs_batch);
        let (Some(lhs_sum), Some(rhs_sum), Some(lhs_batch), Some(rhs_batch)) = kinds else {
            return Err(refused("a dimension that there is not"));
        };
        let free = |array: &Array, sum: &[usize], batch: &[usize]| -> Vec<usize> {
            (0..array.shape.rank()).filter(|axis| !sum.contains(axis) && !batch.contains(axis)).collect()
        };
        let (lhs_free, rhs_free) = (free(lhs, &lhs_sum, &lhs_batch), free(rhs, &rhs_sum, &rhs_batch));
        let sizes = |array: &Array, axes: &[usize]| -> Vec<usize> {
            let dims = array.dims();
            axes.iter().map(|&axis| dims[axis]).collect()
        };
        let expected = [sizes(lhs, &lhs_batch), sizes(lhs, &lhs_free), sizes(rhs, &rhs_free)].concat();
        let agree = sizes(lhs, &lhs_sum) == sizes(rhs, &rhs_sum) && sizes(lhs, &lhs_batch) == sizes(rhs, &rhs_batch);
        if !agree || expected != out.dims() {
            return Err(refused("the dimensions do not agree"));
        }
        let first_column = lhs_batch.len() + lhs_free.len();
        let (out_rows, out_columns) =
            ((lhs_batch.len()..first_column).collect::<Vec<_>>(), (first_column..out.shape.rank()).collect::<Vec<_>>());
        let collapsed = [
            collapse(lhs, &lhs_free),
            collapse(lhs, &lhs_sum),
            collapse(rhs, &rhs_sum),
            collapse(rhs, &rhs_free),
            collapse(out, &out_rows),
            collapse(out, &out_columns),
        ];
        let [Some(lhs_row), Some(lhs_column), Some(rhs_row), Some(rhs_column), Some(out_row), Some(out_column)] =
            collapsed
        else {
            return Err(refused("dimensions of one kind are apart in memory"));
        };
        let strides = [lhs.strides(), rhs.strides(), out.strides()];
        let axes = lhs_batch.iter().zip(&rhs_batch).enumerate();
        let batch = axes.map(|(at, (&l, &r))| Batch {
            size: lhs.dims()[l],
            strides: [strides[0][l], strides[1][r], strides[2][at]],
        });
        let dot = Self {
            lhs: lhs.shape.dtype(),
            rhs: rhs.shape.dtype(),
            out: out.shape.dtype(),
            sizes: Sizes { rows: lhs_row.0, columns: rhs_column.0, inner: lhs_column.0 },
            strides: [[lhs_row.1, lhs_column.1], [rhs_row.1, rhs_column.1], [out_row.1, out_column.1]],
            batch_count: sizes(lhs, &lhs_batch).iter().product(),
            batch: batch.collect(),
        };
        if dot.lhs != dot.rhs || !is_supported(dot.lhs, dot.out) {
            return Err(refused("elements of these types"));
        }
        Ok(dot)
    }

    /// Computes all products, of elements of one type.
    fn multiply<T: Product>(
        &self,
        lhs: &[T],
        rhs: &[T],
        out: &mut [T::Sum],
        context: &LibraryContext<'_>,
    ) -> Result<(), Error> {
        let Sizes { rows, columns, inner } = self.sizes;
        if inner == 0 || out.is_empty() {
            out.fill(T::ZERO);
            return Ok(());
        }
        let out = Shared(out.as_mut_ptr());
        // Computes rows `[begin, end)` of an entry, or columns.
        let part = |entry: usize, by_rows: bool, begin: usize, end: usize| {
            let [l, r, o] = self.offsets(entry);
            let [[lhs_row, lhs_column], [rhs_row, rhs_column], [out_row, out_column]] = self.strides;
            let (skipped_rows, skipped_columns) = if by_rows { (begin, 0) } else { (0, begin) };
            let sizes = if by_rows {
                Sizes { rows: end - begin, ..self.sizes }
            } else {
                Sizes { columns: end - begin, ..self.sizes }
            };
            let lhs = Matrix { first: lhs[l + skipped_rows * lhs_row..].as_ptr(), row: lhs_row, column: lhs_column };
            let rhs =
                Matrix { first: rhs[r + skipped_columns * rhs_column..].as_ptr(), row: rhs_row, column: rhs_column };
            // SAFETY: new() has checked that the dimensions are those of the arrays, which have the sizes of their
            // shapes. Parts have different rows, columns or entries, so no two of them write the same element.
            unsafe {
                let first = out.get().add(o + skipped_rows * out_row + skipped_columns * out_column);
                T::multiply(sizes, lhs, rhs, Matrix { first, row: out_row, column: out_column });
            }
        };
        let by_rows = rows >= columns;
        let (side, across) = if by_rows { (rows, columns) } else { (columns, rows) };
        let products = rows.saturating_mul(columns).saturating_mul(inner);
        if products >= GRAIN && self.batch_count < 4 {
            // Rows of a row-major result are contiguous, and so are columns of a column-major one.
            let tile = if by_rows == (self.strides[2][0] == 1) { TILE.0 } else { TILE.1 };
            let least = GRAIN.div_ceil(across.saturating_mul(inner).max(1));
            let even = side / (context.thread_count() * PARTS_PER_THREAD);
            let grain = least.max(even).next_multiple_of(tile);
            for entry in 0..self.batch_count {
                context.parallel_for(side, grain, &|range| {
                    part(entry, by_rows, range.start, range.end);
                    Ok(())
                })?;
            }
            return Ok(());
        }
        context.parallel_for(self.batch_count, (GRAIN / products.max(1)).max(1), &|range| {
            range.for_each(|entry| part(entry, by_rows, 0, side));
            Ok(())
        })
    }

    /// The offset of a batch entry in each array, in elements.
    fn offsets(&self, mut entry: usize) -> [usize; 3] {
        let mut offsets = [0; 3];
        for batch in self.batch.iter().rev() {
            let index = entry % batch.size;
            entry /= batch.size;
            offsets.iter_mut().zip(batch.strides).for_each(|(offset, stride)| *offset += index * stride);
        }
        offsets
    }

    /// Computes products of elements that are multiplied as another type, and rounded at the end.
    fn through<T: Product, I: Plain, O: Plain>(
        &self,
        operands: &[OperandBytes],
        context: &LibraryContext<'_>,
        widen: impl Fn(I) -> T,
        narrow: impl Fn(T::Sum) -> O,
    ) -> Result<(), Error> {
        // SAFETY: the command reads the first two operands and writes the third, of the types that the caller has
        // looked up.
        let (lhs, rhs, out) = unsafe { (read::<I>(&operands[0]), read::<I>(&operands[1]), write::<O>(&operands[2])) };
        let lhs: Vec<T> = lhs.iter().map(|&x| widen(x)).collect();
        let rhs: Vec<T> = rhs.iter().map(|&x| widen(x)).collect();
        let mut wide = vec![T::ZERO; out.len()];
        self.multiply(&lhs, &rhs, &mut wide, context)?;
        out.iter_mut().zip(wide).for_each(|(to, from)| *to = narrow(from));
        Ok(())
    }

    fn plain<T: Product>(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error> {
        // SAFETY: the command reads the first two operands and writes the third, of the type that the caller has looked
        // up.
        let (lhs, rhs, out) =
            unsafe { (read::<T>(&operands[0]), read::<T>(&operands[1]), write::<T::Sum>(&operands[2])) };
        self.multiply(lhs, rhs, out, context)
    }

    /// Computes products whose sums are wider than the elements of the result.
    fn narrowed<T: Product, O: Plain>(
        &self,
        operands: &[OperandBytes],
        context: &LibraryContext<'_>,
        narrow: impl Fn(T::Sum) -> O,
    ) -> Result<(), Error> {
        // SAFETY: as above.
        let (lhs, rhs, out) = unsafe { (read::<T>(&operands[0]), read::<T>(&operands[1]), write::<O>(&operands[2])) };
        let mut wide = vec![T::ZERO; out.len()];
        self.multiply(lhs, rhs, &mut wide, context)?;
        out.iter_mut().zip(wide).for_each(|(to, from)| *to = narrow(from));
        Ok(())
    }
}

impl LibraryCall for Dot {
    fn name(&self) -> &str {
        "dot"
    }

    fn run(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error> {
        match (self.lhs, self.out) {
            (DType::F32, _) => self.plain::<f32>(operands, context),
            (DType::F64, _) => self.plain::<f64>(operands, context),
            (DType::C64, _) => self.plain::<Complex<f32>>(operands, context),
            (DType::C128, _) => self.plain::<Complex<f64>>(operands, context),
            (DType::S8, DType::S8) => self.narrowed::<i8, _>(operands, context, |sum| sum as i8),
            (DType::S16, _) => self.narrowed::<i16, _>(operands, context, |sum| sum as i16),
            (DType::S32, _) => self.plain::<i32>(operands, context),
            (DType::S64, _) => self.plain::<i64>(operands, context),
            (DType::U8, DType::U8) => self.narrowed::<u8, _>(operands, context, |sum| sum as u8),
            (DType::U16, _) => self.narrowed::<u16, _>(operands, context, |sum| sum as u16),
            (DType::U32, _) => self.plain::<u32>(operands, context),
            (DType::U64, _) => self.plain::<u64>(operands, context),
            (DType::S8, _) => self.plain::<i8>(operands, context),
            // The sums are the same bits as i32 and as u32.
            (DType::U8, _) => self.plain::<u8>(operands, context),
            (DType::F16, DType::F16) => self.through(operands, context, f16::to_f32, f16::from_f32),
            (DType::BF16, DType::BF16) => self.through(operands, context, bf16::to_f32, bf16::from_f32),
            (DType::F16, _) => self.through(operands, context, f16::to_f32, |x: f32| x),
            (DType::BF16, _) => self.through(operands, context, bf16::to_f32, |x: f32| x),
            _ => unreachable!("new() accepts what is_supported()"),
        }
    }

    fn cost_bytes(&self) -> Option<usize> {
        // A scalar product takes about as long as copying a sixteenth of a byte, and counts as two flops.
        self.flops().map(|flops| (flops / 32) as usize)
    }

    fn flops(&self) -> Option<u64> {
        let Sizes { rows, columns, inner } = self.sizes;
        let sizes = [rows, columns, inner, self.batch_count, 2];
        Some(sizes.iter().fold(1, |product: u64, &size| product.saturating_mul(size as u64)))
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Whether products of these element types are supported.
fn is_supported(from: DType, to: DType) -> bool {
    use DType::{BF16, C64, C128, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    match from {
        F32 | F64 | C64 | C128 | S16 | S32 | S64 | U16 | U32 | U64 => from == to,
        S8 => matches!(to, S8 | S32),
        U8 => matches!(to, U8 | S32 | U32),
        F16 | BF16 => to == from || to == F32,
        _ => false,
    }
}

/// The axes as indices. `None`: an axis does not exist, or occurs twice.
fn known_axes(axes: &[i64], array: &Array) -> Option<Vec<usize>> {
    let known: Option<Vec<usize>> =
        axes.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < array.shape.rank())).collect();
    known.filter(|known| known.iter().enumerate().all(|(at, axis)| !known[..at].contains(axis)))
}

/// Merges the axes, outermost first, into one size and one stride. `None`: they are not contiguous in memory.
fn collapse(array: &Array, axes: &[usize]) -> Option<(usize, usize)> {
    let (dims, strides) = (array.dims(), array.strides());
    let total: usize = axes.iter().map(|&axis| dims[axis]).product();
    let mut axes = axes.iter().rev().filter(|&&axis| dims[axis] != 1);
    let Some(&last) = axes.next() else { return Some((1, 1)) };
    let mut expected = dims[last] * strides[last];
    for &axis in axes {
        if strides[axis] != expected && total != 0 {
            return None;
        }
        expected = expected.saturating_mul(dims[axis]);
    }
    Some((total, strides[last]))
}
