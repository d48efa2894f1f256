//! Who sleeps until an event is terminal, in words. Each bucket of `park.rs` keeps its own, under its lock.

use std::ptr;
use std::thread::{self, Thread};

use super::abi::EventHeader;
use crate::label::Label;
use crate::slab;
use crate::sync::keep_record;

/// A thread that sleeps.
#[derive(Clone, Debug)]
pub(crate) struct Sleeper {
    /// The event's address; the sleeper holds a reference.
    pub(crate) event: usize,
    thread: Thread,
    /// When it fell asleep, by the coarse clock.
    pub(crate) since_ms: u32,
    /// The tasks that it runs, innermost first: numbers and labels.
    pub(crate) tasks: Vec<(usize, Label)>,
}

impl Sleeper {
    /// The thread's name, or its number.
    pub(crate) fn thread_name(&self) -> String {
        self.thread.name().map_or_else(|| format!("{:?}", self.thread.id()), str::to_owned)
    }
}

pub(super) struct Sleepers {
    /// With their keys.
    entries: Vec<(u64, Sleeper)>,
    next_key: u64,
}

impl Sleepers {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), next_key: 0 }
    }

    /// Outside the bucket's lock, because it may allocate.
    pub(super) fn describe_this_thread(event: &EventHeader) -> Sleeper {
        let (event, thread) = (ptr::from_ref(event).expose_provenance(), thread::current());
        Sleeper { event, thread, since_ms: slab::touch(), tasks: slab::running_tasks() }
    }

    pub(super) fn enter(&mut self, sleeper: Sleeper) -> u64 {
        self.next_key += 1;
        self.entries.push((self.next_key, sleeper));
        self.next_key
    }

    /// The entry, so that it is dropped outside the lock.
    pub(super) fn leave(&mut self, key: u64) -> Option<Sleeper> {
        let at = self.entries.iter().position(|(known, _)| *known == key)?;
        Some(self.entries.swap_remove(at).1)
    }

    pub(super) fn all(&self) -> Vec<Sleeper> {
        let sleepers: Vec<_> = self.entries.iter().map(|(_, sleeper)| sleeper.clone()).collect();
        sleepers.iter().for_each(|sleeper| keep_record(&sleeper.thread));
        sleepers
    }

    /// The event at that address, if somebody sleeps on it.
    pub(super) fn on(&self, event: usize) -> Option<*mut EventHeader> {
        self.entries.iter().any(|(_, sleeper)| sleeper.event == event).then(|| ptr::with_exposed_provenance_mut(event))
    }
}
