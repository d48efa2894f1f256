//! `PJRT_Memory`: a memory space of a device. It begins with a table, by which callers attach data.

use std::ffi::c_void;
use std::mem;
use std::ptr;

use purlin_base::Error;
use purlin_base::sync::{Mutex, OnceLock};
use purlin_device::MemorySpace;
use purlin_ffi::panic::contain;
use purlin_pjrt_abi::{
    self as abi, MemoryAddressableByDevicesArgs, MemoryDebugStringArgs, MemoryIdArgs, MemoryKindArgs, MemoryKindIdArgs,
    MemoryTable, MemoryToStringArgs, MemoryUserDataDeleter,
};

use crate::answer::Answer;
use crate::handle::{Handle, lent};
use crate::text::lend;

static TABLE: MemoryTable = MemoryTable {
    struct_size: size_of::<MemoryTable>(),
    extension_start: ptr::null_mut(),
    instance_struct_size: size_of::<abi::Memory>(),
    get_user_data: Some(get_user_data),
    set_user_data: Some(set_user_data),
};

/// What is behind a `PJRT_Memory`.
pub(crate) struct MemoryObject {
    pub(crate) space: MemorySpace,
    text: String,
    debug: String,
    device: OnceLock<usize>,
    attached: Mutex<Vec<Attached>>,
}

/// What a caller has attached under a key.
struct Attached {
    key: usize,
    data: usize,
    deleter: MemoryUserDataDeleter,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            // SAFETY: the caller's function for the caller's data, called once.
            unsafe { deleter(ptr::with_exposed_provenance_mut(self.data)) };
        }
    }
}

impl MemoryObject {
    pub(crate) fn new(space: MemorySpace) -> Self {
        let (text, device) = (space.to_string(), OnceLock::new());
        let debug = format!("{text}, memory {} of Purlin", space.id());
        Self { space, text, debug, device, attached: Mutex::new(Vec::new()) }
    }

    /// Says which device it belongs to, once.
    pub(crate) fn reach(&self, device: *mut abi::Device) {
        self.device.get_or_init(|| device.expose_provenance());
    }

    /// The number of its kind: its place among the memories of a device.
    pub(crate) fn kind_id(&self) -> i32 {
        let kinds = self.space.device().memory_spaces().len();
        self.space.id() % i32::try_from(kinds).unwrap_or(i32::MAX).max(1)
    }
}

impl Handle for abi::Memory {
    type Object = MemoryObject;
    const NAME: &'static str = "PJRT_Memory";

    fn word() -> u64 {
        (&raw const TABLE).addr() as u64
    }
}

const _: () = assert!(size_of::<abi::Memory>() == size_of::<u64>());

/// What a function of the table finds.
///
/// # Safety
/// `memory` is null or alive.
unsafe fn found<'a>(memory: *mut abi::Memory) -> Option<&'a MemoryObject> {
    // SAFETY: the caller's promise.
    unsafe { lent::<MemoryIdArgs, _>(memory) }.ok()
}

unsafe extern "C" fn get_user_data(memory: *mut abi::Memory, key: *const c_void) -> *mut c_void {
    contain("PJRT_Memory get_user_data", ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let Some(memory) = (unsafe { found(memory) }) else { return ptr::null_mut() };
        let attached = memory.attached.lock();
        let found = attached.iter().find(|attached| attached.key == key.addr());
        found.map_or(ptr::null_mut(), |found| ptr::with_exposed_provenance_mut(found.data))
    })
}

unsafe extern "C" fn set_user_data(
    memory: *mut abi::Memory,
    key: *const c_void,
    data: *mut c_void,
    deleter: MemoryUserDataDeleter,
) {
    contain("PJRT_Memory set_user_data", (), || {
        // SAFETY: the caller's promise.
        let Some(memory) = (unsafe { found(memory) }) else { return };
        let (key, new) = (key.addr(), Attached { key: key.addr(), data: data.expose_provenance(), deleter });
        let mut attached = memory.attached.lock();
        let place = attached.iter().position(|attached| attached.key == key);
        let old = match (place, data.is_null()) {
            (Some(place), true) => Some(attached.swap_remove(place)),
            (Some(place), false) => Some(mem::replace(&mut attached[place], new)),
            (None, true) => None,
            (None, false) => {
                attached.push(new);
                None
            }
        };
        // The caller's code runs without the lock.
        drop(attached);
        drop(old);
    });
}

impl Answer for MemoryIdArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.id = unsafe { lent::<Self, _>(self.memory) }?.space.id();
        Ok(())
    }
}

impl Answer for MemoryKindArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        (self.kind, self.kind_size) = lend(unsafe { lent::<Self, _>(self.memory) }?.space.kind());
        Ok(())
    }
}

impl Answer for MemoryKindIdArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.kind_id = unsafe { lent::<Self, _>(self.memory) }?.kind_id();
        Ok(())
    }
}

impl Answer for MemoryDebugStringArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        (self.debug_string, self.debug_string_size) = lend(&unsafe { lent::<Self, _>(self.memory) }?.debug);
        Ok(())
    }
}

impl Answer for MemoryToStringArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        (self.to_string, self.to_string_size) = lend(&unsafe { lent::<Self, _>(self.memory) }?.text);
        Ok(())
    }
}

impl Answer for MemoryAddressableByDevicesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let memory = unsafe { lent::<Self, _>(self.memory) }?;
        // A word that holds the address stays where it is.
        let device = memory.device.get().map_or(ptr::null(), ptr::from_ref);
        (self.devices, self.num_devices) = (device.cast(), usize::from(!device.is_null()));
        Ok(())
    }
}
