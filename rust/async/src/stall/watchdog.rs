//! A thread that looks for stalls at intervals, reports what it sees, and does what its options say about it.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::process;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::poison::{end_wait_in, poison};
use super::report::StallReport;
use super::stalls;
use crate::event::{Event, EventPromise};
use crate::task::STACK_SIZE_BYTES;
use purlin_base::fault::{self, Site};
use purlin_base::panics::reported;
use purlin_base::status::{Error, StatusCode, StatusOr};
use purlin_base::stderr;
use purlin_base::sync::{Process, per_thread, spawn};

/// What to do about a stall, after it has been reported.
///
/// ```
/// use purlin::{WatchdogAction, WatchdogOptions};
///
/// let options = WatchdogOptions { action: WatchdogAction::Poison, ..Default::default() };
/// assert_eq!(options.action, WatchdogAction::Poison);
/// assert_eq!(WatchdogAction::default(), WatchdogAction::Report);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum WatchdogAction {
    /// Nothing.
    #[default]
    Report = 0,
    /// Where a thread sleeps on an event that is too old, the promises of users that the event waits for, itself one
    /// perhaps, fail with [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded), if they are too old
    /// themselves. Their owner's later attempt to complete them is refused. Nothing else is poisoned: not what tasks
    /// and the library owe, and not what memory is kept until. The report says of each event whether it can be, and why
    /// not. A wait that closes a cycle of tasks ends with `DeadlineExceeded`, naming the cycle; its event stays
    /// pending.
    Poison = 1,
    /// The process ends by SIGABRT.
    Abort = 2,
}

/// Where reports go; called on the watchdog's thread.
pub type StallSink = Box<dyn Fn(&StallReport) + Send + Sync>;

/// How to watch.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{StallReport, Watchdog, WatchdogOptions};
///
/// let options = WatchdogOptions {
///     older_than: Duration::from_secs(60),
///     sink: Some(Box::new(|report: &StallReport| eprintln!("{report}"))),
///     ..Default::default()
/// };
/// let watchdog = Watchdog::start(options)?;
/// # drop(watchdog);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Default)]
pub struct WatchdogOptions {
    /// How long an event may be pending. At least 10 ms.
    pub older_than: Duration,
    /// What to do then.
    pub action: WatchdogAction,
    /// The callback that gets the reports; without one, stderr. A panic in it is reported by the panic hook and
    /// swallowed.
    pub sink: Option<StallSink>,
}

impl fmt::Debug for WatchdogOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchdogOptions")
            .field("older_than", &self.older_than)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

/// Watches until it is dropped, which blocks until its thread has ended; except in a sink, its own or another
/// watchdog's, where the drop does not block and the thread ends as soon as its own sink has returned. Each event is
/// reported once, within a quarter of `older_than` of becoming too old, and once more if a cycle closes later.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{EventPromise, Watchdog, WatchdogAction, WatchdogOptions};
///
/// let _watchdog = Watchdog::start(WatchdogOptions {
///     older_than: Duration::from_millis(10),
///     action: WatchdogAction::Poison,
///     sink: Some(Box::new(|_report| ())),
/// })?;
/// let forgotten = EventPromise::new(c"forgotten");
/// assert!(forgotten.event().wait().is_err(), "the watchdog ends it");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Debug)]
pub struct Watchdog {
    stop: Arc<EventPromise>,
    /// Happens, or fails, when the thread has nothing left to do.
    ended: Event,
    thread: Option<JoinHandle<()>>,
    /// Where the thread is.
    process: Process,
}

impl Watchdog {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`InvalidArgument`](purlin_base::StatusCode::InvalidArgument): `older_than` is less than 10 ms.
    /// [`ResourceExhausted`](purlin_base::StatusCode::ResourceExhausted): the system refused the thread.
    pub fn start(options: WatchdogOptions) -> StatusOr<Self> {
        let older_than = options.older_than;
        if older_than < Duration::from_millis(10) {
            return Err(Error::invalid_argument(format!(
                "a watchdog's older_than is {older_than:?}; it is at least 10ms"
            )));
        }
        let stop = Arc::new(EventPromise::guarding(STOP));
        let stopped = stop.event();
        let promise = EventPromise::guarding(ENDED);
        let ended = promise.event();
        let watch = move || {
            // The sink is dropped before the promise, also by a panic.
            let (promise, options) = (promise, options);
            let _ = IS_WATCHDOG.try_with(|here| here.set(true));
            let mut known = Known::default();
            let home = Process::this();
            while let Err(late) = stopped.wait_uninterruptible_for(older_than / 4)
                && late.code() == StatusCode::DeadlineExceeded
                && home.is_this()
            {
                look(&options, &mut known, &stopped);
            }
            drop(options);
            promise.set_ready();
        };
        let thread = fault::spawn(Site::SpawnWatchdog)
            .and_then(|()| spawn(Builder::new().name("purlin/watchdog".to_owned()).stack_size(STACK_SIZE_BYTES), watch))
            .map_err(|error| Error::resource_exhausted(format!("could not start the watchdog's thread: {error}")))?;
        Ok(Self { stop, ended, thread: Some(thread), process: Process::this() })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // In a child made by `fork` there is no thread, and its record is the parent's.
            return std::mem::forget(self.thread.take());
        }
        self.stop.set_ready();
        // A sink that waited for its own thread, or two that wait for each other's, would do so for ever.
        let in_a_sink = IS_WATCHDOG.try_with(Cell::get).unwrap_or(false);
        if let Some(thread) = self.thread.take().filter(|_| !in_a_sink) {
            // Not by the join: what its sink waits for may be what this thread does while it waits.
            let _ = self.ended.wait_uninterruptible();
            // It catches the panics of its sink.
            let _ = thread.join();
        }
    }
}

// True on the threads of watchdogs.
per_thread!(static IS_WATCHDOG: Cell<bool> = Cell::new(false));

/// The label of the events that watchdogs themselves sleep on.
const STOP: &std::ffi::CStr = c"watchdog stop";
/// The label of those that happen at their ends.
const ENDED: &std::ffi::CStr = c"watchdog ended";

/// What was reported already: events by address and time of birth, so that another one at the same address is news, and
/// cycles by their sentences: they may close long after the events in them have become too old.
#[derive(Default)]
struct Known {
    events: HashSet<(usize, u32)>,
    cycles: HashSet<String>,
}

fn look(options: &WatchdogOptions, known: &mut Known, stopped: &Event) {
    let mut report = stalls(options.older_than);
    report.events.retain(|event| ![STOP, ENDED].contains(&event.label.as_cstr()));
    report.threads.retain(|thread| thread.name != "purlin/watchdog");
    let events: HashSet<_> = report.events.iter().map(|event| (event.address, event.born_ms)).collect();
    let cycles: HashSet<_> = report.cycles.iter().cloned().collect();
    let is_news = !events.is_subset(&known.events) || !cycles.is_subset(&known.cycles);
    let known_before = std::mem::replace(known, Known { events, cycles });
    if is_news {
        tell(options, &report);
    }
    if stopped.is_ready() {
        // By the sink, perhaps.
        return;
    }
    match options.action {
        // Also what was reported before: a thread may have gone to sleep on it since. A thread that went to sleep after
        // the report was taken is in none yet.
        WatchdogAction::Poison => {
            report.events.iter().filter(|event| event.is_slept_on).for_each(|event| poison(event, options.older_than));
            // Those that two looks have seen: a report is no photograph of one moment.
            let again = (0..report.cycles.len()).filter(|&index| known_before.cycles.contains(&report.cycles[index]));
            again.for_each(|index| end_wait_in(&report, index, options.older_than));
        }
        WatchdogAction::Abort if is_news => process::abort(),
        WatchdogAction::Abort | WatchdogAction::Report => {}
    }
}

fn tell(options: &WatchdogOptions, report: &StallReport) {
    match &options.sink {
        Some(sink) => {
            let tell = || {
                fault::callback("sink of a watchdog");
                sink(report);
            };
            reported(|| "the sink of a watchdog", tell);
        }
        None => stderr::tell(&report.to_string()),
    }
}
