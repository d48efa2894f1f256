//! Futures and promises from the outside. Groups: `r1_` set once, `r2_` nothing owed is lost, `r3_` no user code under
//! a lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::*;
use crate::event::{AsyncValue, ErrorPolicy, Event, EventPromise, JoinOptions};
use crate::executors::inline::InlineExecutor;
use crate::pool::{ThreadPool, ThreadPoolOptions};
use crate::task::{Executor, Task};
use purlin_base::status::{Error, StatusCode};

/// Keeps its tasks until the test says what to do with them.
#[derive(Default)]
pub(super) struct Keeper(pub(super) Mutex<Vec<Task>>);

impl Keeper {
    pub(super) fn tasks(&self) -> Vec<Task> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Executor for Keeper {
    fn execute(&self, task: Task) -> Result<(), Error> {
        self.0.lock().unwrap().push(task);
        Ok(())
    }
}

/// What an executor can do wrong.
#[derive(Clone, Copy)]
pub(super) enum Bad {
    Refuses,
    DropsAndSaysYes,
    Panics,
    KeepsAndSaysNo,
}

/// Never run, and known to leak checkers.
static KEPT: Mutex<Vec<Task>> = Mutex::new(Vec::new());

impl Executor for Bad {
    fn execute(&self, task: Task) -> Result<(), Error> {
        match self {
            Self::DropsAndSaysYes => return Ok(()),
            Self::Panics => panic!("expected by a test"),
            Self::KeepsAndSaysNo => KEPT.lock().unwrap().push(task),
            Self::Refuses => drop(task),
        }
        Err(Error::unavailable("no"))
    }
}

pub(super) const BAD: [(Bad, StatusCode, &str); 4] = [
    (Bad::Refuses, StatusCode::Unavailable, "no"),
    (Bad::DropsAndSaysYes, StatusCode::Cancelled, "was dropped uncalled by its executor"),
    (Bad::Panics, StatusCode::Internal, "panicked: expected by a test"),
    (Bad::KeepsAndSaysNo, StatusCode::Unavailable, "no"),
];

fn counter() -> (Arc<AtomicUsize>, impl Fn() -> usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let read = Arc::clone(&count);
    (count, move || read.load(Ordering::Relaxed))
}

#[test]
fn a_promise_sets_what_all_futures_read() {
    let promise = Promise::new(c"answer");
    let (one, other) = (promise.future(), promise.future());
    assert!(!one.is_ready() && one.get().is_none() && one.error().is_none());
    promise.set(Ok(vec![42])).unwrap();
    assert!(std::ptr::eq(one.wait().unwrap(), other.await_result().unwrap()));
    assert_eq!(one.clone().get(), Some(&vec![42]));
    drop((promise, one));
    assert_eq!(other.into_inner().unwrap(), [42]);
}

#[test]
fn r1_the_second_set_is_told_and_gets_its_value_back() {
    let promise = Promise::new(c"twice");
    promise.set(Ok(1)).unwrap();
    let late = promise.set(Ok(2)).unwrap_err();
    assert_eq!(late.to_string(), "the promise 'twice' was set before; a second value changes nothing");
    assert_eq!(late.into_rejected(), Ok(2));
    let late: Error = promise.set(Err(Error::aborted("x"))).unwrap_err().into();
    assert_eq!(late.code(), StatusCode::FailedPrecondition);
    assert_eq!(promise.future().get(), Some(&1));
}

#[test]
fn r1_the_first_of_several_shared_sets_wins_even_from_a_waiter() {
    let promise = SharedPromise::new(c"shared");
    let (future, inside, (lost, losses)) = (promise.future(), promise.clone(), counter());
    future.on_ready(move |_| _ = lost.fetch_add(usize::from(inside.set(Ok(2)).is_err()), Ordering::Relaxed));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| promise.set(Ok(1)).is_ok());
        }
    });
    assert_eq!((future.get(), losses()), (Some(&1), 1));
}

#[test]
fn r2_a_dropped_promise_names_its_future_and_place() {
    let future = Promise::<i32>::new(c"weights").future();
    let error = future.wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::Internal);
    assert_eq!(error.message(), "event 'weights' was abandoned: its promise was dropped before it was set");
    assert!(error.location().file().ends_with("future/tests.rs"));
    let shared = SharedPromise::<i32>::new(c"shared");
    let (future, other) = (shared.future(), shared.clone());
    drop(shared);
    assert!(!future.is_ready());
    drop(other);
    assert!(future.error().unwrap().message().contains("'shared' was abandoned"));
    // Assigning drops what was there.
    let mut promise = Promise::<i32>::new(c"old");
    let old = promise.future();
    promise = Promise::new(c"new");
    assert!(old.is_ready() && !promise.future().is_ready());
}

#[test]
fn ready_futures_and_failed_ones_are_made_at_once() {
    assert_eq!(Future::ready(1).wait(), Ok(&1));
    assert_eq!(Future::<i32>::from_error(Error::aborted("x")).error().unwrap().message(), "x");
    assert_eq!(Future::from_result(Ok::<_, Error>(2)).get(), Some(&2));
    let promise = Promise::<i32>::new(c"slow");
    let error = promise.future().wait_for(Duration::ZERO).unwrap_err();
    assert!(error.message().contains("event 'slow'"), "{error}");
}

#[test]
fn a_future_and_its_event_are_one() {
    let promise = Promise::new(c"e");
    let (future, event) = (promise.future(), promise.future().ready_event());
    assert!(!event.is_ready());
    promise.set(Ok(5)).unwrap();
    drop((promise, future));
    assert!(event.is_ready());
    let event = Future::<u32>::from_event(event).expect_err("of another type");
    assert_eq!(Future::<i32>::from_event(event).unwrap().get(), Some(&5));
    assert!(Future::from(Event::ready()).wait().is_ok());
    let plain = EventPromise::new(c"plain");
    let future = Future::from(plain.event());
    plain.set_error(Error::aborted("x"));
    assert_eq!(future.error().unwrap().message(), "x");
    assert_eq!(Future::from(AsyncValue::new_available(1)).get(), Some(&1));
}

#[test]
fn maps_compute_now_or_later_and_hand_errors_on() {
    let promise = Promise::new(c"p");
    let future = promise.future();
    let (text, none) =
        (future.map(|value: &i32| value.to_string()), future.try_map(|_| Err::<(), _>(Error::not_found("n"))));
    let (to, late) = (future.map_to("done"), future.flat_map(|value| Future::ready(value + 1)));
    let panics = future.map(|_| -> () { panic!("expected by a test") });
    promise.set(Ok(41)).unwrap();
    assert_eq!((text.get().unwrap().as_str(), to.get(), late.get()), ("41", Some(&"done"), Some(&42)));
    assert_eq!(none.error().unwrap().code(), StatusCode::NotFound);
    assert_eq!(panics.error().unwrap().message(), "the closure of map panicked: expected by a test");
    assert_eq!(future.map(|value| value + 1).get(), Some(&42));
    let failed = Future::<i32>::from_error(Error::aborted("x"));
    assert_eq!(failed.map(|_| ()).error().unwrap().message(), "x");
    assert_eq!(failed.map_to(1).error().unwrap().message(), "x");
    assert_eq!(failed.flat_map(|_| Future::ready(1)).error().unwrap().message(), "x");
}

#[test]
fn a_map_is_skipped_when_nobody_can_see_its_result() {
    let (count, calls) = counter();
    let call = || {
        let count = Arc::clone(&count);
        move |_: &i32| _ = count.fetch_add(1, Ordering::Relaxed)
    };
    let keeper = Arc::new(Keeper::default());
    let promise = Promise::new(c"p");
    let future = promise.future();
    drop(future.map(call()));
    drop(future.map(call()).map(|()| ()));
    drop(future.map_on(&keeper, call()));
    drop(future.detach(&keeper));
    let inner = call();
    drop(future.flat_map(move |value| {
        inner(value);
        Future::ready(())
    }));
    drop(future.map_always(call()));
    let observed = future.map(call());
    let waited_for = future.map(call());
    waited_for.on_ready(|_| ());
    drop(waited_for);
    promise.set(Ok(1)).unwrap();
    assert_eq!((calls(), keeper.tasks().len()), (3 + 1, 0), "the map of a map that is dropped still has a waiter");
    assert!(observed.is_ready());
    drop((future, promise));
    assert_eq!(Arc::strong_count(&count), 2, "closures that were skipped are destroyed");
}

#[test]
fn futures_of_futures_flatten_without_copies() {
    let (outer, inner) = (Promise::new(c"outer"), Promise::new(c"inner"));
    let flat = outer.future().flatten();
    outer.set(Ok(inner.future())).unwrap();
    assert!(!flat.is_ready());
    inner.set(Ok(vec![1])).unwrap();
    assert!(std::ptr::eq(flat.wait().unwrap(), inner.future().wait().unwrap()));
    let (outer, inner) = (Promise::new(c"outer"), Promise::<i32>::new(c"inner"));
    let flat = outer.future().flatten();
    outer.set(Ok(inner.future())).unwrap();
    drop(inner);
    assert!(flat.error().unwrap().message().contains("'inner'"));
}

#[test]
fn r2_forwarding_that_cannot_be_fails_the_future() {
    let linked = Promise::<i32>::linked(c"self");
    let itself = linked.future();
    linked.forward(&itself);
    assert_eq!(itself.error().unwrap().code(), StatusCode::InvalidArgument);
    let plain = Promise::new(c"plain");
    let future = plain.future();
    plain.forward(&Future::ready(1));
    assert_eq!(future.error().unwrap().code(), StatusCode::FailedPrecondition);
    let (linked, source) = (Promise::linked(c"linked"), Promise::new(c"source"));
    let future = linked.future();
    linked.forward(&source.future());
    assert!(!future.is_ready());
    source.set(Ok(3)).unwrap();
    assert_eq!(future.get(), Some(&3));
}

#[test]
fn executors_compute_maps_and_futures() {
    let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap());
    let here = thread::current().id();
    let start = Promise::new(c"start");
    let on = start.future().map_on(&pool, move |value: &i32| (thread::current().id() != here, value + 1));
    let value = AsyncValue::new_available(1).try_map_on(&pool, |value| Ok(value + 1));
    let computed = future_on(&*pool, c"compute", || Ok(7));
    let panics = future_on(&*pool, c"panic", || -> Result<(), Error> { panic!("expected by a test") });
    start.set(Ok(1)).unwrap();
    assert_eq!((on.wait(), value.wait(), computed.wait()), (Ok(&(true, 2)), Ok(&2), Ok(&7)));
    assert_eq!(panics.wait().unwrap_err().message(), "the closure of future_on panicked: expected by a test");
    let source = Promise::new(c"source");
    let detached = source.future().detach(&pool);
    let elsewhere = detached.map_always(move |_: &i32| thread::current().id() != here);
    source.set(Ok(1)).unwrap();
    assert_eq!(elsewhere.wait(), Ok(&true));
    pool.shutdown().unwrap();
    assert_eq!(future_on(&*pool, c"late", || Ok(1)).wait().unwrap_err().code(), StatusCode::Cancelled);
}

#[test]
fn r2_an_executor_that_does_not_run_a_task_fails_what_it_owed() {
    for (bad, code, message) in BAD {
        let executor = Arc::new(bad);
        let promise = Promise::new(c"p");
        let (mapped, detached) =
            (promise.future().map_on(&executor, |value: &i32| value + 1), promise.future().detach(&executor));
        promise.set(Ok(1)).unwrap();
        let computed = future_on(&bad, c"compute", || Ok(1));
        let value = AsyncValue::new_available(1).map_on(&executor, |value| value + 1);
        for error in [mapped.error(), detached.error(), computed.error(), value.error()].map(Option::unwrap) {
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().ends_with(message), "{error}");
        }
    }
}

#[test]
fn r2_a_task_that_is_dropped_later_fails_what_it_owed() {
    let keeper = Arc::new(Keeper::default());
    let computed = future_on(&*keeper, c"compute", || Ok(1));
    let mapped = Future::ready(1).map_on(&keeper, |value| value + 1);
    let called = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&called);
    Future::ready(1).on_ready_on(&keeper, move |result| log.lock().unwrap().push(result.map_err(Error::code).copied()));
    assert!(!computed.is_ready() && !mapped.is_ready());
    drop(keeper.tasks());
    assert_eq!(computed.error().unwrap().message(), "the task 'compute' was dropped uncalled by its executor");
    assert_eq!(mapped.error().unwrap().code(), StatusCode::Cancelled);
    assert_eq!(*called.lock().unwrap(), [Err(StatusCode::Cancelled)]);
}

#[test]
fn callbacks_on_an_executor_run_there_even_if_the_future_is_ready() {
    let keeper = Arc::new(Keeper::default());
    let (count, calls) = counter();
    for future in [Future::ready(2), Future::from_error(Error::aborted("x"))] {
        let count = Arc::clone(&count);
        future.on_ready_on(&keeper, move |result| {
            _ = count.fetch_add(result.map_or(10, |value| *value), Ordering::Relaxed)
        });
    }
    assert_eq!(calls(), 0);
    keeper.tasks().into_iter().for_each(Task::run);
    assert_eq!(calls(), 12);
}

#[test]
fn r2_running_dropping_and_refusing_race_and_each_future_completes() {
    let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap());
    let futures: Vec<_> = thread::scope(|scope| {
        let makers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| (0..2000).map(|index| future_on(&*pool, c"race", move || Ok(index))).collect::<Vec<_>>())
            })
            .collect();
        pool.shutdown().unwrap();
        makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
    });
    for future in futures {
        assert!(future.wait().is_ok() || future.error().unwrap().code() == StatusCode::Cancelled);
    }
}

#[test]
fn joined_futures_are_read_in_their_order() {
    let promises: Vec<_> = (0..3).map(|_| Promise::new(c"part")).collect();
    let futures: Vec<_> = promises.iter().map(Promise::future).collect();
    let joined = join_futures(&futures, JoinOptions::default());
    for (index, promise) in promises.iter().enumerate().rev() {
        assert!(!joined.is_ready());
        promise.set(Ok(index.to_string())).unwrap();
    }
    let values = joined.wait().unwrap();
    assert_eq!(values.iter().collect::<Vec<_>>(), ["0", "1", "2"]);
    assert!(std::ptr::eq(&raw const values[1], futures[1].get().unwrap()));
    assert_eq!((values.len(), values.get(3), values.is_empty()), (3, None, false));
    assert!(join_futures::<i32>(&[], JoinOptions::default()).wait().unwrap().is_empty());
    assert_eq!(join_futures(&[Future::ready(1)], JoinOptions::default()).wait().unwrap()[0], 1);
}

#[test]
fn a_join_of_futures_fails_as_its_options_say() {
    let (a, b) = (Promise::<i32>::new(c"a"), Promise::<i32>::new(c"b"));
    let futures = [a.future(), b.future()];
    let slow = join_futures(&futures, JoinOptions { policy: ErrorPolicy::FirstByIndex, fail_fast: false });
    let fast = join_futures(&futures, JoinOptions { policy: ErrorPolicy::FirstByIndex, fail_fast: true });
    b.set(Err(Error::aborted("b"))).unwrap();
    assert_eq!((slow.is_ready(), fast.error().unwrap().message()), (false, "b"));
    a.set(Err(Error::aborted("a"))).unwrap();
    assert_eq!(slow.error().unwrap().message(), "a");
    let ready = [Future::ready(1), Future::from_error(Error::not_found("r"))];
    assert_eq!(join_futures(&ready, JoinOptions::default()).error().unwrap().message(), "r");
}

#[test]
fn r2_a_join_keeps_nobody_alive_while_it_waits() {
    let (value, other) = (AsyncValue::<i32>::new_unconstructed(c"never set"), AsyncValue::new_unconstructed(c"set"));
    let both = [Future::from(value.clone()), Future::from(other.clone())];
    let failed = join_futures(&both, JoinOptions::default());
    let one = join_futures(&both[..1], JoinOptions::default());
    let good = join_futures(&both[1..], JoinOptions::default());
    drop(both);
    assert!(value.is_unique() && other.is_unique());
    drop(value);
    assert!(one.error().unwrap().message().contains("'never set'"), "{:?}", one.error());
    assert!(!failed.is_ready());
    other.emplace(2).unwrap();
    drop(other);
    assert!(failed.error().unwrap().message().contains("'never set'"), "{:?}", failed.error());
    assert_eq!(good.wait().unwrap()[0], 2, "what is there is kept");
}

#[test]
fn r2_joins_race_with_the_last_references_of_their_futures() {
    for round in 0..200 {
        let values: Vec<_> = (0..4).map(|_| AsyncValue::new_unconstructed(c"part")).collect();
        let futures: Vec<_> = values.iter().cloned().map(Future::from).collect();
        let joined = thread::scope(|scope| {
            let joiner = scope.spawn(move || join_futures(&futures, JoinOptions::default()));
            for (index, value) in values.into_iter().enumerate() {
                scope.spawn(move || {
                    if round % 2 == 0 || index != 2 {
                        value.emplace(index).unwrap();
                    }
                });
            }
            joiner.join().unwrap()
        });
        match joined.wait() {
            Ok(values) => assert_eq!((values.iter().sum::<usize>(), values.len(), round % 2), (6, 4, 0)),
            Err(error) => assert_eq!((error.code(), round % 2), (StatusCode::Internal, 1)),
        }
    }
}

#[test]
fn r3_a_waiter_of_a_join_may_join_again() {
    let (a, b) = (Promise::new(c"a"), Promise::new(c"b"));
    let futures = [a.future(), b.future()];
    let again = futures.clone();
    let joined = join_futures(&futures, JoinOptions::default());
    let nested = joined.flat_map(move |_| join_futures(&again, JoinOptions::default()));
    a.set(Ok(1)).unwrap();
    b.set(Ok(2)).unwrap();
    assert_eq!(nested.wait().unwrap().iter().sum::<i32>(), 3);
}

/// Runs `f` on a stack of 256 KiB.
pub(super) fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(256 * 1024).spawn(f).unwrap().join().unwrap();
}

const LINKS: usize = if cfg!(miri) { 1_000 } else { 1_000_000 };

#[test]
fn a_million_maps_and_flat_maps_need_no_stack() {
    on_a_small_stack(|| {
        let first = Promise::new(c"first");
        let mut last = first.future();
        for index in 0..LINKS {
            last = if index % 2 == 0 {
                last.map(|value: &usize| value + 1)
            } else {
                last.flat_map(|value| Future::ready(value + 1))
            };
        }
        first.set(Ok(0)).unwrap();
        assert_eq!(last.get(), Some(&LINKS));
    });
}

#[test]
fn a_million_maps_on_an_inline_executor_need_no_stack() {
    on_a_small_stack(|| {
        let inline = Arc::new(InlineExecutor);
        let first = Promise::new(c"first");
        let mut last = first.future();
        for _ in 0..LINKS / 4 {
            last = last.map_on(&inline, |value: &usize| value + 1);
        }
        first.set(Ok(0)).unwrap();
        assert_eq!(last.get(), Some(&(LINKS / 4)));
    });
}

#[test]
fn a_million_promises_that_are_dropped_one_by_the_other_need_no_stack() {
    on_a_small_stack(|| {
        let first = Promise::<()>::new(c"first");
        let mut last = first.future();
        for _ in 0..LINKS {
            let next = Promise::<()>::new(c"next");
            let following = next.future();
            last.on_ready(move |_| drop(next));
            last = following;
        }
        drop(first);
        assert_eq!(last.error().unwrap().code(), StatusCode::Internal);
    });
}
