//! What a client has begun and not ended, and how a client that shuts down ends it.
//!
//! There are two accounts behind one lock. The *operations* are a count of everything that completes later than the
//! call that asked for it returns, such as a copy that waits or runs on a worker; each holds a [`Pending`]. The *held*
//! ones have not begun because they wait for an event: the account has the operation itself, which proceeds when that
//! event is terminal, or fails earlier, when the client ends. An operation that waits is thus one boxed job and one
//! event, its own.
//!
//! States, moved by a shutdown: *open*; *closed*, nothing new begins; *ended*, all that was held has failed, and what
//! is to be held from then on fails at once. What is ready is never entered here, so a copy that happens inside the
//! call costs a load.
//!
//! In a child made by `fork` the accounts of the parent's clients are closed: they have no threads there.
//!
//! What fails at the client's end does so the way that any failed dependency lets it: it does not happen, releases its
//! memory, and completes its event. A thread that takes it out of the account, under the lock, continues it under none.

mod runner;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::backend::{Accounting, ClientTasks, Gated, Held, Pending, Piece, Share};
use purlin_async::event::{Event, EventPromise};
use purlin_async::task::{Task, fork};
use purlin_base::label::Label;
use purlin_base::status::Error;
use purlin_base::sync::atomic::{AtomicU32, Ordering};
use purlin_base::sync::{Mutex, Process};
pub(crate) use runner::ClientRunner;

/// See the module.
pub(crate) struct InFlight {
    /// The number of the process in which something new may begin; [`NOWHERE`] once they are closed.
    open_in: AtomicU32,
    process: Process,
    /// The client's, which this does not keep.
    runner: Box<dyn ClientTasks>,
    accounts: Mutex<Accounts>,
}

#[derive(Default)]
struct Accounts {
    is_closed: bool,
    /// Why what is held fails; set once the client has ended.
    ended: Option<EndReason>,
    /// Operations that are not over.
    count: usize,
    /// By the order in which they began to wait.
    held: BTreeMap<u64, Entry>,
    next_entry: u64,
    /// Set when nothing is in flight.
    idle: Vec<EventPromise>,
}

/// Something that waits for an event, and how errors name the two.
struct Entry {
    held: Box<dyn Held>,
    gated: Gated,
    waits_for: Event,
}

/// An event of the client's that happens with another, and that is an operation by itself.
struct UntilEnd {
    promise: EventPromise,
    /// Dropped last.
    pending: Pending,
}

impl Held for UntilEnd {
    fn proceed(self: Box<Self>, outcome: &Result<(), Error>) {
        self.pending.notifying(|| self.promise.set(outcome.clone()));
    }
}

/// No process has that number.
const NOWHERE: u32 = u32::MAX;

/// Why what is held fails.
#[derive(Clone, Debug)]
pub(crate) struct EndReason(pub(crate) Error);

impl InFlight {
    /// Accounts of a client whose operations run on `runner`.
    pub(crate) fn new(runner: Box<dyn ClientTasks>) -> Arc<Self> {
        let process = Process::this();
        let open_in = AtomicU32::new(process.number());
        Arc::new(Self { open_in, process, runner, accounts: Mutex::new(Accounts::default()) })
    }

    /// Why nothing new may begin: [`has_ended`], or this is a child of the client's process, where it has no threads.
    /// Where this says nothing, the sure answer is that of [`begin`](Self::begin).
    #[inline]
    pub(crate) fn refusal(&self) -> Option<Error> {
        // Relaxed: an operation that comes at the same time as the shutdown may be before or after it.
        let is_open = self.open_in.load(Ordering::Relaxed) == Process::this().number();
        if is_open { None } else { Some(self.why_not()) }
    }

    #[cold]
    fn why_not(&self) -> Error {
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
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Pending, Error> {
        let mut accounts = self.accounts.lock();
        if accounts.is_closed || !self.process.is_this() {
            drop(accounts);
            return Err(self.why_not());
        }
        accounts.count += 1;
        Ok(Pending::new(Arc::clone(self) as Arc<dyn Accounting>))
    }

    /// A part of an operation that has begun goes on by itself.
    pub(crate) fn go_on(self: &Arc<Self>) -> Pending {
        self.accounts.lock().count += 1;
        Pending::new(Arc::clone(self) as Arc<dyn Accounting>)
    }

    /// `after`, unless the client ends before; that is an operation, which `label` names.
    ///
    /// # Errors
    /// [`has_ended`].
    pub(crate) fn until_end(self: &Arc<Self>, after: &Event, label: Label) -> Result<Event, Error> {
        if after.is_ready() {
            return Ok(after.clone());
        }
        let pending = self.begin()?;
        Ok(self.event_until_end(after, label, pending))
    }

    /// As [`until_end`](Self::until_end), of something that has begun already, so also while the client shuts down.
    pub(crate) fn until_end_of_begun(self: &Arc<Self>, after: &Event, label: Label) -> Event {
        if after.is_ready() {
            return after.clone();
        }
        let pending = self.go_on();
        self.event_until_end(after, label, pending)
    }

    fn event_until_end(self: &Arc<Self>, after: &Event, label: Label, pending: Pending) -> Event {
        let promise = EventPromise::in_place_of(after);
        let event = promise.event();
        self.hold(after, after, Gated::Named(label), Box::new(UntilEnd { promise, pending }));
        event
    }

    /// Continues `held` once: with the outcome of `after`, or with an error when the client ends before that; the error
    /// names `gated` and `waits_for`.
    pub(crate) fn hold(self: &Arc<Self>, after: &Event, waits_for: &Event, gated: Gated, held: Box<dyn Held>) {
        let entry = Entry { held, gated, waits_for: waits_for.clone() };
        let entered = {
            let mut accounts = self.accounts.lock();
            match accounts.ended.clone() {
                Some(why) => Err((entry, why)),
                None => {
                    let number = accounts.next_entry;
                    accounts.next_entry += 1;
                    accounts.held.insert(number, entry);
                    Ok(number)
                }
            }
        };
        match entered {
            Ok(number) => {
                let account = Arc::clone(self);
                after.on_ready(move |outcome| account.proceed(number, outcome));
            }
            Err((entry, why)) => _ = entry.fail(&why),
        }
    }

    /// What that entry waited for is terminal.
    fn proceed(&self, number: u64, outcome: &Result<(), Error>) {
        let entry = self.accounts.lock().held.remove(&number);
        if let Some(entry) = entry {
            entry.held.proceed(outcome);
        }
    }

    /// From now on nothing begins.
    pub(crate) fn close(&self) {
        self.accounts.lock().is_closed = true;
        self.open_in.store(NOWHERE, Ordering::Relaxed);
    }

    /// Fails all that is held, now and later; says what that was.
    pub(crate) fn end(&self, why: &EndReason) -> Vec<String> {
        let held = {
            let mut accounts = self.accounts.lock();
            accounts.ended.get_or_insert_with(|| why.clone());
            std::mem::take(&mut accounts.held)
        };
        held.into_values().map(|entry| entry.fail(why)).collect()
    }

    /// Happens when no operation is in flight; at once, if none is.
    pub(crate) fn idle(&self) -> Event {
        let promise = EventPromise::guarding(c"client shutdown");
        let event = promise.event();
        {
            let mut accounts = self.accounts.lock();
            if accounts.count > 0 {
                accounts.idle.push(promise);
                return event;
            }
        }
        promise.set_ready();
        event
    }

    /// Operations that are not over.
    pub(crate) fn count(&self) -> usize {
        self.accounts.lock().count
    }
}

impl Entry {
    /// Says what was held.
    fn fail(self, why: &EndReason) -> String {
        let text = format!("{}, which waited for {}", self.gated, Named(&self.waits_for));
        let error = Error::new(why.0.code(), format!("{}: {text}", why.0.message()));
        self.held.proceed(&Err(error));
        text
    }
}

impl Share for InFlight {
    fn share(&self, count: usize, grain: usize, piece: &Piece<'_>) -> Result<(), Error> {
        self.runner.share(count, grain, piece)
    }
}

impl Accounting for InFlight {
    fn execute(&self, task: Task) -> Result<(), Error> {
        self.runner.execute(task)
    }

    fn operation_is_over(&self) {
        let idle = {
            let mut accounts = self.accounts.lock();
            accounts.count -= 1;
            if accounts.count > 0 {
                return;
            }
            std::mem::take(&mut accounts.idle)
        };
        for promise in idle {
            promise.set_ready();
        }
    }
}

/// What is answered once a client has shut down.
fn has_ended() -> Error {
    Error::failed_precondition("the client has been shut down: nothing new begins")
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
mod tests;
