//! Fft: Fourier transforms of the last dimensions.
//!
//! Real transforms are computed by complex ones. The spectrum of real numbers keeps only the first half of the last
//! dimension, because the rest is its mirror image. Inverse transforms are divided by the number of elements.

#![allow(unsafe_code, reason = "operands are memory by address")]

use std::fmt;
use std::sync::Arc;

use num_complex::Complex;
use purlin_array::DType;
use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};
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
    F32(Vec<Arc<dyn rustfft::Fft<f32>>>),
    F64(Vec<Arc<dyn rustfft::Fft<f64>>>),
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
        let direction = match kind {
            Kind::Forward | Kind::RealForward => FftDirection::Forward,
            Kind::Inverse | Kind::RealInverse => FftDirection::Inverse,
        };
        let plans = match (full.shape.dtype(), half.shape.dtype(), is_real) {
            (DType::C64, DType::C64, false) | (DType::F32, DType::C64, true) => Plans::F32(plan(&lengths, direction)),
            (DType::C128, DType::C128, false) | (DType::F64, DType::C128, true) => {
                Plans::F64(plan(&lengths, direction))
            }
            _ => return Err(refused()),
        };
        Ok(Self { kind, lengths, plans })
    }

    fn transform<T>(&self, plans: &[Arc<dyn rustfft::Fft<T>>], operands: &[OperandBytes])
    where
        T: FftNum + Plain,
        Complex<T>: Plain,
    {
        let (last, outer) = self.lengths.split_last().expect("new() has seen a length");
        let (last_plan, outer_plans) = plans.split_last().expect("one for each length");
        let outer_plans = || outer.iter().zip(outer_plans);
        let scale = T::one() / T::from_usize(self.lengths.iter().product()).unwrap_or(T::one());
        let half = last / 2 + 1;
        let outer_size: usize = outer.iter().product();
        let mut row = vec![Complex::new(T::zero(), T::zero()); *last];
        // SAFETY: new() has checked the types and lengths of both operands. The command reads the first and writes the
        // second.
        unsafe {
            match self.kind {
                Kind::Forward | Kind::Inverse => {
                    let (from, to) = (read::<Complex<T>>(&operands[0]), write::<Complex<T>>(&operands[1]));
                    to.copy_from_slice(from);
                    for entry in to.chunks_exact_mut(outer_size * last) {
                        entry.chunks_exact_mut(*last).for_each(|row| last_plan.process(row));
                        along_outer(entry, outer_plans(), *last);
                    }
                    if self.kind == Kind::Inverse {
                        to.iter_mut().for_each(|x| *x = *x * scale);
                    }
                }
                Kind::RealForward => {
                    let (from, to) = (read::<T>(&operands[0]), write::<Complex<T>>(&operands[1]));
                    for (from, to) in from.chunks_exact(*last).zip(to.chunks_exact_mut(half)) {
                        row.iter_mut().zip(from).for_each(|(to, &from)| *to = Complex::new(from, T::zero()));
                        last_plan.process(&mut row);
                        to.copy_from_slice(&row[..half]);
                    }
                    to.chunks_exact_mut(outer_size * half).for_each(|entry| along_outer(entry, outer_plans(), half));
                }
                Kind::RealInverse => {
                    let (from, to) = (read::<Complex<T>>(&operands[0]), write::<T>(&operands[1]));
                    let mut work = from.to_vec();
                    work.chunks_exact_mut(outer_size * half).for_each(|entry| along_outer(entry, outer_plans(), half));
                    for (from, to) in work.chunks_exact(half).zip(to.chunks_exact_mut(*last)) {
                        row[..half].copy_from_slice(from);
                        (half..*last).for_each(|at| row[at] = from[last - at].conj());
                        last_plan.process(&mut row);
                        to.iter_mut().zip(&row).for_each(|(to, from)| *to = from.re * scale);
                    }
                }
            }
        }
    }
}

impl LibraryCall for Fft {
    fn name(&self) -> &str {
        "fft"
    }

    fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        match &self.plans {
            Plans::F32(plans) => self.transform(plans, operands),
            Plans::F64(plans) => self.transform(plans, operands),
        }
        Ok(())
    }

    fn is_pure(&self) -> bool {
        true
    }
}

fn plan<T: FftNum>(lengths: &[usize], direction: FftDirection) -> Vec<Arc<dyn rustfft::Fft<T>>> {
    let mut planner = FftPlanner::new();
    lengths.iter().map(|&length| planner.plan_fft(length, direction)).collect()
}

/// Transforms an array along all dimensions but its last, which has `last` elements.
fn along_outer<'a, T: FftNum>(
    array: &mut [Complex<T>],
    plans: impl DoubleEndedIterator<Item = (&'a usize, &'a Arc<dyn rustfft::Fft<T>>)>,
    last: usize,
) {
    let mut stride = last;
    for (&length, plan) in plans.rev() {
        let mut line = vec![Complex::new(T::zero(), T::zero()); length];
        for group in array.chunks_exact_mut(stride * length) {
            for inner in 0..stride {
                line.iter_mut().enumerate().for_each(|(at, to)| *to = group[inner + at * stride]);
                plan.process(&mut line);
                line.iter().enumerate().for_each(|(at, from)| group[inner + at * stride] = *from);
            }
        }
        stride *= length;
    }
}
