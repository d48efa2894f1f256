//! A thread that lets the last reference go, one that asks for one more, and where the memory's end is.
//! `grave_model.rs` notices its use afterwards.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::{PinnedArc, PinnedUse};
use crate::sync::explore;

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        // Relaxed: what others did before is ordered by the counts.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn of_many_references_one_is_the_last() {
    explore("the last reference against a weak one", None, || {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = PinnedArc::new(Counted(drops.clone()));
        let (other, weak) = (value.clone(), PinnedArc::downgrade(&value));
        let let_go = thread::spawn(move || PinnedArc::into_last(other).is_some());
        let looked = thread::spawn(move || match weak.upgrade() {
            Some(value) => PinnedArc::into_last(value).is_some(),
            None => false,
        });
        let here = PinnedArc::into_last(value).is_some();
        let lasts = [here, let_go.join().unwrap(), looked.join().unwrap()];
        assert_eq!(lasts.iter().filter(|&&was_last| was_last).count(), 1, "{lasts:?}");
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_use_or_a_reference_is_the_last() {
    explore("the last reference against a use", None, || {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = PinnedArc::new(Counted(drops.clone()));
        let (used, weak) = (PinnedUse::of(&value), PinnedArc::downgrade(&value));
        let work = thread::spawn(move || drop(used));
        let looked = thread::spawn(move || drop(weak.upgrade()));
        drop(value);
        work.join().unwrap();
        looked.join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn the_only_reference_needs_no_lock() {
    explore("the only reference, given up without a locked instruction", None, || {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = PinnedArc::new(Counted(drops.clone()));
        let other = value.clone();
        // SAFETY: no weak or uncounted reference is made.
        let elsewhere = thread::spawn(move || unsafe { PinnedArc::drop_without_weak(other) });
        // SAFETY: as above.
        unsafe { PinnedArc::drop_without_weak(value) };
        elsewhere.join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}
