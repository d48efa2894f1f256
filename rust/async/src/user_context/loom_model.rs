//! Every interleaving of an end with a new context of the same number.

use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;

use super::*;
use purlin_base::sync::explore;

/// loom does not see a count of std's `Arc`, so it sees no reason to let an end come between two steps of another
/// thread; the touches, on which both depend, are that reason.
#[test]
fn an_end_neither_blocks_nor_removes_a_successor() {
    explore("context ends against a successor", None, || {
        let touched = std::sync::Arc::new(AtomicUsize::new(0));
        let touch = |touched: &AtomicUsize| _ = touched.fetch_add(1, Relaxed);
        let first = UserContext::with_id(7, "first").expect("7 is a number");
        let touches = std::sync::Arc::clone(&touched);
        let ender = thread::spawn(move || {
            touch(&touches);
            drop(first);
        });
        touch(&touched);
        let second = UserContext::with_id(7, "second").expect("7 is a number");
        touch(&touched);
        let found = UserContext::lookup(7);
        assert_eq!(found.as_ref(), Some(&second), "whoever lives is found");
        ender.join().expect("the other thread ends");
        assert_eq!(UserContext::lookup(7).as_ref(), Some(&second), "also after the other's end");
        drop((found, second));
        assert_eq!(UserContext::lookup(7), None);
    });
}

#[test]
fn a_waiter_keeps_its_context_on_whichever_thread_it_runs() {
    explore("context of a waiter", None, || {
        let context = UserContext::new("attacher");
        let promise = crate::event::EventPromise::new(c"e");
        let event = promise.event();
        let setter = thread::spawn(move || promise.set_ready());
        let scope = UserContextScope::new(context.clone());
        let expected = context.clone();
        let ran = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let runs = std::sync::Arc::clone(&ran);
        event.on_ready(move |_| {
            assert_eq!(UserContext::current(), Some(expected));
            runs.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        drop(scope);
        setter.join().expect("the other thread ends");
        assert!(ran.load(std::sync::atomic::Ordering::Relaxed));
        assert_eq!(UserContext::current(), None);
        assert_eq!(Arc::strong_count(&context.0), 1);
    });
}
