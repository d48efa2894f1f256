//! The thread that sets and the threads that look.

use loom::sync::Arc;
use loom::thread;

use super::SetOnce;
use crate::sync::explore;

#[test]
fn a_value_is_seen_whole_or_not_at_all() {
    explore("a value is set once", None, || {
        let cell = Arc::new(SetOnce::new());
        let (setter, other) = (cell.clone(), cell.clone());
        // SAFETY: no other thread sets it.
        let set = thread::spawn(move || unsafe { setter.set([1_u8; 2]) });
        let look = move || assert!(matches!(other.get().copied(), None | Some([1, 1])));
        let looked = thread::spawn(look);
        let seen = cell.get().copied();
        assert!(matches!(seen, None | Some([1, 1])));
        assert!(seen.is_none() || cell.get().copied() == seen, "it stays");
        set.join().unwrap();
        looked.join().unwrap();
        assert_eq!(cell.get().copied(), Some([1, 1]));
    });
}
