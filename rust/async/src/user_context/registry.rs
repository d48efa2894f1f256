//! Which contexts live, by number.
//!
//! An entry is weak: it keeps nothing alive. It is dead from the moment when the last reference is dropped, which is
//! before its own end removes it; until then a dead entry gives way to a new context of the same number, and the thread
//! that removes looks whether the entry is still a dead one. No reference is dropped under the lock, so no user code
//! runs there.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::{UserContext, UserContextRep};
use purlin_base::sync::Mutex;

pub(super) struct Registry {
    entries: Mutex<BTreeMap<u64, Weak<UserContextRep>>>,
}

#[cfg(not(purlin_model))]
static PROCESS: Registry = Registry { entries: Mutex::new(BTreeMap::new()) };

#[cfg(shuttle)]
shuttle::lazy_static! {
    static ref PROCESS: Registry = Registry { entries: Mutex::new(BTreeMap::new()) };
}

#[cfg(loom)]
loom::lazy_static! {
    static ref PROCESS: Registry = Registry { entries: Mutex::new(BTreeMap::new()) };
}

/// The one of this process.
pub(super) fn process() -> &'static Registry {
    &PROCESS
}

impl Registry {
    /// Enters `new`, unless a living context has its number: that one is returned.
    #[must_use]
    pub(super) fn register(&self, new: &UserContext) -> Option<UserContext> {
        let mut entries = self.entries.lock();
        let living = entries.get(&new.id()).and_then(Weak::upgrade);
        if living.is_none() {
            entries.insert(new.id(), Arc::downgrade(&new.0));
        }
        // Moved out, so that it outlives the lock.
        living.map(UserContext)
    }

    /// The living context of that number.
    pub(super) fn lookup(&self, id: u64) -> Option<UserContext> {
        let entries = self.entries.lock();
        let living = entries.get(&id).and_then(Weak::upgrade);
        living.map(UserContext)
    }

    pub(super) fn lookup_all(&self) -> Vec<UserContext> {
        let entries = self.entries.lock();
        let living = entries.values().filter_map(Weak::upgrade).map(UserContext).collect();
        drop(entries);
        living
    }

    /// For a context that ends: removes its entry, but not that of a successor of the same number.
    pub(super) fn forget_if_dead(&self, id: u64) {
        let mut entries = self.entries.lock();
        if entries.get(&id).is_some_and(|entry| entry.strong_count() == 0) {
            entries.remove(&id);
        }
    }
}
