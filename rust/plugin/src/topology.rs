//! `PJRT_TopologyDescription`: the devices of a client.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use purlin_base::Error;
use purlin_ffi::panic::contain;
use purlin_pjrt_abi::{
    self as abi, SerializedTopology, TopologyDescriptionAttributesArgs, TopologyDescriptionDestroyArgs,
    TopologyDescriptionFingerprintArgs, TopologyDescriptionGetDeviceDescriptionsArgs,
    TopologyDescriptionGetMemorySpaceKindIdsArgs, TopologyDescriptionPlatformNameArgs,
    TopologyDescriptionPlatformVersionArgs, TopologyDescriptionSerializeArgs,
};

use crate::answer::Answer;
use crate::handle::{self, Handle, lent, take};
use crate::platform::{self, Platform};
use crate::text::{NamedValues, lend};

/// What is behind a `PJRT_TopologyDescription`.
pub(crate) struct TopologyObject {
    descriptions: Vec<*mut abi::DeviceDescription>,
    kinds: Vec<i32>,
    attributes: NamedValues,
    /// What is the same for the same topology.
    text: String,
    /// Keeps the descriptions.
    _platform: Arc<Platform>,
}

// SAFETY: the addresses are of objects that never change.
unsafe impl Send for TopologyObject {}
// SAFETY: as above.
unsafe impl Sync for TopologyObject {}

impl TopologyObject {
    pub(crate) fn of(platform: &Arc<Platform>) -> Self {
        let descriptions = platform.descriptions().to_vec();
        let kinds = platform.memories().len() / descriptions.len().max(1);
        Self {
            text: format!("{} of {} devices, {}", platform::VERSION, descriptions.len(), std::env::consts::ARCH),
            descriptions,
            kinds: (0..kinds as i32).collect(),
            attributes: NamedValues::default(),
            _platform: Arc::clone(platform),
        }
    }
}

impl Handle for abi::TopologyDescription {
    type Object = TopologyObject;
    const NAME: &'static str = "PJRT_TopologyDescription";
}

impl Answer for TopologyDescriptionDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.topology) }.map(drop)
    }
}

impl Answer for TopologyDescriptionPlatformNameArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.topology) }?;
        (self.platform_name, self.platform_name_size) = lend(platform::NAME);
        Ok(())
    }
}

impl Answer for TopologyDescriptionPlatformVersionArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { lent::<Self, _>(self.topology) }?;
        (self.platform_version, self.platform_version_size) = lend(platform::VERSION);
        Ok(())
    }
}

impl Answer for TopologyDescriptionGetDeviceDescriptionsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let topology = unsafe { lent::<Self, _>(self.topology) }?;
        (self.descriptions, self.num_descriptions) = (topology.descriptions.as_ptr(), topology.descriptions.len());
        Ok(())
    }
}

impl Answer for TopologyDescriptionAttributesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        (self.attributes, self.num_attributes) = unsafe { lent::<Self, _>(self.topology) }?.attributes.lend();
        Ok(())
    }
}

impl Answer for TopologyDescriptionGetMemorySpaceKindIdsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let kinds = &unsafe { lent::<Self, _>(self.topology) }?.kinds;
        (self.memory_space_kind_ids, self.num_memory_space_kind_ids) = (kinds.as_ptr(), kinds.len());
        Ok(())
    }
}

impl Answer for TopologyDescriptionFingerprintArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let topology = unsafe { lent::<Self, _>(self.topology) }?;
        let mut hasher = DefaultHasher::new();
        topology.text.hash(&mut hasher);
        self.fingerprint = hasher.finish();
        Ok(())
    }
}

impl Handle for SerializedTopology {
    type Object = String;
    const NAME: &'static str = "PJRT_SerializedTopology";
}

impl Answer for TopologyDescriptionSerializeArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let text = unsafe { lent::<Self, _>(self.topology) }?.text.clone();
        (self.serialized_bytes, self.serialized_bytes_size) = lend(&text);
        // Moved, the text stays where it is.
        self.serialized_topology = handle::give(text);
        self.serialized_topology_deleter = Some(end_serialized);
        Ok(())
    }
}

unsafe extern "C" fn end_serialized(topology: *mut SerializedTopology) {
    contain("PJRT serialized_topology_deleter", (), || {
        // SAFETY: the caller gives it up.
        drop(unsafe { take::<TopologyDescriptionSerializeArgs, _>(topology) });
    });
}
