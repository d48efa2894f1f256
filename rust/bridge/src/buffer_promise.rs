//! `purlin/buffer_promise.h`: arrays that are provided later.
//!
//! In the safety sections, "alive" means that C++ holds the object for the length of the call, or until a waiter that
//! the call runs gives it up: nothing of it is touched after the first waiter may have run.

use purlin_base::Error;
use purlin_device::{Buffer, BufferPromise};
use purlin_ffi::handle::{give, own, owned};
use purlin_ffi::panic::{contain, guard, guard_at};

use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::layout::RawLayout;
use crate::shape::RawShape;
use crate::source_location::Place;
use crate::status::given;

/// What a `purlin::BufferPromise` points to: C++'s alone. Empty once the promise has been kept.
pub struct BufferPromiseRep(Option<BufferPromise>);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/buffer.rs.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/layout.rs.h");
        include!("purlin-bridge/src/shape.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
        #[namespace = "purlin::v0::internal"]
        type BufferRep = crate::buffer::BufferRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0::internal"]
        type RawLayout = crate::layout::RawLayout;
        #[namespace = "purlin::v0::internal"]
        type RawShape = crate::shape::RawShape;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type BufferPromiseRep;

        /// The buffer has failed. Null, or an error, C++'s.
        unsafe fn buffer_promise_fail(promise: *mut BufferPromiseRep, error: *const StatusRep) -> *const StatusRep;
        /// Gives the promise up; the buffer fails, if it was not kept.
        unsafe fn buffer_promise_release(promise: *mut BufferPromiseRep);
        /// A buffer without memory, and the promise to provide it, both C++'s. Null, or an error, C++'s; then nothing
        /// is written.
        unsafe fn buffer_create_channel(
            shape: &RawShape,
            layout: *const RawLayout,
            space: &MemorySpaceRep,
            location: &SourceLocation,
            buffer: &mut *const BufferRep,
            promise: &mut *mut BufferPromiseRep,
        ) -> *const StatusRep;
        /// The buffer gets `source`. Null, or an error, C++'s; then the promise stays.
        unsafe fn buffer_promise_fulfil(
            promise: *mut BufferPromiseRep,
            source: *const BufferRep,
            location: &SourceLocation,
        ) -> *const StatusRep;
    }
}

impl BufferPromiseRep {
    /// # Errors
    /// `FailedPrecondition`: there is none any more.
    ///
    /// # Safety
    /// `promise` is null or alive.
    unsafe fn take(promise: *mut Self) -> Result<BufferPromise, Error> {
        // SAFETY: the caller's promise.
        let left = unsafe { promise.as_mut() }.and_then(|rep| rep.0.take());
        left.ok_or_else(|| Error::failed_precondition("this promise of a buffer has been kept already, or moved from"))
    }
}

/// # Safety
/// The structs are what they say; the outputs are the caller's.
unsafe fn buffer_create_channel(
    shape: &RawShape,
    layout: *const RawLayout,
    space: &MemorySpaceRep,
    location: &Place,
    buffer: &mut *const BufferRep,
    promise: &mut *mut BufferPromiseRep,
) -> *const ffi::StatusRep {
    let make = || {
        // SAFETY: the caller's promises.
        let (shape, layout) = unsafe { (shape.get()?, RawLayout::get(layout)?) };
        let (made, owed) = Buffer::channel(&shape, layout.as_ref(), &space.0)?;
        *buffer = BufferRep::of(made);
        *promise = own(BufferPromiseRep(Some(owed)));
        Ok(())
    };
    // SAFETY: the caller's promise.
    give(unsafe { guard_at(location.0, make) })
}

/// # Safety
/// `promise` is null or alive; `source` is alive; `location` is what its struct says.
unsafe fn buffer_promise_fulfil(
    promise: *mut BufferPromiseRep,
    source: *const BufferRep,
    location: &Place,
) -> *const ffi::StatusRep {
    let fulfil = || {
        // SAFETY: the caller's promises. A reference of our own, because a waiter may give C++'s up.
        let (owed, source) = unsafe { (BufferPromiseRep::take(promise)?, Buffer::clone(&(*source).get())) };
        owed.fulfil(&source).map_err(|(error, owed)| {
            // SAFETY: alive: it was taken from, and a refusal runs no waiter.
            unsafe { (*promise).0 = Some(owed) };
            error
        })
    };
    // SAFETY: the caller's promise.
    give(unsafe { guard_at(location.0, fulfil) })
}

/// # Safety
/// `promise` is null or alive; `error` is null or owned by the caller, which gives it up.
unsafe fn buffer_promise_fail(promise: *mut BufferPromiseRep, error: *const ffi::StatusRep) -> *const ffi::StatusRep {
    give(guard(|| {
        // SAFETY: the caller's promises.
        let (error, owed) = unsafe { (given(error, "BufferPromise::Fail"), BufferPromiseRep::take(promise)) };
        owed?.fail(error);
        Ok(())
    }))
}

/// # Safety
/// The caller owns the promise.
unsafe fn buffer_promise_release(promise: *mut BufferPromiseRep) {
    contain("buffer_promise_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(promise) });
    })
}
