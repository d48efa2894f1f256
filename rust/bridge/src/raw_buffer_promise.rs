//! `purlin/raw_buffer_promise.h`: buffers whose memory is provided later.
//!
//! In the safety sections, "alive" means that C++ holds the object for the length of the call, or until a waiter that
//! the call runs gives it up: nothing of it is touched after the first waiter may have run.

use purlin_base::Error;
use purlin_device::{RawBuffer, RawBufferPromise};
use purlin_ffi::handle::{give, own, owned, share};
use purlin_ffi::panic::{contain, guard, guard_at};

use crate::alloc_options::{RawAllocOptions, oom_policy};
use crate::device::MemorySpaceRep;
use crate::raw_buffer::RawBufferRep;
use crate::source_location::Place;
use crate::status::given;

/// What a `purlin::RawBufferPromise` points to: C++'s alone. Empty once the promise has been kept.
pub struct RawBufferPromiseRep(Option<RawBufferPromise>);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/alloc_options.rs.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/raw_buffer.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0::internal"]
        type RawBufferRep = crate::raw_buffer::RawBufferRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
        #[namespace = "purlin::v0::internal"]
        type RawAllocOptions = crate::alloc_options::RawAllocOptions;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type RawBufferPromiseRep;

        /// The buffer gets the memory of `memory`. Null, or an error, C++'s; then the promise stays.
        unsafe fn raw_buffer_promise_fulfil(
            promise: *mut RawBufferPromiseRep,
            memory: *const RawBufferRep,
        ) -> *const StatusRep;
        /// The buffer gets new memory. Null, or an error, C++'s.
        unsafe fn raw_buffer_promise_allocate(promise: *mut RawBufferPromiseRep, oom: i32) -> *const StatusRep;
        /// The buffer has failed. Null, or an error, C++'s.
        unsafe fn raw_buffer_promise_fail(
            promise: *mut RawBufferPromiseRep,
            error: *const StatusRep,
        ) -> *const StatusRep;
        /// Gives the promise up; the buffer fails, if it was not kept.
        unsafe fn raw_buffer_promise_release(promise: *mut RawBufferPromiseRep);
        /// A buffer without memory, and the promise to provide it, both C++'s. Null, or an error, C++'s; then nothing
        /// is written.
        unsafe fn raw_buffer_create_channel(
            space: &MemorySpaceRep,
            size_bytes: usize,
            options: &RawAllocOptions,
            location: &SourceLocation,
            buffer: &mut *const RawBufferRep,
            promise: &mut *mut RawBufferPromiseRep,
        ) -> *const StatusRep;
    }
}

impl RawBufferPromiseRep {
    /// # Errors
    /// `FailedPrecondition`: there is none any more.
    ///
    /// # Safety
    /// `promise` is null or alive.
    unsafe fn take(promise: *mut Self) -> Result<RawBufferPromise, Error> {
        // SAFETY: the caller's promise.
        let left = unsafe { promise.as_mut() }.and_then(|rep| rep.0.take());
        left.ok_or_else(|| Error::failed_precondition("this promise of memory has been kept already, or moved from"))
    }
}

/// # Safety
/// `space` is alive; `options` and `location` are what their structs say; the outputs are the caller's.
unsafe fn raw_buffer_create_channel(
    space: &MemorySpaceRep,
    size_bytes: usize,
    options: &RawAllocOptions,
    location: &Place,
    buffer: &mut *const RawBufferRep,
    promise: &mut *mut RawBufferPromiseRep,
) -> *const ffi::StatusRep {
    let make = || {
        // SAFETY: the caller's promise.
        let (made, owed) = RawBuffer::channel(&space.0, size_bytes, &unsafe { options.get()? });
        *buffer = share(RawBufferRep(made));
        *promise = own(RawBufferPromiseRep(Some(owed)));
        Ok(())
    };
    // SAFETY: the caller's promise.
    give(unsafe { guard_at(location.0, make) })
}

/// # Safety
/// `promise` is null or alive; `memory` is alive.
unsafe fn raw_buffer_promise_fulfil(
    promise: *mut RawBufferPromiseRep,
    memory: *const RawBufferRep,
) -> *const ffi::StatusRep {
    give(guard(|| {
        // SAFETY: the caller's promises.
        let (owed, memory) = unsafe { (RawBufferPromiseRep::take(promise)?, (*memory).0.clone()) };
        owed.fulfil(&memory).map_err(|(error, owed)| {
            // SAFETY: alive: it was taken from, and a refusal runs no waiter.
            unsafe { (*promise).0 = Some(owed) };
            error
        })
    }))
}

/// # Safety
/// `promise` is null or alive.
unsafe fn raw_buffer_promise_allocate(promise: *mut RawBufferPromiseRep, oom: i32) -> *const ffi::StatusRep {
    give(guard(|| {
        let oom = oom_policy(oom)?;
        // SAFETY: the caller's promise.
        unsafe { RawBufferPromiseRep::take(promise)? }.allocate(oom)
    }))
}

/// # Safety
/// `promise` is null or alive; `error` is null or owned by the caller, which gives it up.
unsafe fn raw_buffer_promise_fail(
    promise: *mut RawBufferPromiseRep,
    error: *const ffi::StatusRep,
) -> *const ffi::StatusRep {
    give(guard(|| {
        // SAFETY: the caller's promises.
        let (error, owed) = unsafe { (given(error, "RawBufferPromise::Fail"), RawBufferPromiseRep::take(promise)) };
        owed?.fail(error);
        Ok(())
    }))
}

/// # Safety
/// The caller owns the promise.
unsafe fn raw_buffer_promise_release(promise: *mut RawBufferPromiseRep) {
    contain("raw_buffer_promise_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(promise) });
    })
}
