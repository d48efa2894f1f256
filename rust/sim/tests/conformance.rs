//! The simulated backend under conformance, with three seeds: whatever the order, cases pass and the detector is
//! silent.

use std::sync::Arc;
use std::thread;

use purlin_async::{Event, EventPromise, Task};
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{Backend, DeviceDescription, Extent, Memory, MemoryProperties, Operation, Schedule};
use purlin_sim::{SimBackend, SimOptions};

/// A launch of a copy: a task of the client's runner.
struct Launch {
    promise: EventPromise,
    what: String,
}

impl Drop for Launch {
    fn drop(&mut self) {
        // Nothing, after the task has set it.
        self.promise.set_error(Error::cancelled(format!("the {} was not launched", self.what)));
    }
}

/// Fails the case that it serves if the detector found something: the case's copies, and at its end the case.
///
/// Cases keep copies pending by keeping the client's runner busy, which streams do not care about. So copies are
/// launched by the runner here, as they are where a thread of the host feeds a device; what the copies wait for is left
/// to the backend.
struct Audited {
    backend: SimBackend,
    /// Whether strided arrays are left to core, as by a backend that knows plain copies only.
    is_plain: bool,
}

/// Memory for plain copies only.
struct Plain(Box<dyn Memory>);

impl Memory for Plain {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties { takes_strided_arrays: false, ..self.0.properties() }
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        self.0.map(size_bytes, alignment_bytes)
    }

    fn import(&self, address: usize, size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        self.0.import(address, size_bytes)
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        let reports: Vec<String> = self.backend.reports().iter().map(ToString::to_string).collect();
        if !thread::panicking() {
            assert!(reports.is_empty(), "{}", reports.join("\n"));
        }
    }
}

impl Backend for Audited {
    fn platform_name(&self) -> &'static str {
        self.backend.platform_name()
    }

    fn devices(&self, count: usize) -> StatusOr<Vec<DeviceDescription>> {
        self.backend.devices(count)
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        self.backend.memory_kinds()
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        let memory = self.backend.open_memory(device, kind)?;
        Ok(if self.is_plain { Box::new(Plain(memory)) } else { memory })
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        if schedule.caller_waits {
            return self.backend.run(operation, schedule);
        }
        let launch = Launch { promise: EventPromise::new(c"launch"), what: format!("{operation:?}") };
        let dependencies = [schedule.dependencies, &[launch.promise.event()]].concat();
        // A refused task was dropped, and has failed the event.
        let _ = schedule.runner().execute(Task::new(c"launch", move || _ = launch.promise.set_ready()));
        self.backend.run(operation, &schedule.after(&dependencies))
    }
}

fn audited(seed: u64, is_plain: bool) -> Arc<dyn Backend> {
    let options = SimOptions { seed, fail_on_report: true, ..Default::default() };
    Arc::new(Audited { backend: SimBackend::new(options), is_plain })
}

macro_rules! suite_with_seeds {
    ($($module:ident: $seed:literal, $is_plain:literal)*) => {
        $(mod $module {
            purlin_conformance::suite!(
                || crate::audited($seed, $is_plain),
                unsupported = [
                    ("memory::addresses_are_aligned_to_64_bytes", "the host has no address for the memory of a device"),
                    (
                        "memory::addresses_of_live_allocations_do_not_overlap",
                        "the host has no address for the memory of a device"
                    ),
                    (
                        "failure::a_copy_released_after_shutdown_is_cancelled",
                        "copies run on the device's streams, which do not end with the client's runner"
                    ),
                    (
                        "lifetime::a_cancelled_copy_frees_its_ends",
                        "copies run on the device's streams, which do not end with the client's runner"
                    ),
                ]
            );
        })*
    };
}

suite_with_seeds! {
    seed_1: 1, false
    seed_2: 2, true
    seed_3: 0x7075_726c, false
}
