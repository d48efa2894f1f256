//! What a thread that completes events, of a backend's or of the timers, does when a waiter on it waits for an event:
//! it passes its work to another thread, because what is waited for may be that work. Where no other thread can be had,
//! it continues the work inside the wait, at most [`MAX_NESTED`] deep. Deeper, the wait is given up; a wait that may
//! not be given up continues so up to [`MAX_NESTED_LENT`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use crate::event::{Blocked, Waited, has_blocking_hook, set_blocking_hook};
use purlin_base::status::Error;
use purlin_base::sync::per_thread;

/// Waits that work, on one stack.
const MAX_NESTED: u32 = 16;
/// With waits that are not given up. A stack of 2 MiB holds them.
const MAX_NESTED_LENT: u32 = 256;

/// The work of a thread on which events are completed.
pub trait Driver: Send + Sync {
    /// Which thread it is, after "on", for errors.
    fn thread(&self) -> &'static str;

    /// The calling thread is about to sleep in a waiter: from now on another one does its work. False if there is none
    /// to be had.
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

/// Calls `work`. While a waiter inside it waits, `driver` says what becomes of the thread's work. A thread that has
/// other duties while it waits, a pool's or another driver's, keeps those.
pub fn drive<R>(driver: &Arc<dyn Driver>, work: impl FnOnce() -> R) -> R {
    let _scope = (!has_blocking_hook()).then(|| Scope::new(Arc::clone(driver)));
    work()
}

/// As long as a thread drives.
struct Scope;

impl Scope {
    fn new(driver: Arc<dyn Driver>) -> Self {
        CURRENT.with(|current| *current.borrow_mut() = Some(driver));
        set_blocking_hook(Some(block));
        Self
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        set_blocking_hook(None);
        let last = CURRENT.with(|current| current.borrow_mut().take());
        drop(last);
    }
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
        if nested >= MAX_NESTED && !blocked.lasts() {
            break Waited::GivenUp(Error::resource_exhausted(format!(
                "the wait for event '{}', which is still pending, was given up: it is the {nested}th on {}, and the system \
                 refused another thread",
                blocked.label(),
                driver.thread()
            )));
        }
        if nested >= MAX_NESTED_LENT || !driver.step() {
            blocked.sleep_for(driver.nap());
        }
    };
    NESTED.with(|nested| nested.set(nested.get() - 1));
    waited
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::{Driver, MAX_NESTED, MAX_NESTED_LENT, drive};
    use crate::event::{Event, EventPromise};
    use crate::task::STACK_SIZE_BYTES;
    use purlin_base::status::StatusCode;
    use purlin_base::sync::Mutex;

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

    fn alone(promises: Vec<EventPromise>) -> (Arc<dyn Driver>, Vec<Event>) {
        let events = promises.iter().rev().map(EventPromise::event).collect();
        (Arc::new(Alone(Mutex::new(promises))), events)
    }

    fn users(count: u32) -> Vec<EventPromise> {
        (0..count).map(|_| EventPromise::new(c"driven")).collect()
    }

    /// A waiter of each event waits for the next one. How many waits were given up.
    fn each_waits_for_the_next(promises: Vec<EventPromise>) -> u32 {
        let count = u32::try_from(promises.len()).unwrap();
        let (driver, events) = alone(promises);
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
        drive(&driver, || events.last().unwrap().wait().unwrap());
        assert_eq!(deepest.load(Ordering::Relaxed), count - 1, "each was called");
        assert!(events.iter().all(Event::is_ready));
        given_up.load(Ordering::Relaxed)
    }

    #[test]
    fn without_another_thread_the_work_goes_on_inside_the_wait() {
        let (driver, events) = alone(users(100));
        drive(&driver, || events.last().unwrap().wait().unwrap());
        assert!(events.iter().all(Event::is_ready));
    }

    #[test]
    fn too_deep_a_wait_is_given_up() {
        assert!(each_waits_for_the_next(users(100)) > 0, "some were deeper than {MAX_NESTED}");
    }

    #[test]
    fn a_wait_until_which_memory_is_lent_is_not() {
        let work = || {
            let guarding = (0..MAX_NESTED_LENT).map(|_| EventPromise::guarding(c"driven")).collect();
            assert_eq!(each_waits_for_the_next(guarding), 0);
        };
        std::thread::Builder::new().stack_size(STACK_SIZE_BYTES).spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn a_thread_that_drives_already_goes_on_with_that() {
        let (outer, outer_events) = alone(users(1));
        let (inner, inner_events) = alone(users(1));
        drive(&outer, || drive(&inner, || outer_events[0].wait().unwrap()));
        assert_eq!(inner_events[0].wait_for(Duration::ZERO).unwrap_err().code(), StatusCode::DeadlineExceeded);
    }
}
