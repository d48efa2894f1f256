//! `purlin/semaphore.h`.
//!
//! In the safety sections, "alive" means that C++ holds a reference for the length of the call.

use std::ffi::c_char;
use std::ptr;

use purlin_async::{Permit, Semaphore};
use purlin_base::status::StatusRep;
use purlin_ffi::handle::{give_box, release, retain, share};
use purlin_ffi::panic::{contain, guard};

use crate::callback::Callback;
use crate::cancel::{CancelTokenRep, label, token};
use crate::timer::duration;

/// What a `purlin::Semaphore` points to.
pub struct SemaphoreRep(Semaphore);
/// What a `purlin::Permit` points to: a box.
pub struct PermitRep(Permit);

/// A semaphore with one reference, C++'s.
///
/// # Safety
/// `name` is static and ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_new(name: *const c_char, capacity: usize) -> *const SemaphoreRep {
    contain("purlin_semaphore_new", ptr::null(), || {
        // SAFETY: the caller's promise.
        share(SemaphoreRep(Semaphore::new(unsafe { label(name) }, capacity)))
    })
}

/// One more reference.
///
/// # Safety
/// `semaphore` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_retain(semaphore: *const SemaphoreRep) {
    // SAFETY: alive.
    unsafe { retain(semaphore) };
}

/// One reference less.
///
/// # Safety
/// The caller owns a reference and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_release(semaphore: *const SemaphoreRep) {
    contain("purlin_semaphore_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { release(semaphore) };
    })
}

/// All units.
///
/// # Safety
/// `semaphore` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_capacity(semaphore: *const SemaphoreRep) -> usize {
    // SAFETY: alive.
    unsafe { (*semaphore).0.capacity() }
}

/// Free units.
///
/// # Safety
/// `semaphore` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_available(semaphore: *const SemaphoreRep) -> usize {
    contain("purlin_semaphore_available", 0, || {
        // SAFETY: alive.
        unsafe { (*semaphore).0.available() }
    })
}

/// Acquisitions that wait.
///
/// # Safety
/// `semaphore` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_waiting(semaphore: *const SemaphoreRep) -> usize {
    contain("purlin_semaphore_waiting", 0, || {
        // SAFETY: alive.
        unsafe { (*semaphore).0.waiting() }
    })
}

/// Units, C++'s, without waiting; or null and an error.
///
/// # Safety
/// `semaphore` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_try_acquire(
    semaphore: *const SemaphoreRep,
    amount: usize,
    error: &mut *const StatusRep,
) -> *mut PermitRep {
    // SAFETY: alive.
    give_box(guard(|| unsafe { (*semaphore).0.try_acquire(amount) }).map(PermitRep), error)
}

/// Units, C++'s, waiting for `timeout_ns` if that is not negative; or null and an error.
///
/// # Safety
/// `semaphore` is alive; `cancel` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_acquire(
    semaphore: *const SemaphoreRep,
    amount: usize,
    timeout_ns: i64,
    cancel: *const CancelTokenRep,
    error: &mut *const StatusRep,
) -> *mut PermitRep {
    let timeout = (timeout_ns >= 0).then(|| duration(timeout_ns));
    // SAFETY: alive, and the caller's promise.
    let permit = guard(|| unsafe { (*semaphore).0.acquire_with(amount, timeout, &token(cancel)) });
    give_box(permit.map(PermitRep), error)
}

/// Calls `callback`, once, with how the acquisition ended; the units are its value.
///
/// # Safety
/// `semaphore` is alive; `cancel` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_acquire_async(
    semaphore: *const SemaphoreRep,
    amount: usize,
    cancel: *const CancelTokenRep,
    callback: Callback,
) {
    contain("purlin_semaphore_acquire_async", (), || {
        // SAFETY: alive, and the caller's promise.
        let (semaphore, cancel) = unsafe { (&(*semaphore).0, token(cancel)) };
        semaphore.acquire_then(amount, &cancel, move |permit| match permit {
            Ok(permit) => callback.call(Ok(()), Box::into_raw(Box::new(PermitRep(permit))).cast()),
            Err(error) => callback.call(Err(error), ptr::null()),
        });
    })
}

/// Refuses acquisitions that wait and all later ones.
///
/// # Safety
/// `semaphore` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_semaphore_close(semaphore: *const SemaphoreRep) {
    contain("purlin_semaphore_close", (), || {
        // SAFETY: alive.
        unsafe { (*semaphore).0.close() };
    })
}

/// How many units.
///
/// # Safety
/// `permit` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_permit_amount(permit: *const PermitRep) -> usize {
    // SAFETY: alive.
    unsafe { (*permit).0.amount() }
}

/// Gives the units back.
///
/// # Safety
/// The caller owns the permit and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_permit_release(permit: *mut PermitRep) {
    contain("purlin_permit_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(permit) });
    })
}
