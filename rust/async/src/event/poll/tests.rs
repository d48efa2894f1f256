//! Events under Rust's `async`, polled by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::thread;

use super::*;
use crate::event::EventPromise;

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    fn rings(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn poll(future: &mut EventFuture, bell: &Arc<Bell>) -> Poll<Result<(), Error>> {
    let waker = Waker::from(Arc::clone(bell));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

fn is_known(event: &Event) -> bool {
    let address = event.as_raw().addr();
    bucket(address).lock().iter().any(|(known, _)| *known == address)
}

#[test]
fn a_ready_event_is_ready_at_the_first_poll() {
    let bell = Arc::default();
    assert_eq!(poll(&mut Event::ready().into_future(), &bell), Poll::Ready(Ok(())));
    let failed = Event::from_error(Error::aborted("x"));
    assert_eq!(poll(&mut (&failed).into_future(), &bell), Poll::Ready(failed.wait()));
    assert_eq!(bell.rings(), 0);
}

#[test]
fn the_last_waker_is_woken_once() {
    let promise = EventPromise::new(c"e");
    let event = promise.event();
    let (first, second) = (Arc::<Bell>::default(), Arc::default());
    let mut future = event.into_future();
    assert!(poll(&mut future, &first).is_pending());
    assert!(poll(&mut future, &second).is_pending());
    assert_eq!(Arc::strong_count(&first), 1, "the first waker is gone");
    promise.set_error(Error::aborted("x"));
    assert_eq!((first.rings(), second.rings()), (0, 1));
    assert_eq!(poll(&mut future, &second), Poll::Ready(Err(Error::aborted("x"))));
    assert_eq!(Arc::strong_count(&second), 1);
}

#[test]
fn r2_a_dropped_future_leaves_no_waker_and_no_waiter_behind() {
    let promise = EventPromise::new(c"e");
    let event = promise.event();
    let bell = Arc::<Bell>::default();
    for _ in 0..1000 {
        let mut future = (&event).into_future();
        assert!(poll(&mut future, &bell).is_pending());
    }
    assert_eq!(Arc::strong_count(&bell), 1);
    let (hub, is_new) = hub_of(&event);
    assert!(!is_new);
    assert_eq!(hub.0.lock().wakers.len(), 1, "a thousand futures shared one seat");
    promise.set_ready();
    assert_eq!(bell.rings(), 0, "nobody calls the waker of a future that is gone");
    assert!(!is_known(&event));
}

#[test]
fn r2_futures_of_an_event_that_is_given_up_are_woken() {
    let promise = EventPromise::new(c"gone");
    let bell = Arc::<Bell>::default();
    let mut futures: Vec<_> = (0..3).map(|_| promise.event().into_future()).collect();
    for future in &mut futures {
        assert!(poll(future, &bell).is_pending());
    }
    drop(promise);
    assert_eq!(bell.rings(), 3);
    for future in &mut futures {
        assert!(matches!(poll(future, &bell), Poll::Ready(Err(error)) if error.message().contains("'gone'")));
    }
}

#[test]
fn r3_a_waker_that_panics_or_polls_again_harms_nobody() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("expected by a test");
        }
    }
    struct Awaits(Event);
    impl Wake for Awaits {
        fn wake(self: Arc<Self>) {
            assert!(poll(&mut (&self.0).into_future(), &Arc::default()).is_ready());
        }
    }
    let promise = EventPromise::new(c"e");
    let bell = Arc::<Bell>::default();
    let wakers = [Arc::new(Panics).into(), Arc::new(Awaits(promise.event())).into(), Waker::from(Arc::clone(&bell))];
    let mut futures: Vec<_> = wakers.iter().map(|_| promise.event().into_future()).collect();
    for (future, waker) in futures.iter_mut().zip(&wakers) {
        assert!(Pin::new(future).poll(&mut Context::from_waker(waker)).is_pending());
    }
    promise.set_ready();
    assert_eq!(bell.rings(), 1);
}

#[test]
fn polls_race_with_completion_and_drops() {
    for _ in 0..500 {
        let promise = EventPromise::new(c"e");
        let futures: Vec<_> = (0..3).map(|_| promise.event().into_future()).collect();
        thread::scope(|scope| {
            for (index, mut future) in futures.into_iter().enumerate() {
                scope.spawn(move || {
                    let bell = Arc::<Bell>::default();
                    if index == 0 {
                        let _ = poll(&mut future, &bell);
                        return;
                    }
                    while poll(&mut future, &bell).is_pending() {
                        while bell.rings() == 0 {
                            thread::yield_now();
                        }
                    }
                });
            }
            promise.set_ready();
        });
        assert!(!is_known(&promise.event()));
    }
}
