//! `purlin/cancel.h`. A null token is the one that is never cancelled. Registering a callback is a plain function.

use std::ffi::c_char;
use std::ptr;

use purlin_async::{CancelRegistration, CancelSource, CancelToken};
use purlin_base::slab::SlabBox;
use purlin_base::{Error, Label};
use purlin_ffi::handle::{self, own, owned, share};
use purlin_ffi::panic::contain;
use purlin_ffi::words::give_event;

use crate::callback::Callback;

/// What a `purlin::CancelSource` points to.
pub struct CancelSourceRep(CancelSource);
/// What a `purlin::CancelToken` points to.
pub struct CancelTokenRep(CancelToken);
/// What a `purlin::CancelRegistration` points to: C++'s alone.
pub struct CancelRegistrationRep(CancelRegistration);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type CancelSourceRep;
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type CancelTokenRep;
        #[namespace = "purlin::v0::internal"]
        type CancelRegistrationRep;

        /// A source with one reference, C++'s.
        unsafe fn cancel_source_new(parent: *const CancelTokenRep, name: *const c_char) -> *const CancelSourceRep;
        unsafe fn cancel_source_retain(source: *const CancelSourceRep);
        /// After the last, nothing can cancel.
        unsafe fn cancel_source_release(source: *const CancelSourceRep);
        /// True if this call cancelled.
        unsafe fn cancel_source_cancel(source: &CancelSourceRep, reason: *const StatusRep) -> bool;
        /// A token with one reference, C++'s.
        fn cancel_source_token(source: &CancelSourceRep) -> *const CancelTokenRep;

        unsafe fn cancel_token_retain(token: *const CancelTokenRep);
        unsafe fn cancel_token_release(token: *const CancelTokenRep);
        /// True once cancelled.
        fn cancel_token_is_cancelled(token: &CancelTokenRep) -> bool;
        /// True if it can never be cancelled.
        fn cancel_token_is_retired(token: &CancelTokenRep) -> bool;
        /// The reason, C++'s, or null.
        fn cancel_token_status(token: &CancelTokenRep) -> *const StatusRep;
        /// The event, with one reference, C++'s.
        unsafe fn cancel_token_event(handle: *const CancelTokenRep) -> *mut EventHeader;

        /// Takes the callback out; true if it was there.
        unsafe fn cancel_registration_release(registration: *mut CancelRegistrationRep) -> bool;
    }
}

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

/// # Safety
/// `parent` is null or alive; `name` is static and ends with a NUL.
unsafe fn cancel_source_new(parent: *const CancelTokenRep, name: *const c_char) -> *const CancelSourceRep {
    contain("cancel_source_new", ptr::null(), || {
        // SAFETY: the caller's promises.
        let (parent, name) = unsafe { (token(parent), label(name)) };
        share(CancelSourceRep(CancelSource::child_of(&parent, name)))
    })
}

/// # Safety
/// C++ holds a reference.
unsafe fn cancel_source_retain(source: *const CancelSourceRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(source) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn cancel_source_release(source: *const CancelSourceRep) {
    contain("cancel_source_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(source) };
    })
}

/// # Safety
/// `reason` is null or owned by the caller, which gives it up.
unsafe fn cancel_source_cancel(source: &CancelSourceRep, reason: *const ffi::StatusRep) -> bool {
    contain("cancel_source_cancel", false, || {
        // SAFETY: the caller's promise.
        source.0.cancel(unsafe { Error::from_raw(reason.cast()) })
    })
}

fn cancel_source_token(source: &CancelSourceRep) -> *const CancelTokenRep {
    contain("cancel_source_token", ptr::null(), || share(CancelTokenRep(source.0.token())))
}

/// # Safety
/// C++ holds a reference.
unsafe fn cancel_token_retain(token: *const CancelTokenRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(token) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn cancel_token_release(token: *const CancelTokenRep) {
    contain("cancel_token_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(token) };
    })
}

fn cancel_token_is_cancelled(token: &CancelTokenRep) -> bool {
    token.0.is_cancelled()
}

fn cancel_token_is_retired(token: &CancelTokenRep) -> bool {
    token.0.is_retired()
}

fn cancel_token_status(token: &CancelTokenRep) -> *const ffi::StatusRep {
    contain("cancel_token_status", ptr::null(), || token.0.reason().map_or(ptr::null(), Error::into_raw).cast())
}

/// # Safety
/// `handle` is null or alive.
unsafe fn cancel_token_event(handle: *const CancelTokenRep) -> *mut ffi::EventHeader {
    let event = give_event(|| {
        Ok({
            // SAFETY: the caller's promise.
            unsafe { token(handle) }.event()
        })
    });
    event.cast()
}

/// Calls or keeps the callback; the registration is C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_cancel_token_on_cancel(
    token: &CancelTokenRep,
    callback: Callback,
) -> *mut CancelRegistrationRep {
    contain("purlin_cancel_token_on_cancel", ptr::null_mut(), || {
        let registration = token.0.on_cancel(move |reason| callback.call(Err(reason.clone()), ptr::null()));
        own(CancelRegistrationRep(registration))
    })
}

/// # Safety
/// C++ gives the registration up.
unsafe fn cancel_registration_release(registration: *mut CancelRegistrationRep) -> bool {
    contain("cancel_registration_release", false, || {
        // SAFETY: the caller's promise.
        SlabBox::into_inner(unsafe { owned(registration) }).0.unregister()
    })
}
