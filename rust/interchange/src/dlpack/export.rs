//! Buffers as DLPack's.
//!
//! What is given away is one allocation: the struct, the numbers that it points to, and an external reference. The
//! deleter drops it all.

#![allow(unsafe_code, reason = "the struct ends itself through a pointer")]

use std::ffi::c_void;
use std::ptr::NonNull;

use purlin_async::Event;
use purlin_base::{Error, StatusOr};
use purlin_device::{Buffer, ExternalReference, MemorySpace, RawBuffer};

use super::abi::{DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, MAJOR, MINOR, flag};
use super::described;
use super::gpu::{DlpackStream, come_behind, gpu_of, host_of};

/// A struct that is owned: its drop calls the deleter.
///
/// ```
/// use purlin::Buffer;
/// use purlin::interchange::{DlpackTensor, import_dlpack};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let tensor = DlpackTensor::new(&Buffer::from_slice(&[1_i32, 2], &[2], &space)?)?;
/// // SAFETY: the struct is ours to give away, and no code writes the elements.
/// let (buffer, _) = unsafe { import_dlpack(tensor.into_raw(), &space)? };
/// assert_eq!(buffer.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Debug)]
pub struct DlpackTensor(NonNull<DLManagedTensorVersioned>);

// SAFETY: the struct is Purlin's own, whose deleter drops what may be dropped anywhere; nothing in it changes.
unsafe impl Send for DlpackTensor {}
// SAFETY: as above.
unsafe impl Sync for DlpackTensor {}

/// What the pointers of a struct point to.
struct Exported {
    managed: DLManagedTensorVersioned,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
    reference: ExternalReference,
}

impl DlpackTensor {
    /// The array of `buffer`, where it is, for any reader: it stays, also when the buffer is deleted, and is not
    /// donated, until the deleter is called. It is marked as read-only. Never blocks, except while the buffer is being
    /// donated.
    ///
    /// On the platform `cuda`, memory of a GPU is `kDLCUDA` with the driver's number of the GPU, and the deleter is
    /// called when the GPU has left the array; memory of the kind `pinned_host` is `kDLCUDAHost`. All else that the
    /// host reaches is `kDLCPU`.
    ///
    /// # Errors
    /// `FailedPrecondition`: the buffer is not ready yet (wait for its ready event, or see
    /// [`for_stream`](Self::for_stream)). Its own, if it failed. `InvalidArgument`: it is gone, a token, or of a
    /// dynamic shape. `Unimplemented`: neither the host nor a GPU of CUDA's has its memory.
    pub fn new(buffer: &Buffer) -> StatusOr<Self> {
        Self::made(buffer, |_space, ready| {
            if !ready.is_ready() {
                return Err(Error::failed_precondition(format!(
                    "{buffer:?} is not ready yet, and DLPack has no event to wait for: wait for its ready event, or say \
                     on which stream of its GPU it is read"
                )));
            }
            ready.error().map_or(Ok(()), Err)
        })
    }

    /// As [`new`](Self::new), of memory of a GPU that is read on that stream, which comes behind the array's
    /// definition: by a wait of the GPU if the definition is enqueued there, else this thread waits until it is, or has
    /// happened. Without a stream ([`DlpackStream::new`] of -1) nothing is waited for, and the reader comes behind the
    /// ready event by itself.
    ///
    /// # Errors
    /// As [`new`](Self::new), but for a buffer that is not ready. `InvalidArgument`: a stream for memory of the host.
    /// As [`Device::have_stream_wait`](purlin_device::Device::have_stream_wait).
    pub fn for_stream(buffer: &Buffer, stream: DlpackStream) -> StatusOr<Self> {
        Self::made(buffer, |space, ready| {
            if gpu_of(space).is_none() && !ready.is_ready() {
                return Err(Error::failed_precondition(format!(
                    "{buffer:?} is not ready yet: wait for its ready event"
                )));
            }
            come_behind(stream, space, ready)?;
            ready.error().map_or(Ok(()), Err)
        })
    }

    /// The array of `buffer`, once `order` has put its reader behind its ready event.
    fn made(buffer: &Buffer, order: impl FnOnce(&MemorySpace, &Event) -> Result<(), Error>) -> StatusOr<Self> {
        let shape = buffer.shape();
        let Some(dtype) = described(shape.dtype()).filter(|_| !shape.is_dynamic()) else {
            return Err(Error::invalid_argument(format!("DLPack cannot describe {shape}")));
        };
        let reference = buffer.external_reference()?;
        let space = buffer.memory_space();
        order(&space, &reference.ready_event())?;
        let (data, device) = place(&reference, &space, shape.element_count() == 0)?;
        let mut strides = vec![0; shape.rank()].into_boxed_slice();
        let mut stride = 1_i64;
        for &axis in buffer.layout().minor_to_major() {
            strides[axis as usize] = stride;
            // Saturates only where the array is empty, and strides mean nothing.
            stride = stride.saturating_mul(shape.dims()[axis as usize].max(1));
        }
        let ndim = i32::try_from(shape.rank())
            .map_err(|_| Error::invalid_argument(format!("DLPack cannot describe {} dimensions", shape.rank())))?;
        let mut exported = Box::new(Exported {
            managed: DLManagedTensorVersioned {
                version: DLPackVersion { major: MAJOR, minor: MINOR },
                manager_ctx: std::ptr::null_mut(),
                deleter: Some(delete),
                flags: flag::READ_ONLY,
                dl_tensor: DLTensor {
                    data,
                    device,
                    ndim,
                    dtype,
                    shape: std::ptr::null_mut(),
                    strides: std::ptr::null_mut(),
                    byte_offset: 0,
                },
            },
            shape: shape.dims().into(),
            strides,
            reference,
        });
        exported.managed.dl_tensor.shape = exported.shape.as_mut_ptr();
        exported.managed.dl_tensor.strides = exported.strides.as_mut_ptr();
        let exported = Box::into_raw(exported);
        // SAFETY: it was a box just now.
        let managed = unsafe {
            (*exported).managed.manager_ctx = exported.cast();
            &raw mut (*exported).managed
        };
        // SAFETY: a field of what a box had is not null.
        Ok(Self(unsafe { NonNull::new_unchecked(managed) }))
    }

    /// The struct, which stays owned.
    #[must_use]
    pub fn as_ptr(&self) -> *mut DLManagedTensorVersioned {
        self.0.as_ptr()
    }

    /// The struct; its deleter is to be called once.
    #[must_use]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }
}

impl Drop for DlpackTensor {
    fn drop(&mut self) {
        // SAFETY: new has made it, and into_raw has not given it away.
        unsafe { delete(self.0.as_ptr()) };
    }
}

/// Where the first byte is, and on which device.
///
/// # Errors
/// `Unimplemented`: neither the host nor a GPU of CUDA's has the memory. `FailedPrecondition`: it is not there yet.
fn place(reference: &ExternalReference, space: &MemorySpace, is_empty: bool) -> StatusOr<(*mut c_void, DLDevice)> {
    let (memory, gpu) = (reference.memory(), gpu_of(space));
    let device = gpu.unwrap_or_else(|| host_of(space));
    let first = match (memory.host_pointer(), gpu) {
        (Some(pointer), _) => pointer.as_ptr().cast(),
        (None, _) if is_empty => std::ptr::null_mut(),
        (None, Some(_)) => std::ptr::with_exposed_provenance_mut(memory.device_pointer()?),
        (None, None) => {
            return Err(Error::unimplemented(format!(
                "neither the host nor a GPU of CUDA's has {memory:?}, in {space}"
            )));
        }
    };
    Ok((first, device))
}

/// The memory of a struct that [`DlpackTensor::new`] made, if it is that and still as it was made.
///
/// # Safety
/// `tensor` is a struct of our major version, which the caller owns for as long as the answer is used.
pub(super) unsafe fn memory_of_ours<'a>(tensor: *const DLManagedTensorVersioned) -> Option<&'a RawBuffer> {
    // SAFETY: the caller's promise.
    let managed = unsafe { &*tensor };
    if !managed.deleter.is_some_and(|deleter| std::ptr::fn_addr_eq(deleter, delete as Deleter)) {
        return None;
    }
    // SAFETY: a struct that has our deleter has our context, which the deleter would drop.
    let exported = unsafe { &*managed.manager_ctx.cast::<Exported>() };
    let (memory, tensor) = (exported.reference.memory(), &managed.dl_tensor);
    // The struct's owner may have changed what it says; then it is what it says.
    let first = memory.host_pointer().map(|first| first.addr().get()).or_else(|| memory.device_pointer().ok());
    let is_as_made = std::ptr::eq(&exported.managed, managed)
        && first == Some(tensor.data.addr())
        && tensor.byte_offset == 0
        && tensor.ndim as usize == exported.shape.len()
        && std::ptr::eq(tensor.shape, exported.shape.as_ptr())
        && std::ptr::eq(tensor.strides, exported.strides.as_ptr())
        && managed.flags == flag::READ_ONLY;
    is_as_made.then_some(memory)
}

type Deleter = unsafe extern "C" fn(*mut DLManagedTensorVersioned);

/// Ends a struct that [`DlpackTensor::new`] made. Null: nothing to end.
unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    if managed.is_null() {
        return;
    }
    // SAFETY: DLPack's rule: the deleter is called once, with the struct that it came in, whose context is the box.
    drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Exported>()) });
}
