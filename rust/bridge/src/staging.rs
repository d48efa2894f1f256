//! `purlin/staging.h`: bytes through host memory that is lent piece by piece. What takes closures is a plain function.
//!
//! In the safety sections, "alive" means that C++ has the object when the call begins; what the call runs may give it
//! up meanwhile, so calls that run callbacks or waiters keep a reference of their own. `dependencies` are as in
//! `raw_buffer`.

use std::ptr::{self, NonNull};

use purlin_async::Event;
use purlin_async::event::abi::EventHeader;
use purlin_base::slab::SlabBox;
use purlin_base::status::{StatusRep, called_from};
use purlin_base::sync::PinnedArc;
use purlin_base::{Error, StatusOr};
use purlin_device::{StagingCopier, StagingLease, StagingOptions, StagingPool, StagingSink};
use purlin_ffi::handle::{self, give, give_handle, give_or, give_owned, own, owned, share};
use purlin_ffi::panic::{contain, guard, guard_at};
use purlin_ffi::struct_size;
use purlin_ffi::words::{Location, borrowed};

use crate::buffer::BufferRep;
use crate::callback::Callback;
use crate::cancel::{CancelTokenRep, label, token};
use crate::device::MemorySpaceRep;
use crate::piece_callback::PieceCallback;
use crate::raw_buffer::{RawBufferRep, give_event};
use crate::source_location::Place;
use crate::status::given;

/// What a `purlin::StagingPool` points to.
pub struct StagingPoolRep(StagingPool);
/// What a `purlin::StagingLease` points to: C++'s alone.
pub struct StagingLeaseRep(StagingLease);
/// What a `purlin::StagingCopier` points to.
pub struct StagingCopierRep(StagingCopier);
/// What a `purlin::StagingSink` points to.
pub struct StagingSinkRep(StagingSink);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// A `purlin::StagingOptions`. Borrowed.
    struct RawStagingOptions {
        /// The caller's, unchecked.
        struct_size: usize,
        lease_bytes: usize,
        lease_count: usize,
        /// Static, ends with a NUL.
        label: *const c_char,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/buffer.rs.h");
        include!("purlin-bridge/src/cancel.rs.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/raw_buffer.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type BufferRep = crate::buffer::BufferRep;
        #[namespace = "purlin::v0::internal"]
        type CancelTokenRep = crate::cancel::CancelTokenRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0::internal"]
        type RawBufferRep = crate::raw_buffer::RawBufferRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type StagingPoolRep;
        #[namespace = "purlin::v0::internal"]
        type StagingLeaseRep;
        #[namespace = "purlin::v0::internal"]
        type StagingCopierRep;
        #[namespace = "purlin::v0::internal"]
        type StagingSinkRep;

        /// One more reference.
        unsafe fn staging_pool_retain(pool: *const StagingPoolRep);
        /// One reference less.
        unsafe fn staging_pool_release(pool: *const StagingPoolRep);
        /// Bytes of each lease.
        fn staging_pool_lease_bytes(pool: &StagingPoolRep) -> usize;
        /// All leases.
        fn staging_pool_lease_count(pool: &StagingPoolRep) -> usize;
        /// Leases that are free.
        fn staging_pool_free_count(pool: &StagingPoolRep) -> usize;
        /// The space, C++'s.
        fn staging_pool_memory_space(pool: &StagingPoolRep) -> *const MemorySpaceRep;
        /// A lease, C++'s, without waiting; or null and an error.
        fn staging_pool_try_acquire(pool: &StagingPoolRep, error: &mut *const StatusRep) -> *mut StagingLeaseRep;
        /// A lease, C++'s, or null and an error. Blocks.
        unsafe fn staging_pool_acquire(
            pool: &StagingPoolRep,
            cancel: *const CancelTokenRep,
            error: &mut *const StatusRep,
        ) -> *mut StagingLeaseRep;
        /// The first byte; null without a lease. Writes how many bytes there are, if that is asked for.
        unsafe fn staging_lease_range(lease: *const StagingLeaseRep, size_bytes: *mut usize) -> *mut u8;
        /// The memory, C++'s.
        fn staging_lease_memory(lease: &StagingLeaseRep) -> *const RawBufferRep;
        /// Gives the memory back.
        unsafe fn staging_lease_release(lease: *mut StagingLeaseRep);
        /// A copier, C++'s.
        fn staging_copier_new(pool: &StagingPoolRep) -> *const StagingCopierRep;
        /// Cancels what waits for a lease, also where a call of its own runs what gives it up.
        unsafe fn staging_copier_release(copier: *const StagingCopierRep);
        /// Fails what is not complete.
        unsafe fn staging_sink_release(sink: *const StagingSinkRep);
        /// Copies a piece. Null, or an error, C++'s. The lease, if there is one, is taken over.
        unsafe fn staging_sink_put(
            sink: *const StagingSinkRep,
            offset_bytes: usize,
            size_bytes: usize,
            lease: *mut StagingLeaseRep,
        ) -> *const StatusRep;
        /// The sink fails. Null, or an error, C++'s.
        unsafe fn staging_sink_poison(sink: *const StagingSinkRep, error: *const StatusRep) -> *const StatusRep;
        /// Bytes that have a piece.
        fn staging_sink_begun_bytes(sink: &StagingSinkRep) -> usize;
        /// A pool, C++'s, or null and an error.
        unsafe fn staging_pool_create(
            space: &MemorySpaceRep,
            options: &RawStagingOptions,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const StagingPoolRep;
        /// A sink, C++'s. Writes its event, with one reference, C++'s.
        unsafe fn staging_sink_new(
            destination: &RawBufferRep,
            location: &SourceLocation,
            event: &mut *mut EventHeader,
        ) -> *const StagingSinkRep;
    }
}

/// The first version of `purlin::StagingOptions`.
const SMALLEST_OPTIONS_BYTES: usize = 32;

impl ffi::RawStagingOptions {
    /// # Errors
    /// `InvalidArgument`: a size that no version has.
    ///
    /// # Safety
    /// The fields are what the struct says.
    unsafe fn get(&self) -> StatusOr<StagingOptions> {
        struct_size::check("StagingOptions", self.struct_size, SMALLEST_OPTIONS_BYTES)?;
        // SAFETY: the caller's promise.
        let label = unsafe { label(self.label) };
        Ok(StagingOptions { lease_bytes: self.lease_bytes, lease_count: self.lease_count, label })
    }
}

/// A lease, C++'s.
pub(crate) fn give_lease(lease: StagingLease) -> *mut StagingLeaseRep {
    own(StagingLeaseRep(lease))
}

/// A reference of Rust's own to what C++ has.
///
/// # Errors
/// `FailedPrecondition`: `handle` is null.
///
/// # Safety
/// `handle` is null or alive.
unsafe fn kept<T>(handle: *const T, what: &str) -> StatusOr<PinnedArc<T>> {
    if handle.is_null() {
        return Err(Error::failed_precondition(format!("this {what} was moved from")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { handle::kept(handle) })
}

/// # Safety
/// The structs are what they say.
unsafe fn staging_pool_create(
    space: &MemorySpaceRep,
    options: &ffi::RawStagingOptions,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const StagingPoolRep {
    // SAFETY: the caller's promises.
    let made = unsafe { guard_at(location.0, || StagingPool::new(&space.0, &options.get()?)) };
    give_handle(made.map(StagingPoolRep), error)
}

/// # Safety
/// `pool` is alive.
unsafe fn staging_pool_retain(pool: *const StagingPoolRep) {
    // SAFETY: alive.
    unsafe { handle::retain(pool) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn staging_pool_release(pool: *const StagingPoolRep) {
    contain("staging_pool_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(pool) };
    })
}

fn staging_pool_lease_bytes(pool: &StagingPoolRep) -> usize {
    pool.0.lease_bytes()
}

fn staging_pool_lease_count(pool: &StagingPoolRep) -> usize {
    pool.0.lease_count()
}

fn staging_pool_free_count(pool: &StagingPoolRep) -> usize {
    contain("staging_pool_free_count", 0, || pool.0.free_count())
}

fn staging_pool_memory_space(pool: &StagingPoolRep) -> *const MemorySpaceRep {
    contain("staging_pool_memory_space", ptr::null(), || share(MemorySpaceRep(pool.0.memory_space())))
}

fn staging_pool_try_acquire(pool: &StagingPoolRep, error: &mut *const ffi::StatusRep) -> *mut StagingLeaseRep {
    give_owned(guard(|| pool.0.try_acquire()).map(StagingLeaseRep), error)
}

/// # Safety
/// `cancel` is null or alive.
unsafe fn staging_pool_acquire(
    pool: &StagingPoolRep,
    cancel: *const CancelTokenRep,
    error: &mut *const ffi::StatusRep,
) -> *mut StagingLeaseRep {
    // SAFETY: the caller's promise.
    let cancel = unsafe { token(cancel) };
    give_owned(guard(|| pool.0.acquire(&cancel)).map(StagingLeaseRep), error)
}

/// Calls `callback`, once, with how the acquisition ended; the lease is its value.
///
/// # Safety
/// `pool` is alive; `cancel` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_staging_pool_acquire_async(
    pool: *const StagingPoolRep,
    cancel: *const CancelTokenRep,
    callback: Callback,
) {
    contain("purlin_staging_pool_acquire_async", (), || {
        // SAFETY: alive, and the caller's promise.
        let (pool, cancel) = unsafe { (handle::kept(pool), token(cancel)) };
        pool.0.acquire_then(&cancel, move |lease| match lease {
            Ok(lease) => callback.call(Ok(()), give_lease(lease).cast()),
            Err(error) => callback.call(Err(error), ptr::null()),
        });
    })
}

/// # Safety
/// `lease` is null or alive for the length of the call; `size_bytes` is null or the caller's.
unsafe fn staging_lease_range(lease: *const StagingLeaseRep, size_bytes: *mut usize) -> *mut u8 {
    contain("staging_lease_range", ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let memory = unsafe { lease.as_ref() }.map(|lease| lease.0.memory());
        // SAFETY: the caller's promise.
        if let Some(size_bytes) = unsafe { size_bytes.as_mut() } {
            *size_bytes = memory.map_or(0, |memory| memory.size_bytes());
        }
        memory.and_then(|memory| memory.host_pointer()).map_or(ptr::null_mut(), NonNull::as_ptr)
    })
}

fn staging_lease_memory(lease: &StagingLeaseRep) -> *const RawBufferRep {
    contain("staging_lease_memory", ptr::null(), || share(RawBufferRep(lease.0.memory().clone())))
}

/// # Safety
/// C++ gives the lease up.
unsafe fn staging_lease_release(lease: *mut StagingLeaseRep) {
    contain("staging_lease_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(lease) });
    })
}

fn staging_copier_new(pool: &StagingPoolRep) -> *const StagingCopierRep {
    contain("staging_copier_new", ptr::null(), || share(StagingCopierRep(StagingCopier::new(&pool.0))))
}

/// # Safety
/// C++ gives the copier up.
unsafe fn staging_copier_release(copier: *const StagingCopierRep) {
    contain("staging_copier_release", (), || {
        // SAFETY: the caller's promise; the reference is the one that is given up.
        unsafe { handle::taken(copier) }.0.close();
    })
}

/// The event, with one reference, C++'s. `on_piece` is taken over, and called with every error but its own absence.
///
/// # Safety
/// `copier` is null or alive; `dependencies`; `location` is what its struct says. From when they have happened until
/// the event is terminal, nothing writes the bytes of `source`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_staging_copier_read(
    copier: *const StagingCopierRep,
    source: &RawBufferRep,
    dependencies: *const *mut EventHeader,
    count: usize,
    mut on_piece: PieceCallback,
    location: Location,
) -> *mut EventHeader {
    let read = || {
        on_piece.check()?;
        // SAFETY: the caller's promises.
        let (copier, dependencies) = unsafe { (kept(copier, "StagingCopier"), borrowed(dependencies, count)) };
        let copier = copier.inspect_err(|error| {
            // The error is the one that is reported, whatever the callback answers.
            let _ = on_piece.tell(Err(error.clone()));
        })?;
        // SAFETY: the caller's promise.
        Ok(unsafe { copier.0.read_fallibly(&source.0, dependencies, move |piece| on_piece.tell(piece)) })
    };
    // SAFETY: the caller's promise.
    give_event(|| called_from(unsafe { location.get() }, read)).cast()
}

/// The event, with one reference, C++'s; or null and an error, and `on_piece`, which is taken over, is destroyed
/// uncalled.
///
/// # Safety
/// `copier` is null or alive; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_staging_copier_read_buffer(
    copier: *const StagingCopierRep,
    buffer: &BufferRep,
    mut on_piece: PieceCallback,
    location: Location,
    error: &mut *const StatusRep,
) -> *mut EventHeader {
    let read = || {
        on_piece.check()?;
        // SAFETY: the caller's promise.
        let copier = unsafe { kept(copier, "StagingCopier")? };
        copier.0.read_buffer_fallibly(&buffer.get(), move |piece| on_piece.tell(piece)).map(Event::into_raw)
    };
    // SAFETY: the caller's promise.
    give_or(unsafe { guard_at(location, read) }, ptr::null_mut(), error)
}

/// # Safety
/// `location` is what its struct says.
unsafe fn staging_sink_new(
    destination: &RawBufferRep,
    location: &Place,
    event: &mut *mut ffi::EventHeader,
) -> *const StagingSinkRep {
    contain("staging_sink_new", ptr::null(), || {
        // SAFETY: the caller's promise.
        let (sink, whole) = called_from(unsafe { location.0.get() }, || StagingSink::new(&destination.0));
        *event = whole.into_raw().cast();
        share(StagingSinkRep(sink))
    })
}

/// # Safety
/// C++ gives the sink up.
unsafe fn staging_sink_release(sink: *const StagingSinkRep) {
    contain("staging_sink_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(sink) };
    })
}

/// # Safety
/// `sink` is null or alive; `lease` is null or C++ gives it up.
unsafe fn staging_sink_put(
    sink: *const StagingSinkRep,
    offset_bytes: usize,
    size_bytes: usize,
    lease: *mut StagingLeaseRep,
) -> *const ffi::StatusRep {
    // SAFETY: C++ gives it up.
    let lease = (!lease.is_null()).then(|| SlabBox::into_inner(unsafe { owned(lease) }).0);
    give(guard(|| {
        // SAFETY: the caller's promise.
        let sink = unsafe { kept(sink, "StagingSink") }?;
        let lease = lease.ok_or_else(|| {
            Error::invalid_argument(format!(
                "the lease of a piece of {size_bytes} bytes at {offset_bytes} has no memory: it was released or moved from"
            ))
        })?;
        sink.0.put(offset_bytes, size_bytes, lease)
    }))
}

/// # Safety
/// `sink` is null or alive; `error` is null or owned by the caller, which gives it up.
unsafe fn staging_sink_poison(sink: *const StagingSinkRep, error: *const ffi::StatusRep) -> *const ffi::StatusRep {
    // SAFETY: the caller's promises.
    let (sink, error) = unsafe { (kept(sink, "StagingSink"), given(error, "StagingSink::poison")) };
    give(guard(|| {
        sink?.0.poison(&error);
        Ok(())
    }))
}

fn staging_sink_begun_bytes(sink: &StagingSinkRep) -> usize {
    contain("staging_sink_begun_bytes", 0, || sink.0.begun_bytes())
}
