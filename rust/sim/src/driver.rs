//! Who lets simulated time pass: a thread of the backend's, or whoever holds the [`SimDriver`].

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use purlin::fault::{self, Site};
use purlin::{Status, StatusOr};

use crate::locks::Mutex;
use crate::simulation::{Drive, Simulation};

/// Lets simulated time pass, step by step, for tests of one thread that are the same every time. Dropping it ends the simulation:
/// copies that are not over, and those that are asked for later, fail with `Cancelled`.
///
/// A call that blocks for its own copy ([`Buffer::from_slice`](purlin::Buffer::from_slice)) takes the steps that it needs by itself.
#[must_use = "dropping it ends the simulation"]
pub struct SimDriver(pub(crate) Arc<Simulation>);

impl SimDriver {
    /// The next thing happens, at its simulated time: a copy begins, ends, or fails. False if nothing can happen before somebody asks
    /// for a copy or completes what one waits for. Waiters run in this call.
    pub fn step(&self) -> bool {
        self.0.step()
    }

    /// Steps until nothing more can happen; how many there were.
    pub fn run_until_idle(&self) -> usize {
        std::iter::from_fn(|| self.step().then_some(())).count()
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The thread of a backend that drives itself. It is started when a client opens the backend's memory, and keeps the simulation but
/// not the backend, which ends it.
#[derive(Default)]
pub(crate) struct DriverThread(Mutex<Option<JoinHandle<()>>>);

impl DriverThread {
    /// # Errors
    /// `ResourceExhausted`: the system has no thread.
    pub(crate) fn start(&self, simulation: &Arc<Simulation>) -> StatusOr<()> {
        let mut running = self.0.lock();
        if running.is_some() {
            return Ok(());
        }
        let name = simulation.options().thread_name.clone();
        let simulation = Arc::clone(simulation);
        let drive = move || {
            let mut drive = Drive::default();
            while simulation.wait_for_step(&mut drive) {
                simulation.step();
            }
        };
        let started = fault::spawn(Site::SpawnSimulator).and_then(|()| thread::Builder::new().name(name).spawn(drive));
        let started = started
            .map_err(|error| Status::resource_exhausted(format!("cannot start the simulator's thread: {error}")))?;
        *running = Some(started);
        Ok(())
    }

    /// Waits for the thread to end, after the simulation is closed. On that thread itself it returns at once, and the thread ends behind.
    pub(crate) fn join(&self) {
        let running = self.0.lock().take();
        if let Some(running) = running.filter(|running| running.thread().id() != thread::current().id()) {
            // Waiters that panic are contained by their events, so there is nothing to learn from the result.
            let _ = running.join();
        }
    }
}
