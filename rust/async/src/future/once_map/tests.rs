//! A value is computed once, whoever asks, and what was never computed is no result.

use std::sync::atomic::AtomicUsize;
use std::sync::{Barrier, Weak};
use std::{ptr, thread};

use super::*;
use crate::LIMIT;
use crate::executors::inline::InlineExecutor;
use crate::future::tests::{BAD, Keeper};
use crate::pool::{ThreadPool, ThreadPoolOptions};
use crate::task::Task;
use purlin_base::status::StatusCode;

fn pool() -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap()
}

/// Counts its calls.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Calls {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// A computation that gives that.
    fn giving<T>(&self, result: Result<T, Error>) -> impl FnOnce() -> Result<T, Error> + use<T> {
        let calls = self.clone();
        move || {
            calls.0.fetch_add(1, Ordering::Relaxed);
            result
        }
    }
}

#[test]
fn threads_that_ask_at_once_get_the_value_of_one_computation() {
    const THREADS: usize = 8;
    let (pool, map, calls) = (pool(), OnceMap::new(), Calls::default());
    for round in 0..200 {
        let start = Barrier::new(THREADS);
        let futures: Vec<Future<usize>> = thread::scope(|scope| {
            let ask = |_| {
                scope.spawn(|| {
                    start.wait();
                    map.get_or_compute(round, &pool, c"round", calls.giving(Ok(round)))
                })
            };
            let threads: Vec<_> = (0..THREADS).map(ask).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let value = futures[0].wait_for(LIMIT).unwrap();
        assert_eq!(*value, round);
        futures.iter().for_each(|future| assert!(ptr::eq(future.wait_for(LIMIT).unwrap(), value)));
        assert_eq!((calls.count(), map.len()), (round + 1, round + 1));
    }
}

#[test]
fn nobody_blocks_for_what_is_on_its_way() {
    let (keeper, map, calls) = (Keeper::default(), OnceMap::new(), Calls::default());
    let ask = |key: &'static str| map.get_or_compute(key, &keeper, c"ask", calls.giving(Ok(key.to_owned())));
    assert!(map.is_empty() && map.get(&"a").is_none());
    let (first, second, other) = (ask("a"), ask("a"), ask("b"));
    assert!(!first.is_ready() && !second.is_ready() && !other.is_ready() && map.get(&"a").is_some());
    let tasks = keeper.tasks();
    assert_eq!(tasks.len(), 2, "one for each key");
    tasks.into_iter().for_each(Task::run);
    assert!(ptr::eq(first.get().unwrap(), second.get().unwrap()));
    assert_eq!((other.get().map(String::as_str), calls.count(), map.len()), (Some("b"), 2, 2));
}

#[test]
fn errors_and_panics_are_kept_until_they_are_forgotten() {
    let (map, calls) = (OnceMap::new(), Calls::default());
    let ask = |key: &'static str, result: Result<i32, Error>| {
        map.get_or_compute(key, &InlineExecutor, c"ask", calls.giving(result))
    };
    let refused = Error::invalid_argument("no such thing");
    for _ in 0..2 {
        assert_eq!(ask("error", Err(refused.clone())).error(), Some(refused.clone()));
    }
    let panicking = || -> Result<i32, Error> { panic!("expected by a test") };
    let panicked = map.get_or_compute("panic", &InlineExecutor, c"panics", panicking).error().unwrap();
    assert_eq!(panicked, Error::internal("the closure of OnceMap panicked: expected by a test"));
    assert_eq!(ask("panic", Ok(1)).error(), Some(panicked));
    assert_eq!((ask("value", Ok(7)).get(), calls.count(), map.len()), (Some(&7), 2, 3));
    assert!(map.forget(&"error") && !map.forget(&"error"));
    assert_eq!((ask("error", Ok(8)).get(), calls.count()), (Some(&8), 3));
    map.forget_errors();
    assert_eq!((map.len(), ask("value", Ok(0)).get()), (2, Some(&7)));
    assert_eq!((ask("panic", Ok(9)).get(), calls.count()), (Some(&9), 4));
    map.clear();
    assert!(map.is_empty());
    assert_eq!((ask("value", Ok(10)).get(), calls.count()), (Some(&10), 5));
}

#[test]
fn what_an_executor_does_wrong_is_no_result() {
    for (bad, code, words) in BAD {
        let (map, calls) = (OnceMap::new(), Calls::default());
        for _ in 0..2 {
            let error = map.get_or_compute("key", &bad, c"badly", calls.giving(Ok(1))).error().unwrap();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().contains(words), "{error}");
            assert!(map.get(&"key").is_none() && map.is_empty() && !map.forget(&"key"), "{words}");
        }
        assert_eq!(map.get_or_compute("key", &InlineExecutor, c"well", calls.giving(Ok(2))).get(), Some(&2));
        assert_eq!((calls.count(), map.len()), (1, 1), "{words}");
    }
}

#[test]
fn a_task_that_is_dropped_later_fails_those_that_wait_and_nobody_else() {
    let (keeper, map, calls) = (Keeper::default(), OnceMap::new(), Calls::default());
    let ask = || map.get_or_compute("key", &keeper, c"lost", calls.giving(Ok(5)));
    let waiting = [ask(), ask()];
    drop(keeper.tasks());
    for future in waiting {
        let error = future.error().unwrap();
        assert_eq!(error.code(), StatusCode::Cancelled);
        assert!(error.message().contains("lost"), "{error}");
    }
    let again = ask();
    keeper.tasks().into_iter().for_each(Task::run);
    assert_eq!((again.get(), calls.count()), (Some(&5), 1));
}

#[test]
fn a_computation_outlives_those_that_asked_and_what_forgot_it() {
    let (keeper, map, calls) = (Keeper::default(), OnceMap::new(), Calls::default());
    let ask = |value| map.get_or_compute("key", &keeper, c"ask", calls.giving(Ok(value)));
    drop(ask(1));
    keeper.tasks().into_iter().for_each(Task::run);
    assert_eq!((ask(0).get(), calls.count()), (Some(&1), 1), "nobody held its future, and it is there");
    map.clear();
    let pending = ask(2);
    assert!(map.forget(&"key"));
    let anew = ask(3);
    let tasks = keeper.tasks();
    assert_eq!(tasks.len(), 2);
    tasks.into_iter().rev().for_each(Task::run);
    assert_eq!((pending.get(), anew.get()), (Some(&2), Some(&3)));
    assert_eq!((ask(0).get(), calls.count()), (Some(&3), 3));
    drop((pending, ask(4)));
    drop(map);
    assert_eq!(anew.get(), Some(&3), "futures outlive the map");
}

/// Asks the map when it is dropped.
struct Nosy(Weak<OnceMap<u8, Self>>);

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(map) = self.0.upgrade() {
            _ = map.len();
        }
    }
}

#[test]
fn r3_computations_waiters_and_destructors_may_use_the_map() {
    let map = Arc::new(OnceMap::<u8, Nosy>::new());
    let ask = |key: u8| {
        let inside = Arc::clone(&map);
        map.get_or_compute(key, &InlineExecutor, c"outer", move || {
            let weak = Arc::downgrade(&inside);
            let other = inside.get_or_compute(key + 100, &InlineExecutor, c"inner", move || Ok(Nosy(weak)));
            other.wait()?;
            Ok(Nosy(Arc::downgrade(&inside)))
        })
    };
    let ends: [fn(&OnceMap<u8, Nosy>); 2] = [|map| _ = map.forget(&1) && map.forget(&101), OnceMap::clear];
    for end in ends {
        assert!(ask(1).get().is_some());
        assert_eq!(map.len(), 2);
        // The last references to the values are the map's.
        end(&map);
        assert!(map.is_empty());
    }
    let (keeper, told) = (Keeper::default(), Promise::new(c"told"));
    let (inside, end) = (Arc::clone(&map), told.future());
    let lost = map.get_or_compute(2, &keeper, c"lost", || Err(Error::aborted("is not called")));
    lost.on_ready(move |_| _ = told.set(Ok(inside.len())));
    drop(keeper.tasks());
    assert_eq!(end.get(), Some(&0), "a waiter finds what the next request will find");
}
