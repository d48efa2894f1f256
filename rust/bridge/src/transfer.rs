//! `purlin/transfer.h`: buffers that are filled piece by piece. What takes an `on_done` is a plain function.
//!
//! In the safety sections, "alive" means that C++ has the manager when the call begins; an `on_done` or a waiter may
//! give it up meanwhile, so every call keeps a reference of its own. `on_done` is null or a callback that the caller
//! gives up: it is called once, for errors before the call returns.

use std::ffi::c_void;
use std::ptr;

use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_device::buffer::OnDone;
use purlin_device::{AsyncHostToDeviceTransferManager, TransferSpec};
use purlin_ffi::handle::{self, give, give_handle, give_or, share};
use purlin_ffi::panic::{contain, guard, guard_at};

use crate::alloc_options::RawAllocOptions;
use crate::buffer::BufferRep;
use crate::buffer_create::give_buffer;
use crate::callback::{Callback, CallbackOnce};
use crate::device::MemorySpaceRep;
use crate::host_buffer::RawHostArray;
use crate::layout::RawLayout;
use crate::raw_buffer::give_event;
use crate::source_location::Place;
use crate::status::given;

/// What a `purlin::AsyncHostToDeviceTransferManager` points to.
pub struct TransferRep(AsyncHostToDeviceTransferManager);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// A `purlin::TransferSpec`. Borrowed.
    struct RawTransferSpec {
        shape: RawShape,
        layout: RawLayout,
        has_layout: bool,
    }

    /// A pair that the user has noted.
    struct RawTransferMetadata {
        key: String,
        value: String,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/alloc_options.rs.h");
        include!("purlin-bridge/src/buffer.rs.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/layout.rs.h");
        include!("purlin-bridge/src/shape.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type BufferRep = crate::buffer::BufferRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
        #[namespace = "purlin::v0::internal"]
        type RawAllocOptions = crate::alloc_options::RawAllocOptions;
        #[namespace = "purlin::v0::internal"]
        type RawLayout = crate::layout::RawLayout;
        #[namespace = "purlin::v0::internal"]
        type RawShape = crate::shape::RawShape;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type TransferRep;

        /// Unfinished buffers fail.
        unsafe fn transfer_release(transfer: *const TransferRep);
        /// How many buffers.
        fn transfer_buffer_count(transfer: &TransferRep) -> usize;
        /// The space, C++'s.
        fn transfer_memory_space(transfer: &TransferRep) -> *const MemorySpaceRep;
        /// Bytes of a buffer, or 0 and an error.
        fn transfer_buffer_size(transfer: &TransferRep, index: usize, error: &mut *const StatusRep) -> usize;
        /// A buffer, C++'s, or null and an error.
        fn transfer_retrieve(transfer: &TransferRep, index: usize, error: &mut *const StatusRep) -> *const BufferRep;
        /// A buffer fails. Null, or an error, C++'s.
        unsafe fn transfer_set_error(
            transfer: *const TransferRep,
            index: usize,
            error: *const StatusRep,
        ) -> *const StatusRep;
        /// The event, with one reference, C++'s.
        fn transfer_ready_event(transfer: &TransferRep) -> *mut EventHeader;
        /// Notes a pair.
        fn transfer_add_metadata(transfer: &TransferRep, key: &[u8], value: &[u8]);
        /// All pairs.
        fn transfer_metadata(transfer: &TransferRep) -> Vec<RawTransferMetadata>;
        /// A manager, C++'s, or null and an error.
        unsafe fn transfer_create(
            specs: &[RawTransferSpec],
            space: &MemorySpaceRep,
            options: &RawAllocOptions,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const TransferRep;
    }
}

impl ffi::RawTransferSpec {
    /// # Errors
    /// `InvalidArgument`: no shape, or no layout.
    ///
    /// # Safety
    /// The structs are what they say, the layout's where there is one.
    unsafe fn get(&self) -> StatusOr<TransferSpec> {
        let layout = if self.has_layout { &raw const self.layout } else { std::ptr::null() };
        // SAFETY: the caller's promises.
        unsafe { Ok(TransferSpec { shape: self.shape.get()?, layout: RawLayout::get(layout)? }) }
    }
}

/// # Safety
/// The structs are what they say.
unsafe fn transfer_create(
    specs: &[ffi::RawTransferSpec],
    space: &MemorySpaceRep,
    options: &RawAllocOptions,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const TransferRep {
    let make = || {
        // SAFETY: the caller's promises.
        let options = unsafe { options.get()? };
        // SAFETY: the caller's promise.
        let specs = specs.iter().map(|spec| unsafe { spec.get() }).collect::<StatusOr<Vec<_>>>()?;
        AsyncHostToDeviceTransferManager::new(&specs, &space.0, &options)
    };
    // SAFETY: the caller's promise.
    let made = unsafe { guard_at(location.0, make) };
    give_handle(made.map(TransferRep), error)
}

/// # Safety
/// C++ gives the manager up.
unsafe fn transfer_release(transfer: *const TransferRep) {
    contain("transfer_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(transfer) };
    })
}

fn transfer_buffer_count(transfer: &TransferRep) -> usize {
    transfer.0.buffer_count()
}

fn transfer_memory_space(transfer: &TransferRep) -> *const MemorySpaceRep {
    contain("transfer_memory_space", ptr::null(), || share(MemorySpaceRep(transfer.0.memory_space())))
}

fn transfer_buffer_size(transfer: &TransferRep, index: usize, error: &mut *const ffi::StatusRep) -> usize {
    give_or(guard(|| transfer.0.buffer_size(index)), 0, error)
}

fn transfer_retrieve(transfer: &TransferRep, index: usize, error: &mut *const ffi::StatusRep) -> *const BufferRep {
    give_buffer(guard(|| transfer.0.retrieve_buffer(index)), error)
}

/// Calls `f` on a manager that is kept meanwhile. Null, or an error, C++'s.
///
/// # Safety
/// `transfer` is alive; `on_done` is null or a callback that the caller gives up.
unsafe fn transferring(
    transfer: *const TransferRep,
    on_done: *const Callback,
    f: impl FnOnce(&AsyncHostToDeviceTransferManager, Option<OnDone>) -> Result<(), Error>,
) -> *const StatusRep {
    // SAFETY: the caller's promises.
    let (transfer, told) = unsafe { (handle::kept(transfer), CallbackOnce::take(on_done)) };
    give(guard(|| f(&transfer.0, told.map(CallbackOnce::into_on_done))))
}

/// A whole array. Null, or an error, C++'s.
///
/// # Safety
/// `transfer` is alive, `array` what its struct says; until it is over, its memory is what
/// [`AsyncHostToDeviceTransferManager::transfer_array`] asks for; `on_done`: see the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_transfer_array(
    transfer: *const TransferRep,
    index: usize,
    array: &RawHostArray,
    on_done: *const Callback,
) -> *const StatusRep {
    let start = |transfer: &AsyncHostToDeviceTransferManager, mut on_done: Option<OnDone>| {
        // SAFETY: the caller's promise.
        let checked = unsafe { array.get() };
        let host = checked.inspect_err(|error| {
            if let Some(on_done) = on_done.take() {
                on_done(Err(error.clone()));
            }
        })?;
        // SAFETY: the caller's promise.
        unsafe { transfer.transfer_array(index, array.data(), &host, on_done) }
    };
    // SAFETY: the caller's promises.
    unsafe { transferring(transfer, on_done, start) }
}

/// All bytes. Null, or an error, C++'s.
///
/// # Safety
/// `transfer` is alive; until it is over, `data` is what
/// [`AsyncHostToDeviceTransferManager::transfer_raw_data_to_buffer`] asks for; `on_done`: see the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_transfer_whole(
    transfer: *const TransferRep,
    index: usize,
    data: *const c_void,
    size_bytes: usize,
    on_done: *const Callback,
) -> *const StatusRep {
    // SAFETY: the caller's promises.
    unsafe {
        transferring(transfer, on_done, |transfer, on_done| {
            transfer.transfer_raw_data_to_buffer(index, data.cast(), size_bytes, on_done)
        })
    }
}

/// A piece. Null, or an error, C++'s.
///
/// # Safety
/// `transfer` is alive; until it is over, `data` is what
/// [`AsyncHostToDeviceTransferManager::transfer_raw_data_to_sub_buffer`] asks for; `on_done`: see the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_transfer_piece(
    transfer: *const TransferRep,
    index: usize,
    data: *const c_void,
    offset_bytes: usize,
    size_bytes: usize,
    is_last: bool,
    on_done: *const Callback,
) -> *const StatusRep {
    // SAFETY: the caller's promises.
    unsafe {
        transferring(transfer, on_done, |transfer, on_done| {
            transfer.transfer_raw_data_to_sub_buffer(index, data.cast(), offset_bytes, size_bytes, is_last, on_done)
        })
    }
}

/// # Safety
/// `transfer` is alive; `error` is null or owned by the caller, which gives it up.
unsafe fn transfer_set_error(
    transfer: *const TransferRep,
    index: usize,
    error: *const ffi::StatusRep,
) -> *const ffi::StatusRep {
    // SAFETY: the caller's promises.
    let (transfer, error) = unsafe { (handle::kept(transfer), given(error, "SetBufferError")) };
    give(guard(|| transfer.0.set_buffer_error(index, error)))
}

fn transfer_add_metadata(transfer: &TransferRep, key: &[u8], value: &[u8]) {
    contain("transfer_add_metadata", (), || {
        transfer.0.add_transfer_metadata(String::from_utf8_lossy(key), String::from_utf8_lossy(value));
    })
}

fn transfer_metadata(transfer: &TransferRep) -> Vec<ffi::RawTransferMetadata> {
    contain("transfer_metadata", Vec::new(), || {
        let pairs = transfer.0.transfer_metadata().into_iter();
        pairs.map(|(key, value)| ffi::RawTransferMetadata { key, value }).collect()
    })
}

fn transfer_ready_event(transfer: &TransferRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(transfer.0.ready_event()))
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;
    use std::sync::{Arc, Mutex};

    use purlin_array::{DType, Shape};
    use purlin_device::AllocOptions;

    use super::*;
    use crate::raw_buffer::tests::memory_of_device;

    #[test]
    fn a_panic_on_the_way_is_an_error_and_told_once() {
        let (bytes, told) = ([0_u8; 8], Arc::new(Mutex::new(Vec::new())));
        let spec = TransferSpec { shape: Shape::new(DType::U8, &[8]).unwrap(), layout: None };
        let made =
            AsyncHostToDeviceTransferManager::new(&[spec], &memory_of_device(1), &AllocOptions::default()).unwrap();
        let transfer = share(TransferRep(made));
        let on_done = ManuallyDrop::new(Callback::collecting(&told));
        // SAFETY: the handle is alive, the bytes outlive it, the callback is given up, and the error is ours.
        let error = unsafe {
            let given = &raw const *on_done;
            Error::from_raw(purlin_transfer_piece(transfer, 0, bytes.as_ptr().cast(), 0, 8, true, given))
        };
        let error = error.unwrap();
        assert!(error.message().starts_with("a call into Purlin panicked: cannot do the copy "), "{error}");
        assert_eq!(told.lock().unwrap().len(), 1);
        // SAFETY: the handle is given up.
        unsafe { transfer_release(transfer) };
        assert_eq!(Arc::strong_count(&told), 1);
    }
}
