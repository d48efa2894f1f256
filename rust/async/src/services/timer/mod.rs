//! Things that happen at a time: [`Timers`] knows the times, a [`Timer`] is the right to one of them.
//!
//! States of a timer: waiting, then due, cancelled (by its owner, which may simply drop it) or abandoned (the
//! [`Timers`] were dropped); it leaves the list once, under the lock, and the thread that took it out runs what it was
//! for, under no lock. So nothing is left in the list of an owner that was dropped, and no thread waits for timers that
//! were dropped.
//!
//! [`Timers::shared`] has one thread, which starts with the first timer, sleeps until the next one is due, and ends
//! when there has been none for a while, so idle timers cost nothing. Callbacks and waiters of timers run on that
//! thread and delay others if they take long; but one that waits for an event passes the timers to another thread first
//! (`turn.rs`). In a child made by `fork` it starts anew with the first timer that is made there; those of the parent
//! never fire there. [`Timers::with_clock`] has no thread: its owner says when to look at the clock, as tests do.

mod clock;
mod turn;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::event::raw::OwedBy;
use crate::event::{Event, EventPromise};
use crate::task::STACK_SIZE_BYTES;
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::panics::contained;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::{self, Condvar, Mutex, MutexGuard, OnceLock, Process};

pub use clock::{Clock, ManualClock, SystemClock};

/// How long the thread stays when there is no timer.
const LINGER: Duration = Duration::from_millis(if cfg!(purlin_faults) { 1 } else { 1000 });
/// A time that no program lives to see; later ones count as this.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
/// The thread sleeps no longer than this at a time; systems differ in what they can wait for.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// A list of times; clones share it. The last handle abandons what still waits.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{ManualClock, Timers};
///
/// let clock = ManualClock::new();
/// let timers = Timers::with_clock(clock.clone());
/// let timer = timers.event_after(Duration::from_secs(5), c"pause");
/// clock.advance(Duration::from_secs(4));
/// assert_eq!((timers.run_due(), timer.event().is_ready()), (0, false));
/// clock.advance(Duration::from_secs(1));
/// assert_eq!((timers.run_due(), timer.event().is_ready()), (1, true));
/// ```
#[derive(Clone)]
pub struct Timers(Arc<Handle>);

/// What the handles share. The thread and the timers hold `TimersShared` only, so that this is dropped with the last
/// handle.
struct Handle(Arc<TimersShared>);

struct TimersShared {
    clock: Box<dyn Clock>,
    /// How long the thread lingers; `None`: there is never one.
    linger: Option<Duration>,
    spawn: Box<Spawn>,
    state: Mutex<TimersState>,
    /// The first time changed, or the list was closed.
    changed: Condvar,
}

#[derive(Default)]
struct TimersState {
    /// By time, then by arrival.
    waiting: BTreeMap<Key, Waiting>,
    next_id: u64,
    has_thread: bool,
    /// Which thread serves, or the next one to start will.
    turn: u64,
    closed: bool,
    /// Where the thread is.
    process: Option<Process>,
}

type Key = (Instant, u64);

/// Starts a thread; the system's, but for tests of one that refuses.
type Spawn = dyn Fn(Box<dyn FnOnce() + Send>) -> io::Result<()> + Send + Sync;

struct Waiting {
    label: Label,
    action: Action,
}

/// Called once, with `Ok` when it is due, else with the reason why it will not be waited for.
type Action = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// The right to something that happens at a time. Dropping it cancels.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{StatusCode, Timers};
///
/// let timer = Timers::shared().event_after(Duration::from_secs(3600), c"timeout");
/// let event = timer.event().clone();
/// assert!(timer.cancel());
/// assert_eq!(event.error().unwrap().code(), StatusCode::Cancelled);
/// ```
#[must_use = "a timer that is dropped is cancelled"]
pub struct Timer {
    place: Option<(Weak<TimersShared>, Key)>,
    event: Event,
}

impl Timers {
    /// The timers of the process, by the monotonic clock.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Timers> = OnceLock::new();
        SHARED.get_or_init(|| Self::with_thread(LINGER))
    }

    /// Timers of a clock of yours; they happen in [`run_due`](Self::run_due).
    #[must_use]
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        Self::new(Box::new(clock), None, Box::new(spawn))
    }

    pub(crate) fn with_thread(linger: Duration) -> Self {
        Self::new(Box::new(SystemClock), Some(linger), Box::new(spawn))
    }

    fn new(clock: Box<dyn Clock>, linger: Option<Duration>, spawn: Box<Spawn>) -> Self {
        let shared =
            TimersShared { clock, linger, spawn, state: Mutex::new(TimersState::default()), changed: Condvar::new() };
        Self(Arc::new(Handle(Arc::new(shared))))
    }

    /// The time, as these timers know it.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.inner().clock.now()
    }

    /// A timer whose event happens at `time`, or soon if that has passed. Its event fails with
    /// [`Cancelled`](purlin_base::StatusCode::Cancelled) when the timer is cancelled, and with
    /// [`ResourceExhausted`](purlin_base::StatusCode::ResourceExhausted) if no thread could be started for it.
    #[track_caller]
    pub fn event_at(&self, time: Instant, label: impl Into<Label>) -> Timer {
        let label = label.into();
        let promise = EventPromise::owed_by(OwedBy::Service, label, SourceLocation::caller());
        let event = promise.event();
        let mut timer = self.call_at(time, label, move |outcome| _ = promise.set(outcome));
        timer.event = event;
        timer
    }

    /// A timer whose event happens `delay` from now. See [`event_at`](Self::event_at).
    #[track_caller]
    pub fn event_after(&self, delay: Duration, label: impl Into<Label>) -> Timer {
        self.event_at(self.after(delay), label)
    }

    /// Calls `action` exactly once: with `Ok` at `time`, else with the reason why not, on the thread that decides that.
    /// The timer's own event is [`Event::ready`].
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// use purlin::{ManualClock, Timers};
    ///
    /// let (clock, (sender, receiver)) = (ManualClock::new(), mpsc::channel());
    /// let timers = Timers::with_clock(clock.clone());
    /// let at = timers.after(Duration::from_secs(1));
    /// timers.call_at(at, c"report", move |outcome| sender.send(outcome.is_ok()).unwrap()).detach();
    /// clock.advance(Duration::from_secs(1));
    /// timers.run_due();
    /// assert_eq!(receiver.try_recv(), Ok(true));
    /// ```
    pub fn call_at(
        &self,
        time: Instant,
        label: impl Into<Label>,
        action: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Timer {
        let (shared, waiting) = (self.inner(), Waiting { label: label.into(), action: Box::new(action) });
        let place = shared.add(time, waiting).map(|key| (Arc::downgrade(shared), key));
        Timer { place, event: Event::ready() }
    }

    /// The time `delay` from now.
    #[must_use]
    pub fn after(&self, delay: Duration) -> Instant {
        self.now() + delay.min(FAR)
    }

    /// An event that completes as `event` does, or fails at `deadline` with
    /// [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded), naming `event`, which stays pending. `event`
    /// itself if it is terminal. If no thread could be started, the result has failed with
    /// [`ResourceExhausted`](purlin_base::StatusCode::ResourceExhausted). The timer is removed when `event` completes;
    /// after the deadline a small node stays with `event` until it does.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use purlin::{EventPromise, ManualClock, StatusCode, Timers};
    ///
    /// let (clock, answer) = (ManualClock::new(), EventPromise::new(c"answer"));
    /// let timers = Timers::with_clock(clock.clone());
    /// let limited = timers.with_deadline(&answer.event(), timers.after(Duration::from_secs(1)));
    /// clock.advance(Duration::from_secs(2));
    /// timers.run_due();
    /// assert_eq!(limited.error().unwrap().code(), StatusCode::DeadlineExceeded);
    /// assert!(!answer.event().is_ready(), "it stays pending");
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_deadline(&self, event: &Event, deadline: Instant) -> Event {
        if event.is_ready() {
            return event.clone();
        }
        let label = event.label();
        let race = Arc::new(Race {
            promise: EventPromise::owed_by(OwedBy::Service, label, SourceLocation::caller()),
            timer: Mutex::new(None),
        });
        let result = race.promise.event();
        let (on_time, asked) = (Arc::clone(&race), self.now());
        let timer = self.call_at(deadline, label, move |outcome| {
            let late = || {
                let allowed = deadline.saturating_duration_since(asked);
                Error::deadline_exceeded(format!(
                    "event '{label}' was still pending at its deadline, {allowed:?} after it was set"
                ))
            };
            on_time.promise.set_error(outcome.err().unwrap_or_else(late));
        });
        *race.timer.lock() = Some(timer);
        event.on_ready(move |outcome| {
            // First the answer: dropping the timer would say that it was cancelled.
            race.promise.set(outcome.clone());
            let timer = race.timer.lock().take();
            drop(timer);
        });
        result
    }

    /// Timers that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner().state().waiting.len()
    }

    /// True while the thread exists.
    #[must_use]
    pub fn has_thread(&self) -> bool {
        self.inner().state().has_thread
    }

    /// Fires every timer that is due by the clock, inside this call, in order of time; returns how many timers that
    /// were. Only timers without a thread need it.
    pub fn run_due(&self) -> usize {
        let mut count = 0;
        while let Some(due) = self.inner().take_due() {
            due.end(Ok(()));
            count += 1;
        }
        count
    }

    fn inner(&self) -> &Arc<TimersShared> {
        &self.0.0
    }
}

/// The two parties that may complete an event with a deadline; the promise takes the first.
struct Race {
    promise: EventPromise,
    timer: Mutex<Option<Timer>>,
}

impl Timer {
    /// Happens at that time.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Cancels: the event fails with [`Cancelled`](purlin_base::StatusCode::Cancelled), inside this call. False if it
    /// was too late.
    pub fn cancel(mut self) -> bool {
        self.take_out()
    }

    /// Lets the timer run without an owner.
    pub fn detach(mut self) {
        self.place = None;
    }

    fn take_out(&mut self) -> bool {
        let Some((shared, key)) = self.place.take() else { return false };
        let Some(shared) = shared.upgrade() else { return false };
        let waiting = shared.state().waiting.remove(&key);
        // The thread sleeps on until the time of the one that was removed; waking it now would cost more.
        let Some(waiting) = waiting else { return false };
        let label = waiting.label;
        waiting.end(Err(Error::cancelled(format!("timer '{label}' was cancelled"))));
        true
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.take_out();
    }
}

impl Waiting {
    fn end(self, outcome: Result<(), Error>) {
        contained("timer", || self.label, || (self.action)(outcome));
    }
}

impl TimersShared {
    /// In a child made by `fork` there is no thread, and what waited for it is the parent's: its events have failed,
    /// and its actions are not called. What a clock without a thread makes happen waits on.
    fn state(&self) -> MutexGuard<'_, TimersState> {
        let mut state = self.state.lock();
        if state.process.is_none_or(|process| !process.is_this()) {
            let before = state.process.replace(Process::this());
            if before.is_some() && self.linger.is_some() {
                // Not dropped: an action holds what its maker gave it, whose destructors are user code.
                mem::forget(mem::take(&mut state.waiting));
                state.has_thread = false;
            }
        }
        state
    }

    /// The key, or `None` if the timer has ended already, because there was no thread for it.
    fn add(self: &Arc<Self>, time: Instant, waiting: Waiting) -> Option<Key> {
        let mut state = self.state();
        let key = (time, state.next_id);
        state.next_id += 1;
        let is_first = state.waiting.first_key_value().is_none_or(|(first, _)| key < *first);
        state.waiting.insert(key, waiting);
        if self.linger.is_some() && !mem::replace(&mut state.has_thread, true) {
            let turn = state.turn;
            drop(state);
            return self.start_thread(key, turn);
        }
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
        Some(key)
    }

    fn start_thread(self: &Arc<Self>, key: Key, turn: u64) -> Option<Key> {
        let Err(error) = self.start(turn) else {
            return Some(key);
        };
        // Others may have been added meanwhile and relied on this thread: all that wait are notified.
        let waiting = {
            let mut state = self.state();
            state.has_thread = false;
            mem::take(&mut state.waiting)
        };
        for waiting in waiting.into_values() {
            let label = waiting.label;
            let why = format!("could not start the thread for timer '{label}': {error}");
            waiting.end(Err(Error::resource_exhausted(why)));
        }
        None
    }

    fn start(self: &Arc<Self>, turn: u64) -> io::Result<()> {
        let mine = Arc::clone(self);
        (self.spawn)(Box::new(move || turn::on_a_thread_of(&mine, turn, || mine.work(turn))))
    }

    /// The life of the thread, while it is its turn.
    fn work(&self, turn: u64) {
        let linger = self.linger.unwrap_or_default();
        // Since when there has been nothing to wait for.
        let mut idle_since: Option<Instant> = None;
        let mut state = self.state();
        // A child of what was due ends here, alone.
        let home = Process::this();
        while state.turn == turn && home.is_this() {
            let now = self.clock.now();
            let sleep = match state.waiting.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let due = first.remove();
                    drop(state);
                    due.end(Ok(()));
                    idle_since = None;
                    state = self.state();
                    continue;
                }
                Some(first) => {
                    idle_since = None;
                    first.key().0 - now
                }
                None => {
                    let left = linger.saturating_sub(now - *idle_since.get_or_insert(now));
                    if state.closed || left.is_zero() {
                        state.has_thread = false;
                        return;
                    }
                    left
                }
            };
            state = self.changed.wait_for(state, sleep.min(LONGEST_SLEEP));
        }
    }

    /// Until the next timer is due; `None` without one.
    fn next_due(&self) -> Option<Duration> {
        let first = self.state().waiting.first_key_value().map(|(key, _)| key.0);
        first.map(|due| due.saturating_duration_since(self.clock.now()))
    }

    fn take_due(&self) -> Option<Waiting> {
        let now = self.clock.now();
        let mut state = self.state();
        let first = state.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

fn spawn(work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    fault::spawn(Site::SpawnTimers)?;
    sync::spawn(Builder::new().name("purlin-timers".to_owned()).stack_size(STACK_SIZE_BYTES), work).map(drop)
}

impl Drop for Handle {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state();
            state.closed = true;
            mem::take(&mut state.waiting)
        };
        self.0.changed.notify_one();
        for waiting in waiting.into_values() {
            let label = waiting.label;
            waiting.end(Err(Error::cancelled(format!("timer '{label}' was abandoned: its timers went away"))));
        }
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner().state();
        write!(f, "Timers({} waiting, thread: {})", state.waiting.len(), state.has_thread)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timer({:?})", self.event)
    }
}

#[cfg(test)]
mod tests;
