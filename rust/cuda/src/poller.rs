//! The thread of a GPU that learns what is over.
//!
//! It asks the driver for the oldest submission of each stream, and ends what is over; of callers' code it runs
//! nothing. Without something pending it sleeps. It starts with the first submission and ends with the backend, also
//! while work of others goes on, for which nothing waits any more then.

use std::sync::Arc;
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use purlin_async::task::STACK_SIZE_BYTES;
use purlin_base::sync::{Condvar, Mutex, spawn};
use purlin_base::{Error, StatusOr};

use crate::gpu::Gpu;
use crate::stream::Stream;

/// How long it looks again and again after something happened, before it naps.
const EAGER: Duration = Duration::from_micros(50);
/// A nap.
const NAP: Duration = Duration::from_micros(50);

/// See the module.
pub(crate) struct Poller {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    gpu: Arc<Gpu>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Something was submitted since the thread last found nothing.
    is_wanted: bool,
    ends: bool,
}

impl Poller {
    pub(crate) fn new(gpu: Arc<Gpu>) -> Self {
        let shared = Shared { gpu, state: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    /// Starts the thread, if it does not run.
    ///
    /// # Errors
    /// `ResourceExhausted`: the system has no thread.
    pub(crate) fn start(&self) -> StatusOr<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let name = format!("purlin-cuda-{}", shared.gpu.index);
            let builder = Builder::new().name(name).stack_size(STACK_SIZE_BYTES);
            let started = spawn(builder, move || shared.run());
            *thread = Some(started.map_err(|error| {
                Error::resource_exhausted(format!("cannot start a thread that asks the GPU what is over: {error}"))
            })?);
        }
        Ok(())
    }

    /// Something was submitted.
    pub(crate) fn wake(&self) {
        let mut state = self.shared.state.lock();
        if !state.is_wanted {
            state.is_wanted = true;
            self.shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn run(&self) {
        let gpu = &self.gpu;
        // To ask what is over takes no context; to enqueue what waited for memory does, and asks for it again.
        let _current = gpu.enter().ok();
        while self.sleep_until_wanted() {
            let mut last = Instant::now();
            loop {
                let side_streams = gpu.side_streams.busy();
                let has_imports = || side_streams.iter().any(|side_stream| side_stream.stream().is_busy());
                if !gpu.streams().iter().any(Stream::is_busy) && (!has_imports() || self.state.lock().ends) {
                    break;
                }
                let ended = gpu.lines(&side_streams).filter(|(_, stream)| stream.look(gpu, None)).count();
                if ended > 0 {
                    last = Instant::now();
                } else if last.elapsed() > EAGER {
                    thread::sleep(NAP);
                } else {
                    thread::yield_now();
                }
            }
        }
    }

    /// False: it shall end.
    fn sleep_until_wanted(&self) -> bool {
        let mut state = self.state.lock();
        while !state.is_wanted && !state.ends {
            state = self.changed.wait(state);
        }
        state.is_wanted = false;
        !state.ends
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        let Some(thread) = self.thread.lock().take() else { return };
        if !self.shared.gpu.driver.is_here() {
            // In a child made by fork there is no such thread.
            return std::mem::forget(thread);
        }
        self.shared.state.lock().ends = true;
        self.shared.changed.notify_one();
        if thread.thread().id() != thread::current().id() {
            // The thread runs no code that panics.
            let _ = thread.join();
        }
    }
}
