use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use purlin_base::status::StatusCode;
use purlin_base::sync::Mutex;

/// What callbacks noted, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn callback(&self, name: &'static str) -> impl FnOnce(&Error) + Send + 'static {
        let notes = self.clone();
        move |reason| notes.0.lock().push(format!("{name}: {}", reason.message()))
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

#[test]
fn r1_the_first_cancel_wins_and_the_second_is_told_so() {
    let source = CancelSource::new(c"s");
    let token = source.token();
    assert!(!token.is_cancelled() && token.reason().is_none() && token.check().is_ok());
    assert!(source.cancel(Error::aborted("first")));
    assert!(!source.clone().cancel(Error::internal("second")));
    assert_eq!(token.reason(), Some(Error::aborted("first")));
    assert_eq!(token.check(), Err(Error::aborted("first")));
    assert!(token.event().wait().is_ok());
}

#[test]
fn without_a_reason_the_source_is_named() {
    let source = CancelSource::new(c"training");
    source.cancel(None);
    assert_eq!(source.token().reason(), Some(Error::cancelled("'training' was cancelled")));
}

#[test]
fn callbacks_run_in_order_once_and_late_ones_at_once() {
    let (source, notes) = (CancelSource::new(c"s"), Notes::default());
    let token = source.token();
    let _a = token.on_cancel(notes.callback("a"));
    let b = token.on_cancel(notes.callback("b"));
    let _c = token.on_cancel(notes.callback("c"));
    assert!(b.unregister());
    source.cancel(Error::aborted("x"));
    assert_eq!(notes.take(), ["a: x", "c: x"]);
    let late = token.on_cancel(notes.callback("late"));
    assert_eq!(notes.take(), ["late: x"]);
    assert!(!late.unregister());
}

#[test]
fn a_dropped_registration_drops_its_callback() {
    let (source, witness) = (CancelSource::new(c"s"), Arc::new(()));
    let inside = Arc::clone(&witness);
    drop(source.token().on_cancel(move |_| drop(inside)));
    assert_eq!(Arc::strong_count(&witness), 1);
    source.cancel(None);
}

#[test]
fn children_follow_their_parent_and_not_the_other_way_round() {
    let (parent, notes) = (CancelSource::new(c"parent"), Notes::default());
    let child = CancelSource::child_of(&parent.token(), c"child");
    let sibling = CancelSource::child_of(&parent.token(), c"sibling");
    let grandchild = CancelSource::child_of(&child.token(), c"grandchild").token();
    let _r = sibling.token().on_cancel(notes.callback("sibling"));
    assert!(child.cancel(Error::aborted("child only")));
    assert!(grandchild.is_cancelled() && !parent.is_cancelled() && !sibling.is_cancelled());
    assert!(parent.cancel(Error::internal("all")));
    assert_eq!(notes.take(), ["sibling: all"]);
    assert_eq!(grandchild.reason(), Some(Error::aborted("child only")));
    assert!(CancelSource::child_of(&parent.token(), c"late").is_cancelled());
}

#[test]
fn r2_a_token_without_sources_lets_its_waiters_go() {
    let (source, witness) = (CancelSource::new(c"gone"), Arc::new(()));
    let (token, inside) = (source.token(), Arc::clone(&witness));
    let _registration = token.on_cancel(move |_| drop(inside));
    let child = CancelSource::child_of(&token, c"child");
    let child_token = child.token();
    drop(child);
    let copy = source.clone();
    drop(source);
    assert!(!token.event().is_ready() && !child_token.is_retired(), "a source is left");
    drop(copy);
    let error = token.event().wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    assert!(error.message().contains("'gone'"), "{error}");
    assert_eq!(Arc::strong_count(&witness), 1, "the callback can never be called");
    assert!(token.is_retired() && child_token.is_retired() && child_token.event().is_ready());
    assert!(!token.is_cancelled() && token.reason().is_none());
}

#[test]
fn a_child_with_a_source_outlives_its_parent_and_can_be_cancelled() {
    let parent = CancelSource::new(c"parent");
    let child = CancelSource::child_of(&parent.token(), c"child");
    drop(parent);
    assert!(!child.token().is_retired());
    assert!(child.cancel(None));
    let orphan = CancelSource::child_of(&CancelToken::default(), c"orphan");
    let token = orphan.token();
    drop(orphan);
    assert!(token.is_retired());
}

#[test]
fn the_default_token_is_never_cancelled() {
    let token = CancelToken::default();
    assert!(!token.is_cancelled() && token.is_retired());
    assert!(!token.on_cancel(|_| ()).unregister());
    assert_eq!(token.event().wait().unwrap_err().code(), StatusCode::FailedPrecondition);
}

#[test]
fn r3_callbacks_may_use_the_token_and_drop_their_registration() {
    let source = Arc::new(CancelSource::new(c"s"));
    let place: Arc<Mutex<Option<CancelRegistration>>> = Arc::default();
    let (inner, slot, calls) = (Arc::clone(&source), Arc::clone(&place), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let registration = source.token().on_cancel(move |reason| {
        assert!(!inner.cancel(None));
        assert_eq!(inner.token().reason(), Some(reason.clone()));
        let mine = slot.lock().take();
        drop(mine);
        let nested = Arc::clone(&counted);
        let _late = inner.token().on_cancel(move |_| _ = nested.fetch_add(1, Ordering::Relaxed));
        counted.fetch_add(1, Ordering::Relaxed);
    });
    *place.lock() = Some(registration);
    source.cancel(None);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_callback_that_panics_does_not_stop_the_others() {
    let (source, notes) = (CancelSource::new(c"s"), Notes::default());
    let _bad = source.token().on_cancel(|_| panic!("expected by a test"));
    let _good = source.token().on_cancel(notes.callback("good"));
    assert!(source.cancel(Error::aborted("x")));
    assert_eq!(notes.take(), ["good: x"]);
}

#[test]
fn a_chain_of_a_hundred_thousand_children_needs_no_stack() {
    let run = || {
        for cancel in [true, false] {
            let root = CancelSource::new(c"root");
            let mut last = root.token();
            for _ in 0..100_000 {
                last = CancelSource::child_of(&last, c"link").token();
            }
            if cancel {
                root.cancel(None);
            }
            drop(root);
            assert_eq!((last.is_cancelled(), last.is_retired()), (cancel, !cancel));
        }
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(run).unwrap().join().unwrap();
}

#[test]
fn cancels_and_registrations_from_many_threads_lose_no_callback() {
    for _ in 0..200 {
        let (source, calls) = (CancelSource::new(c"s"), Arc::new(AtomicUsize::new(0)));
        let token = source.token();
        let registrar = std::thread::spawn({
            let calls = Arc::clone(&calls);
            move || {
                let register = |_| {
                    let calls = Arc::clone(&calls);
                    token.on_cancel(move |_| _ = calls.fetch_add(1, Ordering::Relaxed))
                };
                (0..10).map(register).collect::<Vec<_>>()
            }
        });
        source.cancel(None);
        drop(registrar.join().unwrap());
        assert_eq!(calls.load(Ordering::Relaxed), 10);
    }
}
