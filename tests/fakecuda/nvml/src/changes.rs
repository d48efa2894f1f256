//! What tests change of NVML while a process runs: faults of entry points, and the fabric.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use purlin_fakecuda_options::{Fabric, Fault, Options, names};

#[derive(Default)]
pub(crate) struct Changes {
    /// Those of the environment, until others are set.
    faults: Option<Vec<Fault>>,
    pub(crate) fabric: Option<Fabric>,
    /// By entry point, since the faults were set.
    calls: HashMap<&'static str, u64>,
}

static CHANGES: Mutex<Option<Changes>> = Mutex::new(None);

/// Does something with the changes, which no other call sees meanwhile.
pub(crate) fn with<R>(body: impl FnOnce(&mut Changes) -> R) -> R {
    let mut changes: MutexGuard<'_, Option<Changes>> = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    body(changes.get_or_insert_default())
}

impl Changes {
    /// Sets faults in the place of all others. False: they are not understood.
    pub(crate) fn set_faults(&mut self, text: &str) -> bool {
        let faults: Option<Vec<Fault>> = names(text).iter().map(|fault| Fault::parse(fault)).collect();
        self.calls.clear();
        let is_understood = faults.is_some();
        self.faults = faults.or(self.faults.take());
        is_understood
    }

    /// Counts a call of the entry point, and answers its fault's code.
    pub(crate) fn fault(&mut self, entry: &'static str) -> Result<(), u32> {
        let calls = self.calls.entry(entry).or_insert(0);
        *calls += 1;
        let faults = self
            .faults
            .get_or_insert_with(|| Options::from_environment().map(|options| options.faults).unwrap_or_default());
        let is_due = |fault: &&Fault| fault.entry == entry && (fault.number == *calls || fault.number == 0);
        faults.iter().find(is_due).map_or(Ok(()), |fault| Err(fault.code))
    }
}
