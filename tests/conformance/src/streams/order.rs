//! Reads after writes, writes after reads, and memory that is used again right after.

use purlin_async::Event;
use purlin_device::{AllocOptions, ClientOptions, OomPolicy, RawBuffer};

use super::{Program, SIZE_BYTES, assert_bytes, blocks, copy, memory, read, three_spaces};
use crate::fixture::{Fixture, pattern};
use crate::host_copy::HostCopy;

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

pub(crate) fn a_block_is_written_after_it_was_copied_away_by_each_way(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let pinned = fixture.device(0).memory_space("pinned_host").unwrap();
    let unpinned = fixture.device(0).memory_space("unpinned_host").unwrap();
    let block = memory(&spaces[0]);
    let mut written = program.write(&block, pattern(SIZE_BYTES, 0), &[]);
    let mut copies = Vec::new();
    for (seed, space) in (0..).zip([&spaces[0], &pinned, &spaces[1], &unpinned, &spaces[2], &pinned, &spaces[0]]) {
        let to = memory(space);
        let away = copy(&block, &to, &[&written]);
        written = program.write(&block, pattern(SIZE_BYTES, seed + 1), &[&away]);
        copies.push((to, away, seed));
    }
    for (to, away, seed) in copies {
        assert_bytes(read(&to, &[&away]), seed);
    }
    assert_bytes(read(&block, &[&written]), 7);
}

pub(crate) fn a_block_is_read_only_after_each_way_of_writing_it(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let pinned = fixture.device(0).memory_space("pinned_host").unwrap();
    let unpinned = fixture.device(0).memory_space("unpinned_host").unwrap();
    let block = memory(&spaces[0]);
    let (mut last, mut versions) = (Event::ready(), Vec::new());
    for (seed, space) in (0..).zip([&spaces[0], &pinned, &spaces[1], &unpinned, &spaces[2], &pinned]) {
        let (from, to) = (memory(space), memory(&spaces[0]));
        let there = program.write(&from, pattern(SIZE_BYTES, seed), &[]);
        let written = copy(&from, &block, &[&there, &last]);
        last = copy(&block, &to, &[&written]);
        versions.push((to, last.clone(), seed));
    }
    for (to, last, seed) in versions {
        assert_bytes(read(&to, &[&last]), seed);
    }
}

pub(crate) fn a_write_within_waits_for_reads_to_the_host(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    let pinned = fixture.device(0).memory_space("pinned_host").unwrap();
    let mut last = program.write(&blocks[1], pattern(SIZE_BYTES, 0), &[]);
    let mut source = Event::ready();
    let mut versions = Vec::new();
    for seed in 0..6 {
        let to = memory(&pinned);
        let read = copy(&blocks[1], &to, &[&last]);
        let renewed = program.write(&blocks[0], pattern(SIZE_BYTES, seed + 1), &[&source]);
        source = copy(&blocks[0], &blocks[1], &[&renewed, &read]);
        last = source.clone();
        versions.push((to, read, seed));
    }
    for (to, copied, seed) in versions {
        assert_bytes(read(&to, &[&copied]), seed);
    }
    assert_bytes(read(&blocks[1], &[&last]), 6);
}

pub(crate) fn memory_freed_under_its_last_use_is_written_by_others(fixture: &Fixture) {
    let (targets, mut program) = (blocks(fixture, 16), Program::default());
    let space = fixture.space();
    let copied: Vec<Event> = targets
        .iter()
        .zip(0..)
        .map(|(to, seed)| {
            let source = memory(&space);
            let written = program.write(&source, pattern(SIZE_BYTES, seed), &[]);
            let copied = copy(&source, to, &[&written]);
            // What is idle goes to the system; what a copy still uses must not.
            drop(source);
            space.trim();
            copied
        })
        .collect();
    for ((to, copied), seed) in targets.iter().zip(&copied).zip(0..) {
        assert_bytes(read(to, &[copied]), seed);
    }
}

pub(crate) fn rounds_of_allocation_fit_into_little_memory(fixture: &Fixture) {
    const LIMIT_BYTES: usize = 1 << 20;
    let options = ClientOptions { memory_limit_bytes: LIMIT_BYTES, ..Default::default() };
    let client = fixture.client_with(&options);
    let (space, mut program) = (client.devices()[0].default_memory_space(), Program::default());
    let target = memory(&space);
    let (mut last, mut reads) = (Event::ready(), Vec::new());
    for seed in 0..12 {
        let wait = AllocOptions { oom: OomPolicy::Wait, ..Default::default() };
        // More than half of it, so that each waits for the one before.
        let source = RawBuffer::allocate_with(&space, LIMIT_BYTES / 4 * 3, &wait).unwrap();
        let part = source.slice(LIMIT_BYTES / 2, SIZE_BYTES).unwrap();
        let written = program.write(&part, pattern(SIZE_BYTES, seed), &[&source.allocation_event()]);
        last = copy(&part, &target, &[&written, &last]);
        let version = read(&target, &[&last]);
        last = version.event().clone();
        reads.push((version, seed));
    }
    for (version, seed) in reads {
        assert_bytes(version, seed);
    }
}
