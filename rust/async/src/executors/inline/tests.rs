use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[test]
fn a_task_runs_before_the_call_returns() {
    let ran = Arc::new(AtomicU64::new(0));
    let inside = Arc::clone(&ran);
    InlineExecutor.execute(Task::new(c"t", move || _ = inside.fetch_add(1, Ordering::Relaxed))).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[test]
fn a_chain_of_a_million_tasks_needs_no_stack() {
    fn link(left: u64, ran: Arc<AtomicU64>) -> Task {
        Task::new(c"link", move || {
            ran.fetch_add(1, Ordering::Relaxed);
            if left > 1 {
                InlineExecutor.execute(link(left - 1, ran)).unwrap();
            }
        })
    }
    let run = || {
        let ran = Arc::new(AtomicU64::new(0));
        InlineExecutor.execute(link(1_000_000, Arc::clone(&ran))).unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 1_000_000);
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_task_that_panics_does_not_stop_the_next() {
    let ran = Arc::new(AtomicU64::new(0));
    InlineExecutor.execute(Task::new(c"bad", || panic!("expected by a test"))).unwrap();
    let inside = Arc::clone(&ran);
    InlineExecutor.execute(Task::new(c"good", move || _ = inside.fetch_add(1, Ordering::Relaxed))).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}
