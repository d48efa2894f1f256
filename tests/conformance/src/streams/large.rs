//! Large copies, which may go in several pieces, beside small ones.

use purlin_async::Event;
use purlin_device::{Buffer, RawBuffer};

use super::{Program, SIZE_BYTES, assert_bytes, blocks, copy, memory, read, three_spaces};
use crate::fixture::{Fixture, pattern};
use crate::host_copy::HostCopy;

/// Several pieces for any backend that has pieces, and a part of one.
const SEVERAL_BYTES: usize = (8 << 20) + 4099;

/// Bytes that tell their position, quickly made. The period is prime.
fn many(seed: u8) -> Vec<u8> {
    let piece = pattern(65_521, seed);
    let mut bytes = piece.repeat(SEVERAL_BYTES / piece.len() + 1);
    bytes.truncate(SEVERAL_BYTES);
    bytes
}

fn large(fixture: &Fixture) -> RawBuffer {
    RawBuffer::allocate(&fixture.space(), SEVERAL_BYTES).expect("a few megabytes are there")
}

#[track_caller]
fn assert_many(copy: HostCopy, seed: u8) {
    assert!(copy.wait().unwrap() == many(seed), "other bytes than those of seed {seed}");
}

pub(crate) fn a_large_copy_goes_beside_small_ones(fixture: &Fixture) {
    let (whole, twin, mut program) = (large(fixture), large(fixture), Program::default());
    let (small, mut ends) = (blocks(fixture, 16), Vec::new());
    let written = program.write(&whole, many(90), &[]);
    for (block, seed) in small.iter().zip(0..) {
        let there = program.write(block, pattern(SIZE_BYTES, seed), &[]);
        let next = memory(&fixture.space());
        let copied = copy(block, &next, &[&there]);
        ends.push((next, copied, seed));
    }
    let copied = copy(&whole, &twin, &[&written]);
    let last = read(&twin, &[&copied]);
    for (next, copied, seed) in ends {
        assert_bytes(read(&next, &[&copied]), seed);
    }
    assert_many(last, 90);
}

pub(crate) fn every_piece_of_a_large_copy_is_there_for_small_ones(fixture: &Fixture) {
    let (whole, mut program) = (large(fixture), Program::default());
    let (bytes, mut parts) = (many(91), Vec::new());
    let written = program.write(&whole, bytes.clone(), &[]);
    for at in [0, (4 << 20) - 128, 4 << 20, (8 << 20) - 128, 8 << 20, SEVERAL_BYTES - SIZE_BYTES] {
        let part = memory(&fixture.space());
        let copied = copy(&whole.slice(at, SIZE_BYTES).unwrap(), &part, &[&written]);
        parts.push((at, read(&part, &[&copied])));
    }
    for (at, part) in parts {
        assert!(part.wait().unwrap() == bytes[at..][..SIZE_BYTES], "other bytes than those at {at}");
    }
}

pub(crate) fn a_large_array_is_written_after_its_large_read(fixture: &Fixture) {
    let (whole, mut program) = (large(fixture), Program::default());
    let (mut last, mut versions) = (Event::ready(), Vec::new());
    for seed in 0..3 {
        let written = program.write(&whole, many(seed), &[&last]);
        let version = read(&whole, &[&written]);
        last = version.event().clone();
        versions.push((version, seed));
    }
    for (version, seed) in versions {
        assert_many(version, seed);
    }
}

pub(crate) fn parts_are_written_after_the_large_read_of_all(fixture: &Fixture) {
    let (whole, mut program) = (large(fixture), Program::default());
    let written = program.write(&whole, many(92), &[]);
    let old = read(&whole, &[&written]);
    let mut parts = Vec::new();
    for at in [0, 4 << 20, SEVERAL_BYTES - SIZE_BYTES] {
        let part = whole.slice(at, SIZE_BYTES).unwrap();
        let over = program.write(&part, pattern(SIZE_BYTES, 93), &[old.event()]);
        parts.push(read(&part, &[&over]));
    }
    assert_many(old, 92);
    for part in parts {
        assert_bytes(part, 93);
    }
}

pub(crate) fn many_large_copies_share_what_they_go_through(fixture: &Fixture) {
    let (mut program, mut reads) = (Program::default(), Vec::new());
    for seed in 0..7 {
        let whole = large(fixture);
        let written = program.write(&whole, many(seed), &[]);
        reads.push((read(&whole, &[&written]), seed));
    }
    for (all, seed) in reads {
        assert_many(all, seed);
    }
}

pub(crate) fn a_large_copy_visits_every_device(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut at = large(fixture);
    let mut last = program.write(&at, many(94), &[]);
    for link in 1..5 {
        let next = RawBuffer::allocate(&spaces[link % 3], SEVERAL_BYTES).unwrap();
        last = copy(&at, &next, &[&last]);
        at = next;
    }
    assert_many(read(&at, &[&last]), 94);
}

pub(crate) fn a_large_array_is_deleted_under_its_read(fixture: &Fixture) {
    let mut program = Program::default();
    let shape = purlin_array::Shape::new(purlin_array::DType::U8, &[SEVERAL_BYTES as i64]).unwrap();
    let reads: Vec<HostCopy> = (0..2)
        .map(|seed| {
            let whole = large(fixture);
            let written = program.write(&whole, many(seed), &[]);
            let array = Buffer::from_raw(whole, &shape, None, &written).unwrap();
            let hold = array.usage_hold().unwrap();
            let all = read(hold.memory(), &[&hold.ready_event()]);
            hold.release_after(all.event().clone());
            array.delete();
            all
        })
        .collect();
    for (all, seed) in reads.into_iter().zip(0..) {
        assert_many(all, seed);
    }
}
