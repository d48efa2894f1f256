//! The plugin that compiles: XLA's own, opened when a program is first compiled. It also runs what Purlin cannot.

mod face;
mod library;

use std::ptr;

use purlin_async::task::fork;
use purlin_base::sync::Process;
use purlin_base::{Error, StatusOr};
use purlin_device::MemorySpace;
use purlin_device::backend::{AttributeValue, DeviceAttribute};
use purlin_pjrt::abi::arguments;
use purlin_pjrt::foreign::Plugin;
use purlin_pjrt_abi::{
    self as abi, ClientAddressableDevicesArgs, ClientCreateArgs, ClientDestroyArgs, DeviceAddressableMemoriesArgs,
    MemoryKindArgs, NamedValue, NamedValueValue, PluginAttributesArgs, named_value_type,
};

use crate::read;

pub(crate) use face::Face;

/// A client of that plugin, with as many devices as ours.
pub(crate) struct Compiler {
    pub(crate) plugin: Plugin,
    pub(crate) client: *mut abi::Client,
    devices: Vec<*mut abi::Device>,
    /// By device, and the number of our kind of memory.
    memories: Vec<Vec<*mut abi::Memory>>,
    /// Where its threads are.
    process: Process,
}

// SAFETY: a plugin's objects may be used from every thread.
unsafe impl Send for Compiler {}
// SAFETY: as above.
unsafe impl Sync for Compiler {}

/// The kinds of Purlin's memories, by number.
const KINDS: [&str; 3] = ["device", "pinned_host", "unpinned_host"];

impl Compiler {
    /// Opens the plugin at `path`, or the one that is found, for `device_count` devices.
    ///
    /// # Errors
    /// `NotFound`: there is none, and how to get one. What it says itself.
    pub(crate) fn open(path: Option<&str>, device_count: usize) -> StatusOr<Self> {
        let plugin = library::open(path)?;
        let (name, count) = ("cpu_device_count", i64::try_from(device_count).unwrap_or(i64::MAX));
        let option = NamedValue {
            name: name.as_ptr().cast(),
            name_size: name.len(),
            r#type: named_value_type::INT64,
            value: NamedValueValue { int64_value: count },
            value_size: 1,
            ..arguments()
        };
        let mut created = ClientCreateArgs { create_options: &raw const option, num_options: 1, ..arguments() };
        // SAFETY: the option lives until the call returns.
        unsafe { plugin.call(&mut created) }?;
        let (client, process) = (created.client, Process::this());
        let mut compiler = Self { plugin, client, devices: Vec::new(), memories: Vec::new(), process };
        let mut found = ClientAddressableDevicesArgs { client: compiler.client, ..arguments() };
        // SAFETY: the client is alive, and lends its devices and their memories.
        unsafe {
            plugin.call(&mut found)?;
            compiler.devices =
                read::list("devices", found.addressable_devices, found.num_addressable_devices)?.to_vec();
            if compiler.devices.len() != device_count {
                return Err(Error::failed_precondition(format!(
                    "the plugin that compiles has {} devices where {device_count} were asked for",
                    compiler.devices.len()
                )));
            }
            for &device in &compiler.devices {
                compiler.memories.push(memories(&plugin, device)?);
            }
        }
        Ok(compiler)
    }

    /// # Errors
    /// `FailedPrecondition`: this process is a child, made by `fork`, of the one that opened it. It would wait for
    /// threads that are not here.
    pub(crate) fn check_here(&self) -> Result<(), Error> {
        if self.process.is_this() { Ok(()) } else { Err(fork::refusal("the plugin that compiles")) }
    }

    /// Its device of that number.
    pub(crate) fn device(&self, index: usize) -> *mut abi::Device {
        self.devices.get(index).copied().unwrap_or(ptr::null_mut())
    }

    /// The number of its device.
    pub(crate) fn index_of(&self, device: *mut abi::Device) -> Option<usize> {
        self.devices.iter().position(|&known| known == device)
    }

    /// Its memory for arrays in that space of ours.
    ///
    /// # Errors
    /// `Unimplemented`: it has no memory of that kind.
    fn memory(&self, space: &MemorySpace) -> StatusOr<*mut abi::Memory> {
        let device = usize::try_from(space.device().id()).unwrap_or(usize::MAX);
        let kind = KINDS.iter().position(|kind| *kind == space.kind());
        let memory = self.memories.get(device).zip(kind).and_then(|(memories, kind)| memories.get(kind));
        memory
            .copied()
            .filter(|memory| !memory.is_null())
            .ok_or_else(|| Error::unimplemented(format!("the plugin that compiles has no memory like {space}")))
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // SAFETY: the client is ours, and nothing of it remains.
        unsafe { self.plugin.end(ClientDestroyArgs { client: self.client, ..arguments() }) };
    }
}

/// The memories of a device, by the numbers of our kinds; null where it has none.
///
/// # Safety
/// The device is alive.
unsafe fn memories(plugin: &Plugin, device: *mut abi::Device) -> StatusOr<Vec<*mut abi::Memory>> {
    let mut found = DeviceAddressableMemoriesArgs { device, ..arguments() };
    let mut memories = vec![ptr::null_mut(); KINDS.len()];
    // SAFETY: the caller's promise; the device lends its memories, and they their kinds.
    unsafe {
        plugin.call(&mut found)?;
        for &memory in read::list("memories", found.memories, found.num_memories)? {
            let mut kind = MemoryKindArgs { memory, ..arguments() };
            plugin.call(&mut kind)?;
            let kind = read::text("the kind of a memory", kind.kind, kind.kind_size)?;
            if let Some(number) = KINDS.iter().position(|known| *known == kind) {
                memories[number] = memory;
            }
        }
    }
    Ok(memories)
}

/// The plugin that compiles, where no client says which.
///
/// # Errors
/// As [`Compiler::open`].
pub(crate) fn library() -> StatusOr<Plugin> {
    library::open(None)
}

/// What the plugin that compiles says of itself: JAX writes programs for these versions. Without it, what XLA's CPU
/// plugin 0.115 says, because arrays can be moved all the same.
pub(crate) fn attributes() -> Vec<DeviceAttribute> {
    let stated = library::open(None).and_then(|plugin| stated(&plugin));
    stated.unwrap_or_else(|_no_compiler| {
        let version = |name: &'static str, numbers: [i64; 3]| DeviceAttribute {
            name: name.into(),
            value: AttributeValue::Integers(numbers.to_vec()),
        };
        vec![version("stablehlo_current_version", [1, 20, 0]), version("stablehlo_minimum_version", [0, 9, 0])]
    })
}

fn stated(plugin: &Plugin) -> StatusOr<Vec<DeviceAttribute>> {
    let mut found: PluginAttributesArgs = arguments();
    // SAFETY: a plugin's attributes live as long as the process; the type says which member is set.
    unsafe {
        plugin.call(&mut found)?;
        let mut stated = Vec::new();
        for value in read::each(found.attributes, found.num_attributes)? {
            let name = read::text("the name of an attribute", value.name, value.name_size)?.to_owned();
            let value = match value.r#type {
                named_value_type::STRING => {
                    AttributeValue::Text(read::text(&name, value.value.string_value, value.value_size)?.to_owned())
                }
                named_value_type::INT64 => AttributeValue::Integer(value.value.int64_value),
                named_value_type::INT64_LIST => AttributeValue::Integers(
                    read::list(&name, value.value.int64_array_value, value.value_size)?.to_vec(),
                ),
                named_value_type::FLOAT => AttributeValue::Float(value.value.float_value),
                named_value_type::BOOL => AttributeValue::Boolean(value.value.bool_value != 0),
                _ => continue,
            };
            stated.push(DeviceAttribute { name: name.into(), value });
        }
        Ok(stated)
    }
}
