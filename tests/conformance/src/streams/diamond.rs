//! One operation, several ways from it, and one that waits for them all.

use purlin_async::{Event, when_all};
use purlin_device::RawBuffer;

use super::{Program, SIZE_BYTES, assert_bytes, blocks, copy, memory, read, three_spaces};
use crate::fixture::{Fixture, pattern};

/// Both halves of `from` by ways of their own to `to`.
fn diamond(fixture: &Fixture, from: &RawBuffer, to: &RawBuffer, after: &Event) -> Event {
    let half = SIZE_BYTES / 2;
    let ways = [0, half].map(|offset_bytes| {
        let middle = RawBuffer::allocate(&fixture.space(), half).expect("a few bytes are there");
        let there = copy(&from.slice(offset_bytes, half).unwrap(), &middle, &[after]);
        copy(&middle, &to.slice(offset_bytes, half).unwrap(), &[&there])
    });
    when_all(&ways)
}

pub(crate) fn both_ways_of_a_diamond_arrive(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    let written = program.write(&blocks[0], pattern(SIZE_BYTES, 4), &[]);
    let joined = diamond(fixture, &blocks[0], &blocks[1], &written);
    assert_bytes(read(&blocks[1], &[&joined]), 4);
}

pub(crate) fn diamonds_follow_each_other(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 7), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 5), &[]);
    for pair in blocks.windows(2) {
        last = diamond(fixture, &pair[0], &pair[1], &last);
    }
    assert_bytes(read(&blocks[6], &[&last]), 5);
}

/// Both halves of `from` by way of `middles` to `to`, joined by what waits for both.
fn halves(from: &RawBuffer, middles: &[RawBuffer; 2], to: &RawBuffer, after: &[&Event]) -> [Event; 2] {
    let half = SIZE_BYTES / 2;
    [0, 1].map(|way| {
        let middle = middles[way].slice(0, half).unwrap();
        let there = copy(&from.slice(way * half, half).unwrap(), &middle, after);
        copy(&middle, &to.slice(way * half, half).unwrap(), &[&there])
    })
}

pub(crate) fn a_diamond_over_three_devices_arrives(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let (from, to, middles) = (memory(&spaces[0]), memory(&spaces[0]), [memory(&spaces[1]), memory(&spaces[2])]);
    let written = program.write(&from, pattern(SIZE_BYTES, 30), &[]);
    let mut ways = halves(&from, &middles, &to, &[&written]);
    // Back through the same memory, so that each way also waits for the reads of the other direction.
    for _ in 0..3 {
        ways = halves(&to, &middles, &from, &[&ways[0], &ways[1]]);
        ways = halves(&from, &middles, &to, &[&ways[0], &ways[1]]);
    }
    assert_bytes(read(&to, &[&ways[0], &ways[1]]), 30);
}

pub(crate) fn a_diamond_through_host_memory_arrives(fixture: &Fixture) {
    let host = ["pinned_host", "unpinned_host"].map(|kind| fixture.device(0).memory_space(kind).unwrap());
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    let middles = host.each_ref().map(memory);
    let written = program.write(&blocks[0], pattern(SIZE_BYTES, 31), &[]);
    let mut ways = halves(&blocks[0], &middles, &blocks[1], &[&written]);
    for _ in 0..3 {
        ways = halves(&blocks[1], &middles, &blocks[0], &[&ways[0], &ways[1]]);
        ways = halves(&blocks[0], &middles, &blocks[1], &[&ways[0], &ways[1]]);
    }
    assert_bytes(read(&blocks[1], &[&ways[0], &ways[1]]), 31);
}

pub(crate) fn the_side_of_a_diamond_that_is_read_is_written_after_its_join(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 4), Program::default());
    let mut last = Event::ready();
    let mut versions = Vec::new();
    for seed in 0..6 {
        let top = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[&last]);
        let sides = [copy(&blocks[0], &blocks[1], &[&top]), copy(&blocks[0], &blocks[2], &[&top])];
        let half = SIZE_BYTES / 2;
        let parts = [0, 1].map(|way| {
            let (from, to) = (blocks[1 + way].slice(way * half, half), blocks[3].slice(way * half, half));
            copy(&from.unwrap(), &to.unwrap(), &[&sides[0], &sides[1], &last])
        });
        let version = read(&blocks[3], &[&parts[0], &parts[1]]);
        last = version.event().clone();
        versions.push((version, seed));
    }
    for (version, seed) in versions {
        assert_bytes(version, seed);
    }
}
