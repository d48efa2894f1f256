//! `PJRT_Device` and `PJRT_DeviceDescription`.

use std::ffi::c_int;
use std::ptr;

use purlin_base::Error;
use purlin_device::Device;
use purlin_ffi::panic::contain;
use purlin_pjrt_abi::{
    self as abi, DeviceAddressableMemoriesArgs, DeviceClearMemoryStatsArgs, DeviceDefaultMemoryArgs,
    DeviceDescriptionAttributesArgs, DeviceDescriptionDebugStringArgs, DeviceDescriptionIdArgs,
    DeviceDescriptionKindArgs, DeviceDescriptionProcessIndexArgs, DeviceDescriptionToStringArgs,
    DeviceGetAttributesArgs, DeviceGetDescriptionArgs, DeviceIsAddressableArgs, DeviceLocalHardwareIdArgs,
    DeviceMemoryStatsArgs,
};

use crate::answer::Answer;
use crate::handle::{self, Handle, lent};
use crate::text::{NamedValues, lend};

/// What is behind a `PJRT_Device`.
pub(crate) struct DeviceObject {
    pub(crate) device: Device,
    description: *mut abi::DeviceDescription,
    memories: Vec<*mut abi::Memory>,
}

// SAFETY: the addresses are of objects that threads share.
unsafe impl Send for DeviceObject {}
// SAFETY: as above.
unsafe impl Sync for DeviceObject {}

impl DeviceObject {
    pub(crate) fn new(
        device: Device,
        description: *mut abi::DeviceDescription,
        memories: Vec<*mut abi::Memory>,
    ) -> Self {
        Self { device, description, memories }
    }

    /// Where its arrays lie unless the caller says otherwise.
    pub(crate) fn default_memory(&self) -> *mut abi::Memory {
        self.memories.first().copied().unwrap_or(ptr::null_mut())
    }
}

impl Handle for abi::Device {
    type Object = DeviceObject;
    const NAME: &'static str = "PJRT_Device";
}

/// What is behind a `PJRT_DeviceDescription`.
pub(crate) struct DescriptionObject {
    id: c_int,
    kind: String,
    text: String,
    debug: String,
    attributes: NamedValues,
    /// The kinds of its memories, the default first.
    pub(crate) memories: crate::memory_descriptions::Kinds,
}

impl DescriptionObject {
    pub(crate) fn new(device: &Device, kinds: Vec<&'static str>) -> Self {
        let (id, kind) = (device.id(), device.kind().to_owned());
        Self {
            id,
            text: format!("PurlinDevice(id={id})"),
            debug: format!("{device}, device {id} of Purlin, kind {kind}"),
            kind,
            attributes: NamedValues::new(device.attributes().to_vec()),
            memories: crate::memory_descriptions::Kinds::new(kinds),
        }
    }
}

impl Handle for abi::DeviceDescription {
    type Object = DescriptionObject;
    const NAME: &'static str = "PJRT_DeviceDescription";
}

impl Answer for DeviceDescriptionIdArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.id = unsafe { lent::<Self, _>(self.device_description) }?.id;
        Ok(())
    }
}

impl Answer for DeviceDescriptionProcessIndexArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.device_description) }?;
        self.process_index = 0;
        Ok(())
    }
}

impl Answer for DeviceDescriptionAttributesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        (self.attributes, self.num_attributes) = unsafe { lent::<Self, _>(self.device_description) }?.attributes.lend();
        Ok(())
    }
}

impl Answer for DeviceDescriptionKindArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        (self.device_kind, self.device_kind_size) = lend(&unsafe { lent::<Self, _>(self.device_description) }?.kind);
        Ok(())
    }
}

impl Answer for DeviceDescriptionDebugStringArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let description = unsafe { lent::<Self, _>(self.device_description) }?;
        (self.debug_string, self.debug_string_size) = lend(&description.debug);
        Ok(())
    }
}

impl Answer for DeviceDescriptionToStringArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        (self.to_string, self.to_string_size) = lend(&unsafe { lent::<Self, _>(self.device_description) }?.text);
        Ok(())
    }
}

impl Answer for DeviceGetDescriptionArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.device_description = unsafe { lent::<Self, _>(self.device) }?.description;
        Ok(())
    }
}

impl Answer for DeviceIsAddressableArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.device) }?;
        self.is_addressable = 1;
        Ok(())
    }
}

impl Answer for DeviceLocalHardwareIdArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.local_hardware_id = unsafe { lent::<Self, _>(self.device) }?.device.local_hardware_id();
        Ok(())
    }
}

impl Answer for DeviceAddressableMemoriesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let memories = &unsafe { lent::<Self, _>(self.device) }?.memories;
        (self.memories, self.num_memories) = (memories.as_ptr(), memories.len());
        Ok(())
    }
}

impl Answer for DeviceDefaultMemoryArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.memory = unsafe { lent::<Self, _>(self.device) }?.default_memory();
        Ok(())
    }
}

impl Answer for DeviceMemoryStatsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let stats = unsafe { lent::<Self, _>(self.device) }?.device.default_memory_space().stats();
        let limit = stats.bytes_limit.ok_or_else(|| {
            // Callers read a limit wherever there are statistics; jaxlib's CPU devices have neither.
            Error::unimplemented("PJRT_Device_MemoryStats: the client has no limit (option memory_limit_bytes)")
        })?;
        let bytes = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.bytes_in_use = bytes(stats.bytes_in_use);
        (self.peak_bytes_in_use, self.peak_bytes_in_use_is_set) = (bytes(stats.peak_bytes_in_use), 1);
        (self.num_allocs, self.num_allocs_is_set) = (bytes(stats.num_allocs), 1);
        (self.largest_alloc_size, self.largest_alloc_size_is_set) = (bytes(stats.largest_alloc_size), 1);
        (self.bytes_limit, self.bytes_limit_is_set) = (bytes(limit), 1);
        (self.bytes_reserved_is_set, self.peak_bytes_reserved_is_set) = (0, 0);
        (self.bytes_reservable_limit, self.bytes_reservable_limit_is_set) = (bytes(limit), 1);
        (self.largest_free_block_bytes, self.largest_free_block_bytes_is_set) =
            (bytes(stats.largest_free_block_bytes), 1);
        (self.pool_bytes, self.pool_bytes_is_set) = (bytes(stats.pool_bytes), 1);
        self.peak_pool_bytes_is_set = 0;
        Ok(())
    }
}

impl Answer for DeviceClearMemoryStatsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.device) }?.device.default_memory_space().clear_peak();
        Ok(())
    }
}

impl Handle for abi::DeviceAttributes {
    type Object = NamedValues;
    const NAME: &'static str = "PJRT_Device_Attributes";
}

impl Answer for DeviceGetAttributesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let device = unsafe { lent::<Self, _>(self.device) }?;
        let attributes = handle::give::<abi::DeviceAttributes>(NamedValues::new(device.device.attributes().to_vec()));
        // SAFETY: just made.
        (self.attributes, self.num_attributes) = unsafe { lent::<Self, _>(attributes) }?.lend();
        self.device_attributes = attributes;
        self.attributes_deleter = Some(end_attributes);
        Ok(())
    }
}

unsafe extern "C" fn end_attributes(attributes: *mut abi::DeviceAttributes) {
    contain("PJRT attributes_deleter", (), || {
        // SAFETY: the caller gives it up.
        drop(unsafe { handle::take::<DeviceGetAttributesArgs, _>(attributes) });
    });
}
