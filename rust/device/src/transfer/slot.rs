//! One buffer of a transfer. `mod.rs` has the states.

#![allow(unsafe_code, reason = "host memory is read by address")]

use std::sync::Arc;

use super::TransferSpec;
use crate::buffer::{ArraySource, Buffer, OnDone};
use crate::memory::{AllocOptions, MemorySpace};
use crate::raw_buffer::RawBuffer;
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_array::strided::HostArray;
use purlin_async::event::raw::OwedBy;
use purlin_async::event::{Event, EventPromise};
use purlin_base::label::Label;
use purlin_base::panics::contained;
use purlin_base::status::{Error, SourceLocation, StatusOr};
use purlin_base::sync::Mutex;

/// See the module.
pub(super) struct Slot {
    shape: Shape,
    layout: Option<Layout>,
    size_bytes: usize,
    ready: Event,
    state: Mutex<SlotState>,
}

struct SlotState {
    phase: Phase,
    /// Pieces on their way.
    in_flight: usize,
    /// Whether there ever was one.
    is_touched: bool,
    /// As long as pieces may follow or are in flight: then it is the buffer's alone.
    memory: Option<RawBuffer>,
    /// Taken by the code that completes the buffer.
    promise: Option<EventPromise>,
    /// Taken by the code that retrieves it.
    buffer: Option<Buffer>,
}

enum Phase {
    Filling,
    Sealed,
    Failed(Error),
}

impl SlotState {
    /// The memory, when no piece will follow and none is in flight; to be dropped under no lock.
    fn unused_memory(&mut self) -> Option<RawBuffer> {
        let is_over = !matches!(self.phase, Phase::Filling) && self.in_flight == 0;
        if is_over { self.memory.take() } else { None }
    }
}

/// A promise that is to be kept, and how.
type Completed = (EventPromise, Result<(), Error>);

/// Calls `on_done` with `error`, which is returned.
pub(super) fn told(on_done: Option<OnDone>, error: Error) -> Error {
    tell(on_done, Err(error.clone()));
    error
}

fn tell(on_done: Option<OnDone>, outcome: Result<(), Error>) {
    if let Some(on_done) = on_done {
        contained("on_done of a transfer", Label::default, || on_done(outcome));
    }
}

impl Slot {
    pub(super) fn new(
        spec: &TransferSpec,
        memory_space: &MemorySpace,
        options: &AllocOptions,
        place: SourceLocation,
    ) -> StatusOr<Self> {
        let TransferSpec { shape, layout } = spec;
        let memory = RawBuffer::allocate_from(memory_space, shape.on_device_size_bytes(), options, place)?;
        let promise = EventPromise::owed_by(OwedBy::Library, c"transfer", place);
        let ready = promise.event();
        let buffer = Buffer::from_raw(memory.clone(), shape, layout.as_ref(), &ready)?;
        let ready = buffer.ready_event();
        let state = SlotState {
            phase: Phase::Filling,
            in_flight: 0,
            is_touched: false,
            memory: Some(memory),
            promise: Some(promise),
            buffer: Some(buffer),
        };
        let (shape, layout, size_bytes) = (shape.clone(), layout.clone(), shape.on_device_size_bytes());
        Ok(Self { shape, layout, size_bytes, ready, state: Mutex::new(state) })
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub(super) fn ready_event(&self) -> Event {
        self.ready.clone()
    }

    pub(super) fn retrieve(&self) -> Option<Buffer> {
        self.state.lock().buffer.take()
    }

    /// # Safety
    /// As `transfer_raw_data_to_sub_buffer`.
    pub(super) unsafe fn transfer_piece(
        self: &Arc<Self>,
        index: usize,
        data: *const u8,
        offset_bytes: usize,
        size_bytes: usize,
        is_last: bool,
        on_done: Option<OnDone>,
    ) -> Result<(), Error> {
        let check = |memory: &RawBuffer| {
            memory.slice(offset_bytes, size_bytes).and_then(|_| check_pointer(data, size_bytes)).map(drop)
        };
        let memory = match self.begin(index, is_last, false, check) {
            Ok(memory) => memory,
            Err(error) => return Err(told(on_done, error)),
        };
        // SAFETY: the caller's promise; the memory is this slot's, and pieces do not overlap.
        let copied = unsafe { memory.copy_from_host(data, offset_bytes, size_bytes, &[]) };
        drop(memory);
        self.finish(&copied, on_done);
        Ok(())
    }

    /// # Safety
    /// As `transfer_array`.
    pub(super) unsafe fn transfer_array(
        self: &Arc<Self>,
        index: usize,
        data: *const u8,
        array: &HostArray,
        on_done: Option<OnDone>,
    ) -> Result<(), Error> {
        let checked = if *array.shape() == self.shape {
            ArraySource::new(data, array, self.layout.as_ref())
        } else {
            Err(Error::invalid_argument(format!("buffer {index} is {}, not {}", self.shape, array.shape())))
        };
        let begun = checked.and_then(|source| Ok((source, self.begin(index, true, true, |_| Ok(()))?)));
        let (source, memory) = match begun {
            Ok(begun) => begun,
            Err(error) => return Err(told(on_done, error)),
        };
        // SAFETY: the caller's promise; the memory is this slot's, and nothing else was copied there.
        let copied = unsafe { source.start(&memory, false) };
        drop(memory);
        self.finish(&copied, on_done);
        Ok(())
    }

    /// A piece is to be copied, if `check` says so: to this memory.
    fn begin(
        &self,
        index: usize,
        is_last: bool,
        is_whole: bool,
        check: impl FnOnce(&RawBuffer) -> Result<(), Error>,
    ) -> StatusOr<RawBuffer> {
        let mut state = self.state.lock();
        state.memory.as_ref().map_or(Ok(()), check)?;
        let error = match &state.phase {
            Phase::Filling if is_whole && state.is_touched => Error::failed_precondition(format!(
                "pieces of buffer {index} have been transferred, so the whole cannot be"
            )),
            Phase::Filling => {
                state.in_flight += 1;
                state.is_touched = true;
                if is_last {
                    state.phase = Phase::Sealed;
                }
                return state.memory.clone().ok_or_else(|| transferred(index));
            }
            Phase::Sealed => transferred(index),
            Phase::Failed(error) => error.clone(),
        };
        drop(state);
        Err(error)
    }

    /// As a waiter of `copied`, so that an `on_done` that transfers the next piece needs no further stack.
    fn finish(self: &Arc<Self>, copied: &Event, on_done: Option<OnDone>) {
        let slot = Arc::clone(self);
        copied.on_ready(move |outcome| {
            let completed = slot.end(outcome, on_done);
            // First the memory: a thread that sees the buffer fail does not find it still in use by this.
            drop(slot);
            complete(completed);
        });
    }

    /// A piece was copied, or not. What the buffer is completed with, if that is now.
    fn end(&self, outcome: &Result<(), Error>, on_done: Option<OnDone>) -> Option<Completed> {
        self.ready.owed_after(|| tell(on_done, outcome.clone()));
        let mut state = self.state.lock();
        state.in_flight -= 1;
        let completed = if let (Err(error), false) = (outcome, matches!(state.phase, Phase::Failed(_))) {
            state.phase = Phase::Failed(error.clone());
            state.promise.take().map(|promise| (promise, outcome.clone()))
        } else if matches!(state.phase, Phase::Sealed) && state.in_flight == 0 {
            state.promise.take().map(|promise| (promise, Ok(())))
        } else {
            None
        };
        let unused = state.unused_memory();
        drop(state);
        drop(unused);
        completed
    }

    pub(super) fn fail(&self, index: usize, error: Error) -> Result<(), Error> {
        let (promise, unused) = {
            let mut state = self.state.lock();
            let refused = match &state.phase {
                Phase::Filling => None,
                Phase::Sealed => Some(transferred(index)),
                Phase::Failed(error) => Some(error.clone()),
            };
            if let Some(refused) = refused {
                drop(state);
                return Err(refused);
            }
            state.phase = Phase::Failed(error.clone());
            (state.promise.take(), state.unused_memory())
        };
        drop(unused);
        if let Some(promise) = promise {
            promise.set_error(error);
        }
        Ok(())
    }

    /// The manager is dropped: without a last piece, the buffer will never be whole.
    pub(super) fn abandon(&self) {
        let (promise, buffer, unused) = {
            let mut state = self.state.lock();
            let promise = if matches!(state.phase, Phase::Filling) {
                let error = Error::internal("Async transfer object was deleted before transfers completed.");
                state.phase = Phase::Failed(error.clone());
                state.promise.take().map(|promise| (promise, error))
            } else {
                None
            };
            (promise, state.buffer.take(), state.unused_memory())
        };
        drop(unused);
        if let Some((promise, error)) = promise {
            promise.set_error(error);
        }
        drop(buffer);
    }
}

fn complete(completed: Option<Completed>) {
    if let Some((promise, outcome)) = completed {
        promise.set(outcome);
    }
}

fn transferred(index: usize) -> Error {
    Error::invalid_argument(format!("buffer {index} has already been fully transferred"))
}

fn check_pointer(data: *const u8, size_bytes: usize) -> Result<(), Error> {
    if data.is_null() && size_bytes > 0 {
        return Err(Error::invalid_argument(format!("the host pointer for a piece of {size_bytes} bytes is null")));
    }
    Ok(())
}
