//! Arrays that are copied, donated and deleted while what uses them is under way.

use purlin_array::{DType, Layout, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, MemorySpace};

use super::{Program, SIZE_BYTES, copy, memory, three_spaces};
use crate::fixture::{Fixture, assert_error, pattern};

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

pub(crate) fn donated_memory_is_written_from_another_device(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut state = array(&mut program, &spaces[0], 0);
    let mut history = Vec::new();
    for seed in 1..7 {
        history.push(state.copy_to_memory_space(&spaces[1 + usize::from(seed) % 2]).unwrap());
        let hold = state.donate(c"step").unwrap();
        let free = hold.free_event();
        let block = hold.confirm();
        let source = memory(&spaces[1 + usize::from(seed) % 2]);
        let there = program.write(&source, pattern(SIZE_BYTES, seed), &[]);
        let written = copy(&source, &block, &[&there, &free]);
        state = Buffer::from_raw(block, &shape(), None, &written).unwrap();
    }
    for (version, seed) in history.iter().zip(0..) {
        assert_array(version, seed);
    }
    assert_array(&state, 6);
}

pub(crate) fn steps_that_delete_what_they_have_read_and_donate_the_rest(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut state = array(&mut program, &spaces[0], 60);
    for link in 0..6 {
        let away = state.copy_to_memory_space(&spaces[link % 3]).unwrap();
        let back = away.copy_to_memory_space(&spaces[0]).unwrap();
        away.delete();
        let block = state.donate(c"step").unwrap();
        let free = block.free_event();
        let block = block.confirm();
        let hold = back.usage_hold().unwrap();
        let moved = copy(hold.memory(), &block, &[&hold.ready_event(), &free]);
        hold.release_after(moved.clone());
        back.delete();
        state = Buffer::from_raw(block, &shape(), None, &moved).unwrap();
    }
    assert_array(&state, 60);
}

pub(crate) fn a_donated_array_fails_after_a_failed_event_and_its_memory_is_well(fixture: &Fixture) {
    let mut program = Program::default();
    let old = array(&mut program, &fixture.space(), 61);
    let copied = old.copy_to_memory_space(&fixture.space()).unwrap();
    let gate = EventPromise::new(c"gate");
    let new = old.donate_after(&gate.event()).unwrap();
    let behind = new.copy_to_memory_space(&fixture.space()).unwrap();
    gate.set_error(Error::aborted("no donee"));
    assert_error(&behind.ready_event().wait().unwrap_err(), StatusCode::Aborted, &["no donee"]);
    assert_array(&copied, 61);
}
