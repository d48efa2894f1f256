//! Memory of the host, pinned or not, in the middle of a program.

use purlin_async::Event;
use purlin_device::{MemorySpace, RawBuffer};

use super::{Program, SIZE_BYTES, assert_bytes, blocks, copy, memory, read, three_spaces};
use crate::fixture::{Fixture, pattern};

pub(crate) fn host_memory_is_written_and_sent_on(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    let written = program.write(&blocks[0], pattern(SIZE_BYTES, 9), &[]);
    let host = memory(&fixture.device(0).memory_space("pinned_host").unwrap());
    let down = copy(&blocks[0], &host, &[&written]);
    let up = copy(&host, &blocks[1], &[&down]);
    let over = program.write(&host, pattern(SIZE_BYTES, 10), &[&up]);
    assert_bytes(read(&blocks[1], &[&up]), 9);
    assert_bytes(read(&host, &[&over]), 10);
}

/// The memory of that kind of each of three devices.
fn of_kind(fixture: &Fixture, kind: &str) -> [MemorySpace; 3] {
    [0, 1, 2].map(|id| fixture.device(id).memory_space(kind).unwrap())
}

/// From device to device through one block of the host, again and again: each round waits until the block was read.
fn through(fixture: &Fixture, host: &RawBuffer, seed: u8) {
    let (blocks, mut program) = (three_spaces(fixture).each_ref().map(memory), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[]);
    for link in 0..9 {
        let down = copy(&blocks[link % 3], host, &[&last]);
        last = copy(host, &blocks[(link + 1) % 3], &[&down]);
    }
    assert_bytes(read(&blocks[0], &[&last]), seed);
    assert_bytes(read(host, &[&last]), seed);
}

pub(crate) fn pinned_memory_carries_bytes_between_devices(fixture: &Fixture) {
    through(fixture, &memory(&of_kind(fixture, "pinned_host")[1]), 70);
}

pub(crate) fn unpinned_memory_carries_bytes_between_devices(fixture: &Fixture) {
    through(fixture, &memory(&of_kind(fixture, "unpinned_host")[1]), 71);
}

pub(crate) fn host_memory_of_both_kinds_is_crossed_in_turn(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let (pinned, unpinned) = (of_kind(fixture, "pinned_host"), of_kind(fixture, "unpinned_host"));
    let mut at = memory(&spaces[0]);
    let mut last = program.write(&at, pattern(SIZE_BYTES, 72), &[]);
    for link in 0..6 {
        for space in [&pinned[link % 3], &unpinned[(link + 1) % 3], &spaces[(link + 2) % 3]] {
            let next = memory(space);
            last = copy(&at, &next, &[&last]);
            at = next;
        }
    }
    assert_bytes(read(&at, &[&last]), 72);
}

pub(crate) fn pinned_memory_is_written_after_it_was_sent(fixture: &Fixture) {
    let host = memory(&of_kind(fixture, "pinned_host")[0]);
    let (sources, targets, mut program) = (blocks(fixture, 6), blocks(fixture, 6), Program::default());
    let (mut sent, mut all) = (Event::ready(), Vec::new());
    for ((from, to), seed) in sources.iter().zip(&targets).zip(0..) {
        let written = program.write(from, pattern(SIZE_BYTES, seed), &[]);
        let down = copy(from, &host, &[&written, &sent]);
        sent = copy(&host, to, &[&down]);
        all.push(sent.clone());
    }
    for ((to, sent), seed) in targets.iter().zip(&all).zip(0..) {
        assert_bytes(read(to, &[sent]), seed);
    }
}

pub(crate) fn pinned_memory_is_passed_on_within_the_host(fixture: &Fixture) {
    let spaces = of_kind(fixture, "pinned_host");
    let (host, blocks, mut program) = (spaces.each_ref().map(memory), blocks(fixture, 2), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 73), &[]);
    for _ in 0..4 {
        let down = copy(&blocks[0], &host[0], &[&last]);
        let within = copy(&host[0], &host[1], &[&down]);
        let on = copy(&host[1], &host[2], &[&within]);
        let up = copy(&host[2], &blocks[1], &[&on]);
        last = copy(&blocks[1], &blocks[0], &[&up]);
    }
    assert_bytes(read(&blocks[0], &[&last]), 73);
}
