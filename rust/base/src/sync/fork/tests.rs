//! Forks of a process whose threads take locks all the time. Each child has a limit, after which SIGALRM ends it.

#![allow(unsafe_code, reason = "forks")]

use std::cell::RefCell;
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::{ASKED, Process, watch};
use crate::sync::{Condvar, Mutex, OnceLock};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn alarm(seconds: c_uint) -> c_uint;
    fn _exit(status: c_int) -> !;
}

/// Forks, and calls `child` there. How that ended: 0, or its signal (14: it hangs), or its exit code times 256.
fn in_child(child: impl FnOnce() -> bool) -> c_int {
    // SAFETY: the child calls locks of ours only, which is what is tested, and ends by _exit.
    unsafe {
        let pid = fork();
        assert!(pid >= 0, "no process");
        if pid == 0 {
            alarm(20);
            _exit(c_int::from(!child()));
        }
        let mut status = -1;
        assert_eq!(waitpid(pid, &raw mut status, 0), pid);
        status
    }
}

#[derive(Default)]
struct Locks {
    outer: Mutex<u64>,
    inner: Mutex<u64>,
    changed: Condvar,
    stop: AtomicBool,
}

impl Locks {
    /// Takes one in the other, and waits now and then.
    fn take(&self) {
        let mut outer = self.outer.lock();
        *outer += 1;
        *self.inner.lock() += 1;
        self.changed.notify_one();
        if outer.is_multiple_of(3) {
            drop(self.changed.wait_for(outer, Duration::from_micros(20)));
        }
    }
}

thread_local! {
    /// Takes locks when its thread ends: after the record of the thread has gone, which was made later.
    static LATE: RefCell<Option<TakesLocks>> = const { RefCell::new(None) };
}

struct TakesLocks(Arc<Locks>);

impl Drop for TakesLocks {
    fn drop(&mut self) {
        for _ in 0..20 {
            self.0.take();
        }
    }
}

#[test]
fn a_child_finds_no_lock_taken_and_what_they_guard_whole() {
    let locks = Arc::new(Locks::default());
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                while !locks.stop.load(Relaxed) {
                    locks.take();
                }
            })
        })
        .collect();
    let enders = Arc::clone(&locks);
    let enders = thread::spawn(move || {
        while !enders.stop.load(Relaxed) {
            let locks = Arc::clone(&enders);
            let ends = thread::spawn(move || LATE.with(|late| *late.borrow_mut() = Some(TakesLocks(locks))));
            ends.join().unwrap();
        }
    });
    for _ in 0..200 {
        let status = in_child(|| {
            let whole = *locks.outer.lock() == *locks.inner.lock();
            locks.take();
            whole
        });
        assert_eq!(status, 0);
    }
    locks.stop.store(true, Relaxed);
    takers.into_iter().for_each(|taker| taker.join().unwrap());
    enders.join().unwrap();
}

#[test]
fn who_forks_inside_a_lock_goes_on_in_the_child() {
    static LOCK: Mutex<i32> = Mutex::new(1);
    let before = Process::this();
    let guard = LOCK.lock();
    let status = in_child(move || {
        assert_eq!(*guard, 1);
        drop(guard);
        *LOCK.lock() == 1 && !before.is_this() && Process::this().is_this()
    });
    assert_eq!(status, 0);
    assert!(before.is_this(), "the parent is what it was");
}

#[test]
fn a_child_makes_what_is_made_once() {
    static MADE: OnceLock<u32> = OnceLock::new();
    let make = || {
        thread::sleep(Duration::from_millis(5));
        7
    };
    let maker = thread::spawn(move || *MADE.get_or_init(make));
    for _ in 0..5 {
        assert_eq!(in_child(|| *MADE.get_or_init(make) == 7), 0);
    }
    assert_eq!(maker.join().unwrap(), 7);
}

#[test]
fn a_child_has_children_and_threads() {
    let lock = Arc::new(Mutex::new(0));
    *lock.lock() += 1;
    let status = in_child(|| {
        let (child, other) = (Process::this(), Arc::clone(&lock));
        thread::spawn(move || *other.lock() += 1).join().unwrap();
        let below = in_child(|| *lock.lock() == 2 && !child.is_this());
        below == 0 && child.is_this()
    });
    assert_eq!(status, 0);
    assert_eq!(*lock.lock(), 1);
}

#[test]
fn what_is_watched_already_calls_the_system_no_more() {
    watch();
    let asked = ASKED.load(Relaxed);
    assert!(asked > 0, "the first call asks");
    for _ in 0..10 {
        watch();
    }
    assert_eq!(ASKED.load(Relaxed), asked);
}
