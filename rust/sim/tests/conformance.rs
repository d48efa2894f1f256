//! The simulated backend under conformance, with three seeds: whatever the order, cases pass and the detector is silent.

use std::sync::Arc;
use std::thread;

use purlin::backend::{Backend, CopyOperation, CopySchedule, Memory};
use purlin::{Event, StatusOr};
use purlin_sim::{SimBackend, SimOptions};

/// Fails the case that it serves if the detector found something: the case's copies, and at its end the case.
struct Audited(SimBackend);

impl Drop for Audited {
    fn drop(&mut self) {
        let reports: Vec<String> = self.0.reports().iter().map(ToString::to_string).collect();
        if !thread::panicking() {
            assert!(reports.is_empty(), "{}", reports.join("\n"));
        }
    }
}

impl Backend for Audited {
    fn platform_name(&self) -> &'static str {
        self.0.platform_name()
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        self.0.memory_kinds()
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        self.0.open_memory(device, kind)
    }

    fn copy(&self, operation: CopyOperation, schedule: &CopySchedule<'_>) -> Event {
        self.0.copy(operation, schedule)
    }
}

fn audited(seed: u64) -> Arc<dyn Backend> {
    Arc::new(Audited(SimBackend::new(SimOptions { seed, fail_on_report: true, ..Default::default() })))
}

macro_rules! suite_with_seeds {
    ($($module:ident: $seed:literal)*) => {
        $(mod $module {
            purlin_conformance::suite!(
                || crate::audited($seed),
                unsupported = [
                ]
            );
        })*
    };
}

suite_with_seeds! {
    seed_1: 1
    seed_2: 2
    seed_3: 0x7075_726c
}
