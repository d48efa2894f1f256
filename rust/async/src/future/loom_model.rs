//! Publishing a value against threads that read it, wait for it, follow it and drop it; and the two flags by which a
//! submitter and a dropped task settle which of them completes what the task owed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::*;
use crate::event::AsyncValue;
use crate::task::{Executor, Task};
use purlin_base::status::{Error, StatusCode};
use purlin_base::sync::explore;

/// A value whose destruction is counted.
struct Counted(u32, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_value_is_read_whole_or_not_at_all_and_dropped_once() {
    explore("emplace against get and drop", 3, || {
        let dropped = Arc::new(AtomicUsize::new(0));
        let value = AsyncValue::new_unconstructed(c"v");
        let (reader, payload) = (value.clone(), Counted(7, Arc::clone(&dropped)));
        let setter = thread::spawn(move || assert!(value.emplace(payload).is_ok()));
        if let Some(read) = reader.get() {
            assert_eq!(read.0, 7);
        }
        drop(reader);
        setter.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_waiter_reads_what_was_put_there() {
    explore("emplace against and_then", 3, || {
        let sum = Arc::new(AtomicUsize::new(0));
        let value = AsyncValue::new_unconstructed(c"v");
        let (waited_for, added) = (value.clone(), Arc::clone(&sum));
        let setter = thread::spawn(move || assert!(value.emplace(7_usize).is_ok()));
        waited_for.and_then(move |result| _ = added.fetch_add(*result.unwrap(), Ordering::Relaxed));
        drop(waited_for);
        setter.join().unwrap();
        assert_eq!((sum.load(Ordering::Relaxed), Arc::strong_count(&sum)), (7, 1));
    });
}

#[test]
fn of_a_value_and_an_error_one_wins_and_nothing_leaks() {
    explore("publish against set_error against get", 3, || {
        let dropped = Arc::new(AtomicUsize::new(0));
        let value = AsyncValue::new_constructed(c"v", Counted(7, Arc::clone(&dropped)));
        let (failed, read) = (value.clone(), value.clone());
        let failer = thread::spawn(move || failed.set_error(Error::aborted("x")));
        let reader = thread::spawn(move || read.get().is_none_or(|value| value.0 == 7));
        let published = value.publish();
        assert!(failer.join().unwrap() ^ published);
        assert!(reader.join().unwrap());
        assert_eq!(value.get().is_some(), published);
        drop(value);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn an_indirect_value_points_at_a_value_that_stays() {
    explore("forward against emplace against drop", 3, || {
        let dropped = Arc::new(AtomicUsize::new(0));
        let (source, indirect) = (AsyncValue::new_unconstructed(c"source"), AsyncValue::indirect(c"indirect"));
        let (set, payload) = (source.clone(), Counted(7, Arc::clone(&dropped)));
        let setter = thread::spawn(move || assert!(set.emplace(payload).is_ok()));
        indirect.forward(&source).unwrap();
        drop(source);
        if let Some(read) = indirect.get() {
            assert_eq!(read.0, 7);
        }
        setter.join().unwrap();
        assert_eq!((indirect.get().unwrap().0, dropped.load(Ordering::Relaxed)), (7, 0));
        drop(indirect);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn giving_up_a_value_tells_its_waiters() {
    explore("last drop against last drop with a waiter", 3, || {
        let calls = Arc::new(AtomicUsize::new(0));
        let value = AsyncValue::<u32>::new_unconstructed(c"v");
        let (other, counted) = (value.clone(), Arc::clone(&calls));
        value.and_then(move |result| _ = counted.fetch_add(usize::from(result.is_err()), Ordering::Relaxed));
        let dropper = thread::spawn(move || drop(other));
        drop(value);
        dropper.join().unwrap();
        assert_eq!((calls.load(Ordering::Relaxed), Arc::strong_count(&calls)), (1, 1));
    });
}

#[test]
fn a_map_whose_result_is_dropped_meanwhile_is_computed_or_skipped_and_destroyed() {
    explore("set against drop of the mapped future", 3, || {
        let calls = Arc::new(AtomicUsize::new(0));
        let promise = Promise::new(c"p");
        let counted = Arc::clone(&calls);
        let mapped = promise.future().map(move |value: &u32| _ = counted.fetch_add(*value as usize, Ordering::Relaxed));
        let dropper = thread::spawn(move || drop(mapped));
        promise.set(Ok(1)).unwrap();
        drop(promise);
        dropper.join().unwrap();
        assert!(calls.load(Ordering::Relaxed) <= 1);
        assert_eq!(Arc::strong_count(&calls), 1);
    });
}

/// Drops its tasks on another thread, and says yes.
struct DropsElsewhere(std::sync::Mutex<Option<thread::JoinHandle<()>>>);

impl Executor for DropsElsewhere {
    fn execute(&self, task: Task) -> Result<(), Error> {
        *self.0.lock().unwrap() = Some(thread::spawn(move || drop(task)));
        Ok(())
    }
}

#[test]
fn a_task_that_is_dropped_while_it_is_submitted_fails_its_future() {
    explore("drop of a task against the end of its submission", 3, || {
        let executor = DropsElsewhere(std::sync::Mutex::new(None));
        let future = future_on(&executor, c"task", || Ok(1));
        let dropper = executor.0.lock().unwrap().take();
        dropper.unwrap().join().unwrap();
        assert_eq!(future.error().unwrap().code(), StatusCode::Cancelled);
    });
}
