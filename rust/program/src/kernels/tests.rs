//! For the tests of several modules.

#![allow(unsafe_code, reason = "a symbol is made")]

use std::ptr::NonNull;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::KernelSymbol;

/// Calls a closure when it is dropped.
pub(super) struct OnDrop<F: Fn()>(pub(super) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Calls `body` on another thread, and panics if it has not returned after a minute: a deadlock then fails the test.
pub(super) fn within_a_minute(body: impl FnOnce() + Send + 'static) {
    let (done, returned) = mpsc::channel();
    let thread = thread::spawn(move || {
        body();
        done.send(()).unwrap();
    });
    match returned.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the call has not returned after a minute"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().unwrap(),
    }
}

/// A symbol that nothing may launch.
pub(super) fn some_symbol() -> KernelSymbol {
    static CODE: u8 = 0xc3;
    // SAFETY: nothing launches it.
    unsafe { KernelSymbol::new(NonNull::from(&CODE).cast(), Arc::new(())) }
}
