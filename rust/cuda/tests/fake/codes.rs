//! Every entry point that the backend calls, with every code: an error or a success with the right bytes, nothing left
//! behind, and never a panic, an abort or a hang.
//!
//! One part of 64 of the combinations, that which `PURLIN_CUDA_FAULTS` names, 0 by default: each has every
//! entry point and a different code for each. `all`: all of them.

use std::collections::BTreeSet;

use purlin_fakecuda::{Options, process};

use crate::entries;
use crate::known_codes::{KNOWN, UNKNOWN};
use crate::scenario;
use crate::support::*;
use crate::tally::{MISSES, Tally, all};

/// `CUDA_ERROR_NOT_READY`: no error, but that work goes on. A driver that answers it for ever to `cuEventQuery` says
/// that the work never ends, and is waited for. A device that is broken with it, by whichever call, answers it to every
/// call from then on, to `cuEventQuery` too, so as a code that breaks it is tried with no entry point.
const NOT_READY: u32 = 600;

/// The combinations of an entry point and a code that are wanted.
fn combinations(entries: Vec<&'static str>) -> Vec<(&'static str, u32)> {
    const PARTS: usize = 64;
    let part = std::env::var("PURLIN_CUDA_FAULTS").ok().and_then(|part| part.parse::<usize>().ok()).unwrap_or(0);
    let codes: Vec<u32> = KNOWN.into_iter().chain(UNKNOWN).collect();
    let of_entry = |(at, entry): (usize, &'static str)| {
        let is_wanted = move |code: usize| all() || (at + code) % PARTS == part % PARTS;
        let codes = codes.iter().enumerate().filter(move |(code, _)| is_wanted(*code));
        codes.map(move |(_, code)| (entry, *code)).collect::<Vec<_>>()
    };
    entries.into_iter().enumerate().flat_map(of_entry).collect()
}

/// The scenario with that fault, in a process of its own. False: the call was not made.
fn tried(tally: &mut Tally, entry: &str, number: u64, code: &str) -> bool {
    let leading = entries::leading(entry, !entries::is_without_pools(entry));
    let faults = format!("{leading}{entry}:{number}:{code}");
    let mut is_called = || {
        let calls = counted_in_child(&faults, || scenario::under(&faults));
        let is_called = calls > 0 && calls >= number;
        tally.ran(entry, is_called);
        is_called
    };
    (0..MISSES).any(|_| is_called())
}

fn for_ever(name: &str, options: &Options, entries: Vec<&'static str>) {
    process::run(name, options, || {
        let mut tally = Tally::new(name);
        for (entry, code) in combinations(entries) {
            if (entry, code) != ("cuEventQuery", NOT_READY) {
                assert!(tried(&mut tally, entry, 0, &code.to_string()), "{entry} is not called");
            }
        }
        tally.tell();
    });
}

/// The call of that number breaks the device, where it is made.
fn sticky(name: &str, options: &Options, entries: Vec<&'static str>, number: u64) {
    process::run(name, options, || {
        let (mut tally, mut rare) = (Tally::new(name), BTreeSet::new());
        for (entry, code) in combinations(entries) {
            let is_tried = code != NOT_READY && !rare.contains(entry);
            if is_tried && !tried(&mut tally, entry, number, &format!("{code}:sticky")) {
                assert!(number > 1, "{entry} is not called");
                rare.insert(entry);
            }
        }
        tally.tell();
    });
}

fn with_pools() -> (Options, Vec<&'static str>) {
    let entries = entries::all().into_iter().filter(|entry| !entries::is_without_pools(entry));
    (Options::default(), entries.collect())
}

fn without_pools() -> (Options, Vec<&'static str>) {
    let entries = entries::all().into_iter().filter(|entry| entries::is_without_pools(entry));
    (Options { without_pools: true, ..Options::default() }, entries.collect())
}

#[test]
fn every_entry_point_may_answer_any_code_for_ever() {
    let (options, entries) = with_pools();
    for_ever("codes::every_entry_point_may_answer_any_code_for_ever", &options, entries);
}

#[test]
fn every_entry_point_may_break_the_device_with_any_code() {
    let (options, entries) = with_pools();
    sticky("codes::every_entry_point_may_break_the_device_with_any_code", &options, entries, 1);
}

/// The third call: in the midst of the work.
#[test]
fn every_entry_point_may_break_the_device_later() {
    let (options, entries) = with_pools();
    sticky("codes::every_entry_point_may_break_the_device_later", &options, entries, 3);
}

#[test]
fn without_pools_they_may_answer_any_code_for_ever() {
    let (options, entries) = without_pools();
    for_ever("codes::without_pools_they_may_answer_any_code_for_ever", &options, entries);
}

#[test]
fn without_pools_they_may_break_the_device_with_any_code() {
    let (options, entries) = without_pools();
    sticky("codes::without_pools_they_may_break_the_device_with_any_code", &options, entries, 3);
}
