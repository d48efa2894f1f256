//! Sleeping until a word changes, and a barrier for all threads: what std has and does not show. On Linux, system
//! calls; elsewhere short sleeps, because this does not run there yet.

#![allow(unsafe_code, reason = "system calls")]

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` is `expected`, for at most `timeout`. May return early.
pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    system::wait(word, expected, timeout);
}

/// Wakes as many as `count` of the threads that sleep on `word`.
pub(super) fn wake(word: &AtomicU32, count: i32) {
    system::wake(word, count);
}

/// When this returns, every other thread of the process has passed a full barrier since it was called.
pub(super) fn barrier_for_all() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    system::barrier_for_all();
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod system {
    use std::ffi::{c_int, c_long};
    use std::ptr;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    const FUTEX: c_long = if cfg!(target_arch = "x86_64") { 202 } else { 98 };
    const MEMBARRIER: c_long = if cfg!(target_arch = "x86_64") { 324 } else { 283 };
    const WAIT_PRIVATE: c_int = 128;
    const WAKE_PRIVATE: c_int = 129;
    const BARRIER_OF_PROCESS: c_int = 8;
    const REGISTER_PROCESS: c_int = 16;

    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }

    pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| Timespec {
            seconds: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: timeout.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the word and the time live during the call, which only reads them. Whatever it answers, the caller
        // looks again.
        unsafe { syscall(FUTEX, word.as_ptr(), WAIT_PRIVATE, expected, timeout) };
    }

    pub(super) fn wake(word: &AtomicU32, count: i32) {
        // SAFETY: the address is only compared.
        unsafe { syscall(FUTEX, word.as_ptr(), WAKE_PRIVATE, count) };
    }

    /// Where the kernel refuses (seccomp), every store has arrived after a millisecond.
    pub(super) fn barrier_for_all() {
        // SAFETY: two numbers; it touches no memory of ours.
        let passed = unsafe {
            syscall(MEMBARRIER, BARRIER_OF_PROCESS, 0, 0) == 0
                || (syscall(MEMBARRIER, REGISTER_PROCESS, 0, 0) == 0
                    && syscall(MEMBARRIER, BARRIER_OF_PROCESS, 0, 0) == 0)
        };
        if !passed {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
mod system {
    use std::sync::atomic::AtomicU32;
    use std::thread::sleep;
    use std::time::Duration;

    const NAP: Duration = Duration::from_millis(1);

    pub(super) fn wait(_word: &AtomicU32, _expected: u32, timeout: Option<Duration>) {
        sleep(timeout.map_or(NAP, |timeout| timeout.min(NAP)));
    }

    pub(super) fn wake(_word: &AtomicU32, _count: i32) {}

    pub(super) fn barrier_for_all() {
        sleep(NAP);
    }
}
