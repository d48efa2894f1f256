//! Runs that end against threads that wait for quiescence, start further runs, or drop the executable. What a run does
//! is a cell that loom watches.

#![allow(unsafe_code, reason = "memory that loom watches is reached by address")]

use std::sync::Arc;

use loom::sync::Arc as Watched;
use loom::thread;

use super::Runs;
use purlin_async::event::EventPromise;
use purlin_base::sync::{UnsafeCell, explore};

/// The memory that a run writes.
struct Output(UnsafeCell<u32>);

// SAFETY: what the models are about: quiescence comes after the runs.
unsafe impl Sync for Output {}

impl Output {
    fn new() -> Watched<Self> {
        Watched::new(Self(UnsafeCell::new(0)))
    }

    fn write(&self) {
        // SAFETY: only the run writes, and the model checks that nothing reads before it is over.
        self.0.with_mut(|word| unsafe { *word += 1 });
    }

    fn read(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|word| unsafe { *word })
    }
}

/// A run in flight: what it writes, and what ends it.
fn run(runs: &Arc<Runs>) -> (Watched<Output>, EventPromise) {
    let promise = EventPromise::new(c"run");
    runs.follow(&promise.event());
    (Output::new(), promise)
}

#[test]
fn quiescence_comes_after_all_runs() {
    explore("two runs end against quiescence", 2, || {
        let runs = Arc::new(Runs::default());
        let (first, second) = (run(&runs), run(&runs));
        let outputs = [first.0.clone(), second.0.clone()];
        let threads = [first, second].map(|(output, promise)| {
            thread::spawn(move || {
                output.write();
                promise.set_ready();
            })
        });
        runs.idle().wait().unwrap();
        assert_eq!(outputs.map(|output| output.read()), [1, 1]);
        assert_eq!(runs.count(), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_run_that_ends_while_it_is_counted_is_counted_once() {
    explore("a run ends while it is counted", 2, || {
        let runs = Arc::new(Runs::default());
        let promise = EventPromise::new(c"run");
        let done = promise.event();
        let ends = thread::spawn(move || _ = promise.set_ready());
        let of_other = Arc::clone(&runs);
        // It may come before the run, and must not wait for ever.
        let waits = thread::spawn(move || of_other.idle().wait().unwrap());
        runs.follow(&done);
        runs.idle().wait().unwrap();
        assert!(done.is_ready());
        ends.join().unwrap();
        waits.join().unwrap();
        assert_eq!(runs.count(), 0);
    });
}

#[test]
fn an_executable_that_is_dropped_during_a_run_is_kept_until_its_end() {
    explore("an executable is dropped during a run", 3, || {
        let runs = Arc::new(Runs::default());
        let (output, promise) = run(&runs);
        let of_run = output.clone();
        let ends = thread::spawn(move || {
            of_run.write();
            promise.set_ready();
        });
        let idle = runs.idle();
        let count = Arc::downgrade(&runs);
        drop(runs);
        idle.wait().unwrap();
        assert_eq!(output.read(), 1);
        ends.join().unwrap();
        assert!(count.upgrade().is_none(), "the last run has dropped the count");
    });
}
