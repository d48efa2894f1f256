//! Commands of a wave, and workgroups of a kernel, on several threads of the client.
//!
//! The calling thread takes part, and waits for no thread to begin, so neither runs inside runs nor busy threads block
//! it. The outcome is that of the program's order: of several commands or workgroups that fail, the first in that order
//! counts. A command that fails does not end those before it, because one of these could fail, too.

use std::ops::Range;

use smallvec::SmallVec;

use super::{Failure, Interpreter, Road, outcome};
use crate::command::Sequence;
use crate::kernel::{KernelArgument, KernelDim3, KernelFrame, KernelFunction};
use crate::operand::Operand;
use crate::plan;
use crate::watch::Watch;
use purlin_base::sync::Mutex;
use purlin_base::{Error, panics};

/// Addresses that several threads use.
#[derive(Clone, Copy)]
struct Shared<'a, T>(&'a [T]);

// SAFETY: the addresses are those of a run, whose memory any thread may access. Commands of a wave, and workgroups of a
// kernel, write no byte that another one accesses: the plan and the kernel's contract say so.
unsafe impl<T> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// The addresses. It is a method, so that closures capture the whole value.
    fn get(self) -> &'a [T] {
        self.0
    }
}

/// The first command, in the program's order, that has failed so far.
#[derive(Default)]
struct First(Mutex<Option<(usize, Box<Failure>)>>);

impl First {
    /// Whether command `index` could be the first that fails.
    fn may_be(&self, index: usize) -> bool {
        self.0.lock().as_ref().is_none_or(|(first, _)| index < *first)
    }

    fn record(&self, index: usize, failure: Box<Failure>) {
        let mut first = self.0.lock();
        if first.as_ref().is_none_or(|(first, _)| index < *first) {
            *first = Some((index, failure));
        }
    }
}

impl<R: Road> Interpreter<'_, R> {
    /// Executes the waves of `sequence`, one after the other.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    #[cold]
    pub(super) unsafe fn waves(&mut self, sequence: &Sequence) -> Result<(), Box<Failure>> {
        let road = self.road;
        let Some(watch) = road.watch() else { unreachable!("a straight program has no waves") };
        let (first, bases, context) = (First::default(), Shared(self.bases), self.context);
        for wave in sequence.waves() {
            let chunk = |number: usize| {
                let mut interpreter =
                    Interpreter { bases: bases.get(), context, road: watch, arguments: SmallVec::new() };
                for &index in wave.chunks[number].iter().filter(|&&index| first.may_be(index)) {
                    let execute = || {
                        let command = &sequence.commands()[index];
                        // SAFETY: the caller's promise. Commands of a wave are independent.
                        if let Err(failure) = unsafe { interpreter.step(sequence, index, command) } {
                            first.record(index, failure);
                        }
                        Ok(())
                    };
                    if let Err(panicked) =
                        panics::answered(|| format!("the program '{}'", watch.program().name()), execute)
                    {
                        first.record(index, Failure::of_run(panicked));
                    }
                }
            };
            let chunks = |range: Range<usize>| {
                range.for_each(chunk);
                Ok(())
            };
            if let Err(error) = context.parallel_for(wave.chunks.len(), 1, &chunks) {
                // Chunks do not fail. So the process has forked, and the other threads are not there.
                first.record(0, Failure::of_run(error));
            }
        }
        let failure = first.0.lock().take();
        failure.map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// The number of workgroups that one thread executes at a time; `None`: all of them.
    pub(super) fn grain(&self, watch: &Watch<'_>, [x, y, z]: [u64; 3], operands: &[Operand]) -> Option<usize> {
        let count = x * y * z;
        if count < 2 {
            return None;
        }
        plan::grain(count, crate::cost::operand_bytes(operands), watch.program().pays().from_bytes)
    }

    /// Calls `function` for each workgroup, on several threads, with the operands of `self.arguments`.
    ///
    /// # Safety
    /// `function` is the code of a native kernel, `self.arguments` are valid operands of it, and `size` is the size of
    /// its command's grid.
    #[cold]
    pub(super) unsafe fn spread(&self, function: KernelFunction, size: KernelDim3, grain: usize) -> Result<(), Error> {
        let arguments: Shared<'_, KernelArgument> = Shared(&self.arguments);
        let workgroups = |range: Range<usize>| {
            let arguments = arguments.get();
            range.into_iter().try_for_each(|number| {
                let number = number as u64;
                let id = KernelDim3 { x: number % size.x, y: number / size.x % size.y, z: number / size.x / size.y };
                let (num_args, args) = (arguments.len(), arguments.as_ptr());
                let frame = KernelFrame { num_workgroups: &size, id: &id, num_args, args };
                // SAFETY: the caller's promise.
                outcome(unsafe { function(&frame) })
            })
        };
        // More workgroups than a usize counts have no grain.
        let count = (size.x * size.y * size.z) as usize;
        self.context.parallel_for(count, grain, &workgroups)
    }
}
