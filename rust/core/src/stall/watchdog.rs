//! A thread that looks for stalls every so often, says what it sees, and does what it was told to about it.

use std::collections::HashSet;
use std::io::{self, Write};
use std::process;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::report::{StallReport, StalledEvent};
use super::stalls;
use crate::event::{EventPromise, slept_on};
use crate::fault::{self, Site};
use crate::status::{Status, StatusCode, StatusOr};

/// What to do about a stall, after it has been reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum WatchdogAction {
    /// Nothing.
    #[default]
    Report = 0,
    /// Events that are too old and on which a thread sleeps fail with
    /// [`DeadlineExceeded`](crate::StatusCode::DeadlineExceeded); who owes them will be told that it is too late.
    Poison = 1,
    /// The process ends by SIGABRT.
    Abort = 2,
}

/// Where reports go; called on the watchdog's thread.
pub type StallSink = Box<dyn Fn(&StallReport) + Send + Sync>;

/// How to watch.
#[derive(Default)]
pub struct WatchdogOptions {
    /// How long an event may be pending. At least 10 ms.
    pub older_than: Duration,
    /// What to do then.
    pub action: WatchdogAction,
    /// Who is told; without, stderr. A panic in it is reported by the panic hook and swallowed.
    pub sink: Option<StallSink>,
}

/// Watches until it is dropped, which blocks until its thread has ended. Each event is reported once, within a quarter of
/// `older_than` of becoming too old, and once more if a cycle closes later.
#[derive(Debug)]
pub struct Watchdog {
    stop: Arc<EventPromise>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::StatusCode::InvalidArgument): `older_than` is less than 10 ms.
    /// [`ResourceExhausted`](crate::StatusCode::ResourceExhausted): the system refused the thread.
    pub fn start(options: WatchdogOptions) -> StatusOr<Self> {
        let older_than = options.older_than;
        if older_than < Duration::from_millis(10) {
            return Err(Status::invalid_argument(format!(
                "a watchdog's older_than is {older_than:?}; it is at least 10ms"
            )));
        }
        let stop = Arc::new(EventPromise::new(STOP));
        let stopped = stop.event();
        let watch = move || {
            let mut known = Known::default();
            while let Err(late) = stopped.wait_for(older_than / 4)
                && late.code() == StatusCode::DeadlineExceeded
            {
                look(&options, &mut known);
            }
        };
        let thread = fault::spawn(Site::SpawnWatchdog)
            .and_then(|()| Builder::new().name("purlin/watchdog".to_owned()).spawn(watch))
            .map_err(|error| Status::resource_exhausted(format!("could not start the watchdog's thread: {error}")))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.set_ready();
        if let Some(thread) = self.thread.take() {
            // It catches the panics of its sink.
            let _ = thread.join();
        }
    }
}

/// The label of the events that watchdogs themselves sleep on.
const STOP: &std::ffi::CStr = c"watchdog stop";

/// What was reported already: events by address and time of birth, so that another one at the same address is news, and
/// cycles by their sentences: they may close long after the events in them have become too old.
#[derive(Default)]
struct Known {
    events: HashSet<(usize, u32)>,
    cycles: HashSet<String>,
}

fn look(options: &WatchdogOptions, known: &mut Known) {
    let mut report = stalls(options.older_than);
    report.events.retain(|event| event.label.as_cstr() != STOP);
    report.threads.retain(|thread| thread.name != "purlin/watchdog");
    let events: HashSet<_> = report.events.iter().map(|event| (event.address, event.born_ms)).collect();
    let cycles: HashSet<_> = report.cycles.iter().cloned().collect();
    let is_news = !events.is_subset(&known.events) || !cycles.is_subset(&known.cycles);
    *known = Known { events, cycles };
    if is_news {
        tell(options, &report);
    }
    match options.action {
        // Also what was reported before: a thread may have gone to sleep on it since. Who went to sleep after the report was
        // taken is in none yet.
        WatchdogAction::Poison => report.events.iter().filter(|event| event.is_slept_on).for_each(poison),
        WatchdogAction::Abort if is_news => process::abort(),
        WatchdogAction::Abort | WatchdogAction::Report => {}
    }
}

fn tell(options: &WatchdogOptions, report: &StallReport) {
    match &options.sink {
        Some(sink) => {
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                fault::callback("sink of a watchdog");
                sink(report);
            }));
            if told.is_err() {
                tracing::error!(target: "purlin", "a watchdog's sink panicked");
            }
        }
        // A closed stderr is no reason to fail.
        None => _ = write!(io::stderr(), "{report}"),
    }
}

fn poison(stalled: &StalledEvent) {
    if let Some(event) = slept_on(stalled.address) {
        let (label, place, age) = (stalled.label, stalled.location, stalled.age);
        event.poison(Status::with_location(
            StatusCode::DeadlineExceeded,
            format!("event '{label}' was poisoned by a watchdog: pending for {age:?}, owed by {}", stalled.owed_by),
            place,
        ));
    }
}
