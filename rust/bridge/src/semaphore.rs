//! `purlin/semaphore.h`. Acquiring with a callback is a plain function.

use std::ffi::c_char;
use std::ptr;

use purlin_async::{Permit, Semaphore};
use purlin_ffi::handle::{self, give_owned, own, owned, share};
use purlin_ffi::panic::{contain, guard};

use crate::callback::Callback;
use crate::cancel::{CancelTokenRep, label, token};
use crate::timer::duration;

/// What a `purlin::Semaphore` points to.
pub struct SemaphoreRep(Semaphore);
/// What a `purlin::Permit` points to: C++'s alone.
pub struct PermitRep(Permit);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/cancel.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type CancelTokenRep = crate::cancel::CancelTokenRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type SemaphoreRep;
        #[namespace = "purlin::v0::internal"]
        type PermitRep;

        /// A semaphore with one reference, C++'s.
        unsafe fn semaphore_new(name: *const c_char, capacity: usize) -> *const SemaphoreRep;
        unsafe fn semaphore_retain(semaphore: *const SemaphoreRep);
        unsafe fn semaphore_release(semaphore: *const SemaphoreRep);
        /// All units.
        fn semaphore_capacity(semaphore: &SemaphoreRep) -> usize;
        /// Free units.
        fn semaphore_available(semaphore: &SemaphoreRep) -> usize;
        /// Acquisitions that wait.
        fn semaphore_waiting(semaphore: &SemaphoreRep) -> usize;
        /// Units, C++'s, without waiting; or null and an error.
        fn semaphore_try_acquire(
            semaphore: &SemaphoreRep,
            amount: usize,
            error: &mut *const StatusRep,
        ) -> *mut PermitRep;
        /// Units, C++'s, waiting for `timeout_ns` if that is not negative; or null and an error.
        unsafe fn semaphore_acquire(
            semaphore: &SemaphoreRep,
            amount: usize,
            timeout_ns: i64,
            cancel: *const CancelTokenRep,
            error: &mut *const StatusRep,
        ) -> *mut PermitRep;
        /// Refuses acquisitions that wait and all later ones.
        fn semaphore_close(semaphore: &SemaphoreRep);
        /// How many units.
        fn permit_amount(permit: &PermitRep) -> usize;
        /// Gives the units back.
        unsafe fn permit_release(permit: *mut PermitRep);
    }
}

/// # Safety
/// `name` is static and ends with a NUL.
unsafe fn semaphore_new(name: *const c_char, capacity: usize) -> *const SemaphoreRep {
    contain("semaphore_new", ptr::null(), || {
        // SAFETY: the caller's promise.
        share(SemaphoreRep(Semaphore::new(unsafe { label(name) }, capacity)))
    })
}

/// # Safety
/// C++ holds a reference.
unsafe fn semaphore_retain(semaphore: *const SemaphoreRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(semaphore) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn semaphore_release(semaphore: *const SemaphoreRep) {
    contain("semaphore_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(semaphore) };
    })
}

fn semaphore_capacity(semaphore: &SemaphoreRep) -> usize {
    semaphore.0.capacity()
}

fn semaphore_available(semaphore: &SemaphoreRep) -> usize {
    contain("semaphore_available", 0, || semaphore.0.available())
}

fn semaphore_waiting(semaphore: &SemaphoreRep) -> usize {
    contain("semaphore_waiting", 0, || semaphore.0.waiting())
}

fn semaphore_try_acquire(semaphore: &SemaphoreRep, amount: usize, error: &mut *const ffi::StatusRep) -> *mut PermitRep {
    give_owned(guard(|| semaphore.0.try_acquire(amount)).map(PermitRep), error)
}

/// # Safety
/// `cancel` is null or alive.
unsafe fn semaphore_acquire(
    semaphore: &SemaphoreRep,
    amount: usize,
    timeout_ns: i64,
    cancel: *const CancelTokenRep,
    error: &mut *const ffi::StatusRep,
) -> *mut PermitRep {
    let timeout = (timeout_ns >= 0).then(|| duration(timeout_ns));
    // SAFETY: the caller's promise.
    let permit = guard(|| semaphore.0.acquire_with(amount, timeout, &unsafe { token(cancel) }));
    give_owned(permit.map(PermitRep), error)
}

/// Calls `callback`, once, with how the acquisition ended; the units are its value.
///
/// # Safety
/// `cancel` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_acquire_async(
    semaphore: &SemaphoreRep,
    amount: usize,
    cancel: *const CancelTokenRep,
    callback: Callback,
) {
    contain("purlin_semaphore_acquire_async", (), || {
        // SAFETY: the caller's promise.
        let cancel = unsafe { token(cancel) };
        semaphore.0.acquire_then(amount, &cancel, move |permit| match permit {
            Ok(permit) => callback.call(Ok(()), own(PermitRep(permit)).cast()),
            Err(error) => callback.call(Err(error), ptr::null()),
        });
    })
}

fn semaphore_close(semaphore: &SemaphoreRep) {
    contain("semaphore_close", (), || semaphore.0.close())
}

fn permit_amount(permit: &PermitRep) -> usize {
    permit.0.amount()
}

/// # Safety
/// C++ gives the permit up.
unsafe fn permit_release(permit: *mut PermitRep) {
    contain("permit_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(permit) });
    })
}
