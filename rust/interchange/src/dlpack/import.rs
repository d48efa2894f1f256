//! DLPack's arrays as buffers.
//!
//! The owner of the struct: the caller, until this succeeds; then the users of its memory, of which the last calls the
//! deleter. The struct is armed only at the end, so that no error on the way, wherever it is reported, ends what the
//! caller still owns.

#![allow(unsafe_code, reason = "an array of another library is read by address")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use purlin_array::{HostArray, Shape};
use purlin_async::Event;
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{Aliasing, Buffer, MemorySpace, RawBuffer};

use super::abi::{DLManagedTensorVersioned, DLTensor, MAJOR, device, flag};
use super::dtype;
use super::export::memory_of_ours;
use super::gpu::{DlpackStream, check_is_here, in_place, tail_of};
use crate::MAX_RANK;
use crate::array_bytes::{into_buffer, packed_into_buffer};

/// A buffer of the array at `tensor`, in `memory_space`, and whether its memory is the array's. Row-major arrays are
/// used where they are if alignment and space allow; others are copied, maybe behind. Blocks only for copying packed
/// elements. On success the deleter is called once, when the memory is no longer read, on whatever thread is the last
/// to do so; on an error it is not called, and the struct stays the caller's.
///
/// # Errors
/// `InvalidArgument`, with the value: null, another major version, a negative or too large number, null where something
/// must be. `Unimplemented`: memory that is not the host's, elements that no buffer holds, packed elements with gaps.
/// Also as [`Buffer::from_host_array`].
///
/// Memory of a GPU (`kDLCUDA`) is used where it is, by the space `device` of that GPU on the platform `cuda`. What its
/// producer has enqueued must be over; else see [`import_dlpack_behind`]. Then `InvalidArgument` is also: the driver
/// says that the memory is not of that GPU, or it begins at no multiple of 16; and `Unimplemented`: another space, or
/// elements with gaps between them.
///
/// # Safety
/// `tensor` is null, or the caller owns a struct whose pointers are what DLPack says, and whose deleter may be called
/// on any thread, and does not unwind. Until it is called, nothing writes the elements.
///
/// # Examples
/// ```
/// use std::ptr;
///
/// use purlin::interchange::dlpack::abi::{
///     DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, MAJOR, MINOR, code, device, flag,
/// };
/// use purlin::interchange::import_dlpack;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// /// What the struct below points to.
/// struct Owner {
///     values: [f32; 3],
///     dims: [i64; 1],
/// }
///
/// unsafe extern "C" fn delete(tensor: *mut DLManagedTensorVersioned) {
///     // SAFETY: the boxes from below; the deleter is called once.
///     unsafe {
///         let tensor = Box::from_raw(tensor);
///         drop(Box::from_raw(tensor.manager_ctx.cast::<Owner>()));
///     }
/// }
///
/// let owner = Box::into_raw(Box::new(Owner { values: [1.0, 2.0, 3.0], dims: [3] }));
/// // SAFETY: the owner is there until `delete`.
/// let (data, shape) = unsafe { (&raw mut (*owner).values, &raw mut (*owner).dims) };
/// let tensor = DLManagedTensorVersioned {
///     version: DLPackVersion { major: MAJOR, minor: MINOR },
///     manager_ctx: owner.cast(),
///     deleter: Some(delete),
///     flags: flag::READ_ONLY,
///     dl_tensor: DLTensor {
///         data: data.cast(),
///         device: DLDevice { device_type: device::CPU, device_id: 0 },
///         ndim: 1,
///         dtype: DLDataType { code: code::FLOAT, bits: 32, lanes: 1 },
///         shape: shape.cast(),
///         strides: ptr::null_mut(),
///         byte_offset: 0,
///     },
/// };
/// // SAFETY: the struct is what DLPack says, it is given away here, and no code writes the values.
/// let (buffer, _aliasing) = unsafe { import_dlpack(Box::into_raw(Box::new(tensor)), &space)? };
/// assert_eq!((buffer.shape().dims(), buffer.to_vec::<f32>()?), (&[3_i64][..], vec![1.0, 2.0, 3.0]));
/// # Ok::<(), purlin::Error>(())
/// ```
pub unsafe fn import_dlpack(
    tensor: *mut DLManagedTensorVersioned,
    memory_space: &MemorySpace,
) -> StatusOr<(Buffer, Aliasing)> {
    // SAFETY: the caller's promise.
    unsafe { import(tensor, memory_space, None) }
}

/// As [`import_dlpack`], of an array that its producer may still write on that stream: the buffer is defined after all
/// that the stream has now, for which GPUs wait and no thread does. A stream is for memory of a GPU alone.
///
/// # Errors
/// As [`import_dlpack`]. `InvalidArgument`: a stream with memory of the host. The buffer fails as
/// [`Device::foreign_event`](purlin_device::Device::foreign_event).
///
/// # Safety
/// As [`import_dlpack`]; what the stream has may write the elements.
pub unsafe fn import_dlpack_behind(
    tensor: *mut DLManagedTensorVersioned,
    memory_space: &MemorySpace,
    stream: DlpackStream,
) -> StatusOr<(Buffer, Aliasing)> {
    // SAFETY: the caller's promise.
    unsafe { import(tensor, memory_space, Some(stream)) }
}

/// # Safety
/// As [`import_dlpack_behind`].
unsafe fn import(
    tensor: *mut DLManagedTensorVersioned,
    memory_space: &MemorySpace,
    stream: Option<DlpackStream>,
) -> StatusOr<(Buffer, Aliasing)> {
    // SAFETY: null, or as DLPack says; only behind another major version, everything but the deleter is something else.
    let Some(version) = (unsafe { tensor.as_ref() }).map(|tensor| tensor.version) else {
        return Err(Error::invalid_argument("the DLPack tensor is null"));
    };
    if version.major != MAJOR {
        let (major, minor) = (version.major, version.minor);
        return Err(invalid(format!("it is of version {major}.{minor}, and only {MAJOR}.x is understood")));
    }
    // SAFETY: it is of our major version.
    let managed = unsafe { &*tensor };
    // SAFETY: the caller's promise.
    let (shape, array) = unsafe { described(&managed.dl_tensor, managed.flags)? };
    let data = address(&managed.dl_tensor, array.as_ref(), &shape)?;
    let is_on_gpu = managed.dl_tensor.device.device_type == device::CUDA;
    if is_on_gpu {
        check_is_here(&managed.dl_tensor, memory_space)?;
    } else if let Some(stream) = stream {
        stream.check_is_none(memory_space)?;
    }
    let tail = tail_of(stream, memory_space);
    // SAFETY: the caller's promise.
    if let Some(buffer) = unsafe { shared_with_ours(tensor, &shape, array.as_ref(), memory_space, &tail)? } {
        return Ok((buffer, Aliasing::Aliased));
    }
    let label = Label::new(c"DLPack tensor");
    let owned = Arc::new(Owned { tensor, is_armed: AtomicBool::new(false) });
    let made = match array {
        array if is_on_gpu => {
            let described = (&shape, array.as_ref());
            // SAFETY: the caller's promise, until the deleter, which the last reference to `owned` calls.
            let made = unsafe { in_place(data, described, managed.flags, memory_space, Arc::clone(&owned), &tail) }?;
            (made, Aliasing::Aliased)
        }
        // SAFETY: the caller's promise, until the deleter, which the last reference to `owned` calls.
        Some(array) => unsafe { into_buffer(data, &array, memory_space, label, true, Arc::clone(&owned)) }?,
        // SAFETY: the caller's promise: they are as many packed bytes as the shape has.
        None => unsafe { packed_into_buffer(data, &shape, memory_space, label) }?,
    };
    // Relaxed: the thread that is last to drop a reference sees what was done before the others were dropped.
    owned.is_armed.store(true, Ordering::Relaxed);
    Ok(made)
}

/// Another buffer of the memory that one of our own structs is about, if that may no longer be written: then it needs
/// no struct to hold on to, which is ended here. So arrays that are exported and imported again, any number of times,
/// are the memory of the first. Memory that may be written is held by the struct, so that it cannot be donated.
///
/// # Errors
/// As [`Buffer::from_raw`].
///
/// # Safety
/// As [`import_dlpack`].
unsafe fn shared_with_ours(
    tensor: *mut DLManagedTensorVersioned,
    shape: &Shape,
    array: Option<&HostArray>,
    memory_space: &MemorySpace,
    tail: &Event,
) -> StatusOr<Option<Buffer>> {
    // SAFETY: the caller's promise.
    let memory = unsafe { memory_of_ours(tensor) };
    let is_constant = |memory: &&RawBuffer| !memory.is_mutable() && memory.memory_space() == *memory_space;
    let is_dense = array.is_some_and(HostArray::is_row_major) && !shape.dtype().is_sub_byte();
    let is_whole = |memory: &&RawBuffer| is_dense && memory.size_bytes() == shape.size_bytes();
    let Some(memory) = memory.filter(is_constant).filter(is_whole) else { return Ok(None) };
    let buffer = Buffer::from_raw(memory.clone(), shape, None, tail)?;
    // SAFETY: the struct is ours now, and is ended as foreign ones are: once.
    drop(Owned { tensor, is_armed: AtomicBool::new(true) });
    Ok(Some(buffer))
}

/// A struct whose deleter is called by the drop, once it is ours.
pub(super) struct Owned {
    tensor: *mut DLManagedTensorVersioned,
    is_armed: AtomicBool,
}

// SAFETY: the struct is only used to end it, on whatever thread, which import_dlpack's caller allows.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        if !*self.is_armed.get_mut() {
            return;
        }
        let ours = Self { tensor: self.tensor, is_armed: AtomicBool::new(false) };
        // As a waiter, so that deleters each of which ends the next array need a small stack only.
        Event::ready().on_ready(move |_| {
            // All of `ours` is moved here: the pointer alone is not Send.
            let Self { tensor, .. } = &ours;
            // SAFETY: it was armed, so it is ours, and still there.
            if let Some(deleter) = unsafe { (**tensor).deleter } {
                // SAFETY: DLPack's rule: once, with the struct that it came in; we are the last.
                unsafe { deleter(*tensor) };
            }
        });
    }
}

pub(super) fn invalid(why: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!("a DLPack tensor cannot be imported: {why}"))
}

pub(super) fn unsupported(why: impl std::fmt::Display) -> Error {
    Error::unimplemented(format!("a DLPack tensor cannot be imported: {why}"))
}

/// Shape and place of the elements, relative to the first; no place: packed, without gaps.
///
/// # Safety
/// `tensor.shape` and `tensor.strides` are null or point to `ndim` numbers.
pub(crate) unsafe fn described(tensor: &DLTensor, flags: u64) -> StatusOr<(Shape, Option<HostArray>)> {
    if ![device::CPU, device::CUDA, device::CUDA_HOST, device::ROCM_HOST].contains(&tensor.device.device_type) {
        let kind = tensor.device.device_type;
        return Err(unsupported(format!(
            "its memory is of device type {kind}, neither the host's (1, 3 or 11) nor that of a GPU of CUDA's (2)"
        )));
    }
    let rank = match usize::try_from(tensor.ndim) {
        Ok(rank) if rank <= MAX_RANK => rank,
        _ => return Err(invalid(format!("it has {} dimensions, and the most is {MAX_RANK}", tensor.ndim))),
    };
    let Some(dtype) = dtype(tensor.dtype) else {
        let described = tensor.dtype;
        return Err(unsupported(format!(
            "no buffer holds elements of code {}, {} bits and {} lanes",
            described.code, described.bits, described.lanes
        )));
    };
    if rank > 0 && tensor.shape.is_null() {
        return Err(invalid(format!("it has {rank} dimensions, and its shape is null")));
    }
    // SAFETY: the caller's promise.
    let dims = unsafe { numbers(tensor.shape, rank) };
    let shape = Shape::new(dtype, dims).map_err(|error| invalid(error.message()))?;
    // SAFETY: the caller's promise.
    let strides = (!tensor.strides.is_null()).then(|| unsafe { numbers(tensor.strides, rank) });
    if dtype.is_sub_byte() && flags & flag::IS_SUBBYTE_TYPE_PADDED == 0 {
        if !strides.is_none_or(|strides| is_compact(dims, strides)) {
            return Err(unsupported(format!("packed elements of {shape} with strides {strides:?}: there are gaps")));
        }
        return Ok((shape, None));
    }
    let width = dtype.host_byte_width() as i64;
    let in_bytes = |stride: &i64| {
        // Strides that lead nowhere may be anything.
        if shape.element_count() <= 1 { Some(stride.wrapping_mul(width)) } else { stride.checked_mul(width) }
    };
    let strides: Option<Vec<i64>> = match strides.map(|strides| strides.iter().map(in_bytes).collect::<Option<_>>()) {
        None => None,
        Some(Some(strides)) => Some(strides),
        Some(None) => return Err(invalid(format!("the strides of {shape} are more than any memory"))),
    };
    let array = HostArray::new(&shape, strides.as_deref()).map_err(|error| invalid(error.message()))?;
    Ok((shape, Some(array)))
}

/// # Safety
/// `count` is 0, or `first` points to as many numbers, for as long as the result is used.
unsafe fn numbers<'a>(first: *const i64, count: usize) -> &'a [i64] {
    // SAFETY: the caller's promise.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}

/// Whether elements follow each other in row-major order.
fn is_compact(dims: &[i64], strides: &[i64]) -> bool {
    let mut step = 1_i64;
    dims.contains(&0)
        || dims.iter().zip(strides).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == step;
            step = step.wrapping_mul(dim);
            fits
        })
}

/// Where the first element is.
pub(crate) fn address(tensor: &DLTensor, array: Option<&HostArray>, shape: &Shape) -> StatusOr<*const u8> {
    if shape.element_count() == 0 {
        return Ok(std::ptr::null());
    }
    if tensor.data.is_null() {
        return Err(invalid(format!("its data is null, and {shape} has bytes")));
    }
    let offset = usize::try_from(tensor.byte_offset).ok();
    let extent = array.map_or(0..shape.size_bytes() as isize, HostArray::extent);
    let lies_in_memory = |first: usize| {
        let (low, high) = (first.checked_add_signed(extent.start), first.checked_add_signed(extent.end));
        low.is_some() && high.is_some()
    };
    match offset.and_then(|offset| tensor.data.addr().checked_add(offset)).filter(|&first| lies_in_memory(first)) {
        Some(first) => Ok(tensor.data.cast::<u8>().cast_const().with_addr(first)),
        None => Err(invalid(format!(
            "{shape} at {:p} with an offset of {} bytes reaches beyond all addresses",
            tensor.data, tensor.byte_offset
        ))),
    }
}
