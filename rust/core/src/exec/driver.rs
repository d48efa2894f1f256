//! What a thread that completes events, of a backend's or of the timers, does when a waiter on it waits for an event: it hands its
//! work over, because what is waited for may be that work. Where no other thread can be had, it goes on with the work inside the
//! wait, at most [`MAX_NESTED`] deep; deeper, the wait is given up.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use crate::event::{Blocked, Waited, set_blocking_hook};
use crate::status::Status;
use crate::sync::per_thread;

/// Waits that work, on one stack.
const MAX_NESTED: u32 = 16;

/// The work of a thread on which events are completed.
pub trait Driver: Send + Sync {
    /// Which thread it is, after "on", for errors.
    fn thread(&self) -> &'static str;

    /// The calling thread is about to sleep in a waiter: from now on another one does its work. False if there is none to be had.
    fn hand_over(&self) -> bool;

    /// Does a piece of the work here. False if there is nothing to do now.
    fn step(&self) -> bool;

    /// How long a thread sleeps at most before it looks for work again.
    fn nap(&self) -> Duration {
        Duration::from_millis(1)
    }
}

// Whose work this thread does.
per_thread!(static CURRENT: RefCell<Option<Arc<dyn Driver>>> = RefCell::new(None));
// How many waits of this thread work.
per_thread!(static NESTED: Cell<u32> = Cell::new(0));

/// Calls `work`, on whose thread `driver` says what becomes of the work while a waiter waits. The thread has no other duties.
pub fn drive(driver: Arc<dyn Driver>, work: impl FnOnce()) {
    CURRENT.with(|current| *current.borrow_mut() = Some(driver));
    set_blocking_hook(Some(block));
    work();
    set_blocking_hook(None);
    let last = CURRENT.with(|current| current.borrow_mut().take());
    drop(last);
}

/// What `event/park.rs` calls on such a thread instead of just sleeping.
fn block(blocked: &Blocked<'_>) -> Waited {
    match CURRENT.with(|current| current.borrow().clone()) {
        Some(driver) if !driver.hand_over() => wait_and_work(&*driver, blocked),
        _ => blocked.sleep().into(),
    }
}

#[cold]
fn wait_and_work(driver: &dyn Driver, blocked: &Blocked<'_>) -> Waited {
    let nested = NESTED.with(|nested| nested.replace(nested.get() + 1));
    let waited = loop {
        if blocked.is_over() {
            break Waited::Over;
        }
        if blocked.is_late() {
            break Waited::Late;
        }
        if nested >= MAX_NESTED && blocked.may_be_given_up() {
            break Waited::GivenUp(Status::resource_exhausted(format!(
                "the wait for event '{}', which is still pending, was given up: it is the {nested}th on {}, and the system \
                 refused another thread",
                blocked.label(),
                driver.thread()
            )));
        }
        if nested >= MAX_NESTED || !driver.step() {
            blocked.sleep_for(driver.nap());
        }
    };
    NESTED.with(|nested| nested.set(nested.get() - 1));
    waited
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Driver, MAX_NESTED, drive};
    use crate::event::{Event, EventPromise};
    use crate::status::StatusCode;
    use crate::sync::Mutex;

    /// Sets one promise after the other; no other thread is to be had.
    struct Alone(Mutex<Vec<EventPromise>>);

    impl Driver for Alone {
        fn thread(&self) -> &'static str {
            "the only thread"
        }
        fn hand_over(&self) -> bool {
            false
        }
        fn step(&self) -> bool {
            let next = self.0.lock().pop();
            next.is_some_and(|promise| promise.set_ready())
        }
    }

    fn alone(count: u32) -> (Arc<Alone>, Vec<Event>) {
        let promises: Vec<_> = (0..count).map(|_| EventPromise::guarding(c"driven")).collect();
        let events = promises.iter().rev().map(EventPromise::event).collect();
        (Arc::new(Alone(Mutex::new(promises))), events)
    }

    #[test]
    fn without_another_thread_the_work_goes_on_inside_the_wait() {
        let (driver, events) = alone(100);
        drive(driver, || events.last().unwrap().wait().unwrap());
        assert!(events.iter().all(Event::is_ready));
    }

    #[test]
    fn too_deep_a_wait_is_given_up() {
        let (driver, events) = alone(100);
        let (deepest, given_up) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        for pair in events.windows(2) {
            let (next, deepest, given_up) = (pair[1].clone(), Arc::clone(&deepest), Arc::clone(&given_up));
            pair[0].on_ready(move |_status| {
                deepest.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = next.wait() {
                    assert_eq!(error.code(), StatusCode::ResourceExhausted, "{error}");
                    given_up.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        drive(driver, || events.last().unwrap().wait().unwrap());
        assert!(given_up.load(Ordering::Relaxed) > 0, "some were deeper than {MAX_NESTED}");
        assert_eq!(deepest.load(Ordering::Relaxed), 99, "each was called");
        assert!(events.iter().all(Event::is_ready));
    }
}
