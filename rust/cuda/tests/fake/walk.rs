//! A fault at each call of each entry point in turn, while a client does all that it can: nothing is left behind, the
//! detector is silent, and every event happens.

use purlin_fakecuda::{Options, process};

use crate::entries;
use crate::scenario;
use crate::support::*;
use crate::tally::{MISSES, Tally, all};

/// An entry point that is called more often than this is called for ever.
const MOST: u64 = 20_000;

/// What the faults of a walk are.
#[derive(Clone, Copy)]
struct Kind {
    /// The code, and what the fault does besides.
    code: &'static str,
    /// Which call fails next, after the one of that number: each at first, then ever fewer, unless all are wanted.
    next: fn(u64) -> u64,
    /// In a process for each fault: the driver does not recover.
    forks: bool,
    has_pools: bool,
}

/// Each call of the entry point fails in turn, until there are no more.
fn walk(tally: &mut Tally, entry: &str, kind: Kind) {
    let (mut number, mut fails, mut misses) = (1, 0, 0);
    let leading = entries::leading(entry, kind.has_pools);
    loop {
        let faults = format!("{leading}{entry}:{number}:{}", kind.code);
        let run = || scenario::under(&faults);
        let calls = if kind.forks { counted_in_child(&faults, run) } else { run() };
        tally.ran(entry, calls >= number);
        if calls < number {
            // This run had no fault but those that have the entry point called.
            misses += 1;
            if misses == MISSES || (fails > 0 && !all()) {
                assert!(fails > 0, "{entry} is not called");
                return;
            }
            continue;
        }
        (fails, misses) = (fails + 1, 0);
        assert!(number < MOST, "{entry} is called {calls} times");
        number = if all() { number + 1 } else { (kind.next)(number) };
    }
}

fn walks(name: &str, entries: &[&str], kind: Kind) {
    process::run(name, &Options { without_pools: !kind.has_pools, ..Options::default() }, || {
        let mut tally = Tally::new(name);
        entries.iter().for_each(|entry| walk(&mut tally, entry, kind));
        tally.tell();
    });
}

/// After ever more calls.
fn by_halves(number: u64) -> u64 {
    number + 1 + number / 2
}

/// At the beginning, soon after, in the midst and late.
fn by_fives(number: u64) -> u64 {
    5 * number + 1
}

const REFUSED: Kind = Kind { code: "1", next: by_halves, forks: false, has_pools: true };
const BREAKS: Kind = Kind { code: "700:sticky", next: by_fives, forks: true, has_pools: true };

/// What the driver's own memory, contexts, streams and events are about.
fn about_devices() -> Vec<&'static str> {
    let all = entries::with_pools();
    all[..all.len() / 2].to_vec()
}

/// The other half: each takes half a minute on a machine that does other work.
fn about_memory() -> Vec<&'static str> {
    let all = entries::with_pools();
    all[all.len() / 2..].to_vec()
}

/// Those that are called otherwise where there are no pools; all, if all are wanted.
fn without_pools(few: &[&'static str]) -> Vec<&'static str> {
    if all() { entries::without_pools() } else { few.to_vec() }
}

#[test]
fn one_failing_call_leaves_nothing() {
    walks("walk::one_failing_call_leaves_nothing", &about_devices(), REFUSED);
}

#[test]
fn one_failing_call_about_memory_leaves_nothing() {
    walks("walk::one_failing_call_about_memory_leaves_nothing", &about_memory(), REFUSED);
}

#[test]
fn one_failing_call_of_the_opening_leaves_nothing() {
    let name = "walk::one_failing_call_of_the_opening_leaves_nothing";
    let entries: Vec<_> = entries::all().into_iter().filter(|entry| entries::is_opening(entry)).collect();
    walks(name, &entries, Kind { forks: true, ..REFUSED });
}

#[test]
fn one_call_without_memory_leaves_nothing() {
    let entries =
        ["cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuEventCreate", "cuStreamCreate", "cuMemHostRegister_v2"];
    let kind = Kind { code: "2", next: |number| number + 1 + number / 3, ..REFUSED };
    walks("walk::one_call_without_memory_leaves_nothing", &entries, kind);
}

#[test]
fn without_pools_one_failing_call_leaves_nothing() {
    let few = ["cuMemAlloc_v2", "cuMemFree_v2", "cuCtxSetCurrent", "cuEventRecord", "cuMemcpyDtoDAsync_v2"];
    let name = "walk::without_pools_one_failing_call_leaves_nothing";
    walks(name, &without_pools(&few), Kind { code: "9999", has_pools: false, ..REFUSED });
}

#[test]
fn one_breaking_call_hangs_nothing() {
    walks("walk::one_breaking_call_hangs_nothing", &about_devices(), BREAKS);
}

#[test]
fn one_breaking_call_about_memory_hangs_nothing() {
    walks("walk::one_breaking_call_about_memory_hangs_nothing", &about_memory(), BREAKS);
}

#[test]
fn without_pools_one_breaking_call_hangs_nothing() {
    let name = "walk::without_pools_one_breaking_call_hangs_nothing";
    walks(name, &without_pools(&["cuMemAlloc_v2", "cuMemFree_v2"]), Kind { has_pools: false, ..BREAKS });
}

#[test]
fn one_breaking_operation_hangs_nothing() {
    process::run("walk::one_breaking_operation_hangs_nothing", &Options::default(), || {
        let mut tally = Tally::new("walk::one_breaking_operation_hangs_nothing");
        for entry in ["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyPeerAsync"] {
            for code in ["700:async", "4711:async"] {
                walk(&mut tally, entry, Kind { code, ..BREAKS });
            }
        }
        tally.tell();
    });
}
