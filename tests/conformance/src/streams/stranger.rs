//! Events of the host between the copies of a device, and links that fail.

use purlin_async::{Event, EventPromise, run_when_ready};
use purlin_base::{Error, StatusCode};

use super::{Program, SIZE_BYTES, assert_bytes, blocks, copy, read};
use crate::fixture::{Fixture, assert_error, pattern};

pub(crate) fn events_of_others_stand_between_two_copies(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 10), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 16), &[]);
    for pair in blocks.windows(2) {
        let copied = copy(&pair[0], &pair[1], &[&last]);
        let promise = EventPromise::new(c"of a task");
        last = promise.event();
        run_when_ready(std::slice::from_ref(&copied), move || _ = promise.set_ready());
    }
    assert_bytes(read(&blocks[9], &[&last]), 16);
}

pub(crate) fn a_failed_link_keeps_the_rest_from_happening(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 3), Program::default());
    let written = program.write(&blocks[1], pattern(SIZE_BYTES, 17), &[]);
    let failed = copy(&blocks[0], &blocks[2], &[&Event::from_error(Error::aborted("a broken link")), &written]);
    let over = copy(&blocks[2], &blocks[1], &[&failed]);
    let last = read(&blocks[2], &[&over]);
    assert_error(&last.wait_error(), StatusCode::Aborted, &["a broken link"]);
    assert_bytes(read(&blocks[1], &[&written]), 17);
}

pub(crate) fn a_promise_in_the_middle_holds_the_rest_of_a_chain_back(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 4), Program::default());
    let gate = EventPromise::new(c"gate");
    let written = program.write(&blocks[0], pattern(SIZE_BYTES, 50), &[]);
    let first = copy(&blocks[0], &blocks[1], &[&written]);
    // Held back until the second block has other bytes.
    let second = copy(&blocks[1], &blocks[2], &[&first, &gate.event()]);
    let third = copy(&blocks[2], &blocks[3], &[&second]);
    let last = read(&blocks[3], &[&third]);
    let over = program.write(&blocks[1], pattern(SIZE_BYTES, 51), &[&first]);
    assert_eq!(over.wait(), Ok(()));
    assert!(!second.is_ready() && !third.is_ready(), "a copy did not wait for the promise");
    gate.set_ready();
    assert_bytes(last, 51);
}

pub(crate) fn a_new_promise_is_not_taken_for_an_old_copy(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    for seed in 0..24 {
        // Events that are over, and gone: what comes next may have their addresses.
        let written = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[]);
        assert_eq!(written.wait(), Ok(()));
        program = Program::default();
        drop(written);
        let gates: Vec<EventPromise> = (0..4).map(|_| EventPromise::new(c"gate")).collect();
        let all: Vec<Event> = gates.iter().map(EventPromise::event).collect();
        let copied = copy(&blocks[0], &blocks[1], &all.iter().collect::<Vec<_>>());
        let over = program.write(&blocks[0], pattern(SIZE_BYTES, seed + 100), &[]);
        assert_eq!(over.wait(), Ok(()));
        assert!(!copied.is_ready(), "a copy did not wait for four promises");
        gates.into_iter().for_each(|gate| _ = gate.set_ready());
        assert_bytes(read(&blocks[1], &[&copied]), seed + 100);
    }
}

pub(crate) fn each_link_waits_for_a_promise_and_for_the_last_link(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 8), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 52), &[]);
    let mut gates = Vec::new();
    for pair in blocks.windows(2) {
        let gate = EventPromise::new(c"gate");
        last = copy(&pair[0], &pair[1], &[&gate.event(), &last]);
        gates.push(gate);
    }
    // From the end on: nothing may happen before its turn.
    let end = read(&blocks[7], &[&last]);
    while let Some(gate) = gates.pop() {
        gate.set_ready();
    }
    assert_bytes(end, 52);
}

pub(crate) fn a_promise_that_fails_in_the_middle_leaves_what_was_before(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 4), Program::default());
    let gate = EventPromise::new(c"gate");
    let written = program.write(&blocks[0], pattern(SIZE_BYTES, 53), &[]);
    let first = copy(&blocks[0], &blocks[1], &[&written]);
    let kept = program.write(&blocks[2], pattern(SIZE_BYTES, 54), &[]);
    let second = copy(&blocks[1], &blocks[2], &[&first, &kept, &gate.event()]);
    let third = copy(&blocks[2], &blocks[3], &[&second]);
    let last = read(&blocks[3], &[&third]);
    gate.set_error(Error::data_loss("a lost link"));
    assert_error(&last.wait_error(), StatusCode::DataLoss, &["a lost link"]);
    assert_error(&second.wait().unwrap_err(), StatusCode::DataLoss, &["a lost link"]);
    assert_bytes(read(&blocks[1], &[&first]), 53);
    assert_bytes(read(&blocks[2], &[&kept]), 54);
}

pub(crate) fn a_failure_goes_down_every_way_of_a_diamond(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 5), Program::default());
    let gate = EventPromise::new(c"gate");
    let well = program.write(&blocks[4], pattern(SIZE_BYTES, 55), &[]);
    let top = program.write(&blocks[0], pattern(SIZE_BYTES, 56), &[&gate.event()]);
    let ways = [1, 2].map(|at| copy(&blocks[0], &blocks[at], &[&top]));
    let beside = copy(&blocks[4], &blocks[3], &[&well]);
    let joined = copy(&blocks[1], &blocks[3], &[&beside, &ways[0], &ways[1]]);
    let last = read(&blocks[3], &[&joined]);
    gate.set_error(Error::unavailable("no top"));
    for event in [&top, &ways[0], &ways[1], &joined, last.event()] {
        assert_error(&event.wait().unwrap_err(), StatusCode::Unavailable, &["no top"]);
    }
    assert_bytes(read(&blocks[3], &[&beside]), 55);
}

pub(crate) fn a_program_goes_on_in_the_memory_of_one_that_failed(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 4), Program::default());
    for seed in 0..6 {
        let written = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[]);
        let first = copy(&blocks[0], &blocks[1], &[&written]);
        let broken = copy(&blocks[1], &blocks[2], &[&first, &Event::from_error(Error::aborted("a broken link"))]);
        let behind = copy(&blocks[2], &blocks[3], &[&broken]);
        assert_error(&behind.wait().unwrap_err(), StatusCode::Aborted, &["a broken link"]);
        // By another way.
        let second = copy(&blocks[1], &blocks[2], &[&first]);
        let third = copy(&blocks[2], &blocks[3], &[&second]);
        assert_bytes(read(&blocks[3], &[&third]), seed);
    }
}
