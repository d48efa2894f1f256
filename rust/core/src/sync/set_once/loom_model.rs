//! Who sets and who looks.

use loom::sync::Arc;
use loom::thread;

use super::SetOnce;
use crate::sync::explore;

#[test]
fn a_value_is_seen_whole_or_not_at_all() {
    explore("a value is set once", None, || {
        let cell = Arc::new(SetOnce::new());
        let (first, second) = (cell.clone(), cell.clone());
        let one = thread::spawn(move || first.set([1_u8; 2]).is_ok());
        let two = thread::spawn(move || second.set([2_u8; 2]).is_ok());
        let seen = cell.get().copied();
        assert!(matches!(seen, None | Some([1, 1] | [2, 2])));
        let won = (one.join().unwrap(), two.join().unwrap());
        let last = cell.get().copied();
        assert!(seen.is_none() || seen == last, "it stays");
        assert_eq!(last, Some(if won.0 { [1, 1] } else { [2, 2] }));
        assert_ne!(won.0, won.1, "one of them has set it");
    });
}
