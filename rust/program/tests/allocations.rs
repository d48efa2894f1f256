//! Counts the heap allocations of a run. The test is a process of its own, because it replaces the global allocator.

#![allow(unsafe_code, reason = "an allocator that counts is a GlobalAlloc")]

mod fixture;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fixture::*;
use purlin_program::{Command, ExecuteOptions, LoadedExecutable, Operand, ProgramBuilder};

struct Counting;

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

fn allocations_of(f: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

/// The allocations of a warm run of `loaded`, which is small and ready, so that it is executed on the caller's thread.
fn of_run(loaded: &LoadedExecutable, arguments: usize) -> usize {
    let client = fixture::host();
    let loaded = LoadedExecutable::new(loaded.executable(), &client.devices()[..1], 1).unwrap();
    let arguments: Vec<_> = (0..arguments).map(|_| buffer(&client, &[1; 64])).collect();
    let run = || assert!(loaded.execute(&arguments, &ExecuteOptions::default()).unwrap().done.is_ready());
    (0..10).for_each(|_| run());
    allocations_of(run)
}

/// The same into memory that is given, each time that of the results before.
fn of_run_into_given(loaded: &LoadedExecutable, operands: usize) -> usize {
    let client = fixture::host();
    let loaded = LoadedExecutable::new(loaded.executable(), &client.devices()[..1], 1).unwrap();
    let arguments: Vec<_> = (0..operands).map(|_| buffer(&client, &[1; 64])).collect();
    let mut given: Vec<_> = (0..operands).map(|_| Some(buffer(&client, &[0; 64]))).collect();
    let mut run = || {
        let execution = loaded.execute(&arguments, &ExecuteOptions { results: &given, ..Default::default() }).unwrap();
        assert!(execution.done.is_ready());
        given.iter_mut().zip(execution.outputs).for_each(|(given, output)| *given = Some(output));
    };
    (0..10).for_each(|_| run());
    allocations_of(run)
}

fn many(count: usize) -> LoadedExecutable {
    let mut builder = ProgramBuilder::new("many");
    let pairs: Vec<_> = (0..count).map(|_| (builder.parameter(bytes(64)), builder.result(bytes(64)))).collect();
    pairs.into_iter().for_each(|(x, y)| _ = builder.push(add_to(x, y, 1)));
    load(&fixture::host(), builder.build().unwrap())
}

/// A buffer and its block are blocks of the slab. The run takes no memory, but for the list of more than four outputs.
#[test]
fn a_run_costs_the_list_of_its_outputs() {
    for (operands, cost) in [(1, 0), (8, 1), (32, 1)] {
        assert_eq!(of_run(&many(operands), operands), cost, "{operands} in and out");
    }
}

/// The donation of memory that is given is recorded in the buffer that gave it.
#[test]
fn a_run_into_given_memory_costs_the_list_of_its_outputs() {
    for (operands, cost) in [(1, 0), (8, 1), (32, 1)] {
        assert_eq!(of_run_into_given(&many(operands), operands), cost, "{operands} in and out");
    }
}

/// As for given memory.
#[test]
fn a_step_that_donates_what_it_has_costs_nothing() {
    let client = fixture::host();
    let step = load(&client, increment(64));
    let mut state = buffer(&client, &[1; 64]);
    let mut run = || {
        let execution = step.execute(&[&state], &ExecuteOptions::default()).unwrap();
        state = execution.outputs[0].clone();
    };
    (0..10).for_each(|_| run());
    assert_eq!(allocations_of(run), 0);
}

/// The end of a buffer without holds is recorded in the buffer.
#[test]
fn deleting_what_is_dropped_costs_nothing() {
    let client = fixture::host();
    let [warm, value] = [1, 2].map(|byte| buffer(&client, &[byte; 64]));
    warm.delete();
    assert_eq!(allocations_of(|| value.delete()), 0);
    let why = value.usage_hold().unwrap_err();
    assert!(why.message().contains("It was deleted at"), "{why}");
    assert_eq!(allocations_of(|| drop(value)), 0);
}

#[test]
fn a_run_without_outputs_costs_nothing() {
    let mut builder = ProgramBuilder::new("reads");
    let x = builder.parameter(bytes(64));
    builder.push(kernel(purlin_program::Kernel::from_fn("reads", |_| Ok(())), vec![Operand::read(x)]));
    assert_eq!(of_run(&load(&fixture::host(), builder.build().unwrap()), 1), 0);
}

/// All temporaries are one block, which is one of the slab's.
#[test]
fn temporaries_are_one_block() {
    let mut builder = ProgramBuilder::new("temporaries");
    let (x, y) = (builder.parameter(bytes(64)), builder.result(bytes(64)));
    let temporaries: Vec<_> = (0..10).map(|_| builder.temporary(100)).collect();
    temporaries.iter().for_each(|&to| _ = builder.push(Command::Fill { pattern: vec![1], to }));
    builder.push(add_to(x, y, 1));
    let temporaries = load(&fixture::host(), builder.build().unwrap());
    assert_eq!(of_run(&temporaries, 1), 0);
    let client = fixture::host();
    let loaded = LoadedExecutable::new(temporaries.executable(), &client.devices()[..1], 1).unwrap();
    let (x, space) = (buffer(&client, &[1; 64]), client.devices()[0].default_memory_space());
    let before = space.stats().num_allocs;
    loaded.execute(&[x], &ExecuteOptions::default()).unwrap().done.wait().unwrap();
    assert_eq!(space.stats().num_allocs - before, 2, "the output, and the block of all temporaries");
}
