//! Values in cells, from the outside. Groups: `r1_` set once, `r2_` nothing owed is lost, `r3_` no user code under a
//! lock. What only interleavings show is in `crate::future`'s models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::*;
use crate::event::{EventState, when_all};
use purlin_base::status::StatusCode;

/// Counts how many of it are alive.
#[derive(Debug)]
struct Counted(i32, Arc<AtomicUsize>);

#[derive(Clone, Default)]
struct Ledger(Arc<AtomicUsize>);

impl Ledger {
    fn value(&self, value: i32) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(value, Arc::clone(&self.0))
    }

    fn alive(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_value_is_readable_after_it_was_put_there_and_dropped_with_the_last_reference() {
    let ledger = Ledger::default();
    let value = AsyncValue::new_unconstructed(c"v");
    let other = value.clone();
    assert!(value.get().is_none() && !value.is_ready());
    assert!(value.emplace(ledger.value(7)).is_ok());
    assert_eq!(other.get().unwrap().0, 7);
    assert_eq!(other.wait().unwrap().0, 7);
    drop(value);
    assert_eq!(ledger.alive(), 1);
    drop(other);
    assert_eq!(ledger.alive(), 0);
}

#[test]
fn r1_the_first_set_wins_and_later_ones_get_their_value_back() {
    let ledger = Ledger::default();
    let value = AsyncValue::new_unconstructed(c"v");
    assert!(value.emplace(ledger.value(1)).is_ok());
    assert_eq!(value.emplace(ledger.value(2)).unwrap_err().0, 2);
    assert!(!value.set_error(Error::internal("late")));
    assert!(!value.publish());
    assert_eq!(value.get().unwrap().0, 1);
    let failed = AsyncValue::new_unconstructed(c"v");
    assert!(failed.set_error(Error::data_loss("first")));
    assert_eq!(failed.emplace(ledger.value(3)).unwrap_err().0, 3);
    assert_eq!(failed.error().unwrap().message(), "first");
    drop((value, failed));
    assert_eq!(ledger.alive(), 0);
}

#[test]
fn r1_one_of_many_racing_sets_wins() {
    let ledger = Ledger::default();
    for _ in 0..200 {
        let value = AsyncValue::new_unconstructed(c"race");
        let (winners, seen) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&seen);
        value.and_then(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        thread::scope(|scope| {
            for index in 0..4 {
                let (value, winners, ledger) = (&value, &winners, &ledger);
                scope.spawn(move || {
                    let won = match index {
                        0 => value.set_error(Error::aborted("x")),
                        _ => value.emplace(ledger.value(index)).is_ok(),
                    };
                    winners.fetch_add(usize::from(won), Ordering::Relaxed);
                    assert!(value.is_ready() || !won);
                });
            }
        });
        assert_eq!((winners.into_inner(), seen.load(Ordering::Relaxed)), (1, 1));
    }
    assert_eq!(ledger.alive(), 0);
}

#[test]
fn a_constructed_value_is_hidden_until_it_is_published() {
    let value = AsyncValue::new_constructed(c"v", 5);
    assert!(value.get().is_none() && value.constructed().is_none());
    assert_eq!(value.emplace(6), Err(6));
    assert!(value.publish());
    assert!(!value.publish());
    assert_eq!(value.get(), Some(&5));
    assert!(!AsyncValue::<i32>::new_unconstructed(c"v").publish(), "there is nothing to publish");
}

#[test]
fn an_error_destroys_a_constructed_value_unless_it_is_kept() {
    let ledger = Ledger::default();
    let value = AsyncValue::new_constructed(c"v", ledger.value(1));
    assert!(value.set_error(Error::aborted("x")));
    assert_eq!(ledger.alive(), 0);
    assert!(value.get().is_none());
    let kept = AsyncValue::new_kept_on_error(c"v", ledger.value(2));
    assert_eq!(kept.constructed().unwrap().0, 2);
    assert!(kept.get().is_none());
    assert_eq!(kept.emplace(ledger.value(3)).unwrap_err().0, 3);
    assert!(kept.set_error(Error::aborted("x")));
    assert_eq!(kept.get().unwrap().0, 2);
    assert_eq!(kept.wait().err().unwrap().code(), StatusCode::Aborted);
    drop((value, kept));
    assert_eq!(ledger.alive(), 0);
    let published = AsyncValue::new_kept_on_error(c"v", ledger.value(4));
    assert!(published.publish());
    assert_eq!(published.get().unwrap().0, 4);
}

#[test]
fn values_of_all_sizes_and_alignments_fit() {
    #[derive(Debug, PartialEq)]
    #[repr(align(128))]
    struct Wide(u8);
    fn check<T: Send + Sync + PartialEq + std::fmt::Debug + 'static>(value: T, same: T) {
        let cell = AsyncValue::new_unconstructed(c"v");
        cell.emplace(value).unwrap();
        let read = cell.get().unwrap();
        assert_eq!((&raw const *read).addr() % align_of::<T>(), 0);
        assert_eq!(*read, same);
        assert_eq!(cell.into_inner().unwrap(), same);
    }
    check((), ());
    check(3_u8, 3);
    check([7_u64; 8], [7; 8]);
    check([7_u64; 9], [7; 9]);
    check(vec![1; 1000], vec![1; 1000]);
    check(Wide(9), Wide(9));
    check([1_u8; 4096], [1; 4096]);
}

#[test]
fn waiters_see_the_value_or_the_error_in_their_order() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let waiter = |name: &'static str| {
        let log = Arc::clone(&log);
        move |result: Result<&i32, &Error>| log.lock().unwrap().push((name, result.copied().map_err(Error::code)))
    };
    let value = AsyncValue::new_unconstructed(c"v");
    value.and_then(waiter("a"));
    value.and_then(waiter("b"));
    value.emplace(1).unwrap();
    value.and_then(waiter("late"));
    AsyncValue::new_error(Error::aborted("x")).and_then(waiter("failed"));
    let expected = [("a", Ok(1)), ("b", Ok(1)), ("late", Ok(1)), ("failed", Err(StatusCode::Aborted))];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn r2_waiters_of_a_value_that_is_given_up_get_an_error_that_names_it() {
    let ledger = Ledger::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let value = AsyncValue::new_constructed(c"weights", ledger.value(1));
    for _ in 0..2 {
        let seen = Arc::clone(&seen);
        value.and_then(move |result| seen.lock().unwrap().push(result.err().unwrap().message().to_owned()));
    }
    let mapped = value.map(|value| value.0);
    let all = when_all(&[value.as_event().clone(), AsyncValue::new_available(()).into_event()]);
    drop(value);
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert!(seen.lock().unwrap()[1].contains("event 'weights' was abandoned"));
    assert!(mapped.error().unwrap().message().contains("'weights'"));
    assert!(all.error().unwrap().message().contains("'weights'"), "a join does not keep its events alive");
    assert_eq!(ledger.alive(), 0);
}

#[test]
fn r2_a_panic_in_a_closure_is_the_error_of_what_it_was_to_compute() {
    let (value, ready) = (AsyncValue::new_unconstructed(c"v"), AsyncValue::new_available(1));
    let pending = value.map(|_: &i32| -> i32 { panic!("expected by a test") });
    let flat = value.flat_map(|_| -> AsyncValue<i32> { panic!("expected by a test") });
    let now = ready.map(|_| -> i32 { panic!("expected by a test") });
    value.and_then(|_| panic!("expected by a test"));
    value.emplace(1).unwrap();
    for error in [pending.error(), flat.error(), now.error()].map(Option::unwrap) {
        assert_eq!(error.code(), StatusCode::Internal);
        assert!(error.message().ends_with("panicked: expected by a test"), "{error}");
    }
}

#[test]
fn r2_a_destructor_that_panics_harms_nobody() {
    struct Explosive;
    impl Drop for Explosive {
        fn drop(&mut self) {
            panic!("expected by a test");
        }
    }
    drop(AsyncValue::new_available(Explosive));
    let failed = AsyncValue::new_constructed(c"v", Explosive);
    assert!(failed.set_error(Error::aborted("x")));
    assert_eq!(failed.error().unwrap().message(), "x");
}

#[test]
fn r3_a_waiter_or_destructor_may_use_the_value_that_it_belongs_to() {
    struct Reader(Arc<Mutex<Option<AsyncValue<Reader>>>>);
    impl Drop for Reader {
        fn drop(&mut self) {
            let value = self.0.lock().unwrap().take();
            if let Some(value) = value {
                assert!(value.is_ready() && value.wait().is_err(), "it has failed already, so nobody waits for ever");
            }
        }
    }
    let place = Arc::new(Mutex::new(None));
    let value = AsyncValue::new_constructed(c"v", Reader(Arc::clone(&place)));
    *place.lock().unwrap() = Some(value.clone());
    assert!(value.set_error(Error::aborted("x")));
    assert!(place.lock().unwrap().is_none());

    let value = AsyncValue::new_unconstructed(c"v");
    let (held, ran) = (value.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&ran);
    value.and_then(move |_| {
        assert_eq!(held.emplace(2), Err(2));
        held.and_then(move |result| _ = counted.fetch_add(*result.unwrap(), Ordering::Relaxed));
    });
    value.emplace(1).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[test]
fn maps_compute_now_or_later_and_hand_errors_on() {
    let value = AsyncValue::new_unconstructed(c"v");
    let (text, odd) = (
        value.map(|value: &i32| value.to_string()),
        value.try_map(|_| -> Result<(), _> { Err(Error::not_found("odd")) }),
    );
    let (flat, source) =
        (value.flat_map(|value| AsyncValue::new_available(value * 2)), AsyncValue::new_unconstructed(c"inner"));
    let inner = source.clone();
    let later = value.flat_map(move |_| inner);
    assert!(!text.is_ready() && !flat.is_ready());
    value.emplace(21).unwrap();
    assert_eq!(text.get().unwrap(), "21");
    assert_eq!(odd.error().unwrap().code(), StatusCode::NotFound);
    assert_eq!(flat.get(), Some(&42));
    assert!(!later.is_ready());
    source.emplace("inner").unwrap();
    assert_eq!(later.get(), Some(&"inner"));
    assert_eq!(value.map(|value| value + 1).get(), Some(&22));
    assert_eq!(value.flat_map(|_| source).get(), Some(&"inner"));
    let failed = AsyncValue::<i32>::new_error(Error::aborted("x"));
    assert_eq!(failed.map(|_| ()).error().unwrap().message(), "x");
    assert_eq!(failed.flat_map(|_| AsyncValue::new_available(())).error().unwrap().message(), "x");
}

#[test]
fn an_indirect_value_shares_and_keeps_the_value_of_another() {
    let ledger = Ledger::default();
    let (source, indirect) = (AsyncValue::new_unconstructed(c"source"), AsyncValue::indirect(c"indirect"));
    indirect.forward(&source).unwrap();
    let second = AsyncValue::indirect(c"second");
    second.forward(&indirect).unwrap();
    assert!(!second.is_ready());
    assert!(source.emplace(ledger.value(4)).is_ok());
    assert!(std::ptr::eq(source.get().unwrap(), second.get().unwrap()));
    drop((source, indirect));
    assert_eq!((second.get().unwrap().0, ledger.alive()), (4, 1));
    let second = second.into_inner().expect_err("the value is not its own");
    drop(second);
    assert_eq!(ledger.alive(), 0);
}

#[test]
fn an_indirect_value_can_be_set_directly_or_share_an_arc() {
    let ledger = Ledger::default();
    let direct = AsyncValue::indirect(c"v");
    assert!(direct.emplace(ledger.value(1)).is_ok());
    assert_eq!(direct.emplace(ledger.value(2)).unwrap_err().0, 2);
    let shared = Arc::new(ledger.value(3));
    let value: AsyncValue<Counted> = Arc::clone(&shared).into();
    assert!(std::ptr::eq(value.get().unwrap(), &raw const *shared));
    let follower = AsyncValue::indirect(c"f");
    follower.forward(&value).unwrap();
    drop((shared, value));
    assert_eq!(follower.get().unwrap().0, 3);
    drop((direct, follower));
    assert_eq!(ledger.alive(), 0);
}

#[test]
fn r2_forwarding_that_cannot_be_is_refused_and_loses_nothing() {
    let (source, value) = (AsyncValue::new_available(1), AsyncValue::indirect(c"v"));
    assert_eq!(
        AsyncValue::new_unconstructed(c"v").forward(&source).unwrap_err().code(),
        StatusCode::FailedPrecondition
    );
    assert_eq!(value.forward(&value).unwrap_err().code(), StatusCode::InvalidArgument);
    assert!(!value.is_ready());
    value.forward(&source).unwrap();
    assert_eq!(value.forward(&source).unwrap_err().code(), StatusCode::FailedPrecondition);
    let (source, value) = (AsyncValue::<i32>::new_unconstructed(c"gone"), AsyncValue::indirect(c"v"));
    value.forward(&source).unwrap();
    drop(source);
    assert!(value.error().unwrap().message().contains("'gone' was abandoned"));
}

#[test]
fn the_only_reference_gives_the_value_away() {
    let value = AsyncValue::new_available(vec![1]);
    let other = value.clone();
    let value = value.into_inner().expect_err("there is another reference");
    drop(other);
    assert!(value.is_unique());
    assert_eq!(value.into_inner().unwrap(), [1]);
    assert!(AsyncValue::<i32>::new_unconstructed(c"v").into_inner().is_err());
    assert!(AsyncValue::<i32>::new_error(Error::aborted("x")).into_inner().is_err());
}

#[test]
fn events_know_the_type_of_their_value() {
    let event = AsyncValue::new_available(1_i32).into_event();
    assert_eq!(event.state(), EventState::Ready);
    let event = AsyncValue::<u32>::from_event(event).unwrap_err();
    assert_eq!(AsyncValue::<i32>::from_event(event).unwrap().get(), Some(&1));
    assert!(AsyncValue::<i32>::from_event(Event::ready()).is_err());
    assert!(AsyncValue::<i32>::from_event(crate::EventPromise::new(c"plain").event()).is_err());
    let indirect = AsyncValue::from_shared(Arc::new(2_i32)).into_event();
    assert_eq!(AsyncValue::<i32>::from_event(indirect).unwrap().get(), Some(&2));
}

#[test]
fn a_result_that_comes_late_is_given_back() {
    assert_eq!(AsyncValue::new_unconstructed(c"v").set(Err::<i32, _>(Error::aborted("x"))), Ok(()));
    let late = AsyncValue::new_available(1).set(Err(Error::aborted("x")));
    assert_eq!(late.unwrap_err().unwrap_err().message(), "x");
}

#[test]
fn a_timed_wait_leaves_the_value_pending() {
    let value = AsyncValue::new_unconstructed(c"slow");
    assert_eq!(value.wait_for(Duration::ZERO).unwrap_err().code(), StatusCode::DeadlineExceeded);
    value.emplace(1).unwrap();
    assert_eq!(value.wait_for(Duration::ZERO), Ok(&1));
}

#[test]
fn a_blocked_thread_reads_what_was_put_there() {
    for round in 0..100 {
        let value = AsyncValue::<String>::new_unconstructed(c"v");
        let other = value.clone();
        let blocked = thread::spawn(move || other.wait().cloned());
        value.emplace(round.to_string()).unwrap();
        assert_eq!(blocked.join().unwrap().unwrap(), round.to_string());
    }
}

#[test]
fn readers_and_droppers_race_with_the_set() {
    let ledger = Ledger::default();
    for round in 0..200 {
        let value = AsyncValue::new_unconstructed(c"v");
        let sum = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                let (value, sum) = (value.clone(), &sum);
                scope.spawn(move || {
                    let mapped = value.map(|value: &Counted| value.0);
                    drop(value);
                    if let Ok(value) = mapped.wait() {
                        sum.fetch_add(*value as usize, Ordering::Relaxed);
                    }
                });
            }
            assert!(value.emplace(ledger.value(round)).is_ok());
            drop(value);
        });
        assert_eq!(sum.into_inner(), 2 * round as usize);
    }
    assert_eq!(ledger.alive(), 0);
}

/// Runs `f` on a stack of 256 KiB.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(256 * 1024).spawn(f).unwrap().join().unwrap();
}

const LINKS: usize = if cfg!(miri) { 1_000 } else { 1_000_000 };

#[test]
fn a_million_maps_need_no_stack() {
    on_a_small_stack(|| {
        let first = AsyncValue::new_unconstructed(c"first");
        let mut last = first.clone();
        for _ in 0..LINKS {
            last = last.map(|value: &usize| value + 1);
        }
        first.emplace(0).unwrap();
        assert_eq!(last.get(), Some(&LINKS));
    });
}

#[test]
fn a_million_forwards_need_no_stack_to_complete_or_to_drop() {
    on_a_small_stack(|| {
        let ledger = Ledger::default();
        let first = AsyncValue::new_unconstructed(c"first");
        let mut last = first.clone();
        for _ in 0..LINKS {
            let next = AsyncValue::indirect(c"next");
            next.forward(&last).unwrap();
            last = next;
        }
        assert!(first.emplace(ledger.value(3)).is_ok());
        drop(first);
        assert_eq!(last.get().unwrap().0, 3);
        drop(last);
        assert_eq!(ledger.alive(), 0);
    });
}

#[test]
fn a_million_maps_of_a_value_that_is_given_up_need_no_stack() {
    on_a_small_stack(|| {
        let first = AsyncValue::<usize>::new_unconstructed(c"first");
        let mut last = first.clone();
        for _ in 0..LINKS {
            last = last.map(|value| value + 1);
        }
        drop(first);
        assert!(last.error().unwrap().message().contains("'first' was abandoned"));
    });
}
