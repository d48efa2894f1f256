//! `purlin/cancel.h`. Plain functions; a null token is the one that is never cancelled.
//!
//! In the safety sections, "alive" means that C++ holds a reference for the length of the call.

use std::ffi::c_char;
use std::ptr;

use purlin_async::event::abi::EventHeader;
use purlin_async::{CancelRegistration, CancelSource, CancelToken};
use purlin_base::status::StatusRep;
use purlin_base::{Error, Label};
use purlin_ffi::handle::{release, retain, share};
use purlin_ffi::panic::contain;
use purlin_ffi::words::give_event;

use crate::callback::Callback;

/// What a `purlin::CancelSource` points to.
pub struct CancelSourceRep(CancelSource);
/// What a `purlin::CancelToken` points to.
pub struct CancelTokenRep(CancelToken);
/// What a `purlin::CancelRegistration` points to: a box.
pub struct CancelRegistrationRep(CancelRegistration);

/// The token that C++ points to.
///
/// # Safety
/// `token` is null or alive.
pub(crate) unsafe fn token(token: *const CancelTokenRep) -> CancelToken {
    // SAFETY: the caller's promise.
    unsafe { token.as_ref() }.map(|rep| rep.0.clone()).unwrap_or_default()
}

/// A label from C++.
///
/// # Safety
/// `text` is static and ends with a NUL.
pub(crate) unsafe fn label(text: *const c_char) -> Label {
    // SAFETY: the caller's promise.
    unsafe { Label::from_ptr(text) }
}

/// A source with one reference, C++'s.
///
/// # Safety
/// `parent` is null or alive; `name` is static and ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_source_new(
    parent: *const CancelTokenRep,
    name: *const c_char,
) -> *const CancelSourceRep {
    contain("purlin_cancel_source_new", ptr::null(), || {
        // SAFETY: the caller's promises.
        let (parent, name) = unsafe { (token(parent), label(name)) };
        share(CancelSourceRep(CancelSource::child_of(&parent, name)))
    })
}

/// One more reference.
///
/// # Safety
/// `source` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_source_retain(source: *const CancelSourceRep) {
    // SAFETY: alive.
    unsafe { retain(source) };
}

/// One reference less; after the last, nothing can cancel.
///
/// # Safety
/// The caller owns a reference and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_source_release(source: *const CancelSourceRep) {
    contain("purlin_cancel_source_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { release(source) };
    })
}

/// True if this call cancelled.
///
/// # Safety
/// `source` is alive; `reason` is null or owned by the caller, which gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_source_cancel(source: *const CancelSourceRep, reason: *const StatusRep) -> bool {
    contain("purlin_cancel_source_cancel", false, || {
        // SAFETY: the caller's promises.
        unsafe { (*source).0.cancel(Error::from_raw(reason)) }
    })
}

/// A token with one reference, C++'s.
///
/// # Safety
/// `source` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_source_token(source: *const CancelSourceRep) -> *const CancelTokenRep {
    contain("purlin_cancel_source_token", ptr::null(), || {
        // SAFETY: alive.
        share(CancelTokenRep(unsafe { (*source).0.token() }))
    })
}

/// One more reference.
///
/// # Safety
/// `token` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_token_retain(token: *const CancelTokenRep) {
    // SAFETY: alive.
    unsafe { retain(token) };
}

/// One reference less.
///
/// # Safety
/// The caller owns a reference and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_token_release(token: *const CancelTokenRep) {
    contain("purlin_cancel_token_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { release(token) };
    })
}

/// True once cancelled.
///
/// # Safety
/// `token` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_token_is_cancelled(token: *const CancelTokenRep) -> bool {
    // SAFETY: alive.
    unsafe { (*token).0.is_cancelled() }
}

/// True if it can never be cancelled.
///
/// # Safety
/// `token` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_token_is_retired(token: *const CancelTokenRep) -> bool {
    // SAFETY: alive.
    unsafe { (*token).0.is_retired() }
}

/// The reason, C++'s, or null.
///
/// # Safety
/// `token` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_token_status(token: *const CancelTokenRep) -> *const StatusRep {
    contain("purlin_cancel_token_status", ptr::null(), || {
        // SAFETY: alive.
        unsafe { (*token).0.reason() }.map_or(ptr::null(), Error::into_raw)
    })
}

/// The event, with one reference, C++'s.
///
/// # Safety
/// `handle` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_token_event(handle: *const CancelTokenRep) -> *mut EventHeader {
    give_event(|| {
        Ok({
            // SAFETY: null or alive.
            unsafe { token(handle) }.event()
        })
    })
}

/// Calls or keeps the callback; the registration is C++'s.
///
/// # Safety
/// `token` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_token_on_cancel(
    token: *const CancelTokenRep,
    callback: Callback,
) -> *mut CancelRegistrationRep {
    contain("purlin_cancel_token_on_cancel", ptr::null_mut(), || {
        // SAFETY: alive.
        let token = unsafe { &(*token).0 };
        let registration = token.on_cancel(move |reason| callback.call(Err(reason.clone()), ptr::null()));
        Box::into_raw(Box::new(CancelRegistrationRep(registration)))
    })
}

/// Takes the callback out; true if it was there.
///
/// # Safety
/// The caller owns the registration and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cancel_registration_release(registration: *mut CancelRegistrationRep) -> bool {
    contain("purlin_cancel_registration_release", false, || {
        // SAFETY: the caller's promise.
        unsafe { Box::from_raw(registration) }.0.unregister()
    })
}
