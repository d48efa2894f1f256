//! Programs of many operations that are ordered by events alone: no thread of the host waits between them. A backend
//! that loses one of the waits computes other bytes.

use purlin_array::{DType, Layout, Shape};
use purlin_async::{Event, EventPromise, run_when_ready, when_all};
use purlin_base::{Error, StatusCode};
use purlin_device::{AllocOptions, Buffer, MemorySpace, RawBuffer};

use crate::fixture::{Fixture, assert_error, pattern};
use crate::host_copy::{HostCopy, between};

const SIZE_BYTES: usize = 256;

/// A program under way: what it has written from the host is kept until its end.
#[derive(Default)]
struct Program(Vec<HostCopy>);

impl Program {
    /// `bytes` to the start of `to`.
    fn write(&mut self, to: &RawBuffer, bytes: Vec<u8>, after: &[&Event]) -> Event {
        let copy = HostCopy::to_device(to, 0, bytes, &owned(after));
        let written = copy.event().clone();
        self.0.push(copy);
        written
    }
}

fn owned(events: &[&Event]) -> Vec<Event> {
    events.iter().copied().cloned().collect()
}

fn copy(from: &RawBuffer, to: &RawBuffer, after: &[&Event]) -> Event {
    between(from, to, &owned(after))
}

fn read(from: &RawBuffer, after: &[&Event]) -> HostCopy {
    HostCopy::from_device(from, 0, from.size_bytes(), &owned(after))
}

fn memory(space: &MemorySpace) -> RawBuffer {
    RawBuffer::allocate(space, SIZE_BYTES).expect("a few kilobytes are there")
}

fn blocks(fixture: &Fixture, count: usize) -> Vec<RawBuffer> {
    (0..count).map(|_| memory(&fixture.space())).collect()
}

/// The default memory of each of three devices.
fn three_spaces(fixture: &Fixture) -> [MemorySpace; 3] {
    [0, 1, 2].map(|id| fixture.device(id).default_memory_space())
}

#[track_caller]
fn assert_bytes(copy: HostCopy, seed: u8) {
    let bytes = copy.wait().unwrap();
    assert!(bytes == pattern(bytes.len(), seed), "other bytes than those of seed {seed}");
}

pub(crate) fn a_chain_ends_with_the_first_bytes(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 16), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 1), &[]);
    for pair in blocks.windows(2) {
        last = copy(&pair[0], &pair[1], &[&last]);
    }
    assert_bytes(read(&blocks[15], &[&last]), 1);
}

pub(crate) fn a_chain_goes_through_every_space(fixture: &Fixture) {
    let (mut at, mut program) = (memory(&fixture.space()), Program::default());
    let mut last = program.write(&at, pattern(SIZE_BYTES, 2), &[]);
    for space in fixture.spaces() {
        let next = memory(&space);
        last = copy(&at, &next, &[&last]);
        at = next;
    }
    assert_bytes(read(&at, &[&last]), 2);
}

pub(crate) fn a_chain_goes_round_the_devices(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut at = memory(&spaces[0]);
    let mut last = program.write(&at, pattern(SIZE_BYTES, 3), &[]);
    for link in 1..=12 {
        let next = memory(&spaces[link % 3]);
        last = copy(&at, &next, &[&last]);
        at = next;
    }
    assert_bytes(read(&at, &[&last]), 3);
}

pub(crate) fn chains_side_by_side_do_not_mix(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let ends: Vec<(RawBuffer, Event, u8)> = (0..6)
        .map(|seed| {
            let mut at = memory(&spaces[usize::from(seed) % 3]);
            let mut last = program.write(&at, pattern(SIZE_BYTES, seed), &[]);
            for _ in 0..4 {
                let next = memory(&at.memory_space());
                last = copy(&at, &next, &[&last]);
                at = next;
            }
            (at, last, seed)
        })
        .collect();
    for (end, last, seed) in ends {
        assert_bytes(read(&end, &[&last]), seed);
    }
}

pub(crate) fn reads_follow_their_writes(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 8), Program::default());
    let reads: Vec<HostCopy> = (0..8_u8)
        .map(|seed| {
            let block = &blocks[usize::from(seed)];
            let written = program.write(block, pattern(SIZE_BYTES, seed), &[]);
            read(block, &[&written])
        })
        .collect();
    for (seed, copy) in (0..).zip(reads) {
        assert_bytes(copy, seed);
    }
}

pub(crate) fn writes_follow_the_reads_of_what_was_there(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 8), Program::default());
    let mut reads = Vec::new();
    for (block, seed) in blocks.iter().zip(0..) {
        let written = program.write(block, pattern(SIZE_BYTES, seed), &[]);
        let old = read(block, &[&written]);
        let over = program.write(block, pattern(SIZE_BYTES, seed + 100), &[old.event()]);
        reads.push((old, read(block, &[&over]), seed));
    }
    for (old, new, seed) in reads {
        assert_bytes(old, seed);
        assert_bytes(new, seed + 100);
    }
}

pub(crate) fn the_last_of_many_writes_stays(fixture: &Fixture) {
    let (block, mut program) = (memory(&fixture.space()), Program::default());
    let mut last = Event::ready();
    for seed in 0..16 {
        last = program.write(&block, pattern(SIZE_BYTES, seed), &[&last]);
    }
    assert_bytes(read(&block, &[&last]), 15);
}

pub(crate) fn every_version_is_read_between_two_writes(fixture: &Fixture) {
    let (block, mut program) = (memory(&fixture.space()), Program::default());
    let mut versions = Vec::new();
    let mut last = Event::ready();
    for seed in 0..8 {
        let written = program.write(&block, pattern(SIZE_BYTES, seed), &[&last]);
        let version = read(&block, &[&written]);
        last = version.event().clone();
        versions.push((version, seed));
    }
    for (version, seed) in versions {
        assert_bytes(version, seed);
    }
}

pub(crate) fn a_writer_waits_for_all_readers(fixture: &Fixture) {
    let (block, mut program) = (memory(&fixture.space()), Program::default());
    let written = program.write(&block, pattern(SIZE_BYTES, 1), &[]);
    let copies = blocks(fixture, 6);
    let readers: Vec<Event> = copies.iter().map(|to| copy(&block, to, &[&written])).collect();
    let all: Vec<&Event> = readers.iter().collect();
    let over = program.write(&block, pattern(SIZE_BYTES, 2), &all);
    for (to, reader) in copies.iter().zip(&readers) {
        assert_bytes(read(to, &[reader]), 1);
    }
    assert_bytes(read(&block, &[&over]), 2);
}

pub(crate) fn a_writer_waits_for_readers_on_other_devices(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let block = memory(&spaces[0]);
    let mut written = program.write(&block, pattern(SIZE_BYTES, 0), &[]);
    let mut copies = Vec::new();
    for seed in 0..6 {
        let to = memory(&spaces[1 + usize::from(seed) % 2]);
        let copied = copy(&block, &to, &[&written]);
        written = program.write(&block, pattern(SIZE_BYTES, seed + 1), &[&copied]);
        copies.push((to, copied, seed));
    }
    for (to, copied, seed) in copies {
        assert_bytes(read(&to, &[&copied]), seed);
    }
    assert_bytes(read(&block, &[&written]), 6);
}

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

pub(crate) fn one_write_reaches_many(fixture: &Fixture) {
    let (source, mut program) = (memory(&fixture.space()), Program::default());
    let written = program.write(&source, pattern(SIZE_BYTES, 6), &[]);
    let reads: Vec<HostCopy> = blocks(fixture, 12)
        .iter()
        .map(|to| {
            let copied = copy(&source, to, &[&written]);
            read(to, &[&copied])
        })
        .collect();
    for copy in reads {
        assert_bytes(copy, 6);
    }
}

pub(crate) fn many_writes_are_read_as_one(fixture: &Fixture) {
    const PARTS: usize = 16;
    let (whole, target) = (memory(&fixture.space()), memory(&fixture.space()));
    let (mut program, bytes, part) = (Program::default(), pattern(SIZE_BYTES, 7), SIZE_BYTES / PARTS);
    let written: Vec<Event> = (0..PARTS)
        .map(|at| {
            let to = whole.slice(at * part, part).unwrap();
            program.write(&to, bytes[at * part..][..part].to_vec(), &[])
        })
        .collect();
    let copied = copy(&whole, &target, &written.iter().collect::<Vec<_>>());
    assert_bytes(read(&target, &[&copied]), 7);
}

pub(crate) fn two_blocks_are_swapped_by_way_of_a_third(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 3), Program::default());
    let first = program.write(&blocks[0], pattern(SIZE_BYTES, 1), &[]);
    let second = program.write(&blocks[1], pattern(SIZE_BYTES, 2), &[]);
    let mut last = when_all(&[first, second]);
    for _ in 0..5 {
        for (from, to) in [(0, 2), (1, 0), (2, 1)] {
            last = copy(&blocks[from], &blocks[to], &[&last]);
        }
    }
    assert_bytes(read(&blocks[0], &[&last]), 2);
    assert_bytes(read(&blocks[1], &[&last]), 1);
}

pub(crate) fn blocks_of_three_devices_rotate(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let (blocks, spare) = (spaces.each_ref().map(memory), memory(&spaces[0]));
    let written: Vec<Event> =
        (0..3).map(|seed| program.write(&blocks[usize::from(seed)], pattern(SIZE_BYTES, seed), &[])).collect();
    let mut last = when_all(&written);
    for _ in 0..4 {
        for (from, to) in
            [(&blocks[2], &spare), (&blocks[1], &blocks[2]), (&blocks[0], &blocks[1]), (&spare, &blocks[0])]
        {
            last = copy(from, to, &[&last]);
        }
    }
    for (block, seed) in blocks.iter().zip([2, 0, 1]) {
        assert_bytes(read(block, &[&last]), seed);
    }
}

pub(crate) fn overlapping_ranges_move_step_by_step(fixture: &Fixture) {
    const STEPS: usize = 12;
    let block = RawBuffer::allocate(&fixture.space(), SIZE_BYTES + STEPS).unwrap();
    let mut program = Program::default();
    let mut last = program.write(&block, pattern(SIZE_BYTES, 8), &[]);
    for at in 0..STEPS {
        let (from, to) = (block.slice(at, SIZE_BYTES).unwrap(), block.slice(at + 1, SIZE_BYTES).unwrap());
        last = copy(&from, &to, &[&last]);
    }
    assert_bytes(read(&block.slice(STEPS, SIZE_BYTES).unwrap(), &[&last]), 8);
}

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

pub(crate) fn memory_that_is_dropped_under_a_copy_is_not_reused_too_early(fixture: &Fixture) {
    let (target, mut program) = (blocks(fixture, 8), Program::default());
    let copied: Vec<Event> = target
        .iter()
        .zip(0..)
        .map(|(to, seed)| {
            let source = memory(&fixture.space());
            let written = program.write(&source, pattern(SIZE_BYTES, seed), &[]);
            copy(&source, to, &[&written])
        })
        .collect();
    for ((to, copied), seed) in target.iter().zip(&copied).zip(0..) {
        assert_bytes(read(to, &[copied]), seed);
    }
}

pub(crate) fn memory_is_used_again_right_after_its_last_use(fixture: &Fixture) {
    let (target, mut program) = (memory(&fixture.space()), Program::default());
    let mut last = Event::ready();
    for seed in 0..12 {
        let options = AllocOptions { after: Some(last.clone()), ..Default::default() };
        let source = RawBuffer::allocate_with(&fixture.space(), SIZE_BYTES, &options).unwrap();
        let written = program.write(&source, pattern(SIZE_BYTES, seed), &[]);
        last = copy(&source, &target, &[&written]);
    }
    assert_bytes(read(&target, &[&last]), 11);
}

fn shape() -> Shape {
    Shape::new(DType::U8, &[256]).unwrap()
}

/// An array whose bytes come later.
fn array(program: &mut Program, space: &MemorySpace, seed: u8) -> Buffer {
    let block = memory(space);
    let written = program.write(&block, pattern(SIZE_BYTES, seed), &[]);
    Buffer::from_raw(block, &shape(), None, &written).unwrap()
}

#[track_caller]
fn assert_array(array: &Buffer, seed: u8) {
    assert!(array.to_vec::<u8>().unwrap() == pattern(SIZE_BYTES, seed), "other bytes than those of seed {seed}");
}

pub(crate) fn arrays_each_copied_from_the_last(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut last = array(&mut program, &spaces[0], 11);
    for link in 1..=9 {
        last = last.copy_to_memory_space(&spaces[link % 3]).unwrap();
    }
    assert_array(&last, 11);
}

pub(crate) fn arrays_deleted_under_their_copies(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut last = array(&mut program, &spaces[0], 12);
    for link in 1..=9 {
        let next = last.copy_to_memory_space(&spaces[link % 3]).unwrap();
        last.delete();
        last = next;
    }
    assert_array(&last, 12);
}

pub(crate) fn a_donee_writes_after_the_reads_of_the_old_array(fixture: &Fixture) {
    let mut program = Program::default();
    let old = array(&mut program, &fixture.space(), 13);
    let copies: Vec<Buffer> = (0..4).map(|_| old.copy_to_memory_space(&fixture.space()).unwrap()).collect();
    let hold = old.donate(c"step").unwrap();
    let free = hold.free_event();
    let block = hold.confirm();
    let written = program.write(&block, pattern(SIZE_BYTES, 14), &[&free]);
    let new = Buffer::from_raw(block, &shape(), None, &written).unwrap();
    for copy in &copies {
        assert_array(copy, 13);
    }
    assert_array(&new, 14);
}

pub(crate) fn memory_is_donated_from_step_to_step(fixture: &Fixture) {
    let mut program = Program::default();
    let mut state = array(&mut program, &fixture.space(), 0);
    let mut history = Vec::new();
    for seed in 1..8 {
        history.push(state.copy_to_memory_space(&fixture.space()).unwrap());
        let hold = state.donate(c"step").unwrap();
        let free = hold.free_event();
        let block = hold.confirm();
        let written = program.write(&block, pattern(SIZE_BYTES, seed), &[&free]);
        state = Buffer::from_raw(block, &shape(), None, &written).unwrap();
    }
    for (version, seed) in history.iter().zip(0..) {
        assert_array(version, seed);
    }
    assert_array(&state, 7);
}

pub(crate) fn a_donated_array_is_read_and_deleted(fixture: &Fixture) {
    let mut program = Program::default();
    let old = array(&mut program, &fixture.space(), 15);
    let gate = EventPromise::new(c"gate");
    let new = old.donate_after(&gate.event()).unwrap();
    let copy = new.copy_to_memory_space(&fixture.space()).unwrap();
    new.delete();
    gate.set_ready();
    assert_array(&copy, 15);
}

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

pub(crate) fn arrays_come_to_host_memory_in_columns(fixture: &Fixture) {
    let (mut program, columns) = (Program::default(), Layout::new(&[0, 1]).unwrap());
    let host = fixture.device(0).memory_space("pinned_host").unwrap();
    let square = Shape::new(DType::U8, &[16, 16]).unwrap();
    for seed in 20..24 {
        let (block, target) = (memory(&fixture.space()), memory(&host));
        let written = program.write(&block, pattern(SIZE_BYTES, seed), &[]);
        let there = copy(&block, &target, &[&written]);
        let array = Buffer::from_raw(target, &square, Some(&columns), &there).unwrap();
        let (rows, bytes) = (array.to_vec::<u8>().unwrap(), pattern(SIZE_BYTES, seed));
        assert!((0..SIZE_BYTES).all(|at| rows[at] == bytes[at % 16 * 16 + at / 16]), "seed {seed}");
    }
}
