//! A reduction: combines the elements of an expression.
//!
//! The iteration space is `outer` times `reduced` times `inner` elements, and the result `outer` times `inner`. If
//! `inner` is 1, the elements of a result follow each other, and a block is folded in many chains. Else rows of `inner`
//! elements are combined with each other. f32 sums are made of short ones, which are added up as f64. A reduction to
//! few results is divided into `parts`, which threads share; their number depends on the sizes alone, so that results
//! do not depend on the threads.

#![allow(unsafe_code, reason = "operands are memory by address")]

use purlin_array::DType;
use purlin_base::Error;
use purlin_program::LibraryContext;

use super::expression::Expression;
use super::lanes::{Class, Fold, Lane};
use super::machine::{BLOCK, Machine, Registers, store, width};
use super::place::{Memory, Shared, Spot};

/// The work of one task, in additions.
pub(super) const GRAIN: usize = 1 << 15;
/// The work of one part.
const PART: usize = 1 << 16;
const MOST_PARTS: usize = 64;
/// The rows that are combined as they are, before they are widened.
const ROWS: usize = 64;

/// A reduction.
#[derive(Debug)]
pub(super) struct Reduce {
    pub(super) fold: Fold,
    pub(super) expression: Expression,
    pub(super) outer: usize,
    pub(super) reduced: usize,
    pub(super) inner: usize,
    /// One element of the result's type.
    pub(super) init: Spot,
    pub(super) out: Spot,
    pub(super) dtype: DType,
    pub(super) parts: usize,
    /// Eight bytes for each result and part, if there are several parts.
    pub(super) partials: Spot,
}

/// The number of parts into which a reduction is divided.
pub(super) fn parts(outer: usize, reduced: usize, inner: usize, cost: usize) -> usize {
    let work = outer.saturating_mul(reduced).saturating_mul(inner).saturating_mul(cost);
    let tasks = outer.saturating_mul(inner.div_ceil(BLOCK));
    if tasks >= 8 { 1 } else { (work / PART).clamp(1, MOST_PARTS).min(reduced.max(1)) }
}

impl Reduce {
    pub(super) fn run(&self, memory: &Memory<'_>, context: &LibraryContext<'_>) -> Result<(), Error> {
        match self.expression.class() {
            Class::F32 => self.folded::<f32>(memory, context),
            Class::F64 => self.folded::<f64>(memory, context),
            Class::I32 => self.folded::<i32>(memory, context),
        }
    }

    /// The columns of a task.
    fn columns(&self) -> usize {
        self.inner.min(BLOCK)
    }

    fn folded<T: Lane>(&self, memory: &Memory<'_>, context: &LibraryContext<'_>) -> Result<(), Error> {
        let results = self.outer * self.inner;
        if results == 0 {
            return Ok(());
        }
        // SAFETY: the plan says that an element of the result's type lies there, which no step writes now.
        let init: T = unsafe { load(self.dtype, memory.address(self.init)) };
        let out = Shared(memory.address(self.out));
        let write = |at: usize, count: usize, values: &[T::Wide]| {
            let mut narrow = [T::identity(self.fold); BLOCK];
            for (to, &value) in narrow.iter_mut().zip(values) {
                *to = T::narrow(T::combine(self.fold, init.widen(), value));
            }
            // SAFETY: the result has `results` elements, and each task writes its own.
            unsafe { store(self.dtype, narrow.as_ptr().cast(), out.at(at * width(self.dtype)), count) };
        };
        let columns = self.columns();
        let blocks = self.inner.div_ceil(columns);
        if self.parts > 1 {
            let partials = Shared(memory.address(self.partials));
            let tasks = self.parts * self.outer * blocks;
            context.parallel_for(tasks, 1, &|range| {
                let mut registers = Registers::new();
                // SAFETY: the expression was planned for this memory.
                let mut machine = unsafe { Machine::new(&self.expression, memory, &mut registers) };
                for task in range {
                    let (part, row, block) = (task / blocks / self.outer, task / blocks % self.outer, task % blocks);
                    let step = self.reduced.div_ceil(self.parts);
                    let rows = (part * step).min(self.reduced)..((part + 1) * step).min(self.reduced);
                    let first = block * columns;
                    let count = columns.min(self.inner - first);
                    let mut sums = [T::identity(self.fold).widen(); BLOCK];
                    self.block::<T>(&mut machine, row, rows, first, &mut sums[..count]);
                    let at = part * results + row * self.inner + first;
                    // SAFETY: the plan has eight bytes for each result of each part; each task writes its own.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            sums.as_ptr(),
                            partials.at(at * size_of::<T::Wide>()).cast(),
                            count,
                        )
                    };
                }
                Ok(())
            })?;
            // SAFETY: the tasks have written all of them.
            let partials: &[T::Wide] =
                unsafe { std::slice::from_raw_parts(partials.at(0).cast(), self.parts * results) };
            for begin in (0..results).step_by(BLOCK) {
                let count = BLOCK.min(results - begin);
                let mut sums = [T::identity(self.fold).widen(); BLOCK];
                for part in partials.chunks_exact(results) {
                    for (sum, &partial) in sums.iter_mut().zip(&part[begin..begin + count]) {
                        *sum = T::combine(self.fold, *sum, partial);
                    }
                }
                write(begin, count, &sums[..count]);
            }
            return Ok(());
        }
        let size = self.reduced * self.inner;
        // Several small results are evaluated at once.
        let group = if blocks == 1 && size > 0 { (BLOCK / size).clamp(1, BLOCK / self.inner) } else { 1 };
        let tasks = self.outer.div_ceil(group) * blocks;
        let cost = (group * self.reduced * columns).saturating_mul(self.expression.cost).max(1);
        context.parallel_for(tasks, (GRAIN / cost).max(1), &|range| {
            if size == 0 {
                for task in range {
                    let (row, first) = (task / blocks, task % blocks * columns);
                    let count = columns.min(self.inner - first);
                    write(row * self.inner + first, count, &[T::identity(self.fold).widen(); BLOCK][..count]);
                }
                return Ok(());
            }
            let mut registers = Registers::new();
            // SAFETY: the expression was planned for this memory.
            let mut machine = unsafe { Machine::new(&self.expression, memory, &mut registers) };
            let mut sums = [T::identity(self.fold).widen(); BLOCK];
            for task in range {
                if group > 1 {
                    let rows = task * group..((task + 1) * group).min(self.outer);
                    self.group::<T>(&mut machine, rows.clone(), &mut sums);
                    write(rows.start * self.inner, rows.len() * self.inner, &sums);
                } else {
                    let (row, first) = (task / blocks, task % blocks * columns);
                    let count = columns.min(self.inner - first);
                    self.block::<T>(&mut machine, row, 0..self.reduced, first, &mut sums[..count]);
                    write(row * self.inner + first, count, &sums[..count]);
                }
            }
            Ok(())
        })
    }

    /// Reduces whole rows of `outer`, all of whose elements are one block.
    fn group<T: Lane>(&self, machine: &mut Machine<'_>, rows: std::ops::Range<usize>, sums: &mut [T::Wide]) {
        let size = self.reduced * self.inner;
        // SAFETY: the elements lie in the iteration space, and are at most a block.
        let elements: &[T] = unsafe { elements(machine, rows.start * size, rows.len() * size) };
        let mut near = [T::identity(self.fold); BLOCK];
        let near = &mut near[..self.inner];
        for (row, sums) in elements.chunks_exact(size).zip(sums.chunks_exact_mut(self.inner)) {
            if self.inner == 1 {
                sums[0] = T::fold(self.fold, row);
                continue;
            }
            near.fill(T::identity(self.fold));
            row.chunks_exact(self.inner).for_each(|row| T::accumulate(self.fold, near, row));
            sums.iter_mut().zip(&*near).for_each(|(sum, near)| *sum = near.widen());
        }
    }

    /// Reduces rows `rows` of an outer row, for some columns, which begin at `first`.
    fn block<T: Lane>(
        &self,
        machine: &mut Machine<'_>,
        outer: usize,
        rows: std::ops::Range<usize>,
        first: usize,
        sums: &mut [T::Wide],
    ) {
        let identity = T::identity(self.fold);
        sums.fill(identity.widen());
        let begin = outer * self.reduced;
        if self.inner == 1 {
            let block = machine.block();
            for from in rows.clone().step_by(block) {
                let count = block.min(rows.end - from);
                // SAFETY: the elements lie in the iteration space.
                let elements: &[T] = unsafe { elements(machine, begin + from, count) };
                sums[0] = T::combine(self.fold, sums[0], T::fold(self.fold, elements));
            }
            return;
        }
        // Whole rows at once if all columns are wanted, else one row at once.
        let columns = sums.len();
        let at_once = if columns == self.inner { (machine.block() / columns).clamp(1, ROWS) } else { 1 };
        let mut near = [identity; BLOCK];
        let near = &mut near[..columns];
        let mut since = 0;
        for from in rows.clone().step_by(at_once) {
            let count = at_once.min(rows.end - from);
            // SAFETY: the elements lie in the iteration space.
            let elements: &[T] = unsafe { elements(machine, (begin + from) * self.inner + first, count * columns) };
            elements.chunks_exact(columns).for_each(|row| T::accumulate(self.fold, near, row));
            since += count;
            if since >= ROWS || from + count == rows.end {
                for (sum, near) in sums.iter_mut().zip(near.iter_mut()) {
                    *sum = T::combine(self.fold, *sum, near.widen());
                    *near = identity;
                }
                since = 0;
            }
        }
    }
}

/// Evaluates elements of the expression, whose class is that of `T`.
///
/// # Safety
/// As [`Machine::evaluate`].
unsafe fn elements<'a, T: Lane>(machine: &'a mut Machine<'_>, begin: usize, count: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(machine.evaluate(begin, count, std::ptr::null_mut()).cast(), count) }
}

/// Reads an element of that type, as its class computes it.
///
/// # Safety
/// `from` is an element of the type, whose class is that of `T`.
unsafe fn load<T: Lane>(dtype: DType, from: *const u8) -> T {
    // SAFETY: the caller's promise. The value that is written is of the type's class.
    unsafe {
        let mut value = std::mem::MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr();
        match dtype {
            DType::BF16 => to.cast::<f32>().write(from.cast::<half::bf16>().read().to_f32()),
            DType::F16 => to.cast::<f32>().write(from.cast::<half::f16>().read().to_f32()),
            DType::S8 => to.cast::<i32>().write(from.cast::<i8>().read().into()),
            DType::U8 => to.cast::<i32>().write(from.read().into()),
            _ => to.write(from.cast::<T>().read()),
        }
        value.assume_init()
    }
}
