//! Purlin's simulated backend: devices whose copies run late, in an order that a seed decides, on a clock of their own;
//! and a detector of what goes unnoticed on real hardware until it does not.
//!
//! The memory is real, so bytes are right. A copy never runs inside the call: it is queued on one of the streams of its
//! device, chosen by the seed; when it begins and how long it takes is decided by the seed too. Copies that no event
//! orders really run in different orders for different seeds. Of the kinds of memory, `device` has no host address, as
//! on an accelerator; `pinned_host` and `unpinned_host` have.
//!
//! # What is found
//! - **A missing wait** ([`Defect::UnorderedWrites`], [`Defect::UnorderedReadAndWrite`]): two copies touch the same
//!   bytes, on a device or the host, one writes, and no event orders them. That includes a write after donation which
//!   did not wait for [`DonationHold::free_event`](purlin_device::DonationHold::free_event).
//! - **Unwritten memory** that reaches the host ([`Defect::ReadBeforeWrite`]), also by way of copies.
//! - **Freed memory** at the host end of a copy ([`Defect::UseAfterFree`], [`Defect::FreedInUse`]).
//!
//! Each is a [`SimReport`] with both places. Beside that, memory is filled with patterns when it is allocated
//! ([`FRESH_BYTE`]), freed ([`FREED_BYTE`]), and while it is the destination of a copy under way ([`IN_FLIGHT_BYTE`]),
//! so that programs which rely on any of these compute visible nonsense.
//!
//! # What is not found
//! There are no false alarms by design, at the price of blind spots: accesses through host pointers and by tasks are
//! not seen; if the first of two unordered copies was over before the second was asked for, they count as ordered (the
//! driver puts copies off until a thread waits, so that takes bad luck; and other seeds help); and places are copies
//! and times, not lines of source, which a backend does not know.
//!
//! # Time
//! [`SimBackend::new`] drives itself by a thread. Its orders are the same for the same seed and the same calls as long
//! as the calling thread is not held up for a millisecond between two calls. [`SimBackend::by_hand`] leaves the driving
//! to a test, and is the same every time.

#![deny(unsafe_code)]

mod chance;
mod detector;
mod driver;
mod memory;
mod queue;
mod report;
mod shadow;
mod simulation;
mod touched;

use std::fmt;
use std::sync::Arc;

use purlin_async::Event;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{AttributeValue, Backend, DeviceDescription, Memory, Operation, Schedule};
use purlin_device::platform::Platform;

pub use driver::SimDriver;
pub use memory::{FREED_BYTE, FRESH_BYTE, IN_FLIGHT_BYTE};
pub use report::{Defect, Party, SimReport};

use driver::DriverThread;
use simulation::Simulation;

/// The environment variable that [`SimOptions::from_environment`] takes the seed from.
pub const SEED_VARIABLE: &str = "PURLIN_SIM_SEED";

/// How to simulate.
///
/// ```
/// use purlin::sim::{SimBackend, SimOptions};
///
/// let options = SimOptions { seed: 7, streams_per_device: 2, ..Default::default() };
/// assert!(SimBackend::new(options).reports().is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Decides streams, latencies and durations.
    pub seed: u64,
    /// How many copies of a device can be under way at once; 0 counts as 1.
    pub streams_per_device: usize,
    /// A copy that the detector objects to does not run; its event fails with `FailedPrecondition` and the report.
    /// Otherwise it runs, and the report is only kept.
    pub fail_on_report: bool,
    /// For proofs that tests notice a lost wait: no operation waits for another of the simulation, only for events of
    /// others, and nothing is reported of it.
    pub lose_waits: bool,
    /// The most bytes that each memory space takes from the system: all of what is handed out is written to.
    pub space_bytes: usize,
    /// What the backend's own thread is called.
    pub thread_name: String,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            streams_per_device: 4,
            fail_on_report: false,
            lose_waits: false,
            space_bytes: 4 << 30,
            thread_name: "purlin-sim".to_owned(),
        }
    }
}

impl SimOptions {
    /// For programs that cannot read reports: the default, failing on reports, with the seed that [`SEED_VARIABLE`]
    /// says.
    ///
    /// # Errors
    /// `InvalidArgument`, naming it: a value that is no number.
    pub fn from_environment() -> StatusOr<Self> {
        let seed = match std::env::var_os(SEED_VARIABLE) {
            None => 0,
            Some(text) => parse_seed(&text.to_string_lossy())?,
        };
        Ok(Self { seed, fail_on_report: true, ..Self::default() })
    }
}

fn parse_seed(text: &str) -> StatusOr<u64> {
    text.parse().map_err(|_| Error::invalid_argument(format!("{SEED_VARIABLE} is '{text}', which is no seed: 0..2^64")))
}

/// The platform of this backend, with the options [of the environment](SimOptions::from_environment).
pub const PLATFORM: Platform = Platform {
    name: "sim",
    make: |options| {
        options.without_host_memory_allocator("sim")?;
        Ok(Arc::new(SimBackend::new(SimOptions::from_environment()?)))
    },
};

/// See the crate. One value serves one client or several, on the same devices, streams and clock.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::sim::{SimBackend, SimOptions};
/// use purlin::{Buffer, Client, ClientOptions};
///
/// let backend = Arc::new(SimBackend::new(SimOptions { seed: 7, ..Default::default() }));
/// let client = Client::new(&ClientOptions::default(), backend.clone())?;
/// let buffer = Buffer::from_slice(&[1_u8, 2], &[2], &client.devices()[0].default_memory_space())?;
/// assert_eq!(buffer.to_vec::<u8>()?, [1, 2]);
/// assert!(backend.reports().is_empty() && backend.now_ns() > 0);
/// # backend.shutdown();
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct SimBackend {
    simulation: Arc<Simulation>,
    /// `None`: a [`SimDriver`] drives.
    thread: Option<DriverThread>,
}

impl SimBackend {
    /// A backend with a thread of its own, which ends with it. Waiters of copies run on the client's runner; once that
    /// has shut down, on this thread, where one that waits takes the next steps itself, at most 16 deep, or 256 if
    /// memory is lent until the event.
    #[must_use]
    pub fn new(options: SimOptions) -> Self {
        Self { simulation: Simulation::new(options, false), thread: Some(DriverThread::default()) }
    }

    /// A backend on which nothing happens but by the driver.
    pub fn by_hand(options: SimOptions) -> (Self, SimDriver) {
        let simulation = Simulation::new(options, true);
        let driver = SimDriver::new(&simulation);
        (Self { simulation, thread: None }, driver)
    }

    /// Simulated time since the beginning.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.simulation.now_ns()
    }

    /// What the detector found, in the order in which it did: the first thousand.
    #[must_use]
    pub fn reports(&self) -> Vec<SimReport> {
        self.simulation.reports().0
    }

    /// How many more than [`reports`](Self::reports) it found.
    #[must_use]
    pub fn reports_left_out(&self) -> usize {
        self.simulation.reports().1
    }

    /// Ends the simulation: copies that are not over, and those that are asked for later, fail with `Cancelled`. Blocks
    /// until the backend's thread has ended, unless it is called there. A second call does nothing, and neither does
    /// one in a child made by `fork`.
    pub fn shutdown(&self) {
        if self.thread.as_ref().is_some_and(driver::DriverThread::is_elsewhere) {
            // What is in flight is the parent's.
            return;
        }
        self.simulation.close();
        if let Some(thread) = &self.thread {
            thread.join();
        }
    }
}

impl Drop for SimBackend {
    /// Copies keep the backend, so there are none. Ends the thread.
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.shutdown();
        }
    }
}

impl fmt::Debug for SimBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBackend").field("options", self.simulation.options()).finish_non_exhaustive()
    }
}

impl Backend for SimBackend {
    fn platform_name(&self) -> &'static str {
        "sim"
    }

    fn devices(&self, count: usize) -> StatusOr<Vec<DeviceDescription>> {
        let streams = i64::try_from(self.simulation.options().streams_per_device.max(1)).unwrap_or(i64::MAX);
        let device = DeviceDescription::of_kind("sim").with_attribute("stream_count", AttributeValue::Integer(streams));
        Ok(vec![device; count])
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device", "pinned_host", "unpinned_host"]
    }

    fn open_memory(&self, _device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        if self.simulation.is_closed() {
            return Err(Error::failed_precondition("the simulation has ended"));
        }
        if let Some(thread) = &self.thread {
            thread.start(&self.simulation)?;
        }
        Ok(Box::new(memory::SimMemory::new(Arc::clone(&self.simulation), kind != "device")))
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        let event = self.simulation.run(operation, schedule);
        if self.thread.is_none() && schedule.caller_waits {
            // What would drive while the caller waits?
            self.simulation.step_until(&event);
        }
        event
    }
}
