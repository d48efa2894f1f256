//! Fft: Fourier transforms of the last dimensions.
//!
//! The spectrum of real numbers keeps only the first half of the last dimension, because the rest is its mirror image.
//! So that dimension is transformed by crate `realfft`. Inverse transforms are divided by the number of elements.

#![allow(unsafe_code, reason = "operands are memory by address")]

use std::fmt;
use std::sync::Arc;

use num_complex::Complex;
use purlin_array::DType;
use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{FftDirection, FftNum, FftPlanner};

use super::elements::{Plain, read, write};
use crate::module::Array;

/// The longest dimension that is supported. The plan of a transform is made when the program is loaded, and its memory
/// grows with the dimension.
const LONGEST: usize = 1 << 22;

/// The kind of transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Forward,
    Inverse,
    /// Real to complex.
    RealForward,
    /// Complex to real.
    RealInverse,
}

/// A transform whose arrays are checked.
#[derive(Debug)]
pub(crate) struct Fft {
    kind: Kind,
    /// The lengths of the transformed dimensions, of the array that is not halved.
    lengths: Vec<usize>,
    plans: Plans,
}

enum Plans {
    F32(Plan<f32>),
    F64(Plan<f64>),
}

struct Plan<T> {
    /// One for each length but the last.
    outer: Vec<Arc<dyn rustfft::Fft<T>>>,
    last: Last<T>,
}

/// The transform of the last dimension.
enum Last<T> {
    Complex(Arc<dyn rustfft::Fft<T>>),
    Forward(Arc<dyn RealToComplex<T>>),
    Inverse(Arc<dyn ComplexToReal<T>>),
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32(_) => "Plans(f32)",
            Self::F64(_) => "Plans(f64)",
        })
    }
}

impl Fft {
    pub(crate) fn new(kind: i32, lengths: &[i64], from: &Array, to: &Array) -> Result<Self, String> {
        let refused = || format!("an fft of kind {kind} and lengths {lengths:?} of {} to {}", from.shape, to.shape);
        let kind = match kind {
            0 => Kind::Forward,
            1 => Kind::Inverse,
            2 => Kind::RealForward,
            3 => Kind::RealInverse,
            _ => return Err(refused()),
        };
        let (full, half, full_dims, half_dims) = match kind {
            Kind::RealForward => (from, to, from.dims(), to.dims()),
            _ => (to, from, to.dims(), from.dims()),
        };
        let lengths: Option<Vec<usize>> = lengths.iter().map(|&length| usize::try_from(length).ok()).collect();
        let lengths = lengths.filter(|lengths| !lengths.is_empty() && lengths.iter().all(|&length| length <= LONGEST));
        let lengths = lengths.ok_or_else(refused)?;
        let is_real = matches!(kind, Kind::RealForward | Kind::RealInverse);
        let mut expected = full_dims.clone();
        if let Some(last) = expected.last_mut().filter(|_| is_real) {
            *last = *last / 2 + 1;
        }
        let is_sound = full_dims.ends_with(&lengths) && half_dims == expected;
        if !is_sound || !from.layout.is_row_major() || !to.layout.is_row_major() || lengths.contains(&0) {
            return Err(refused());
        }
        let plans = match (full.shape.dtype(), half.shape.dtype(), is_real) {
            (DType::C64, DType::C64, false) | (DType::F32, DType::C64, true) => Plans::F32(Plan::new(kind, &lengths)),
            (DType::C128, DType::C128, false) | (DType::F64, DType::C128, true) => {
                Plans::F64(Plan::new(kind, &lengths))
            }
            _ => return Err(refused()),
        };
        Ok(Self { kind, lengths, plans })
    }

    fn transform<T>(&self, plan: &Plan<T>, operands: &[OperandBytes]) -> Result<(), Error>
    where
        T: FftNum + Plain,
        Complex<T>: Plain,
    {
        let (last, outer) = self.lengths.split_last().expect("new() has seen a length");
        let scale = T::one() / T::from_usize(self.lengths.iter().product()).unwrap_or(T::one());
        let half = last / 2 + 1;
        let outer_size: usize = outer.iter().product();
        let zero = Complex::new(T::zero(), T::zero());
        // realfft refuses lengths alone, which are right.
        let failed = |error: realfft::FftError| Error::internal(format!("fft: {error}"));
        // SAFETY: new() has checked the types and lengths of both operands. The command reads the first and writes the
        // second.
        unsafe {
            match &plan.last {
                Last::Complex(along_last) => {
                    let (from, to) = (read::<Complex<T>>(&operands[0]), write::<Complex<T>>(&operands[1]));
                    to.copy_from_slice(from);
                    let mut scratch = vec![zero; along_last.get_inplace_scratch_len()];
                    for entry in to.chunks_exact_mut(outer_size * last) {
                        along_last.process_with_scratch(entry, &mut scratch);
                        along_outer(entry, outer, plan, *last);
                    }
                    if self.kind == Kind::Inverse {
                        to.iter_mut().for_each(|x| *x = *x * scale);
                    }
                }
                Last::Forward(along_last) => {
                    let (from, to) = (read::<T>(&operands[0]), write::<Complex<T>>(&operands[1]));
                    let (mut row, mut scratch) = (vec![T::zero(); *last], along_last.make_scratch_vec());
                    for (from, to) in from.chunks_exact(*last).zip(to.chunks_exact_mut(half)) {
                        row.copy_from_slice(from);
                        along_last.process_with_scratch(&mut row, to, &mut scratch).map_err(failed)?;
                    }
                    to.chunks_exact_mut(outer_size * half).for_each(|entry| along_outer(entry, outer, plan, half));
                }
                Last::Inverse(along_last) => {
                    let (from, to) = (read::<Complex<T>>(&operands[0]), write::<T>(&operands[1]));
                    let (mut work, mut scratch) = (from.to_vec(), along_last.make_scratch_vec());
                    work.chunks_exact_mut(outer_size * half).for_each(|entry| along_outer(entry, outer, plan, half));
                    for (row, to) in work.chunks_exact_mut(half).zip(to.chunks_exact_mut(*last)) {
                        // Numbers without a mirror image have no imaginary part; XLA ignores it, too.
                        row[0].im = T::zero();
                        if last.is_multiple_of(2) {
                            row[half - 1].im = T::zero();
                        }
                        along_last.process_with_scratch(row, to, &mut scratch).map_err(failed)?;
                        to.iter_mut().for_each(|to| *to = *to * scale);
                    }
                }
            }
        }
        Ok(())
    }
}

impl<T: FftNum> Plan<T> {
    /// For one length or more.
    fn new(kind: Kind, lengths: &[usize]) -> Self {
        let direction = match kind {
            Kind::Forward | Kind::RealForward => FftDirection::Forward,
            Kind::Inverse | Kind::RealInverse => FftDirection::Inverse,
        };
        let (&last, outer) = lengths.split_last().expect("new() has seen a length");
        let (mut planner, mut real) = (FftPlanner::new(), RealFftPlanner::new());
        let last = match kind {
            Kind::Forward | Kind::Inverse => Last::Complex(planner.plan_fft(last, direction)),
            Kind::RealForward => Last::Forward(real.plan_fft_forward(last)),
            Kind::RealInverse => Last::Inverse(real.plan_fft_inverse(last)),
        };
        Self { outer: outer.iter().map(|&length| planner.plan_fft(length, direction)).collect(), last }
    }
}

impl LibraryCall for Fft {
    fn name(&self) -> &str {
        "fft"
    }

    fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        match &self.plans {
            Plans::F32(plan) => self.transform(plan, operands),
            Plans::F64(plan) => self.transform(plan, operands),
        }
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Transforms an array along all dimensions but its last, which has `last` elements.
fn along_outer<T: FftNum>(array: &mut [Complex<T>], lengths: &[usize], plan: &Plan<T>, last: usize) {
    let mut stride = last;
    for (&length, along) in lengths.iter().zip(&plan.outer).rev() {
        let mut line = vec![Complex::new(T::zero(), T::zero()); length];
        let mut scratch = vec![Complex::new(T::zero(), T::zero()); along.get_inplace_scratch_len()];
        for group in array.chunks_exact_mut(stride * length) {
            for inner in 0..stride {
                line.iter_mut().enumerate().for_each(|(at, to)| *to = group[inner + at * stride]);
                along.process_with_scratch(&mut line, &mut scratch);
                line.iter().enumerate().for_each(|(at, from)| group[inner + at * stride] = *from);
            }
        }
        stride *= length;
    }
}
