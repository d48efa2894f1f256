//! Convolution as a matrix product: each patch of the input under the kernel's window is a row, and the rows are
//! multiplied with the kernel.
//!
//! Patches are gathered in blocks that fit the cache, and the client's threads share the blocks. 16-bit numbers are
//! multiplied and summed as f32. Sums are in another order than XLA's, so their last bits differ.

#![allow(unsafe_code, reason = "operands are memory by address")]

use half::{bf16, f16};
use purlin_array::DType;
use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::elements::{Plain, read, write};
use super::gemm::{Matrix, Product, Shared, Sizes};
use crate::module::Array;
use crate::proto::ConvolutionProto;

/// The number of patch elements in a block.
const BLOCK: usize = 1 << 16;

/// A convolution whose dimensions are checked.
#[derive(Debug)]
pub(crate) struct Convolution {
    dtype: DType,
    batch: usize,
    groups: usize,
    /// The channels of one group, of the input and of the output.
    channels: [usize; 2],
    /// The strides of the input's batch and channel, of the kernel's input and output channel, and of the output's
    /// batch and channel.
    input: [usize; 2],
    kernel: [usize; 2],
    output: [usize; 2],
    spatial: Vec<Spatial>,
}

/// A dimension along which the window moves.
#[derive(Debug)]
struct Spatial {
    /// The sizes of input, window and output.
    sizes: [usize; 3],
    /// The strides of the three arrays.
    strides: [usize; 3],
    stride: i64,
    padding: i64,
    window_dilation: i64,
    base_dilation: i64,
    is_reversed: bool,
}

impl Spatial {
    /// The index of the input that the window's element `tap` covers, for that index of the output. `None`: it is in
    /// the padding, or in a gap of the dilation.
    fn input(&self, output: usize, tap: usize) -> Option<usize> {
        let at = output as i64 * self.stride + tap as i64 * self.window_dilation - self.padding;
        let inside = at >= 0 && at % self.base_dilation == 0;
        usize::try_from(at / self.base_dilation).ok().filter(|&at| inside && at < self.sizes[0])
    }
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
        let mut spatial = Vec::new();
        for (at, window) in window.dimensions.iter().enumerate() {
            let [input, kernel, output] = [input_axes[at + 2], kernel_axes[at + 2], output_axes[at + 2]];
            let dilations = [window.stride, window.window_dilation, window.base_dilation].map(|number| number.max(1));
            let bound = 1 << 40;
            let small = dilations.iter().chain([&window.padding_low]).all(|number| number.abs() < bound / 4)
                && [input.0, kernel.0, output.0].iter().all(|&size| (size as i64) < (1 << 20));
            if !small || i64::try_from(kernel.0) != Ok(window.size) {
                return Err(refused("a window that does not fit"));
            }
            spatial.push(Spatial {
                sizes: [input.0, kernel.0, output.0],
                strides: [input.1, kernel.1, output.1],
                stride: dilations[0],
                padding: window.padding_low,
                window_dilation: dilations[1],
                base_dilation: dilations[2],
                is_reversed: window.window_reversal,
            });
        }
        Ok(Self {
            dtype,
            batch: input_axes[0].0,
            groups,
            channels,
            input: [input_axes[0].1, input_axes[1].1],
            kernel: [kernel_axes[0].1, kernel_axes[1].1],
            output: [output_axes[0].1, output_axes[1].1],
            spatial,
        })
    }

    fn size(&self, which: usize) -> usize {
        self.spatial.iter().map(|axis| axis.sizes[which]).product()
    }

    /// Converts a linear place in the spatial dimensions of array `which` to an index, the innermost dimension last.
    fn index(&self, which: usize, mut place: usize, index: &mut [usize]) {
        for (at, axis) in index.iter_mut().zip(&self.spatial).rev() {
            *at = place % axis.sizes[which];
            place /= axis.sizes[which];
        }
    }

    fn convolve<T: Product<Sum = T>>(
        &self,
        input: &[T],
        kernel: &[T],
        output: &mut [T],
        context: &LibraryContext<'_>,
    ) -> Result<(), Error> {
        let [inputs, outputs] = self.channels;
        let (taps, places) = (self.size(1), self.size(2));
        let inner = taps * inputs;
        if inner == 0 || output.is_empty() {
            output.fill(T::ZERO);
            return Ok(());
        }
        let packed = if self.is_packed() { Vec::new() } else { self.pack(kernel) };
        let kernel = if packed.is_empty() { kernel } else { &packed };
        // Blocks of one size, and an even number of them, so that threads are done at the same time.
        let blocks = places.div_ceil((BLOCK / inner).clamp(1, places)).next_multiple_of(2).min(places);
        let rows = places.div_ceil(blocks);
        let blocks = places.div_ceil(rows);
        let places_apart = self.places_apart();
        let out = Shared(output.as_mut_ptr());
        context.parallel_for(self.batch * self.groups * blocks, 1, &|range| {
            let mut patches = vec![T::ZERO; rows * inner];
            let mut products = vec![T::ZERO; if places_apart.is_some() { 0 } else { rows * outputs }];
            let (mut place_index, mut tap_index) = (vec![0; self.spatial.len()], vec![0; self.spatial.len()]);
            for unit in range {
                let (entry, group, block) = (unit / blocks / self.groups, unit / blocks % self.groups, unit % blocks);
                let block = block * rows..((block + 1) * rows).min(places);
                for (patch, place) in patches.chunks_exact_mut(inner).zip(block.clone()) {
                    self.index(2, place, &mut place_index);
                    for (tap, to) in patch.chunks_exact_mut(inputs).enumerate() {
                        self.index(1, tap, &mut tap_index);
                        let axes = self.spatial.iter().zip(&place_index).zip(&tap_index);
                        let at: Option<usize> = axes
                            .map(|((axis, &place), &tap)| axis.input(place, tap).map(|at| at * axis.strides[0]))
                            .sum();
                        let begin = at.map(|at| at + entry * self.input[0] + group * inputs * self.input[1]);
                        match begin {
                            Some(begin) if self.input[1] == 1 => to.copy_from_slice(&input[begin..begin + inputs]),
                            Some(begin) => to
                                .iter_mut()
                                .enumerate()
                                .for_each(|(channel, to)| *to = input[begin + channel * self.input[1]]),
                            None => to.fill(T::ZERO),
                        }
                    }
                }
                let sizes = Sizes { rows: block.len(), columns: outputs, inner };
                let lhs = Matrix { first: patches.as_ptr(), row: inner, column: 1 };
                let rhs = Matrix { first: kernel[group * inner * outputs..].as_ptr(), row: outputs, column: 1 };
                if let Some(row) = places_apart {
                    let begin = block.start * row + entry * self.output[0] + group * outputs * self.output[1];
                    // SAFETY: the operands are as below. new() has checked that the dimensions are those of the output.
                    // No other unit of work has this entry, group and place.
                    unsafe {
                        let first = out.get().add(begin);
                        T::multiply(sizes, lhs, rhs, Matrix { first, row, column: self.output[1] });
                    }
                    continue;
                }
                // SAFETY: the three matrices have these sizes: two are vectors of this function, and the kernel has a
                // row for each tap and channel.
                unsafe {
                    T::multiply(sizes, lhs, rhs, Matrix { first: products.as_mut_ptr(), row: outputs, column: 1 })
                };
                for (row, place) in products.chunks_exact(outputs).zip(block) {
                    self.index(2, place, &mut place_index);
                    let spatial = self.spatial.iter().zip(&place_index).map(|(axis, &at)| at * axis.strides[2]);
                    let begin = spatial.sum::<usize>() + entry * self.output[0];
                    for (channel, from) in row.iter().enumerate() {
                        // SAFETY: new() has checked that the dimensions are those of the output. No other unit of work
                        // has this entry, group and place.
                        unsafe { *out.get().add(begin + (group * outputs + channel) * self.output[1]) = *from };
                    }
                }
            }
            Ok(())
        })
    }

    /// Whether the kernel has a row for each tap and channel, and a column for each output.
    fn is_packed(&self) -> bool {
        let [inputs, outputs] = self.channels;
        let mut stride = inputs * outputs;
        let mut in_order = self.groups == 1 && self.kernel == [outputs, 1];
        for axis in self.spatial.iter().rev() {
            in_order &= axis.strides[1] == stride && !axis.is_reversed;
            stride *= axis.sizes[1];
        }
        in_order
    }

    /// The kernel with a row for each tap and channel, whatever its layout. The groups follow each other.
    fn pack<T: Product<Sum = T>>(&self, kernel: &[T]) -> Vec<T> {
        let [inputs, outputs] = self.channels;
        let inner = self.size(1) * inputs;
        let mut packed = vec![T::ZERO; self.groups * inner * outputs];
        let mut tap_index = vec![0; self.spatial.len()];
        for (row, to) in packed.chunks_exact_mut(outputs).enumerate() {
            let (group, tap, channel) = (row / inner, row % inner / inputs, row % inputs);
            self.index(1, tap, &mut tap_index);
            let taps = self.spatial.iter().zip(&tap_index);
            let taps =
                taps.map(|(axis, &tap)| axis.strides[1] * if axis.is_reversed { axis.sizes[1] - 1 - tap } else { tap });
            let begin = channel * self.kernel[0] + taps.sum::<usize>();
            let column = |at: usize| (group * outputs + at) * self.kernel[1];
            to.iter_mut().enumerate().for_each(|(at, to)| *to = kernel[begin + column(at)]);
        }
        packed
    }

    /// The distance between consecutive places in the output. `None`: it is not the same for all of them.
    fn places_apart(&self) -> Option<usize> {
        let innermost = self.spatial.last()?.strides[2];
        let mut stride = innermost;
        for axis in self.spatial.iter().rev() {
            if axis.sizes[2] != 1 && axis.strides[2] != stride {
                return None;
            }
            stride *= axis.sizes[2];
        }
        Some(innermost)
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
        let sizes = [2, self.batch, self.groups, inputs, outputs, self.size(1), self.size(2)];
        Some(sizes.iter().fold(1, |product: u64, &size| product.saturating_mul(size as u64)))
    }

    fn is_pure(&self) -> bool {
        true
    }
}
