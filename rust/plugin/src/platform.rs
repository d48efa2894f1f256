//! What all objects of a client share: Purlin's client, and the objects of its devices and memories, whose addresses
//! PJRT lends. It lives until the last of them is destroyed, so an array outlives its `PJRT_Client`.

use std::sync::Arc;

use purlin_base::sync::OnceLock;
use purlin_base::{Error, StatusOr};
use purlin_device::{Client, MemorySpace};
use purlin_host::HostBackend;
use purlin_pjrt_abi as abi;

use crate::compiler::Compiler;
use crate::device::{DescriptionObject, DeviceObject};
use crate::diagnosis;
use crate::handle::{self, Handle};
use crate::memory::MemoryObject;
use crate::options::{Mode, PluginOptions};
use crate::text::NamedValues;

/// The platform's name. JAX donates arguments only on platforms whose names it knows, and calls Python back only on
/// this one.
pub(crate) const NAME: &str = "cpu";

/// The version, as a text for people.
pub(crate) const VERSION: &str = concat!("Purlin ", env!("CARGO_PKG_VERSION"));

/// See the module.
pub(crate) struct Platform {
    pub(crate) client: Arc<Client>,
    pub(crate) mode: Mode,
    devices: Owned<abi::Device>,
    memories: Owned<abi::Memory>,
    descriptions: Owned<abi::DeviceDescription>,
    compiler_path: Option<String>,
    compiler: OnceLock<StatusOr<Arc<Compiler>>>,
}

/// Objects of ours that C is lent.
struct Owned<H: Handle>(Vec<*mut H>);

// SAFETY: the objects are of types that threads share, as the handles' users need them to be.
unsafe impl<H: Handle> Send for Owned<H> where H::Object: Send + Sync {}
// SAFETY: as above.
unsafe impl<H: Handle> Sync for Owned<H> where H::Object: Send + Sync {}

impl<H: Handle> Drop for Owned<H> {
    fn drop(&mut self) {
        for &handle in &self.0 {
            // SAFETY: from give(), and lent only for the life of the platform.
            drop(unsafe { handle::take::<abi::ClientDestroyArgs, H>(handle) });
        }
    }
}

impl Platform {
    /// # Errors
    /// As [`Client::new`], and what keeps a diagnosis that was asked for from working.
    pub(crate) fn new(options: &PluginOptions) -> StatusOr<Arc<Self>> {
        diagnosis::start_trace()?;
        if options.stalls_on_sigquit {
            diagnosis::show_stalls_on_sigquit()?;
        }
        let client = Client::new(&options.client, Arc::new(HostBackend::new()))?;
        let (mut devices, mut memories) = (Owned(Vec::new()), Owned(Vec::new()));
        let mut descriptions = Owned(Vec::new());
        for device in client.devices() {
            let spaces = device.memory_spaces();
            let first = memories.0.len();
            let kinds = spaces.iter().map(MemorySpace::kind).collect();
            memories.0.extend(spaces.into_iter().map(|space| handle::give::<abi::Memory>(MemoryObject::new(space))));
            let description = handle::give(DescriptionObject::new(&device, kinds));
            descriptions.0.push(description);
            devices.0.push(handle::give(DeviceObject::new(device, description, memories.0[first..].to_vec())));
        }
        for (index, &device) in devices.0.iter().enumerate() {
            let count = memories.0.len() / devices.0.len();
            for &memory in &memories.0[index * count..][..count] {
                // SAFETY: just made.
                unsafe { handle::lent::<abi::MemoryAddressableByDevicesArgs, _>(memory) }?.reach(device);
            }
        }
        let (mode, compiler_path) = (options.mode, options.compiler.clone());
        let compiler = OnceLock::new();
        Ok(Arc::new(Self { client, mode, devices, memories, descriptions, compiler_path, compiler }))
    }

    /// All devices, in their order.
    pub(crate) fn devices(&self) -> &[*mut abi::Device] {
        &self.devices.0
    }

    /// All memories, in the order of their numbers.
    pub(crate) fn memories(&self) -> &[*mut abi::Memory] {
        &self.memories.0
    }

    /// The descriptions of all devices.
    pub(crate) fn descriptions(&self) -> &[*mut abi::DeviceDescription] {
        &self.descriptions.0
    }

    /// The object of a memory space of the client's.
    pub(crate) fn memory_of(&self, space: &MemorySpace) -> *mut abi::Memory {
        self.memories.0[usize::try_from(space.id()).expect("spaces are numbered from 0")]
    }

    /// The object of a device of the client's.
    ///
    /// # Errors
    /// `NotFound`: there is none of that number.
    pub(crate) fn device_of(&self, id: i32) -> StatusOr<*mut abi::Device> {
        usize::try_from(id).ok().and_then(|index| self.devices.0.get(index)).copied().ok_or_else(|| {
            Error::not_found(format!("there is no device {id}: the client has {}, from 0", self.devices.0.len()))
        })
    }

    /// The plugin that compiles, which is opened when it is first needed.
    ///
    /// # Errors
    /// `NotFound`: there is none, and how to get one. What it says itself. As [`Compiler::check_here`].
    pub(crate) fn compiler(&self) -> StatusOr<&Arc<Compiler>> {
        let opened = match self.compiler.get() {
            Some(opened) => opened,
            None => {
                // Outside of the cell: code of the other plugin's runs, and of two that race one is closed again.
                let opened = Compiler::open(self.compiler_path.as_deref(), self.devices.0.len()).map(Arc::new);
                self.compiler.get_or_init(|| opened)
            }
        };
        let compiler = opened.as_ref().map_err(Clone::clone)?;
        compiler.check_here()?;
        Ok(compiler)
    }
}

/// What the plugin says of itself, for the life of the process.
pub(crate) fn attributes() -> &'static NamedValues {
    static ATTRIBUTES: OnceLock<NamedValues> = OnceLock::new();
    ATTRIBUTES.get().unwrap_or_else(|| {
        let versions = crate::compiler::attributes();
        ATTRIBUTES.get_or_init(|| NamedValues::new(versions))
    })
}
