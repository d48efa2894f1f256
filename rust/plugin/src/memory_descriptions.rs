//! The extension MemoryDescriptions: the kinds of memory of a device, without the memories.

use std::ffi::c_int;

use purlin_base::Error;
use purlin_pjrt_abi::{
    self as abi, DeviceDescriptionMemoryDescriptionsArgs, ExtensionBase, MemoryDescriptionKindArgs,
    MemoryDescriptionsExtension, extension_type,
};

use crate::answer::{Answer, answered};
use crate::handle::{self, Handle, lent};
use crate::text::lend;

/// The extension, and the next one in the chain.
pub(crate) fn extension(next: *mut ExtensionBase) -> MemoryDescriptionsExtension {
    MemoryDescriptionsExtension {
        base: ExtensionBase {
            struct_size: size_of::<MemoryDescriptionsExtension>(),
            r#type: extension_type::MEMORY_DESCRIPTIONS,
            next,
        },
        device_description_memory_descriptions: Some(answered),
        memory_description_kind: Some(answered),
    }
}

/// What is behind a `PJRT_MemoryDescription`.
pub(crate) struct KindObject {
    kind: &'static str,
    id: c_int,
}

impl Handle for abi::MemoryDescription {
    type Object = KindObject;
    const NAME: &'static str = "PJRT_MemoryDescription";
}

/// The kinds of a device's memories, the default first.
pub(crate) struct Kinds(Vec<*mut abi::MemoryDescription>);

// SAFETY: the objects never change.
unsafe impl Send for Kinds {}
// SAFETY: as above.
unsafe impl Sync for Kinds {}

impl Kinds {
    pub(crate) fn new(kinds: Vec<&'static str>) -> Self {
        Self((0..).zip(kinds).map(|(id, kind)| handle::give(KindObject { kind, id })).collect())
    }
}

impl Drop for Kinds {
    fn drop(&mut self) {
        for &kind in &self.0 {
            // SAFETY: from give(), and lent only for the life of this.
            drop(unsafe { handle::take::<MemoryDescriptionKindArgs, _>(kind) });
        }
    }
}

impl Answer for DeviceDescriptionMemoryDescriptionsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let kinds = &unsafe { lent::<Self, _>(self.device_description) }?.memories.0;
        (self.memory_descriptions, self.num_memory_descriptions) = (kinds.as_ptr().cast(), kinds.len());
        self.default_memory_index = 0;
        Ok(())
    }
}

impl Answer for MemoryDescriptionKindArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let kind = unsafe { lent::<Self, _>(self.memory_description) }?;
        (self.kind, self.kind_size) = lend(kind.kind);
        self.kind_id = kind.id;
        Ok(())
    }
}
