//! What a client has begun and not ended, and how a client that shuts down ends it.
//!
//! There are two accounts behind one lock. The *operations* are a count of everything that completes later than the call that asked
//! for it returns, such as a copy that waits or runs on a worker; each holds a [`Pending`]. The *gates* are for operations that have
//! not begun because they wait for an event: each stands behind an event of the client's own, which happens with that one, so that it
//! can also fail earlier.
//!
//! States, moved by a shutdown: *open*; *closed*, nothing new begins; *ended*, all gates have failed, and those that operations
//! still ask for fail at once. What is ready is never entered here, so a copy that happens inside the call costs a load.
//!
//! In a child made by `fork` the accounts of the parent's clients are closed: no thread works for them there.
//!
//! A gate that fails lets its operation end the way that any failed dependency does: it does not happen, releases its memory, and
//! completes its event. A thread that takes a gate out of the account, under the lock, completes it under none.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::backend::{Accounting, Gated, Pending};
use purlin_async::event::{Event, EventPromise};
use purlin_async::task::fork;
use purlin_base::label::Label;
use purlin_base::status::Status;
use purlin_base::sync::atomic::{AtomicU32, Ordering};
use purlin_base::sync::{Mutex, Process};

/// See the module.
pub(crate) struct InFlight {
    /// The number of the process in which something new may begin; [`NOWHERE`] once they are closed.
    open_in: AtomicU32,
    process: Process,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Says of a gate why it fails; set once the client has ended.
    ended: Option<EndReason>,
    /// Operations that are not over.
    count: usize,
    /// By the order in which they were made.
    gates: BTreeMap<u64, Gate>,
    next_gate: u64,
    /// Set when nothing is in flight.
    idle: Vec<EventPromise>,
}

struct Gate {
    promise: EventPromise,
    gated: Gated,
    waits_for: Event,
    /// Of a gate that is an operation by itself. Dropped last.
    pending: Option<Pending>,
}

/// No process has that number.
const NOWHERE: u32 = u32::MAX;

/// Why gates fail.
#[derive(Clone, Debug)]
pub(crate) struct EndReason(pub(crate) Status);

impl InFlight {
    pub(crate) fn new() -> Arc<Self> {
        let process = Process::this();
        Arc::new(Self { open_in: AtomicU32::new(process.number()), process, state: Mutex::new(State::default()) })
    }

    /// Why nothing new may begin: [`has_ended`], or this is a child of the client's process, where nobody works for it. Where
    /// this says nothing, the sure answer is that of [`begin`](Self::begin).
    #[inline]
    pub(crate) fn refusal(&self) -> Option<Status> {
        // Relaxed: an operation that comes at the same time as the shutdown may be before or after it.
        let is_open = self.open_in.load(Ordering::Relaxed) == Process::this().number();
        if is_open { None } else { Some(self.why_not()) }
    }

    #[cold]
    fn why_not(&self) -> Status {
        if self.process.is_this() { has_ended() } else { fork::refusal("the client") }
    }

    /// The client's.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// An operation begins.
    ///
    /// # Errors
    /// As [`refusal`](Self::refusal).
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Pending, Status> {
        let mut state = self.state.lock();
        if state.is_closed || !self.process.is_this() {
            drop(state);
            return Err(self.why_not());
        }
        state.count += 1;
        Ok(Pending::new(Arc::clone(self) as Arc<dyn Accounting>))
    }

    /// A part of an operation that has begun goes on by itself.
    pub(crate) fn go_on(self: &Arc<Self>) -> Pending {
        self.state.lock().count += 1;
        Pending::new(Arc::clone(self) as Arc<dyn Accounting>)
    }

    /// An event that happens with `after`, or fails when the client ends. `waits_for` is what errors name.
    pub(crate) fn gate(self: &Arc<Self>, after: &Event, waits_for: &Event, gated: Gated) -> Event {
        self.enter(after, waits_for, gated, None)
    }

    /// As [`gate`](Self::gate), of an event that is an operation by itself.
    ///
    /// # Errors
    /// [`has_ended`].
    pub(crate) fn until_end(self: &Arc<Self>, after: &Event, label: Label) -> Result<Event, Status> {
        if after.is_ready() {
            return Ok(after.clone());
        }
        let pending = self.begin()?;
        Ok(self.enter(after, after, Gated::Named(label), Some(pending)))
    }

    /// As [`until_end`](Self::until_end), of something that has begun already, so also while the client shuts down.
    pub(crate) fn until_end_of_begun(self: &Arc<Self>, after: &Event, label: Label) -> Event {
        if after.is_ready() {
            return after.clone();
        }
        self.enter(after, after, Gated::Named(label), Some(self.go_on()))
    }

    fn enter(self: &Arc<Self>, after: &Event, waits_for: &Event, gated: Gated, pending: Option<Pending>) -> Event {
        let promise = EventPromise::in_place_of(after);
        let event = promise.event();
        let gate = Gate { promise, gated, waits_for: waits_for.clone(), pending };
        let entered = {
            let mut state = self.state.lock();
            match state.ended.clone() {
                Some(why) => Err((gate, why)),
                None => {
                    let number = state.next_gate;
                    state.next_gate += 1;
                    state.gates.insert(number, gate);
                    Ok(number)
                }
            }
        };
        match entered {
            Ok(number) => {
                let account = Arc::clone(self);
                after.on_ready(move |status| account.open(number, status));
            }
            Err((gate, why)) => _ = gate.fail(&why),
        }
        event
    }

    /// What the gate waited for is terminal.
    fn open(&self, number: u64, status: &Status) {
        let gate = self.state.lock().gates.remove(&number);
        if let Some(gate) = gate {
            Pending::notifying_for(gate.pending.as_ref(), || gate.promise.set(status.clone()));
        }
    }

    /// From now on nothing begins.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.open_in.store(NOWHERE, Ordering::Relaxed);
    }

    /// Fails all gates, now and later; says what they held back.
    pub(crate) fn end(&self, why: &EndReason) -> Vec<String> {
        let gates = {
            let mut state = self.state.lock();
            state.ended.get_or_insert_with(|| why.clone());
            std::mem::take(&mut state.gates)
        };
        gates.into_values().map(|gate| gate.fail(why)).collect()
    }

    /// Happens when no operation is in flight; at once, if none is.
    pub(crate) fn idle(&self) -> Event {
        let promise = EventPromise::guarding(c"client shutdown");
        let event = promise.event();
        {
            let mut state = self.state.lock();
            if state.count > 0 {
                state.idle.push(promise);
                return event;
            }
        }
        promise.set_ready();
        event
    }

    /// Operations that are not over.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().count
    }
}

impl Gate {
    /// Says what was held back.
    fn fail(self, why: &EndReason) -> String {
        let text = format!("{}, which waited for {}", self.gated, Named(&self.waits_for));
        let error = Status::new(why.0.code(), format!("{}: {text}", why.0.message()));
        Pending::notifying_for(self.pending.as_ref(), || self.promise.set_error(error));
        text
    }
}

impl Accounting for InFlight {
    fn operation_is_over(&self) {
        let idle = {
            let mut state = self.state.lock();
            state.count -= 1;
            if state.count > 0 {
                return;
            }
            std::mem::take(&mut state.idle)
        };
        for promise in idle {
            promise.set_ready();
        }
    }
}

/// What is answered once a client has shut down.
fn has_ended() -> Status {
    Status::failed_precondition("the client has been shut down: nothing new begins")
}

/// An event, by what it was named.
struct Named<'a>(&'a Event);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.0.label();
        if label.as_cstr().is_empty() {
            return f.write_str("an event without a name");
        }
        write!(f, "'{label}' (made at {})", self.0.location())
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InFlight({} operations)", self.count())
    }
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
