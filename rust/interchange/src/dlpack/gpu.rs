//! Arrays in memory of NVIDIA's GPUs, and streams by which their producers and consumers are in order.
//!
//! The taker of an array says on which stream it will be read or was written, by the numbers of Python's array API. So
//! neither side waits on the host: the consumer's stream waits for the array's definition, and the definition of an
//! imported array is behind what the producer's stream has.

#![allow(unsafe_code, reason = "streams and memory are known by handle and address")]

use std::sync::Arc;

use purlin_array::{HostArray, Layout, Shape};
use purlin_async::Event;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::ForeignStream;
use purlin_device::{Buffer, MemorySpace, Mutability, RawBuffer};

use super::abi::{DLDevice, DLTensor, device, flag};
use super::import::{Owned, invalid, unsupported};

/// Where an array is made or read on a GPU.
///
/// ```
/// use purlin::interchange::DlpackStream;
///
/// // SAFETY: the legacy default stream is always there.
/// assert!(unsafe { DlpackStream::new(1) }.is_ok());
/// // SAFETY: no handle is meant.
/// let error = unsafe { DlpackStream::new(0) }.unwrap_err();
/// assert!(error.message().contains("stream 0"), "{error}");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DlpackStream(Option<ForeignStream>);

impl DlpackStream {
    /// A stream by its number in Python's array API: -1 is none, and nothing is put in order; 1 is the legacy default
    /// stream, 2 the calling thread's default stream, and any larger number the handle of a stream.
    ///
    /// # Errors
    /// `InvalidArgument`, with the number: 0, which could mean 1 or 2, or less than -1.
    ///
    /// # Safety
    /// A number above 2 is the handle of a stream that is there while the value is used.
    pub unsafe fn new(number: i64) -> StatusOr<Self> {
        match usize::try_from(number) {
            // SAFETY: the caller's promise.
            Ok(handle @ 1..) => Ok(Self(Some(unsafe { ForeignStream::new(handle) }))),
            Err(_) if number == -1 => Ok(Self(None)),
            _ => Err(Error::invalid_argument(format!(
                "DLPack has no stream {number} for CUDA: 1 is the legacy default stream, 2 that of the thread, more is a \
                 handle, and -1 is none"
            ))),
        }
    }

    /// # Errors
    /// `InvalidArgument`: it is a stream, and the memory is the host's.
    pub(super) fn check_is_none(self, space: &MemorySpace) -> Result<(), Error> {
        match self.0 {
            None => Ok(()),
            Some(stream) => Err(Error::invalid_argument(format!(
                "{stream} cannot be put in order with memory of the host, to or from {space}: streams are for memory of \
                 GPUs"
            ))),
        }
    }
}

/// The GPU whose memory that is; `None`: it is not of a GPU of CUDA's.
pub(super) fn gpu_of(space: &MemorySpace) -> Option<DLDevice> {
    let owner = space.device();
    let is_of_gpu = owner.platform_name() == "cuda" && space.kind() == "device";
    is_of_gpu.then(|| DLDevice { device_type: device::CUDA, device_id: owner.local_hardware_id() })
}

/// Where memory is that the host reaches.
pub(super) fn host_of(space: &MemorySpace) -> DLDevice {
    let is_pinned = space.device().platform_name() == "cuda" && space.kind() == "pinned_host";
    DLDevice { device_type: if is_pinned { device::CUDA_HOST } else { device::CPU }, device_id: 0 }
}

/// Has the consumer's stream come behind the definition of an array in that memory.
///
/// # Errors
/// `InvalidArgument`: the memory is not a GPU's. As [`purlin_device::Device::have_stream_wait`].
pub(super) fn come_behind(stream: DlpackStream, space: &MemorySpace, definition: &Event) -> Result<(), Error> {
    match stream.0 {
        Some(ours) if gpu_of(space).is_some() => space.device().have_stream_wait(ours, definition),
        _ => stream.check_is_none(space),
    }
}

/// An event behind what the producer's stream has.
pub(super) fn tail_of(stream: Option<DlpackStream>, space: &MemorySpace) -> Event {
    match stream.and_then(|stream| stream.0) {
        Some(stream) => space.device().foreign_event(stream.into()),
        None => Event::ready(),
    }
}

/// That the tensor is on the GPU whose memory the space is.
///
/// # Errors
/// `InvalidArgument`, naming both: it is on another. `Unimplemented`: the space is no memory of a GPU's.
pub(super) fn check_is_here(tensor: &DLTensor, space: &MemorySpace) -> Result<(), Error> {
    let theirs = tensor.device.device_id;
    match gpu_of(space) {
        None => {
            Err(unsupported(format!("its memory is of GPU {theirs} (device type 2), and {space} takes the host's")))
        }
        Some(ours) if ours.device_id != theirs => {
            Err(invalid(format!("its memory is of GPU {theirs}, and {space} is that of GPU {}", ours.device_id)))
        }
        Some(_) => Ok(()),
    }
}

/// A buffer of the tensor's memory, where it is, which is defined after `tail`.
///
/// # Errors
/// `Unimplemented`: its elements do not follow each other in any order of its dimensions, or narrow ones are padded.
/// As [`RawBuffer::import`] and [`Buffer::from_raw`].
///
/// # Safety
/// As [`import_dlpack`](super::import_dlpack); `data` is the address of the first element.
pub(super) unsafe fn in_place(
    data: *const u8,
    (shape, array): (&Shape, Option<&HostArray>),
    flags: u64,
    space: &MemorySpace,
    owned: Arc<Owned>,
    tail: &Event,
) -> StatusOr<Buffer> {
    if shape.dtype().is_sub_byte() && flags & flag::IS_SUBBYTE_TYPE_PADDED != 0 {
        return Err(unsupported(format!("narrow elements of {shape} have a byte each, and are on a GPU")));
    }
    let layout = array.map(|array| layout_of(shape, array)).transpose()?;
    let bytes = shape.on_device_size_bytes();
    let memory = if bytes == 0 {
        RawBuffer::allocate(space, 0)?
    } else {
        let release = Box::new(move || drop(owned));
        // SAFETY: the caller's promise; the struct's deleter is what `owned` calls.
        unsafe { RawBuffer::import(space, data.cast_mut(), bytes, Mutability::Immutable, Some(release)) }?
    };
    Buffer::from_raw(memory, shape, layout.as_ref(), tail)
}

/// The order of dimensions in which the elements follow each other.
///
/// # Errors
/// `Unimplemented`: there is none.
fn layout_of(shape: &Shape, array: &HostArray) -> StatusOr<Layout> {
    if array.is_row_major() {
        return Ok(Layout::row_major(shape.rank()));
    }
    let strides = array.byte_strides();
    let mut axes: Vec<usize> = (0..shape.rank()).rev().collect();
    axes.sort_by_key(|&axis| strides[axis]);
    let layout = Layout::new(&axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>())?;
    if array.is_dense(&layout) {
        return Ok(layout);
    }
    Err(unsupported(format!(
        "{shape} has strides of {strides:?} bytes: on a GPU, elements must follow each other without gaps"
    )))
}
