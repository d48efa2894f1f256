//! A dimension along which the window moves, and its phases.
//!
//! For a place of the output, an element of the window (a tap) covers the place
//! `output * stride + tap * window_dilation - padding` of the dilated input, and only one of `base_dilation` places
//! there is an element of the input. So the places of the output fall into phases: those of one phase meet elements of
//! the input with the same taps. Places, taps and what they read are progressions, with one step each.

use std::ops::Range;

/// A dimension along which the window moves.
#[derive(Debug)]
pub(super) struct Axis {
    /// The sizes of input, window and output.
    pub(super) sizes: [usize; 3],
    /// The strides of the three arrays.
    pub(super) strides: [usize; 3],
    pub(super) stride: i64,
    pub(super) padding: i64,
    pub(super) window_dilation: i64,
    pub(super) base_dilation: i64,
    pub(super) is_reversed: bool,
}

/// Some places of the output, and the taps that meet elements of the input there.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// The number of places, the offset of the first in the output, and the distance to the next, in elements.
    pub(super) places: usize,
    pub(super) output: usize,
    pub(super) output_step: usize,
    /// The number of taps, the offset of the first in the kernel, and the distance to the next, in elements.
    pub(super) taps: usize,
    pub(super) kernel: usize,
    pub(super) kernel_step: isize,
    /// The index of the input that the first tap covers at the first place, and the distances to those of the next
    /// place and of the next tap.
    first: i64,
    per_place: i64,
    per_tap: i64,
    /// The number of elements of the input, and their stride.
    size: i64,
    stride: usize,
}

/// What a place reads: a tap of `inside` covers the element `first + tap * per_tap`; the others cover padding.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    pub(super) inside: Range<usize>,
    first: i64,
}

impl Axis {
    /// The dimension of the batch: each entry reads its own.
    pub(super) fn batch(size: usize, input_stride: usize, output_stride: usize) -> Self {
        Self {
            sizes: [size, 1, size],
            strides: [input_stride, 0, output_stride],
            stride: 1,
            padding: 0,
            window_dilation: 1,
            base_dilation: 1,
            is_reversed: false,
        }
    }

    /// The number of phases.
    pub(super) fn phase_count(&self) -> usize {
        let period = self.base_dilation / greatest_divisor(self.stride, self.base_dilation);
        self.sizes[2].min(usize::try_from(period).unwrap_or(usize::MAX))
    }

    /// Phase number `number`: of the places that are `number` more than a multiple of the number of phases.
    pub(super) fn phase(&self, number: usize) -> Phase {
        let ([size, window, places], [input_stride, kernel_stride, output_stride]) = (self.sizes, self.strides);
        let place_step = self.base_dilation / greatest_divisor(self.stride, self.base_dilation);
        let tap_step = self.base_dilation / greatest_divisor(self.window_dilation, self.base_dilation);
        let place = number as i64 * self.stride - self.padding;
        let first_tap = (0..tap_step.min(window as i64))
            .find(|tap| (place + tap * self.window_dilation).rem_euclid(self.base_dilation) == 0);
        let (first_tap, taps) =
            first_tap.map_or((0, 0), |tap| (tap as usize, (window - tap as usize).div_ceil(tap_step as usize)));
        let forwards = kernel_stride as isize * tap_step as isize;
        Phase {
            places: (places - number).div_ceil(place_step as usize),
            output: number * output_stride,
            output_step: output_stride * place_step as usize,
            taps,
            kernel: kernel_stride * if self.is_reversed { window.saturating_sub(1 + first_tap) } else { first_tap },
            kernel_step: if self.is_reversed { -forwards } else { forwards },
            first: (place + first_tap as i64 * self.window_dilation).div_euclid(self.base_dilation),
            per_place: self.stride * place_step / self.base_dilation,
            per_tap: self.window_dilation * tap_step / self.base_dilation,
            size: size as i64,
            stride: input_stride,
        }
    }
}

impl Phase {
    /// What place number `place` of the phase reads.
    pub(super) fn reach(&self, place: usize) -> Reach {
        let first = self.first + place as i64 * self.per_place;
        // The number of taps that cover indices below `bound`.
        let below = |bound: i64| {
            let distance = (bound - first).max(0);
            let taps = if self.per_tap == 1 { distance } else { (distance + self.per_tap - 1) / self.per_tap };
            usize::try_from(taps).map_or(self.taps, |taps| taps.min(self.taps))
        };
        Reach { inside: below(0)..below(self.size), first }
    }

    /// The offset in the input of what a tap inside covers.
    pub(super) fn offset(&self, reach: &Reach, tap: usize) -> usize {
        (reach.first + tap as i64 * self.per_tap) as usize * self.stride
    }

    /// The distance in the input between what a tap covers and what the next one does, in elements.
    pub(super) fn tap_apart(&self) -> usize {
        self.per_tap as usize * self.stride
    }

    /// The distance in the input between what a place reads and what the next one does, in elements.
    pub(super) fn place_apart(&self) -> usize {
        self.per_place as usize * self.stride
    }

    /// The offset in the kernel of tap number `tap` of the phase.
    pub(super) fn kernel(&self, tap: usize) -> usize {
        self.kernel.wrapping_add_signed(self.kernel_step * tap as isize)
    }
}

/// The greatest common divisor of two positive numbers.
fn greatest_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
