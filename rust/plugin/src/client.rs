//! `PJRT_Client`.

use std::ffi::c_void;
use std::sync::Arc;

use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr};
use purlin_device::DmaMapping;
use purlin_pjrt_abi::{
    self as abi, ClientAddressableDevicesArgs, ClientAddressableMemoriesArgs, ClientCreateArgs,
    ClientDefaultDeviceAssignmentArgs, ClientDestroyArgs, ClientDevicesArgs, ClientDmaMapArgs, ClientDmaUnmapArgs,
    ClientLookupAddressableDeviceArgs, ClientLookupDeviceArgs, ClientPlatformNameArgs, ClientPlatformVersionArgs,
    ClientProcessIndexArgs, ClientTopologyDescriptionArgs,
};

use crate::answer::Answer;
use crate::handle::{self, Handle, lent, take};
use crate::options::PluginOptions;
use crate::platform::{self, Platform};
use crate::read;
use crate::text::lend;
use crate::topology::TopologyObject;

/// What is behind a `PJRT_Client`.
pub(crate) struct ClientObject {
    pub(crate) platform: Arc<Platform>,
    topology: *mut abi::TopologyDescription,
    /// By address.
    mappings: Mutex<Vec<(usize, DmaMapping)>>,
}

// SAFETY: the address is of an object that threads share.
unsafe impl Send for ClientObject {}
// SAFETY: as above.
unsafe impl Sync for ClientObject {}

impl Drop for ClientObject {
    fn drop(&mut self) {
        // SAFETY: from give(), and lent only for the life of the client.
        drop(unsafe { take::<ClientDestroyArgs, _>(self.topology) });
    }
}

impl Handle for abi::Client {
    type Object = ClientObject;
    const NAME: &'static str = "PJRT_Client";
}

impl Answer for ClientCreateArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let platform = unsafe {
            let values = read::each(self.create_options, self.num_options)?;
            Platform::new(&PluginOptions::read(&values)?)?
        };
        let topology = handle::give(TopologyObject::of(&platform));
        self.client = handle::give(ClientObject { platform, topology, mappings: Mutex::new(Vec::new()) });
        Ok(())
    }
}

impl Answer for ClientDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.client) }.map(drop)
    }
}

impl Answer for ClientPlatformNameArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.client) }?;
        (self.platform_name, self.platform_name_size) = lend(platform::NAME);
        Ok(())
    }
}

impl Answer for ClientPlatformVersionArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.client) }?;
        (self.platform_version, self.platform_version_size) = lend(platform::VERSION);
        Ok(())
    }
}

impl Answer for ClientProcessIndexArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.process_index = unsafe { lent::<Self, _>(self.client) }?.platform.client.process_index()?;
        Ok(())
    }
}

impl Answer for ClientDevicesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let devices = unsafe { lent::<Self, _>(self.client) }?.platform.devices();
        (self.devices, self.num_devices) = (devices.as_ptr(), devices.len());
        Ok(())
    }
}

impl Answer for ClientAddressableDevicesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let devices = unsafe { lent::<Self, _>(self.client) }?.platform.devices();
        (self.addressable_devices, self.num_addressable_devices) = (devices.as_ptr(), devices.len());
        Ok(())
    }
}

impl Answer for ClientLookupDeviceArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.device = unsafe { lent::<Self, _>(self.client) }?.platform.device_of(self.id)?;
        Ok(())
    }
}

impl Answer for ClientLookupAddressableDeviceArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise. The devices are virtual, so both numbers are the same.
        let client = unsafe { lent::<Self, _>(self.client) }?;
        self.addressable_device = client.platform.device_of(self.local_hardware_id)?;
        Ok(())
    }
}

impl Answer for ClientAddressableMemoriesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let memories = unsafe { lent::<Self, _>(self.client) }?.platform.memories();
        (self.addressable_memories, self.num_addressable_memories) = (memories.as_ptr(), memories.len());
        Ok(())
    }
}

impl Answer for ClientTopologyDescriptionArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.topology = unsafe { lent::<Self, _>(self.client) }?.topology;
        Ok(())
    }
}

impl Answer for ClientDefaultDeviceAssignmentArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let client = unsafe { lent::<Self, _>(self.client) }?;
        let count = |what: &str, number: i32| -> StatusOr<usize> {
            usize::try_from(number).map_err(|_| Error::invalid_argument(format!("{what} is {number}")))
        };
        let (replicas, partitions) =
            (count("num_replicas", self.num_replicas)?, count("num_partitions", self.num_partitions)?);
        let assignment = client.platform.client.default_device_assignment(replicas, partitions)?.concat();
        if self.default_assignment_size < assignment.len() || self.default_assignment.is_null() {
            return Err(Error::invalid_argument(format!(
                "PJRT_Client_DefaultDeviceAssignment: {replicas} replicas of {partitions} partitions need room for {} \
                 numbers, and there is room for {}",
                assignment.len(),
                self.default_assignment_size
            )));
        }
        // SAFETY: the caller's room.
        unsafe { std::ptr::copy_nonoverlapping(assignment.as_ptr(), self.default_assignment, assignment.len()) };
        Ok(())
    }
}

impl Answer for ClientDmaMapArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let client = unsafe { lent::<Self, _>(self.client) }?;
        let mapping = client.platform.client.dma_map(self.data.cast::<u8>(), self.size)?;
        client.mappings.lock().push((self.data.addr(), mapping));
        Ok(())
    }
}

impl Answer for ClientDmaUnmapArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let client = unsafe { lent::<Self, _>(self.client) }?;
        let data: *mut c_void = self.data;
        let mapping = {
            let mut mappings = client.mappings.lock();
            let place = mappings.iter().position(|&(address, _)| address == data.addr());
            place.map(|place| mappings.swap_remove(place).1)
        };
        let Some(mapping) = mapping else {
            return Err(Error::invalid_argument(format!("PJRT_Client_DmaUnmap: nothing is mapped at {data:p}")));
        };
        mapping.unmap().map_err(|(error, mapping)| {
            client.mappings.lock().push((data.addr(), mapping));
            error
        })
    }
}
