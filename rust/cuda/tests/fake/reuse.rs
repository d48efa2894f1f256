//! Memory of GPUs that is used again before the host has seen the end of its last use.

#![allow(unsafe_code, reason = "copies are made by address")]

use std::thread;

use purlin::{Event, LaunchOptions, RawBuffer};
use purlin_fakecuda::{Options, process};

use crate::launches::{fill, start};
use crate::stranger::Stranger;
use crate::support::*;

const BYTES: usize = 4096;
const MEBI: usize = 1 << 20;

/// The first bytes of a block to another.
fn copy_first(from: &RawBuffer, to: &RawBuffer, after: &[Event]) -> Event {
    // SAFETY: callers order what uses the blocks by `after`.
    unsafe { from.slice(0, BYTES).unwrap().copy_to(&to.slice(0, BYTES).unwrap(), after) }
}

/// The most bytes in use while a thousand blocks of 64 MiB are allocated, used and dropped, and the GPU does
/// nothing, or all at once.
fn peak_of_a_thousand_steps(session: &Session, is_held: bool) -> u64 {
    let space = session.client.devices()[0].default_memory_space();
    let (source, result) = (session.block(0, "pinned_host", BYTES), session.block(0, "pinned_host", BYTES));
    let sum = session.block(0, "device", BYTES);
    let sent = pattern(BYTES, 3);
    write(&source, &sent).unwrap();
    // The driver is asked for memory once.
    drop(session.block(0, "device", 64 * MEBI));
    let held = is_held.then(|| Held::new(&session.driver));
    let mut last = Event::ready();
    for _ in 0..1000 {
        let block = RawBuffer::allocate(&space, 64 * MEBI).unwrap();
        let up = copy_first(&source, &block, &[]);
        last = copy_first(&block, &sum, &[up, last]);
    }
    let peak = space.stats().peak_bytes_in_use;
    held.iter().for_each(|held| held.keeps([&last]));
    drop(held);
    outcome(&copy_first(&sum, &result, &[last])).unwrap();
    assert!(read(&result).unwrap() == sent);
    peak
}

/// On a GPU that has no room for three.
fn take_the_memory_of_one(name: &str, is_held: bool) {
    process::run(name, &Options { memory_bytes: 192 << 20, ..Options::default() }, || {
        Session::with(1, |session| {
            let peak = peak_of_a_thousand_steps(session, is_held);
            assert!(peak <= 65 * MEBI as u64, "{peak} bytes");
        });
    });
}

#[test]
fn a_thousand_steps_take_the_memory_of_one() {
    take_the_memory_of_one("reuse::a_thousand_steps_take_the_memory_of_one", true);
}

/// A copy that is over before its event says so keeps no memory of what is asked for behind it.
#[test]
fn steps_that_end_meanwhile_take_the_memory_of_one() {
    take_the_memory_of_one("reuse::steps_that_end_meanwhile_take_the_memory_of_one", false);
}

#[test]
fn a_thousand_steps_take_the_memory_of_one_without_pools() {
    let options = Options { memory_bytes: 192 << 20, without_pools: true, ..Options::default() };
    process::run("reuse::a_thousand_steps_take_the_memory_of_one_without_pools", &options, || {
        Session::with(1, |session| _ = peak_of_a_thousand_steps(session, true));
    });
}

#[test]
fn a_thousand_kernels_take_the_memory_of_one() {
    let options = Options { memory_bytes: 192 << 20, ..Options::default() };
    process::run("reuse::a_thousand_kernels_take_the_memory_of_one", &options, || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let (space, kernel) = (device.default_memory_space(), fill(device, 7, BYTES).unwrap());
            drop(session.block(0, "device", 64 * MEBI));
            let held = Held::new(&session.driver);
            let done: Vec<Event> = (0..1000)
                .map(|step| {
                    let block = RawBuffer::allocate(&space, 64 * MEBI).unwrap();
                    // On each stream in turn: a block passes from one to the next.
                    let options = LaunchOptions { stream: (step % 4) as u8, ..LaunchOptions::default() };
                    start(&kernel, &[&block.slice(0, BYTES).unwrap()], &options).unwrap()
                })
                .collect();
            let peak = space.stats().peak_bytes_in_use;
            assert!(peak <= 65 * MEBI as u64, "{peak} bytes");
            held.keeps(&done);
            drop(held);
            done.iter().for_each(|done| outcome(done).unwrap());
        });
    });
}

/// Blocks of all GPUs change hands under way: what each holder wrote is what it reads.
#[test]
fn every_holder_finds_what_it_wrote() {
    process::run("reuse::every_holder_finds_what_it_wrote", &Options { devices: 3, ..Options::default() }, || {
        for seed in 0..4 {
            let driver = purlin_fakecuda::Driver::open();
            driver.control.set_delays(seed, 30);
            Session::with(3, |session| {
                let mut chance = seed.wrapping_mul(0x9e37_79b9).wrapping_add(12345);
                let mut next = |bound: usize| {
                    chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (chance >> 33) as usize % bound
                };
                let sources: Vec<_> = (0..4).map(|_| session.block(0, "pinned_host", 8 * BYTES)).collect();
                for (number, source) in sources.iter().enumerate() {
                    write(source, &pattern(8 * BYTES, number)).unwrap();
                }
                let mut results = Vec::new();
                for _ in 0..150 {
                    // Sizes differ, so that a block of one step overlaps several of others.
                    let (number, bytes) = (next(sources.len()), BYTES * (1 + next(8)));
                    let source = sources[number].slice(0, bytes).unwrap();
                    let mut at = session.block(next(3), "device", bytes);
                    let mut event = copy(&source, &at, &[]);
                    for _ in 0..next(4) {
                        let to = session.block(next(3), "device", bytes);
                        event = copy(&at, &to, &[event]);
                        // The block that was read is free from here on.
                        at = to;
                    }
                    let kind = if next(4) == 0 { "unpinned_host" } else { "pinned_host" };
                    let result = session.block(0, kind, bytes);
                    let read = copy(&at, &result, &[event]);
                    results.push((number, result, read));
                }
                for (number, result, event) in results {
                    outcome(&event).unwrap();
                    assert!(read(&result).unwrap() == pattern(8 * BYTES, number)[..result.size_bytes()]);
                }
            });
        }
    });
}

/// Uses a block of 40 MiB, which takes an extent of its own, while the GPU does nothing, and gives it back to the
/// driver.
fn use_and_trim(session: &Session) -> (Held<'_>, Event) {
    let space = session.client.devices()[0].default_memory_space();
    let (block, source) = (session.block(0, "device", 40 * MEBI), session.block(0, "pinned_host", BYTES));
    write(&source, &pattern(BYTES, 9)).unwrap();
    let held = Held::new(&session.driver);
    session.driver.control.reset_calls();
    let used = copy_first(&source, &block, &[]);
    drop((block, source));
    space.trim();
    (held, used)
}

#[test]
fn memory_goes_back_to_the_driver_behind_its_last_use_and_nobody_waits() {
    let name = "reuse::memory_goes_back_to_the_driver_behind_its_last_use_and_nobody_waits";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let stranger = Stranger::on(0);
            let free = stranger.free_bytes();
            let (held, used) = use_and_trim(session);
            assert!(!used.is_ready());
            let calls = ["cuMemFreeAsync", "cuStreamWaitEvent"].map(|name| session.driver.control.calls(name));
            assert_eq!(calls, [1, 1]);
            let taken = || free - stranger.free_bytes();
            assert_eq!(taken(), 40 * MEBI, "what a copy uses is not given to other processes");
            drop(held);
            outcome(&used).unwrap();
            until(|| format!("other processes miss {} bytes of what was trimmed", taken()), || taken() == 0);
        });
    });
}

#[test]
fn memory_goes_back_by_the_janitor_where_streams_cannot_wait() {
    let name = "reuse::memory_goes_back_by_the_janitor_where_streams_cannot_wait";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            session.driver.control.set_faults("cuStreamWaitEvent:1:1");
            let (held, used) = use_and_trim(session);
            assert_eq!(session.driver.control.calls("cuMemFreeAsync"), 0);
            drop(held);
            outcome(&used).unwrap();
            until(|| "the memory is not freed".to_owned(), || session.driver.control.calls("cuMemFreeAsync") == 1);
        });
    });
}

#[test]
fn memory_that_is_on_its_way_back_is_waited_for_before_it_runs_out() {
    let name = "reuse::memory_that_is_on_its_way_back_is_waited_for_before_it_runs_out";
    for without_pools in [false, true] {
        let options = Options { memory_bytes: 64 << 20, without_pools, ..Options::default() };
        process::run(name, &options, || {
            Session::with(1, |session| {
                let (held, used) = use_and_trim(session);
                thread::scope(|scope| {
                    // Larger, so that it is another extent; there is no room for both.
                    let allocated = scope.spawn(|| session.block(0, "device", 50 * MEBI));
                    drop(held);
                    write(&allocated.join().unwrap(), &pattern(50 * MEBI, 4)).unwrap();
                });
                outcome(&used).unwrap();
            });
        });
    }
}
