//! Faults that are due by the number of the call. Without any, a call costs one load.

use std::sync::atomic::{AtomicBool, Ordering};

use purlin_fakecuda_options::{Effect, Fault};

use crate::entry::Entry;
use crate::sync::Mutex;

pub(crate) struct Faults {
    any: AtomicBool,
    list: Mutex<Vec<Fault>>,
}

impl Faults {
    pub(crate) fn new(list: Vec<Fault>) -> Self {
        Self { any: AtomicBool::new(!list.is_empty()), list: Mutex::new(list) }
    }

    pub(crate) fn set(&self, list: Vec<Fault>) {
        // Relaxed: a call that runs at the same time may see either.
        self.any.store(!list.is_empty(), Ordering::Relaxed);
        *self.list.lock() = list;
    }

    /// The fault of that call of the entry point.
    pub(crate) fn due(&self, entry: Entry, number: u64) -> Option<(u32, Effect)> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let list = self.list.lock();
        let is_due = |fault: &&Fault| fault.entry == entry.name() && (fault.number == number || fault.number == 0);
        list.iter().find(is_due).map(|fault| (fault.code, fault.effect))
    }
}
