//! What ran when: recording of `tracing` spans, written as a file for `chrome://tracing` or `ui.perfetto.dev`.
//!
//! Purlin, and any Rust code beside it, opens spans with the macros of `tracing`. From [`start`] to [`stop`] a
//! subscriber of ours keeps, in memory, each stretch of time that a thread spent inside a span, and each event as an
//! instant; [`stop`] writes them. Backends tell what a device did, by a [`DeviceLane`]. All targets and levels are
//! recorded: the host program's spans explain ours. In between recordings the subscriber has no interest in anything,
//! so that a span costs one relaxed load.
//!
//! The subscriber is our own, because the published ones are not suitable: tracing-chrome keeps a sender per thread
//! that dies with the first recording, so it cannot start again, and it ignores errors of writing.
//!
//! Phases, moved only by [`start`] and [`stop`] under `STATE`'s lock; neither holds it while it works:
//!
//! ```text
//! Idle -> Starting -> Recording -> Stopping -> Idle
//!             '-----------------------'-> Idle   (an error: nothing is recorded, nothing is left on disk)
//! ```
//!
//! Threads look at `ACTIVE` first, then at a recording of their own (`session.rs`); a thread that is late writes into a
//! recording that no thread will read. No user code (`Debug` of a field's value, other subscribers) runs under a lock
//! of ours. A call site that is reached for the first time in the very moment of [`start`] may stay silent in that
//! recording: `tracing` then asked us too early.
//!
//! The subscriber is installed at the first [`start`] and is the process's global one from then on, because `tracing`
//! has no way to take it back.

mod chrome;
mod device_lane;
mod fields;
mod file;
mod lane;
mod session;
mod subscriber;

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

pub use device_lane::DeviceLane;
pub use fields::Value;

use file::Target;
use purlin_base::status::Error;
use purlin_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use purlin_base::sync::{Mutex, MutexGuard, Process, without_forks};
use session::Session;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Starting,
    Recording,
    Stopping,
}

struct TraceState {
    phase: Phase,
    /// From Starting to Stopping.
    session: Option<Arc<Session>>,
    /// With `session`.
    target: Option<Target>,
    /// In which the phase is; `None` before the first.
    process: Option<Process>,
}

static STATE: Mutex<TraceState> =
    Mutex::new(TraceState { phase: Phase::Idle, session: None, target: None, process: None });

/// A recording is its process's: a child made by `fork` has none, and leaves the file to the parent.
fn state() -> MutexGuard<'static, TraceState> {
    let mut state = STATE.lock();
    if state.process.replace(Process::this()).is_some_and(|process| !process.is_this()) {
        state.phase = Phase::Idle;
        ACTIVE.store(0, Ordering::Relaxed);
        std::mem::forget((state.session.take(), state.target.take()));
    }
    state
}

/// The number of the session that records, 0 for none. Relaxed everywhere: it is a hint, and what it hints at is
/// reached through `STATE`'s lock.
static ACTIVE: AtomicU64 = AtomicU64::new(0);

/// Whether `tracing` knows our subscriber. Written in Starting only; relaxed, because STATE's lock orders those.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Begins to record, in memory, what the whole process does; [`stop`] writes it to `path`.
///
/// # Errors
/// `InvalidArgument`: the path is empty or no path. `FailedPrecondition`: a trace is being recorded or still written,
/// another global `tracing` subscriber is installed, or `path` names something that is no file. Otherwise the system's
/// reason why the file could not be written (`NotFound`, `PermissionDenied`, `ResourceExhausted`, `Unknown`), naming
/// the path. Nothing is left on disk.
///
/// # Examples
/// ```
/// use purlin::{EventPromise, trace};
///
/// let path = std::env::temp_dir().join(format!("purlin-doc-{}.json", std::process::id()));
/// trace::start(&path)?;
/// let span = trace::begin_span(c"load weights");
/// trace::end_span(span);
/// trace::stop()?;
/// assert!(std::fs::read_to_string(&path).unwrap().contains("load weights"));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), purlin::Error>(())
/// ```
pub fn start(path: &Path) -> Result<(), Error> {
    {
        let mut state = state();
        let busy = match state.phase {
            Phase::Idle => None,
            Phase::Starting | Phase::Recording => Some("a trace is being recorded already"),
            Phase::Stopping => Some("the trace before is still being written"),
        };
        if let Some(why) = busy {
            let message = format!("cannot record a trace to {}: {why}", path.display());
            drop(state);
            return Err(Error::failed_precondition(message));
        }
        state.phase = Phase::Starting;
    }
    let idle_unless_recording = BackToIdle;
    let target = Target::check(path)?;
    install(path)?;
    let session = Arc::new(Session::new());
    let number = session.number();
    {
        let mut state = state();
        state.session = Some(session);
        state.target = Some(target);
    }
    ACTIVE.store(number, Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
    state().phase = Phase::Recording;
    std::mem::forget(idle_unless_recording);
    Ok(())
}

/// Ends the recording and writes the file: whole, under a temporary name that is then renamed, so that a failure leaves
/// what was there before. Blocks for the write. The recording is over in any case; spans that are open end now.
///
/// # Errors
/// `FailedPrecondition`: nothing is recorded. Otherwise the system's reason, naming the path.
///
/// # Examples
/// ```
/// use purlin::{StatusCode, trace};
///
/// assert_eq!(trace::stop().unwrap_err().code(), StatusCode::FailedPrecondition);
/// ```
pub fn stop() -> Result<(), Error> {
    let (session, target) = {
        let mut state = state();
        if state.phase != Phase::Recording {
            drop(state);
            return Err(Error::failed_precondition("no trace is being recorded"));
        }
        state.phase = Phase::Stopping;
        (state.session.take(), state.target.take())
    };
    let _idle_at_last = BackToIdle;
    ACTIVE.store(0, Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
    let (Some(session), Some(target)) = (session, target) else {
        return Err(Error::internal("a trace is being recorded, but nothing knows where"));
    };
    let recording = session.finish();
    target.write(|out| chrome::write(&recording, out))
}

/// Whether a trace is being recorded, so that what a span says is put together only then. One relaxed load; a recording
/// may begin or end at any time.
#[must_use]
#[inline]
pub fn is_recording() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// Begins a span named `name` on this thread and returns its number; 0 if nothing is recorded.
#[must_use]
pub fn begin_span(name: &'static CStr) -> u64 {
    if is_recording() { session::begin_named(name) } else { 0 }
}

/// Ends the span that [`begin_span`] numbered `id`. Nothing for 0 and for a span of a recording that is over.
pub fn end_span(id: u64) {
    if id != 0 {
        session::end_named(id);
    }
}

/// Makes our subscriber the process's, once.
fn install(path: &Path) -> Result<(), Error> {
    if INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // It takes a lock of tracing's.
    let _no_fork = without_forks();
    tracing::subscriber::set_global_default(subscriber::Recorder).map_err(|_| {
        Error::failed_precondition(format!(
            "cannot record a trace to {}: the program has installed a tracing subscriber of its own, which gets the spans",
            path.display()
        ))
    })?;
    INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends a phase that could fail, also if another subscriber panics while call sites are asked.
struct BackToIdle;

impl Drop for BackToIdle {
    fn drop(&mut self) {
        ACTIVE.store(0, Ordering::Relaxed);
        let left = {
            let mut state = state();
            state.phase = Phase::Idle;
            (state.session.take(), state.target.take())
        };
        drop(left);
    }
}
