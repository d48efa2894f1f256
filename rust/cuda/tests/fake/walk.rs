//! A fault at each call of each entry point in turn, while a client does all that it can: nothing is left behind, the
//! detector is silent, and every event happens.

use purlin_fakecuda::{Options, process};

use crate::codes::{ENTRIES, all};
use crate::scenario::{self, Expect};
use crate::support::*;

/// An entry point that is called more often than this is called for ever.
const MOST: u64 = 2000;
/// Of the entry points.
const HALF: usize = ENTRIES.len() / 2;

/// Which calls are walked: each at first, then ever fewer, unless all are wanted.
fn next(number: u64, step: u64) -> u64 {
    number + if all() { 1 } else { 1 + number / step }
}

fn walk(entry: &str, code: u32, step: u64) {
    let mut number = 1;
    while number < MOST {
        let calls = scenario::under(&format!("{entry}:{number}:{code}"), Expect::NothingLeft);
        // How often the poller asks is left to chance.
        if calls < number || (entry == "cuEventQuery" && number > 50) {
            return;
        }
        number = next(number, step);
    }
}

/// A half of the entry points: each takes half a minute on a machine that does other work.
fn each_fails(name: &str, entries: &[&str]) {
    process::run(name, &Options::default(), || {
        assert_eq!(scenario::run(), Ok(()));
        for entry in entries {
            walk(entry, 1, 2);
        }
    });
}

#[test]
fn one_failing_call_leaves_nothing() {
    each_fails("walk::one_failing_call_leaves_nothing", &ENTRIES[..HALF]);
}

#[test]
fn one_failing_call_about_memory_leaves_nothing() {
    each_fails("walk::one_failing_call_about_memory_leaves_nothing", &ENTRIES[HALF..]);
}

#[test]
fn one_call_without_memory_leaves_nothing() {
    process::run("walk::one_call_without_memory_leaves_nothing", &Options::default(), || {
        for entry in
            ["cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuEventCreate", "cuStreamCreate", "cuMemHostRegister_v2"]
        {
            walk(entry, 2, 3);
        }
    });
}

#[test]
fn without_pools_one_failing_call_leaves_nothing() {
    let options = Options { without_pools: true, ..Options::default() };
    process::run("walk::without_pools_one_failing_call_leaves_nothing", &options, || {
        for entry in ["cuMemAlloc_v2", "cuMemFree_v2", "cuCtxSetCurrent", "cuEventRecord", "cuMemcpyDtoDAsync_v2"] {
            walk(entry, 9999, 2);
        }
    });
}

#[test]
fn one_breaking_call_hangs_nothing() {
    process::run("walk::one_breaking_call_hangs_nothing", &Options::default(), || {
        for entry in ENTRIES {
            let mut number = 1;
            let most = if all() { 60 } else { 3 };
            while number <= most {
                let fault = format!("{entry}:{number}:700:sticky");
                forked(&fault, || _ = scenario::under(&fault, Expect::Anything));
                number = next(number, 2);
            }
        }
        for entry in ["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyPeerAsync"] {
            for number in 1..=if all() { 6 } else { 2 } {
                for code in [700, 4711] {
                    let fault = format!("{entry}:{number}:{code}:async");
                    forked(&fault, || _ = scenario::under(&fault, Expect::Anything));
                }
            }
        }
    });
}
