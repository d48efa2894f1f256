//! `PJRT_Buffer`: one of Purlin's arrays, and what the plugin keeps beside it.

use std::ptr;
use std::sync::Arc;

use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr};
use purlin_device::{Buffer, ExternalReference};
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi::{
    self as abi, BufferDecreaseExternalReferenceCountArgs, BufferDeleteArgs, BufferDestroyArgs, BufferDeviceArgs,
    BufferDimensionsArgs, BufferDynamicDimensionIndicesArgs, BufferElementTypeArgs, BufferGetMemoryLayoutArgs,
    BufferIncreaseExternalReferenceCountArgs, BufferIsDeletedArgs, BufferIsOnCpuArgs, BufferMemoryArgs,
    BufferMemoryLayoutTiled, BufferMemoryLayoutValue, BufferOnDeviceSizeInBytesArgs,
    BufferOpaqueDeviceMemoryDataPointerArgs, BufferReadyEventArgs, BufferUnpaddedDimensionsArgs,
    BufferUnsafePointerArgs, buffer_memory_layout_type,
};

use crate::answer::Answer;
use crate::compiler::Face;
use crate::event;
use crate::handle::{self, Handle, lent, take};
use crate::layouts::order_of;
use crate::platform::Platform;

/// What is behind a `PJRT_Buffer`.
pub(crate) struct BufferObject {
    pub(crate) array: Buffer,
    pub(crate) platform: Arc<Platform>,
    /// Whether its memory is the caller's own, which may change it once it believes that it was read.
    pub(crate) is_alias: bool,
    /// Those that the caller counts.
    references: Mutex<Vec<ExternalReference>>,
    /// The same array as the plugin that compiles knows it, until it is deleted or donated.
    face: Mutex<Option<Face>>,
}

impl Handle for abi::Buffer {
    type Object = BufferObject;
    const NAME: &'static str = "PJRT_Buffer";
}

/// `array`, C's.
pub(crate) fn give(array: Buffer, platform: &Arc<Platform>) -> *mut abi::Buffer {
    handle::give(BufferObject::new(array, platform, false, None))
}

/// As [`give`], for an array whose memory is the caller's.
pub(crate) fn give_alias(array: Buffer, platform: &Arc<Platform>) -> *mut abi::Buffer {
    handle::give(BufferObject::new(array, platform, true, None))
}

/// As [`give`], for an array that the plugin that compiles knows already.
pub(crate) fn give_with_face(array: Buffer, platform: &Arc<Platform>, face: Face) -> *mut abi::Buffer {
    handle::give(BufferObject::new(array, platform, false, Some(face)))
}

impl BufferObject {
    fn new(array: Buffer, platform: &Arc<Platform>, is_alias: bool, face: Option<Face>) -> Self {
        let (platform, references, face) = (Arc::clone(platform), Mutex::new(Vec::new()), Mutex::new(face));
        Self { array, platform, is_alias, references, face }
    }

    /// What the plugin that compiles knows it as.
    pub(crate) fn known_face(&self) -> Option<Face> {
        self.face.lock().clone()
    }

    /// What the plugin that compiles knows it as, or what `make` makes, outside of the lock: of two threads that make
    /// one, both have the first.
    ///
    /// # Errors
    /// That of `make`.
    pub(crate) fn face_or(&self, make: impl FnOnce() -> StatusOr<Face>) -> StatusOr<Face> {
        if let Some(face) = self.known_face() {
            return Ok(face);
        }
        let made = make()?;
        Ok(self.face.lock().get_or_insert(made.clone()).clone())
    }

    /// Lets go of what the plugin that compiles knows, which keeps the memory.
    pub(crate) fn forget_face(&self) {
        let face = self.face.lock().take();
        drop(face);
    }

    /// Deletes the array.
    pub(crate) fn delete(&self) {
        self.array.delete();
        self.forget_face();
    }
}

impl Answer for BufferDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let taken = unsafe { take::<Self, _>(self.buffer) }?;
        let Some(buffer) = taken else { return Ok(()) };
        let BufferObject { array, platform, references, face, .. } = buffer;
        // In this order: what refers to the memory before the memory, and the client last.
        drop((references, face));
        array.delete();
        drop((array, platform));
        Ok(())
    }
}

impl Answer for BufferDeleteArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.buffer) }?.delete();
        Ok(())
    }
}

impl Answer for BufferIsDeletedArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.is_deleted = u8::from(unsafe { lent::<Self, _>(self.buffer) }?.array.is_deleted());
        Ok(())
    }
}

impl Answer for BufferElementTypeArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.r#type = unsafe { lent::<Self, _>(self.buffer) }?.array.dtype() as i32;
        Ok(())
    }
}

impl Answer for BufferDimensionsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let dims = unsafe { lent::<Self, _>(self.buffer) }?.array.dims();
        (self.dims, self.num_dims) = (dims.as_ptr(), dims.len());
        Ok(())
    }
}

/// # Errors
/// `Unimplemented`: the dimensions are dynamic.
fn static_dims(array: &Buffer, function: &str) -> StatusOr<(*const i64, usize)> {
    if array.shape().is_dynamic() {
        return Err(Error::unimplemented(format!("{function}: {} has dynamic dimensions", array.shape())));
    }
    Ok((array.dims().as_ptr(), array.dims().len()))
}

impl Answer for BufferUnpaddedDimensionsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        (self.unpadded_dims, self.num_dims) = static_dims(&buffer.array, "PJRT_Buffer_UnpaddedDimensions")?;
        Ok(())
    }
}

impl Answer for BufferDynamicDimensionIndicesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        static_dims(&buffer.array, "PJRT_Buffer_DynamicDimensionIndices")?;
        (self.dynamic_dim_indices, self.num_dynamic_dims) = (ptr::dangling(), 0);
        Ok(())
    }
}

impl Answer for BufferGetMemoryLayoutArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let array = &unsafe { lent::<Self, _>(self.buffer) }?.array;
        let (minor_to_major, minor_to_major_size) = order_of(array.special_layout(), array.dims().len())?;
        let tiled = BufferMemoryLayoutTiled { minor_to_major, minor_to_major_size, ..arguments() };
        self.layout.value = BufferMemoryLayoutValue { tiled };
        self.layout.r#type = buffer_memory_layout_type::TILED;
        Ok(())
    }
}

impl Answer for BufferOnDeviceSizeInBytesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.on_device_size_in_bytes = unsafe { lent::<Self, _>(self.buffer) }?.array.size_bytes();
        Ok(())
    }
}

impl Answer for BufferDeviceArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        self.device = buffer.platform.device_of(buffer.array.device().id())?;
        Ok(())
    }
}

impl Answer for BufferMemoryArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        self.memory = buffer.platform.memory_of(&buffer.array.memory_space());
        Ok(())
    }
}

impl Answer for BufferIsOnCpuArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.buffer) }?;
        self.is_on_cpu = 1;
        Ok(())
    }
}

impl Answer for BufferReadyEventArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        if buffer.array.is_deleted() {
            return Err(deleted(buffer, "PJRT_Buffer_ReadyEvent"));
        }
        self.event = event::give(buffer.array.ready_event());
        Ok(())
    }
}

/// Why an array that is gone cannot be used, with the place that deleted or donated it.
fn deleted(buffer: &BufferObject, function: &str) -> Error {
    let why = buffer.array.try_usage_hold().err().map_or_else(String::new, |error| error.message().to_owned());
    Error::invalid_argument(format!("{function}: {why}"))
}

impl Answer for BufferIncreaseExternalReferenceCountArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        let reference = buffer.array.external_reference()?;
        buffer.references.lock().push(reference);
        Ok(())
    }
}

impl Answer for BufferDecreaseExternalReferenceCountArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        let reference = buffer.references.lock().pop();
        reference.map(drop).ok_or_else(|| {
            Error::invalid_argument(format!("{:?} has no external reference that could be taken back", buffer.array))
        })
    }
}

/// The address of the array's memory, where it is there. An array of no bytes may have none.
fn address(buffer: &BufferObject) -> StatusOr<usize> {
    let memory = buffer.array.raw_alias()?;
    memory.allocation_event().wait()?;
    memory.device_pointer()
}

impl Answer for BufferOpaqueDeviceMemoryDataPointerArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { lent::<Self, _>(self.buffer) }?;
        self.device_memory_ptr = ptr::with_exposed_provenance_mut(address(buffer)?);
        Ok(())
    }
}

impl Answer for BufferUnsafePointerArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.buffer_pointer = address(unsafe { lent::<Self, _>(self.buffer) }?)?;
        Ok(())
    }
}
