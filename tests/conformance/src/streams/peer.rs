//! Copies between devices: each waits for what both of its ends were used for.

use purlin_async::Event;

use super::{Program, SIZE_BYTES, assert_bytes, copy, memory, read, three_spaces};
use crate::fixture::{Fixture, pattern};

pub(crate) fn every_pair_of_devices_passes_bytes_there_and_back(fixture: &Fixture) {
    let (spaces, mut program, mut ends) = (three_spaces(fixture), Program::default(), Vec::new());
    for (pair, seed) in (0..9).zip(80..) {
        let (here, there) = (&spaces[pair / 3], &spaces[pair % 3]);
        let blocks = [memory(here), memory(there), memory(here)];
        let written = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[]);
        let away = copy(&blocks[0], &blocks[1], &[&written]);
        let back = copy(&blocks[1], &blocks[2], &[&away]);
        ends.push((blocks, back, seed));
    }
    for (blocks, back, seed) in ends {
        assert_bytes(read(&blocks[2], &[&back]), seed);
    }
}

pub(crate) fn every_pair_of_spaces_is_crossed_by_events(fixture: &Fixture) {
    let (spaces, mut program, mut ends) = (fixture.spaces(), Program::default(), Vec::new());
    for from in &spaces {
        for (to, seed) in spaces.iter().zip(0..) {
            let blocks = [memory(from), memory(to)];
            let written = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[]);
            let copied = copy(&blocks[0], &blocks[1], &[&written]);
            let back = copy(&blocks[1], &blocks[0], &[&copied]);
            ends.push((read(&blocks[1], &[&copied]), read(&blocks[0], &[&back]), seed));
        }
    }
    for (there, back, seed) in ends {
        assert_bytes(there, seed);
        assert_bytes(back, seed);
    }
}

pub(crate) fn a_peer_writes_after_the_readers_of_what_was_there(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let pinned = fixture.device(1).memory_space("pinned_host").unwrap();
    let target = memory(&spaces[1]);
    let mut last = program.write(&target, pattern(SIZE_BYTES, 0), &[]);
    let mut versions = Vec::new();
    for seed in 0..8 {
        // A reader on the target's own device: within it, to the host, or to a third device.
        let to = memory([&spaces[1], &pinned, &spaces[2]][usize::from(seed) % 3]);
        let reader = copy(&target, &to, &[&last]);
        let source = memory(&spaces[0]);
        let there = program.write(&source, pattern(SIZE_BYTES, seed + 1), &[]);
        last = copy(&source, &target, &[&there, &reader]);
        versions.push((to, reader, seed));
    }
    for (to, reader, seed) in versions {
        assert_bytes(read(&to, &[&reader]), seed);
    }
    assert_bytes(read(&target, &[&last]), 8);
}

pub(crate) fn a_peers_bytes_come_after_what_was_written_there_before(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let sources = spaces.each_ref().map(memory);
    let target = memory(&spaces[2]);
    let there: Vec<Event> =
        sources.iter().zip(0..).map(|(from, seed)| program.write(from, pattern(SIZE_BYTES, seed), &[])).collect();
    let mut last = program.write(&target, pattern(SIZE_BYTES, 9), &[]);
    for at in [0, 1, 2, 1, 0, 2, 1] {
        last = copy(&sources[at], &target, &[&there[at], &last]);
    }
    assert_bytes(read(&target, &[&last]), 1);
}

pub(crate) fn what_a_peer_wrote_is_read_on_the_device_at_once(fixture: &Fixture) {
    let (spaces, mut program, mut ends) = (three_spaces(fixture), Program::default(), Vec::new());
    let source = memory(&spaces[0]);
    let mut last = Event::ready();
    for seed in 0..6 {
        let written = program.write(&source, pattern(SIZE_BYTES, seed), &[&last]);
        let there = memory(&spaces[1 + usize::from(seed) % 2]);
        last = copy(&source, &there, &[&written]);
        let within = memory(&there.memory_space());
        let on = copy(&there, &within, &[&last]);
        ends.push((within, on, seed));
    }
    for (within, on, seed) in ends {
        assert_bytes(read(&within, &[&on]), seed);
    }
}

pub(crate) fn devices_exchange_their_blocks_and_wait_for_both(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let (blocks, spare) = (spaces.each_ref().map(memory), spaces.each_ref().map(memory));
    let mut last: Vec<Event> =
        blocks.iter().zip(0..).map(|(to, seed)| program.write(to, pattern(SIZE_BYTES, seed), &[])).collect();
    for _ in 0..4 {
        // Each to the next, once the block there has been read; then into the blocks, once they have been.
        let all: Vec<&Event> = last.iter().collect();
        let sent: Vec<Event> = (0..3).map(|at| copy(&blocks[at], &spare[(at + 1) % 3], &all)).collect();
        last = (0..3).map(|at| copy(&spare[at], &blocks[at], &[&sent[(at + 2) % 3], &sent[at]])).collect();
    }
    // Four steps on: one step for three blocks.
    for (at, seed) in [(0, 2), (1, 0), (2, 1)] {
        assert_bytes(read(&blocks[at], &[&last[at]]), seed);
    }
}
