//! What lets simulated time pass: a thread of the backend's, or the holder of the [`SimDriver`].

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use purlin_async::task::STACK_SIZE_BYTES;
use purlin_base::fault::{self, Site};
use purlin_base::sync::{Mutex, Process, spawn};
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{Driver, drive};

use crate::simulation::{Drive, Simulation};

/// Lets simulated time pass, step by step, for tests of one thread that are the same every time. Dropping it ends the
/// simulation: copies that are not over, and those that are asked for later, fail with `Cancelled`.
///
/// A call that blocks for its own copy ([`Buffer::from_slice`](purlin_device::Buffer::from_slice)) takes the steps that
/// it needs by itself.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::sim::{SimBackend, SimOptions};
/// use purlin::{Buffer, Client, ClientOptions};
///
/// let (backend, driver) = SimBackend::by_hand(SimOptions::default());
/// let client = Client::new(&ClientOptions::default(), Arc::new(backend))?;
/// let device = &client.devices()[0];
/// let buffer = Buffer::from_slice(&[1_u8, 2], &[2], &device.default_memory_space())?;
/// let copy = buffer.copy_to_memory_space(&device.memory_space("pinned_host")?)?;
/// assert!(!copy.ready_event().is_ready(), "copies run when the driver steps");
/// driver.run_until_idle();
/// copy.ready_event().wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "dropping it ends the simulation"]
pub struct SimDriver {
    simulation: Arc<Simulation>,
    here: Arc<dyn Driver>,
}

impl fmt::Debug for SimDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDriver").finish_non_exhaustive()
    }
}

/// What a waiter does that waits on a thread which steps the simulation: it takes the next steps itself.
struct Stepping {
    simulation: Arc<Simulation>,
    thread: &'static str,
}

impl Driver for Stepping {
    fn thread(&self) -> &'static str {
        self.thread
    }

    fn hand_over(&self) -> bool {
        false
    }

    fn step(&self) -> bool {
        self.simulation.step()
    }
}

/// The driver of the thread that is called so.
fn stepping(simulation: &Arc<Simulation>, thread: &'static str) -> Arc<dyn Driver> {
    Arc::new(Stepping { simulation: Arc::clone(simulation), thread })
}

impl SimDriver {
    pub(crate) fn new(simulation: &Arc<Simulation>) -> Self {
        Self { simulation: Arc::clone(simulation), here: stepping(simulation, "the thread that steps the simulation") }
    }

    /// The next thing happens, at its simulated time: a copy begins, ends, or fails. False if nothing can happen before
    /// a thread asks for a copy or completes what one waits for. Waiters run in this call; one that waits for an event
    /// takes the next steps inside that wait, at most 16 deep (256, if memory is lent until the event); deeper, the
    /// wait fails with `ResourceExhausted`. On a thread of a pool, which has other duties while it waits, another
    /// thread must step meanwhile.
    pub fn step(&self) -> bool {
        drive(&self.here, || self.simulation.step())
    }

    /// Steps until nothing more can happen; how many there were.
    pub fn run_until_idle(&self) -> usize {
        std::iter::from_fn(|| self.step().then_some(())).count()
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        self.simulation.close();
    }
}

/// The thread of a backend that drives itself. It is started when a client opens the backend's memory, and keeps the
/// simulation but not the backend, which ends it. Copies that are over go to the client's runner; only where that has
/// shut down, their waiters run here, as they do in a test's steps.
#[derive(Default)]
pub(crate) struct DriverThread(Mutex<Option<Running>>);

struct Running {
    home: Process,
    thread: JoinHandle<()>,
}

impl DriverThread {
    /// # Errors
    /// `ResourceExhausted`: the system has no thread.
    pub(crate) fn start(&self, simulation: &Arc<Simulation>) -> StatusOr<()> {
        let mut running = self.0.lock();
        if let Some(of_the_parent) = running.take_if(|running| !running.home.is_this()) {
            // In a child made by `fork` there is no thread, and its record is the parent's.
            std::mem::forget(of_the_parent);
        }
        if running.is_some() {
            return Ok(());
        }
        let simulation = Arc::clone(simulation);
        let name = simulation.options().thread_name.clone();
        // A waiter that forks returns here in the child, too, where nothing is to be done.
        let home = Process::this();
        let work = move || {
            drive(&stepping(&simulation, "the simulator's thread"), || {
                let mut next = Drive::default();
                while home.is_this() && simulation.wait_for_step(&mut next) {
                    simulation.step();
                }
            });
        };
        let started = fault::spawn(Site::SpawnSimulator)
            .and_then(|()| spawn(thread::Builder::new().name(name).stack_size(STACK_SIZE_BYTES), work));
        let thread = started
            .map_err(|error| Error::resource_exhausted(format!("cannot start the simulator's thread: {error}")))?;
        *running = Some(Running { home, thread });
        Ok(())
    }

    /// True in a child made by `fork`, until the thread is started there.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|running| !running.home.is_this())
    }

    /// Waits for the thread to end, after the simulation is closed. On that thread itself it returns at once, and the
    /// thread ends behind.
    pub(crate) fn join(&self) {
        let Some(running) = self.0.lock().take() else { return };
        if !running.home.is_this() {
            return std::mem::forget(running);
        }
        if running.thread.thread().id() != thread::current().id() {
            // Waiters that panic are contained by their events, so there is nothing to learn from the result.
            let _ = running.thread.join();
        }
    }
}
