//! Closures of every size about the edges of the classes of nodes, many at once: no byte of one is another one's. A
//! node that is too small for its closure shares bytes with its neighbour, whichever of the two is written last.
//!
//! A waiter's node is 16 bytes and the closure, a task's 24; a user context adds 8. A class has 64 or 128 bytes.

use std::cell::RefCell;

use crate::event::EventPromise;
use crate::task::Task;
use crate::user_context::{UserContext, UserContextScope};
use purlin_base::slab::LIMIT;

/// More than one thread keeps of a class, so that they come from several batches.
const PENDING: usize = 2 * LIMIT as usize;
/// The first round takes blocks upwards, later ones in the reverse of the order in which blocks were freed: downwards,
/// then upwards again.
const ROUNDS: usize = 3;

thread_local! {
    /// The bytes of the closures that have run here, in order.
    static RAN: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that no other closure of the test has.
fn bytes<const SIZE: usize>(number: usize) -> [u8; SIZE] {
    std::array::from_fn(|at| (number.wrapping_mul(0x9e37_79b9) ^ at.wrapping_mul(0x85eb_ca6b)).to_le_bytes()[2])
}

/// A closure of exactly `SIZE` bytes.
fn closure<const SIZE: usize>(number: usize) -> impl FnOnce() + Send + 'static {
    let captured = bytes::<SIZE>(number);
    let closure = move || RAN.with_borrow_mut(|ran| ran.push(captured.to_vec()));
    assert_eq!(size_of_val(&closure), SIZE);
    closure
}

#[track_caller]
fn expect_all<const SIZE: usize>(what: &str) {
    let ran = RAN.take();
    assert_eq!(ran.len(), PENDING, "{what} of {SIZE} bytes");
    for (number, ran) in ran.iter().enumerate() {
        assert_eq!(ran[..], bytes::<SIZE>(number), "{what} {number} of {SIZE} bytes");
    }
}

/// Closures of that size as waiters of one event, of an event each, as tasks, and between waiters of other sizes.
fn closures_keep_their_bytes<const SIZE: usize>() {
    for _ in 0..ROUNDS {
        let event = EventPromise::new(c"of all");
        (0..PENDING).for_each(|number| {
            let closure = closure::<SIZE>(number);
            event.event().on_ready(move |_| closure());
        });
        event.set_ready();
        expect_all::<SIZE>("waiter");

        let events: Vec<_> = (0..PENDING).map(|_| EventPromise::new(c"of one")).collect();
        for (number, event) in events.iter().enumerate() {
            let closure = closure::<SIZE>(number);
            event.event().on_ready(move |_| closure());
            // A small one and a large one behind it.
            event.event().on_ready(|_| ());
            let large = [number; 12];
            event.event().on_ready(move |_| assert_eq!(large, [number; 12]));
        }
        events.iter().for_each(|event| assert!(event.set_ready()));
        expect_all::<SIZE>("waiter between others");

        let tasks: Vec<_> = (0..PENDING).map(|number| Task::new(c"task", closure::<SIZE>(number))).collect();
        tasks.into_iter().for_each(Task::run);
        expect_all::<SIZE>("task");
    }
}

/// Once without a user context, once in one, which is a part of each closure.
fn of_size<const SIZE: usize>() {
    closures_keep_their_bytes::<SIZE>();
    let _here = UserContextScope::new(UserContext::new("a test"));
    closures_keep_their_bytes::<SIZE>();
}

/// Each size in a process of its own (nextest), whose first blocks are taken upwards.
macro_rules! sizes {
    ($($name:ident: $($size:literal)+;)+) => {
        $(#[test]
        fn $name() {
            $(of_size::<$size>();)+
        })+
    };
}

sizes! {
    small_closures: 1 8 31;
    closures_that_fill_a_tasks_node_with_a_context: 32;
    closures_that_fill_a_tasks_node: 39 40;
    closures_that_are_too_large_for_a_small_tasks_node: 33 41;
    closures_that_fill_a_waiters_node: 47 48;
    closures_that_are_too_large_for_a_small_waiters_node: 49;
    closures_of_56_bytes: 55 56 57;
    closures_as_large_as_a_node: 63 64 65;
    closures_that_fill_a_tasks_wide_node: 95 96 103 104;
    closures_that_are_too_large_for_a_tasks_wide_node: 97 105;
    closures_that_fill_a_waiters_wide_node: 111 112;
    closures_that_are_too_large_for_a_waiters_wide_node: 113;
    closures_larger_than_any_node: 127 128 129 200;
}
