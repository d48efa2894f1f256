//! What walks over entry points have tried, in a line for each, which `scripts/verify` adds up.

use std::collections::BTreeSet;

/// Whether all that there is is wanted: each call, each code of each entry point (`PURLIN_CUDA_FAULTS=all`).
pub(crate) fn all() -> bool {
    std::env::var("PURLIN_CUDA_FAULTS").is_ok_and(|wanted| wanted == "all")
}

/// So many runs in a row without the call say that there is none: some calls are left to chance, such as waits for work
/// that may be over, and questions whether it is.
pub(crate) const MISSES: u64 = 3;

/// Of one test.
pub(crate) struct Tally<'a> {
    name: &'a str,
    entries: BTreeSet<String>,
    calls: u64,
    runs: u64,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        Self { name, entries: BTreeSet::new(), calls: 0, runs: 0 }
    }

    /// The scenario has run, and the call that was to fail was made, or not.
    pub(crate) fn ran(&mut self, entry: &str, is_called: bool) {
        self.entries.insert(entry.to_owned());
        self.calls += u64::from(is_called);
        self.runs += 1;
    }

    pub(crate) fn tell(self) {
        println!("{}: {} entry points, {} calls failed, {} runs", self.name, self.entries.len(), self.calls, self.runs);
    }
}
