//! Kernels between copies, ordered by events alone.

use purlin_async::{Event, when_all};
use purlin_device::RawBuffer;

use super::{Program, SIZE_BYTES, copy, memory, read, three_spaces};
use crate::commands::{Shift, shift};
use crate::fixture::{Fixture, pattern};
use crate::host_copy::HostCopy;
use crate::kernel::{Arrays, COUNT, Step, bytes, numbers, step};

const _: () = assert!(SIZE_BYTES == 4 * COUNT);

/// Three arrays in the memory of a device, and what they are to hold.
struct Task {
    arrays: [RawBuffer; 3],
    expected: Arrays,
    kernel: Step,
}

impl Task {
    fn new(fixture: &Fixture, device: i32) -> Self {
        let device = fixture.device(device);
        let space = device.default_memory_space();
        let arrays = [0, 1, 2].map(|_| memory(&space));
        Self { arrays, expected: [0, 1, 2].map(numbers), kernel: Step::new(&device, fixture.momentum()) }
    }

    /// All three from the host.
    fn write(&self, program: &mut Program) -> [Event; 3] {
        [0, 1, 2].map(|at| program.write(&self.arrays[at], bytes(&self.expected[at]), &[]))
    }

    fn step(&mut self, stream: u8, after: &[Event]) -> Event {
        step(&mut self.expected);
        self.kernel.start(self.arrays.each_ref(), stream, after)
    }

    /// Another gradient, in place of the one that was there.
    fn replace_gradient(&mut self, program: &mut Program, seed: usize, after: &Event) -> Event {
        self.expected[2] = numbers(seed);
        program.write(&self.arrays[2], bytes(&self.expected[2]), &[after])
    }
}

#[track_caller]
fn assert_numbers(copy: HostCopy, numbers: &[f32]) {
    assert!(copy.wait().unwrap() == bytes(numbers), "other numbers than were computed on the host");
}

pub(crate) fn a_kernel_computes_between_copies(fixture: &Fixture) {
    let (mut program, mut task) = (Program::default(), Task::new(fixture, 0));
    let written = task.write(&mut program);
    let computed = task.step(0, &written);
    let within = memory(&fixture.space());
    let copied = copy(&task.arrays[0], &within, &[&computed]);
    assert_numbers(read(&within, &[&copied]), &task.expected[0]);
    assert_numbers(read(&task.arrays[1], &[&computed]), &task.expected[1]);
}

pub(crate) fn steps_on_one_stream_follow_each_other(fixture: &Fixture) {
    let (mut program, mut task) = (Program::default(), Task::new(fixture, 0));
    let mut last = when_all(&task.write(&mut program));
    for _ in 0..10 {
        last = task.step(0, &[last]);
    }
    assert_numbers(read(&task.arrays[0], &[&last]), &task.expected[0]);
}

pub(crate) fn steps_on_streams_in_turn_follow_each_other(fixture: &Fixture) {
    let (mut program, mut task) = (Program::default(), Task::new(fixture, 0));
    let mut last = when_all(&task.write(&mut program));
    for stream in [0, 1, 2, 3, 2, 1, 0, 3] {
        last = task.step(stream, &[last]);
    }
    assert_numbers(read(&task.arrays[0], &[&last]), &task.expected[0]);
}

pub(crate) fn a_kernel_waits_for_each_way_in(fixture: &Fixture) {
    let (mut program, mut task) = (Program::default(), Task::new(fixture, 0));
    // One from the host, one by a copy within the device, one from another device.
    let sources = [memory(&fixture.space()), memory(&fixture.device(1).default_memory_space())];
    let [first, second, third] = task.expected.each_ref().map(|numbers| bytes(numbers));
    let there = [program.write(&sources[0], second, &[]), program.write(&sources[1], third, &[])];
    let ready = [
        program.write(&task.arrays[0], first, &[]),
        copy(&sources[0], &task.arrays[1], &[&there[0]]),
        copy(&sources[1], &task.arrays[2], &[&there[1]]),
    ];
    let computed = task.step(0, &ready);
    assert_numbers(read(&task.arrays[0], &[&computed]), &task.expected[0]);
    assert_numbers(read(&task.arrays[1], &[&computed]), &task.expected[1]);
}

pub(crate) fn what_a_kernel_has_read_is_written_after_it(fixture: &Fixture) {
    let (mut program, mut task) = (Program::default(), Task::new(fixture, 0));
    let mut last = when_all(&task.write(&mut program));
    for round in 0..6 {
        let computed = task.step(0, &[last]);
        last = task.replace_gradient(&mut program, round + 3, &computed);
    }
    assert_numbers(read(&task.arrays[0], &[&last]), &task.expected[0]);
}

pub(crate) fn what_is_read_of_a_kernels_result_is_read_before_the_next(fixture: &Fixture) {
    let (mut program, mut task) = (Program::default(), Task::new(fixture, 0));
    let mut last = when_all(&task.write(&mut program));
    let (mut reads, space) = (Vec::new(), fixture.space());
    for _ in 0..6 {
        let computed = task.step(0, &[last]);
        let (to_host, within) = (read(&task.arrays[0], &[&computed]), memory(&space));
        let copied = copy(&task.arrays[1], &within, &[&computed]);
        last = when_all(&[to_host.event().clone(), copied.clone()]);
        reads.push((to_host, read(&within, &[&copied]), task.expected.clone()));
    }
    for (weights, velocity, expected) in reads {
        assert_numbers(weights, &expected[0]);
        assert_numbers(velocity, &expected[1]);
    }
}

pub(crate) fn both_ways_of_a_diamond_are_kernels(fixture: &Fixture) {
    let mut program = Program::default();
    let (mut left, mut right) = (Task::new(fixture, 0), Task::new(fixture, 0));
    let written = when_all(&left.write(&mut program));
    // Both begin with the same arrays.
    let copies: Vec<Event> =
        left.arrays.iter().zip(&right.arrays).map(|(from, to)| copy(from, to, &[&written])).collect();
    let ways = [left.step(1, &[when_all(&copies)]), right.step(2, &copies)];
    right.expected = left.expected.clone();
    // What the one has computed is the gradient of the other.
    let joined = copy(&left.arrays[0], &right.arrays[2], &[&ways[0], &ways[1]]);
    right.expected[2] = left.expected[0].clone();
    let computed = right.step(3, &[joined]);
    assert_numbers(read(&right.arrays[0], &[&computed]), &right.expected[0]);
}

pub(crate) fn devices_pass_what_their_kernels_have_computed(fixture: &Fixture) {
    let (mut program, spaces) = (Program::default(), three_spaces(fixture));
    let mut tasks = [0, 1, 2].map(|device| Task::new(fixture, device));
    let mut last: Vec<Event> = tasks.iter().map(|task| when_all(&task.write(&mut program))).collect();
    for round in 0..6 {
        let (from, to) = (round % 3, (round + 1) % 3);
        let computed = tasks[from].step(0, &[last[from].clone()]);
        let middle = memory(&spaces[to]);
        let there = copy(&tasks[from].arrays[0], &middle, &[&computed]);
        let passed = copy(&middle, &tasks[to].arrays[2], &[&there, &last[to]]);
        tasks[to].expected[2] = tasks[from].expected[0].clone();
        (last[from], last[to]) = (when_all(&[computed, there]), passed);
    }
    for (task, last) in tasks.iter().zip(&last) {
        assert_numbers(read(&task.arrays[0], &[last]), &task.expected[0]);
    }
}

pub(crate) fn memory_that_is_dropped_under_a_kernel_is_not_reused_too_early(fixture: &Fixture) {
    let (mut program, space) = (Program::default(), fixture.space());
    let (mut reads, mut others) = (Vec::new(), Vec::new());
    for seed in 0..8 {
        let mut task = Task::new(fixture, 0);
        let written = when_all(&task.write(&mut program));
        let computed = task.step(0, &[written]);
        reads.push((read(&task.arrays[0], &[&computed]), task.expected[0].clone()));
        drop(task);
        // As long as the arrays, so that it may be the memory of one of them.
        let other = memory(&space);
        let written = program.write(&other, pattern(SIZE_BYTES, seed), &[]);
        others.push((read(&other, &[&written]), seed));
    }
    for (weights, expected) in reads {
        assert_numbers(weights, &expected);
    }
    for (bytes, seed) in others {
        super::assert_bytes(bytes, seed);
    }
}

pub(crate) fn a_kernel_behind_a_failure_computes_nothing(fixture: &Fixture) {
    let (mut program, mut task) = (Program::default(), Task::new(fixture, 0));
    let written = when_all(&task.write(&mut program));
    let before = task.expected.clone();
    let failed = Event::from_error(purlin_base::Error::not_found("no gradient"));
    let computed = task.step(0, &[when_all(&[written.clone(), failed])]);
    assert_eq!(computed.wait().unwrap_err().message(), "no gradient");
    assert_numbers(read(&task.arrays[0], &[&written]), &before[0]);
}

/// From its second launch on it may be a graph.
pub(crate) fn a_list_that_is_launched_again_comes_between_copies(fixture: &Fixture) {
    let (mut program, device, space) = (Program::default(), fixture.device(0), fixture.space());
    let (list, block, other) = (Shift::new(), memory(&space), memory(&space));
    let mut last = Event::ready();
    let mut reads = Vec::new();
    for round in 0..8 {
        let mut expected = pattern(SIZE_BYTES, round);
        // From the host, and by a copy within the device, in turn.
        let source = if round % 2 == 0 { &block } else { &other };
        last = program.write(source, expected.clone(), &[&last]);
        if round % 2 == 1 {
            last = copy(&other, &block, &[&last]);
        }
        for stream in [round % 4, (round + 1) % 4] {
            last = list.start(&device, &block, stream, &[last]);
            shift(&mut expected);
        }
        let (to_host, within) = (read(&block, &[&last]), memory(&space));
        let copied = copy(&block, &within, &[&last]);
        last = when_all(&[to_host.event().clone(), copied.clone()]);
        reads.extend([(to_host, expected.clone()), (read(&within, &[&copied]), expected)]);
    }
    for (bytes, expected) in reads {
        assert!(bytes.wait().unwrap() == expected, "other bytes than the host has shifted");
    }
}
