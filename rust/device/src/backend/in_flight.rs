//! What a client has begun and not ended, and how a client that shuts down ends it.
//!
//! Two books behind one lock. The *operations*: a count of everything that completes later than the call that asked for it
//! returns, such as a copy that waits or runs behind; each holds a [`Pending`]. The *gates*: operations that have not begun because
//! they wait for an event stand behind an event of our own, which happens with that one, so that it can also fail earlier.
//!
//! States, moved by a shutdown: *open*; *closed*, nothing new begins; *ended*, all gates have failed, and those that operations
//! still ask for fail at once. What is ready is never entered here, so copies that happen inside the call pay a load.
//!
//! An operation is over when its waiters have run. So one of these cannot wait for the client's end: it would wait for itself. A
//! thread that tells an operation's waiters notes that ([`Pending::telling`]), and a shutdown asks ([`InFlight::is_telling_here`]).
//!
//! In a child made by `fork` the books of the parent's clients are closed: nobody works for them there.
//!
//! A gate that fails lets its operation end the way that any failed dependency does: it does not happen, lets go of its memory, and
//! completes its event. Who takes a gate out of the book, under the lock, completes it, under none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::Block;
use purlin_async::event::{Event, EventPromise};
use purlin_async::task::{AsyncWorkRunner, fork};
use purlin_base::label::Label;
use purlin_base::status::Status;
use purlin_base::sync::atomic::{AtomicU32, Ordering};
use purlin_base::sync::{Mutex, PinnedWeak, Process, per_thread};

/// Where a client's copies run, and its books of them.
pub trait CopyRunner: AsyncWorkRunner {
    /// What is not over.
    fn in_flight(&self) -> &Arc<InFlight>;
}

/// See the module.
pub struct InFlight {
    /// The number of the process in which something new may begin; [`NOWHERE`] once they are closed.
    open_in: AtomicU32,
    process: Process,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Says of a gate why it fails; set once the books have ended.
    ended: Option<Why>,
    /// Operations that are not over.
    count: usize,
    /// By the order in which they were made.
    gates: BTreeMap<u64, Gate>,
    next_gate: u64,
    /// Who waits until nothing is in flight.
    idle: Vec<EventPromise>,
}

struct Gate {
    promise: EventPromise,
    what: What,
    waits_for: Event,
    /// Of a gate that is an operation by itself. Let go of last.
    pending: Option<Pending>,
}

/// No process has that number.
const NOWHERE: u32 = u32::MAX;

/// What a gate holds back; for errors.
#[derive(Clone)]
pub(crate) enum What {
    /// `None` is the host.
    Copy {
        size_bytes: usize,
        from: Option<PinnedWeak<dyn Block>>,
        to: Option<PinnedWeak<dyn Block>>,
    },
    Memory {
        size_bytes: usize,
        block: PinnedWeak<dyn Block>,
    },
    Named(Label),
}

/// Why gates fail.
#[derive(Clone, Debug)]
pub(crate) struct Why(pub(crate) Status);

/// An operation that is not over, until this is dropped.
pub(crate) struct Pending(Arc<InFlight>);

// The books of the operations whose waiters run further out on this stack, by address.
per_thread!(static TELLING: RefCell<Vec<usize>> = RefCell::new(Vec::new()));

/// An entry in that list.
struct Telling;

impl Drop for Telling {
    fn drop(&mut self) {
        let _ = TELLING.try_with(|telling| telling.borrow_mut().pop());
    }
}

impl Pending {
    /// Calls `tell`, which runs the operation's waiters.
    #[inline]
    pub(crate) fn telling<R>(&self, tell: impl FnOnce() -> R) -> R {
        // An ending thread has no such list; then a shutdown there is not noticed.
        let _ = TELLING.try_with(|telling| telling.borrow_mut().push(Arc::as_ptr(&self.0).addr()));
        let _here = Telling;
        tell()
    }

    /// As [`telling`](Self::telling) of `pending`, if it is an operation.
    #[inline]
    pub(crate) fn telling_of<R>(pending: Option<&Self>, tell: impl FnOnce() -> R) -> R {
        match pending {
            Some(pending) => pending.telling(tell),
            None => tell(),
        }
    }
}

/// The gates of one copy, for backends that attach to events themselves.
pub struct CopyGate {
    in_flight: Arc<InFlight>,
    what: What,
}

impl fmt::Debug for CopyGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyGate").finish_non_exhaustive()
    }
}

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
        Ok(Pending(Arc::clone(self)))
    }

    /// A part of an operation that has begun goes on by itself.
    pub(crate) fn go_on(self: &Arc<Self>) -> Pending {
        self.state.lock().count += 1;
        Pending(Arc::clone(self))
    }

    /// An event that happens with `after`, or fails when the client ends. `waits_for` is what errors name.
    pub(crate) fn gate(self: &Arc<Self>, after: &Event, waits_for: &Event, what: What) -> Event {
        self.enter(after, waits_for, what, None)
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
        Ok(self.enter(after, after, What::Named(label), Some(pending)))
    }

    /// As [`until_end`](Self::until_end), of something that has begun already, so also while the client shuts down.
    pub(crate) fn until_end_of_begun(self: &Arc<Self>, after: &Event, label: Label) -> Event {
        if after.is_ready() {
            return after.clone();
        }
        self.enter(after, after, What::Named(label), Some(self.go_on()))
    }

    fn enter(self: &Arc<Self>, after: &Event, waits_for: &Event, what: What, pending: Option<Pending>) -> Event {
        let promise = EventPromise::in_place_of(after);
        let event = promise.event();
        let gate = Gate { promise, what, waits_for: waits_for.clone(), pending };
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
                let books = Arc::clone(self);
                after.on_ready(move |status| books.open(number, status));
            }
            Err((gate, why)) => _ = gate.fail(&why),
        }
        event
    }

    /// What the gate waited for is terminal.
    fn open(&self, number: u64, status: &Status) {
        let gate = self.state.lock().gates.remove(&number);
        if let Some(gate) = gate {
            Pending::telling_of(gate.pending.as_ref(), || gate.promise.set(status.clone()));
        }
    }

    /// From now on nothing begins.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.open_in.store(NOWHERE, Ordering::Relaxed);
    }

    /// Fails all gates, now and later; says what they held back.
    pub(crate) fn end(&self, why: &Why) -> Vec<String> {
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

    /// True in a waiter of an operation that is over when that waiter has returned.
    pub(crate) fn is_telling_here(&self) -> bool {
        let here = ptr::from_ref(self).addr();
        TELLING.try_with(|telling| telling.borrow().contains(&here)).unwrap_or(false)
    }

    /// Operations that are not over.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().count
    }
}

impl Gate {
    /// Says what was held back.
    fn fail(self, why: &Why) -> String {
        let text = format!("{}, which waited for {}", self.what, Named(&self.waits_for));
        let error = Status::new(why.0.code(), format!("{}: {text}", why.0.message()));
        Pending::telling_of(self.pending.as_ref(), || self.promise.set_error(error));
        text
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let idle = {
            let mut state = self.0.state.lock();
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

impl CopyGate {
    pub(super) fn new(in_flight: &Arc<InFlight>, what: What) -> Self {
        Self { in_flight: Arc::clone(in_flight), what }
    }

    /// An event that happens with `dependency`, or fails when the client ends: what a copy attaches to where it would attach to
    /// an event that is not the backend's own.
    #[must_use]
    pub fn before(&self, dependency: &Event) -> Event {
        if dependency.is_ready() {
            return dependency.clone();
        }
        self.in_flight.gate(dependency, dependency, self.what.clone())
    }
}

/// What is answered once a client has shut down.
fn has_ended() -> Status {
    Status::failed_precondition("the client has been shut down: nothing new begins")
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { size_bytes, from, to } => {
                write!(f, "the copy of {size_bytes} bytes from {} to {}", End(from.as_ref()), End(to.as_ref()))
            }
            Self::Memory { size_bytes, block } => {
                write!(f, "the allocation of {size_bytes} bytes in {}", End(Some(block)))
            }
            Self::Named(label) => write!(f, "'{label}'"),
        }
    }
}

/// Memory, if it is still there, or the host.
struct End<'a>(Option<&'a PinnedWeak<dyn Block>>);

impl fmt::Display for End<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.map(PinnedWeak::upgrade) {
            None => f.write_str("host"),
            Some(Some(block)) => fmt::Display::fmt(&*block, f),
            Some(None) => f.write_str("memory that is gone"),
        }
    }
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
