//! The threads that sleep until an event is terminal, in words. Each bucket of `park.rs` keeps its own, under its lock.

use std::ptr;
use std::thread::{self, Thread};

use super::abi::EventHeader;
use purlin_base::clock;
use purlin_base::label::Label;
use purlin_base::status::Error;
use purlin_base::sync::keep_record;
use purlin_base::thread_state;

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
    /// A watchdog may end the wait before the event is terminal.
    pub(crate) may_end: bool,
    /// The address of its pool; 0 without one.
    pub(crate) pool: usize,
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
    /// Waits that a watchdog has ended, by their keys, and why.
    ended: Vec<(u64, Error)>,
    next_key: u64,
}

impl Sleepers {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), ended: Vec::new(), next_key: 0 }
    }

    /// Outside the bucket's lock, because it may allocate.
    pub(super) fn describe_this_thread(event: &EventHeader, may_end: bool, pool: usize) -> Sleeper {
        let (event, thread) = (ptr::from_ref(event).expose_provenance(), thread::current());
        Sleeper {
            event,
            thread,
            since_ms: clock::touch(),
            tasks: thread_state::running_tasks().collect(),
            may_end,
            pool,
        }
    }

    pub(super) fn enter(&mut self, sleeper: Sleeper) -> u64 {
        self.next_key += 1;
        self.entries.push((self.next_key, sleeper));
        self.next_key
    }

    /// The entry, so that it is dropped outside the lock.
    pub(super) fn leave(&mut self, key: u64) -> Option<Sleeper> {
        let _unheard = self.take_end(key);
        let at = self.entries.iter().position(|(known, _)| *known == key)?;
        Some(self.entries.swap_remove(at).1)
    }

    /// Ends the wait of the thread that runs `task`, if it may be ended.
    pub(super) fn end(&mut self, event: usize, task: usize, why: &Error) -> bool {
        let of_task = |sleeper: &Sleeper| sleeper.tasks.iter().any(|(number, _)| *number == task);
        let found =
            self.entries.iter().find(|(_, sleeper)| sleeper.may_end && sleeper.event == event && of_task(sleeper));
        let Some(&(key, _)) = found else { return false };
        self.ended.push((key, why.clone()));
        true
    }

    /// Why a wait has been ended, once.
    pub(super) fn take_end(&mut self, key: u64) -> Option<Error> {
        let at = self.ended.iter().position(|(known, _)| *known == key)?;
        Some(self.ended.swap_remove(at).1)
    }

    pub(super) fn all(&self) -> Vec<Sleeper> {
        let sleepers: Vec<_> = self.entries.iter().map(|(_, sleeper)| sleeper.clone()).collect();
        sleepers.iter().for_each(|sleeper| keep_record(&sleeper.thread));
        sleepers
    }

    /// The event at that address, if a thread sleeps on it.
    pub(super) fn on(&self, event: usize) -> Option<*mut EventHeader> {
        self.entries.iter().any(|(_, sleeper)| sleeper.event == event).then(|| ptr::with_exposed_provenance_mut(event))
    }
}
