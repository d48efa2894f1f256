//! Convolution as a matrix product: each patch of the input under the kernel's window is a row, and the rows are
//! multiplied with the kernel.
//!
//! Where the input is dilated, most of a patch is gaps. So the places of the output are divided by what is not a gap
//! there ([`axis`]), and each part ([`patches`]) is a product with those rows of the kernel that meet elements. Rows
//! are gathered in blocks that fit the cache, and the client's threads share the blocks. 16-bit numbers are multiplied
//! and summed as f32. Sums are in another order than XLA's, so their last bits differ.

#![allow(unsafe_code, reason = "operands are memory by address")]

mod axis;
mod patches;
#[cfg(test)]
mod tests;

use std::ops::Range;

use half::{bf16, f16};
use purlin_array::DType;
use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use self::axis::Axis;
use self::patches::{Channels, Part};
use super::elements::{Plain, read, write};
use super::gemm::{Matrix, Product, Shared, Sizes, TILE};
use crate::module::Array;
use crate::proto::ConvolutionProto;

/// The number of patch elements in a block.
const BLOCK: usize = 1 << 16;

/// The least work for one thread, in scalar products, and in copied elements.
const LEAST_PRODUCTS: usize = 1 << 17;
const LEAST_COPIED: usize = 1 << 15;

/// To gather an element takes as long as this many scalar products, about.
const GATHERED: usize = 16;

/// Units of work for each thread: more than one, because threads are not equally fast.
const UNITS_PER_THREAD: usize = 4;

/// More parts than these are refused: each packs a kernel of its own. A window that moves by 64 in two dimensions, the
/// other way around, has as many.
const MAX_PARTS: usize = 4096;

/// A convolution whose dimensions are checked.
#[derive(Debug)]
pub(crate) struct Convolution {
    dtype: DType,
    groups: usize,
    /// The channels of one group, of the input and of the output.
    channels: [usize; 2],
    /// The strides of the input's channel, of the kernel's input and output channel, and of the output's channel.
    input: usize,
    kernel: [usize; 2],
    output: usize,
    /// The number of taps of the window.
    window: usize,
    parts: Vec<Part>,
}

impl Convolution {
    pub(crate) fn new(proto: &ConvolutionProto, input: &Array, kernel: &Array, output: &Array) -> Result<Self, String> {
        let refused =
            |what: &str| format!("a convolution of {} by {} to {}: {what}", input.shape, kernel.shape, output.shape);
        let (Some(dims), Some(window)) = (&proto.dimensions, &proto.window) else {
            return Err(refused("its dimensions are missing"));
        };
        let rank = window.dimensions.len();
        let mut axes = [
            (input, vec![dims.input_batch, dims.input_feature], &dims.input_spatial),
            (kernel, vec![dims.kernel_input_feature, dims.kernel_output_feature], &dims.kernel_spatial),
            (output, vec![dims.output_batch, dims.output_feature], &dims.output_spatial),
        ];
        let mut found = Vec::new();
        for (array, axes, spatial) in &mut axes {
            axes.extend_from_slice(spatial);
            let mut sorted = axes.clone();
            sorted.sort_unstable();
            if axes.len() != rank + 2 || sorted.into_iter().ne(0..array.shape.rank() as i64) {
                return Err(refused("dimensions that there are not"));
            }
            let (sizes, strides) = (array.dims(), array.strides());
            found.push(axes.iter().map(|&axis| (sizes[axis as usize], strides[axis as usize])).collect::<Vec<_>>());
        }
        let [input_axes, kernel_axes, output_axes] = [&found[0], &found[1], &found[2]];
        let groups = usize::try_from(proto.feature_group_count.max(1)).unwrap_or(usize::MAX);
        let channels = [kernel_axes[0].0, kernel_axes[1].0 / groups];
        let agree = input_axes[0].0 == output_axes[0].0
            && input_axes[1].0 == channels[0].saturating_mul(groups)
            && kernel_axes[1].0 == output_axes[1].0
            && kernel_axes[1].0.is_multiple_of(groups);
        let dtype = input.shape.dtype();
        let same = [kernel, output].iter().all(|array| array.shape.dtype() == dtype);
        if !agree || !same || !matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16) {
            return Err(refused("sizes that do not agree, or elements of these types"));
        }
        let [(batch, input_stride), (_, output_stride)] = [input_axes[0], output_axes[0]];
        let mut axes = vec![Axis::batch(batch, input_stride, output_stride)];
        for (at, window) in window.dimensions.iter().enumerate() {
            let [input, kernel, output] = [input_axes[at + 2], kernel_axes[at + 2], output_axes[at + 2]];
            let dilations = [window.stride, window.window_dilation, window.base_dilation].map(|number| number.max(1));
            let bound = 1 << 40;
            let small = dilations.iter().chain([&window.padding_low]).all(|number| number.abs() < bound / 4)
                && [input.0, kernel.0, output.0].iter().all(|&size| (size as i64) < (1 << 20));
            if !small || i64::try_from(kernel.0) != Ok(window.size) {
                return Err(refused("a window that does not fit"));
            }
            axes.push(Axis {
                sizes: [input.0, kernel.0, output.0],
                strides: [input.1, kernel.1, output.1],
                stride: dilations[0],
                padding: window.padding_low,
                window_dilation: dilations[1],
                base_dilation: dilations[2],
                is_reversed: window.window_reversal,
            });
        }
        let parts = parts(&axes).ok_or_else(|| refused("a base dilation of more phases than are supported"))?;
        Ok(Self {
            dtype,
            groups,
            channels,
            input: input_axes[1].1,
            kernel: [kernel_axes[0].1, kernel_axes[1].1],
            output: output_axes[1].1,
            window: axes.iter().map(|axis| axis.sizes[1]).product(),
            parts,
        })
    }

    fn convolve<T: Product<Sum = T>>(
        &self,
        input: &[T],
        kernel: &[T],
        output: &mut [T],
        context: &LibraryContext<'_>,
    ) -> Result<(), Error> {
        if self.window * self.channels[0] == 0 || output.is_empty() {
            output.fill(T::ZERO);
            return Ok(());
        }
        let kernels = self.kernels(kernel, context)?;
        let units = self.units(context.thread_count());
        let out = Shared(output.as_mut_ptr());
        context.parallel_for(units.len(), 1, &|range| {
            let mut scratch = Scratch::default();
            for Unit { part, group, places } in &units[range] {
                let kernel = kernels[*part].as_deref().unwrap_or(kernel);
                // SAFETY: new() has checked that the dimensions are those of the output, and no other unit has these
                // places of this group.
                unsafe { self.run_unit(&self.parts[*part], *group, places.clone(), input, kernel, out, &mut scratch) };
            }
            Ok(())
        })
    }

    /// The work, divided for this number of threads.
    fn units(&self, threads: usize) -> Vec<Unit> {
        let mut units = Vec::new();
        for (part, Part { places, taps, .. }) in self.parts.iter().enumerate() {
            let inner = (taps * self.channels[0]).max(1);
            let cost = inner.saturating_mul(self.channels[1] + GATHERED);
            let most = (BLOCK / inner)
                .clamp(1, LEAST_PRODUCTS.div_ceil(cost).max(places.div_ceil(threads * UNITS_PER_THREAD)));
            // As even as whole tiles allow.
            let rows = places.div_ceil(places.div_ceil(most)).next_multiple_of(TILE.1).min(*places);
            for group in 0..self.groups {
                let begins = (0..*places).step_by(rows);
                units.extend(begins.map(|begin| Unit {
                    part,
                    group,
                    places: begin..places.min(&(begin + rows)).to_owned(),
                }));
            }
        }
        units
    }

    /// Computes some places of the output.
    ///
    /// # Safety
    /// `out` is an array of the output's shape, valid for writes, and no other thread accesses these places of the
    /// group.
    #[allow(clippy::too_many_arguments, reason = "a unit of work, and the arrays that it is about")]
    unsafe fn run_unit<T: Product<Sum = T>>(
        &self,
        part: &Part,
        group: usize,
        places: Range<usize>,
        input: &[T],
        kernel: &[T],
        out: Shared<*mut T>,
        scratch: &mut Scratch<T>,
    ) {
        let [inputs, outputs] = self.channels;
        let inner = part.taps * inputs;
        let out_begin = group * outputs * self.output;
        // SAFETY: the caller's promise.
        let write = |at: usize, channel: usize, value: T| unsafe {
            *out.get().add(out_begin + at + channel * self.output) = value;
        };
        if inner == 0 {
            part.each_output(places, |at| (0..outputs).for_each(|channel| write(at, channel, T::ZERO)));
            return;
        }
        let elements = &input[group * inputs * self.input..];
        let sizes = Sizes { rows: places.len(), columns: outputs, inner };
        let lhs = match part.even_input() {
            Some((first, row)) => {
                Matrix { first: elements[first + places.start * row..].as_ptr(), row, column: self.input }
            }
            None => {
                let channels = Channels { elements, count: inputs, stride: self.input };
                part.gather(&channels, T::ZERO, places.clone(), &mut scratch.rows);
                Matrix { first: scratch.rows.as_ptr(), row: inner, column: 1 }
            }
        };
        let rhs = Matrix { first: kernel[group * inner * outputs..].as_ptr(), row: outputs, column: 1 };
        if let Some((first, row)) = part.even_output() {
            // SAFETY: the rows are vectors of the scratch or elements of the input, and the kernel has a row for each
            // tap and channel. The result is as the caller promises.
            unsafe {
                let first = out.get().add(out_begin + first + places.start * row);
                T::multiply(sizes, lhs, rhs, Matrix { first, row, column: self.output });
            }
            return;
        }
        scratch.products.resize(sizes.rows * outputs, T::ZERO);
        let first = scratch.products.as_mut_ptr();
        // SAFETY: as above, and the products have these rows and columns.
        unsafe { T::multiply(sizes, lhs, rhs, Matrix { first, row: outputs, column: 1 }) };
        let mut rows = scratch.products.chunks_exact(outputs);
        part.each_output(places, |at| {
            let row = rows.next().into_iter().flatten();
            row.enumerate().for_each(|(channel, &value)| write(at, channel, value));
        });
    }

    /// For each part, the kernel with a row for each tap and channel; the groups follow each other. `None`: the kernel
    /// is that already.
    fn kernels<T: Product<Sum = T>>(
        &self,
        kernel: &[T],
        context: &LibraryContext<'_>,
    ) -> Result<Vec<Option<Vec<T>>>, Error> {
        let [inputs, outputs] = self.channels;
        let pack = |part: &Part| {
            let in_order = self.groups == 1 && self.kernel == [outputs, 1];
            if in_order && part.has_whole_kernel(self.window, inputs * outputs) {
                return Ok(None);
            }
            let mut packed = vec![T::ZERO; self.groups * part.taps * inputs * outputs];
            let to = Shared(packed.as_mut_ptr());
            let rows = self.groups * part.taps * inputs;
            context.parallel_for(rows, (LEAST_COPIED / outputs.max(1)).max(1), &|range| {
                for row in range {
                    let (group, tap, channel) = (row / inputs / part.taps, row / inputs % part.taps, row % inputs);
                    let begin = part.kernel(tap) + channel * self.kernel[0] + group * outputs * self.kernel[1];
                    for column in 0..outputs {
                        // SAFETY: the vector has these rows, and no other call has this one.
                        unsafe { *to.get().add(row * outputs + column) = kernel[begin + column * self.kernel[1]] };
                    }
                }
                Ok(())
            })?;
            Ok(Some(packed))
        };
        self.parts.iter().map(pack).collect()
    }

    /// Computes a convolution of 16-bit elements.
    fn through<I: Plain>(
        &self,
        operands: &[OperandBytes],
        context: &LibraryContext<'_>,
        widen: impl Fn(I) -> f32,
        narrow: impl Fn(f32) -> I,
    ) -> Result<(), Error> {
        // SAFETY: the command reads the first two operands and writes the third, of the type that the caller has looked
        // up.
        let (input, kernel, out) =
            unsafe { (read::<I>(&operands[0]), read::<I>(&operands[1]), write::<I>(&operands[2])) };
        let input: Vec<f32> = input.iter().map(|&x| widen(x)).collect();
        let kernel: Vec<f32> = kernel.iter().map(|&x| widen(x)).collect();
        let mut wide = vec![0.0; out.len()];
        self.convolve(&input, &kernel, &mut wide, context)?;
        out.iter_mut().zip(wide).for_each(|(to, from)| *to = narrow(from));
        Ok(())
    }

    fn plain<T: Product<Sum = T>>(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error> {
        // SAFETY: the command reads the first two operands and writes the third, of the type that the caller has looked
        // up.
        let (input, kernel, out) =
            unsafe { (read::<T>(&operands[0]), read::<T>(&operands[1]), write::<T>(&operands[2])) };
        self.convolve(input, kernel, out, context)
    }
}

/// Some places of the output, for one group of channels.
#[derive(Debug)]
struct Unit {
    part: usize,
    group: usize,
    places: Range<usize>,
}

/// Memory that a thread uses for one unit after the other.
#[derive(Debug)]
struct Scratch<T> {
    rows: Vec<T>,
    products: Vec<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), products: Vec::new() }
    }
}

/// Each combination of one phase of each dimension. `None`: there are too many.
fn parts(axes: &[Axis]) -> Option<Vec<Part>> {
    let counts: Vec<usize> = axes.iter().map(Axis::phase_count).collect();
    let count = counts.iter().try_fold(1, |product: usize, &count| product.checked_mul(count))?;
    let part = |number: usize| {
        let mut rest = number;
        let phase = |(axis, count): (&Axis, &usize)| {
            let phase = axis.phase(rest % count);
            rest /= count;
            phase
        };
        Part::new(axes.iter().zip(&counts).map(phase).collect())
    };
    (count <= MAX_PARTS).then(|| (0..count).map(part).collect())
}

impl LibraryCall for Convolution {
    fn name(&self) -> &str {
        "convolution"
    }

    fn run(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error> {
        match self.dtype {
            DType::F32 => self.plain::<f32>(operands, context),
            DType::F64 => self.plain::<f64>(operands, context),
            DType::F16 => self.through(operands, context, f16::to_f32, f16::from_f32),
            DType::BF16 => self.through(operands, context, bf16::to_f32, bf16::from_f32),
            _ => unreachable!("new() accepts no other type"),
        }
    }

    fn cost_bytes(&self) -> Option<usize> {
        self.flops().map(|flops| (flops / 32) as usize)
    }

    fn flops(&self) -> Option<u64> {
        let [inputs, outputs] = self.channels;
        let parts = self.parts.iter().map(|part| (part.places as u64).saturating_mul(part.taps as u64));
        let sizes = [2, self.groups, inputs, outputs];
        Some(sizes.iter().fold(parts.fold(0, u64::saturating_add), |flops, &size| flops.saturating_mul(size as u64)))
    }

    fn is_pure(&self) -> bool {
        true
    }
}
