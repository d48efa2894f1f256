//! Which code may use a buffer's memory, and how it ends.
//!
//! States: *live*, with any number of usage holds and external references; *donating*, while one donation hold exists;
//! and *gone*: deleted, donated or released, with the recorded caller, place and time, once and for all references.
//!
//! ```text
//! live -> donating             by donate(): without usage holds and external references
//! donating -> live | gone      when the donation hold is dropped, or is confirmed
//! live -> gone                 by end(): usage holds keep the memory that they have
//! ```
//!
//! A usage hold is short: it lasts while work is started. What it leaves is an event that says when that work no longer
//! uses the memory; the donee of the memory must wait for all of them, and for the buffer's own readiness. (That the
//! memory stays until then is ensured by its users: each has a reference.) Holds that are in the way are waited for by
//! an event, so that reports name it.
//!
//! One lock, a leaf: no user code is called under it, and memory and events are released outside.

mod ending;
mod parts;

use std::mem;

use smallvec::SmallVec;

use self::ending::{Line, gone};
use self::parts::{BufferParts, Full, LateUses, Phase, RareParts, tell};
use purlin_async::event::{Event, EventPromise};
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::Mutex;

pub(super) use self::ending::Ending;

/// See the module. `M` is a reference to memory.
pub(super) struct BufferState<M>(Mutex<BufferParts<M>>);

/// The events of uses; two stand in place.
pub(super) type Uses = SmallVec<[Event; 2]>;

/// What a donee takes over: memory, and the uses that may still go on.
pub(super) struct Taken<M> {
    pub(super) memory: M,
    pub(super) uses: Uses,
}

/// Whether to wait for holds that are in the way.
#[derive(Clone, Copy)]
pub(super) enum Patience<'a> {
    /// Unless this says why not: in a child made by `fork`, the thread that has the holds may not be there.
    Wait(&'a dyn Fn() -> Result<(), Error>),
    Fail,
}

impl Patience<'_> {
    fn is_none(self) -> bool {
        matches!(self, Self::Fail)
    }

    /// Whatever becomes of `event`, the state is looked at again.
    fn wait(self, event: &Event) -> Result<(), Error> {
        if let Self::Wait(may_wait) = self {
            may_wait()?;
        }
        let _ = event.wait_uninterruptible();
        Ok(())
    }
}

impl<M: Clone> BufferState<M> {
    /// A live buffer; without memory, one that has failed from the beginning.
    #[inline(always)]
    pub(super) fn new(memory: Option<M>) -> Self {
        let had_memory = memory.is_some();
        Self(Mutex::new(BufferParts::Full { memory, rest: None, usage_holds: 0, had_memory }))
    }

    /// A live buffer over memory that others may still use.
    #[inline(always)]
    pub(super) fn with_uses(memory: M, uses: Uses) -> Self {
        let rest = if uses.is_empty() { None } else { RareParts::of_uses(uses) };
        Self(Mutex::new(BufferParts::Full { memory: Some(memory), rest, usage_holds: 0, had_memory: true }))
    }

    /// Whether it ever had memory.
    pub(super) fn has_memory(&self) -> bool {
        match &*self.0.lock() {
            BufferParts::Full { had_memory, .. } => *had_memory,
            BufferParts::Donating { .. } | BufferParts::Donated { .. } | BufferParts::Deleted { .. } => true,
        }
    }

    /// Whether it has memory now.
    pub(super) fn has_memory_now(&mut self) -> bool {
        matches!(self.0.get_mut(), BufferParts::Full { memory: Some(_), .. })
    }

    /// One more usage hold, and the memory.
    ///
    /// # Errors
    /// `InvalidArgument`, in PJRT's words, once gone; `FailedPrecondition` while it is being donated, unless that is
    /// waited for.
    #[inline]
    pub(super) fn hold(&self, patience: Patience<'_>) -> StatusOr<Option<M>> {
        loop {
            let mut state = self.0.lock();
            if let BufferParts::Full { memory, rest, usage_holds, .. } = &mut *state
                && rest.as_deref().is_none_or(|rest| rest.phase() == Phase::Live)
            {
                *usage_holds += 1;
                return Ok(memory.clone());
            }
            drop(state);
            self.wait_until_live(patience)?;
        }
    }

    /// Returns when it may be live.
    ///
    /// # Errors
    /// As [`hold`](Self::hold).
    #[cold]
    #[inline(never)]
    fn wait_until_live(&self, patience: Patience<'_>) -> Result<(), Error> {
        let mut state = self.0.lock();
        if state.phase() == Phase::Live {
            return Ok(());
        }
        if let Some(ending) = state.ending() {
            drop(state);
            return Err(gone(&ending));
        }
        if let Some(by) = state.donation().filter(|_| patience.is_none()) {
            drop(state);
            return Err(Error::failed_precondition(format!(
                "The buffer is being donated by '{}' at {}.",
                by.by, by.place
            )));
        }
        let in_the_way = state.event();
        drop(state);
        patience.wait(&in_the_way)
    }

    /// A usage hold ends; `used_until` says when what it has started no longer uses the memory.
    #[inline]
    pub(super) fn let_go(&self, used_until: Event) {
        let mut state = self.0.lock();
        let Full { memory, rest, usage_holds } = state.full();
        *usage_holds -= 1;
        let is_over = used_until.is_ready();
        if is_over && rest.is_none() {
            return;
        }
        let mut over = Uses::new();
        if !is_over && memory.is_some() {
            // Before the list grows, what is over already leaves it.
            let uses = &mut rest.get_or_insert_default().uses;
            if uses.len() == uses.capacity() {
                let (pending, terminal) = mem::take(uses).into_iter().partition(|event| !event.is_ready());
                (*uses, over) = (pending, terminal);
            }
            uses.push(used_until);
        } else if let Some(RareParts { late: Some(late), .. }) = rest.as_deref_mut() {
            late.uses.push(used_until);
        }
        let last = state.last_usage_hold();
        drop(state);
        drop(over);
        last.tell();
    }

    /// One more external reference, and the memory.
    ///
    /// # Errors
    /// As [`hold`](Self::hold), which it waits like.
    pub(super) fn reference(&self, patience: Patience<'_>) -> StatusOr<Option<M>> {
        let memory = self.hold(patience)?;
        let mut state = self.0.lock();
        *state.full().usage_holds -= 1;
        state.rest().external_references += 1;
        let last = state.last_usage_hold();
        drop(state);
        last.tell();
        Ok(memory)
    }

    /// An external reference ends.
    pub(super) fn dereference(&self) {
        let mut state = self.0.lock();
        state.rest().external_references -= 1;
        let changed = state.take_changed();
        drop(state);
        tell(changed);
    }

    /// As [`donate`](Self::donate), of a live buffer that has memory and nothing else, which is the usual one.
    #[inline]
    pub(super) fn donate_at_once(&self, by: &Ending) -> Option<M> {
        let (file, line) = by.place.into_parts();
        let line = Line::new(line)?;
        let mut state = self.0.lock();
        let BufferParts::Full { memory, rest: None, usage_holds: 0, .. } = &mut *state else { return None };
        let memory = memory.take()?;
        state.become_other(BufferParts::Donating { by: by.by, file, line, at_ms: by.at_ms });
        Some(memory)
    }

    /// The one donation hold, with the memory, which nobody else has then; `by` is the donee.
    ///
    /// # Errors
    /// `InvalidArgument`, in PJRT's words: gone, or there are external references. `FailedPrecondition`: usage holds or
    /// another donation are in the way, unless they are waited for.
    pub(super) fn donate(&self, by: Ending, patience: Patience<'_>) -> StatusOr<Taken<M>> {
        loop {
            if let Some(memory) = self.donate_at_once(&by) {
                return Ok(Taken { memory, uses: Uses::new() });
            }
            let in_the_way = {
                let mut state = self.0.lock();
                if let Some(ending) = state.ending() {
                    drop(state);
                    return Err(Error::invalid_argument(format!(
                        "Donation requested for invalid buffer.{}",
                        ending.sentence()
                    )));
                }
                let count = state.external_references();
                if count > 0 {
                    drop(state);
                    return Err(Error::invalid_argument(format!(
                        "Donation requested for buffer with external reference: there are {count}."
                    )));
                }
                let donated_by = state.donation();
                let holds = state.usage_holds();
                if donated_by.is_none() && holds == 0 {
                    let Full { memory, rest, .. } = state.full();
                    let Some(memory) = memory.take() else {
                        return Err(Error::invalid_argument("Donation requested for a buffer without memory."));
                    };
                    let rest = rest.get_or_insert_default();
                    rest.donation = Some(by);
                    return Ok(Taken { memory, uses: rest.uses.clone() });
                }
                if patience.is_none() {
                    drop(state);
                    let why = match donated_by {
                        Some(by) => format!("it is being donated by '{}' at {}", by.by, by.place),
                        None => format!("{holds} usage holds are in the way"),
                    };
                    return Err(Error::failed_precondition(format!("The buffer cannot be donated now: {why}.")));
                }
                state.event()
            };
            patience.wait(&in_the_way)?;
        }
    }

    /// The donation hold ends. Confirmed, the buffer is gone. Given back with its memory it is as before; or deleted,
    /// if it was meanwhile, and the memory is the answer.
    #[inline]
    pub(super) fn end_donation(&self, given_back: Option<M>) -> Option<M> {
        let mut state = self.0.lock();
        if let BufferParts::Donating { by, file, line, at_ms } = *state {
            state.become_other(match given_back {
                None => BufferParts::Donated { by, file, line, at_ms },
                memory => BufferParts::Full { memory, rest: None, usage_holds: 0, had_memory: true },
            });
            return None;
        }
        let Full { memory, rest, .. } = state.full();
        let rest = rest.get_or_insert_default();
        let by = rest.donation.take().expect("a donation hold goes once");
        if given_back.is_none() {
            rest.ending = Some(by);
        }
        // The donee has received the list of uses.
        let (left, uses) = if rest.ending.is_some() {
            (given_back, mem::take(&mut rest.uses))
        } else {
            *memory = given_back;
            (None, Uses::new())
        };
        let changed = state.take_changed();
        drop(state);
        drop(uses);
        tell(changed);
        left
    }

    /// The end: returns the memory, if this was it. Under a donation hold it happens when that ends, unless it was to
    /// be given away: then nothing happens. If it is given away although there are usage holds, their uses count as
    /// uses, too.
    pub(super) fn end(&self, ending: Ending) -> Option<Taken<M>> {
        if let Some(memory) = self.delete_at_once(&ending) {
            return Some(Taken { memory, uses: Uses::new() });
        }
        let mut state = self.0.lock();
        let is_given_away = ending.is_release();
        let phase = state.phase();
        // The first end counts. And a caller that wants the memory, and does not get it, has not asked for its end.
        if phase == Phase::Gone || (phase == Phase::Donating && is_given_away) {
            return None;
        }
        state.rest().ending.get_or_insert(ending);
        if phase != Phase::Live {
            return None;
        }
        let mut taken = state.take();
        let holds = state.usage_holds();
        if let Some(taken) = taken.as_mut().filter(|_| is_given_away && holds > 0) {
            let over = EventPromise::guarding(c"usage holds of a released buffer");
            taken.uses.push(over.event());
            state.rest().late = Some(LateUses { over, uses: Uses::new() });
        }
        let changed = state.take_changed();
        drop(state);
        tell(changed);
        taken
    }

    /// As [`end`](Self::end), of a live buffer that has memory and nothing else, which is the usual one, if it is
    /// deleted.
    #[inline]
    fn delete_at_once(&self, ending: &Ending) -> Option<M> {
        let (file, line) = ending.place.into_parts();
        let line = Line::new(line).filter(|_| ending.is_deletion())?;
        let mut state = self.0.lock();
        let BufferParts::Full { memory, rest: None, usage_holds: 0, .. } = &mut *state else { return None };
        let memory = memory.take()?;
        state.become_other(BufferParts::Deleted { file, line, at_ms: ending.at_ms });
        Some(memory)
    }

    /// True once the buffer can no longer be used.
    pub(super) fn is_gone(&self) -> bool {
        self.0.lock().ending().is_some()
    }

    /// Usage holds and external references.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.usage_holds() as usize, state.external_references() as usize)
    }
}
