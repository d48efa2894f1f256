//! What NVIDIA's management library knows of a GPU and the driver does not: the NVLink fabric that it belongs to.
//!
//! The library is found at run time, as the driver is. Without one, or where it refuses anything, nothing is known and
//! nothing is lost. It stays loaded and initialised. NVML is called by one thread at a time.

#![allow(unsafe_code, reason = "NVML is found by name and called by address")]

use std::ffi::{CString, OsStr, c_char, c_uint};
use std::{mem, ptr};

use purlin_base::sync::{Mutex, OnceLock, Process};

use crate::api::{ResultCode, group};
use crate::loader::{is_static, load};

/// The library that comes with every driver.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// `nvmlDevice_t`: an address of NVML's.
type Device = usize;

group! {
    /// Since driver 550.
    Api {
        init = "nvmlInit_v2"();
        device_by_bus_id = "nvmlDeviceGetHandleByPciBusId_v2"(*const c_char, *mut Device);
        fabric = "nvmlDeviceGetGpuFabricInfoV"(Device, *mut FabricInfo);
    }
}

/// `nvmlGpuFabricInfo_v2_t`.
#[repr(C)]
pub(crate) struct FabricInfo {
    version: c_uint,
    cluster: [u8; 16],
    status: ResultCode,
    clique: c_uint,
    state: u8,
    health: c_uint,
}

/// The GPUs of one cluster and clique reach each other's memory by NVLink, also from one machine to another.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) cluster: [u8; 16],
    pub(crate) clique: u32,
}

struct Nvml {
    api: Api,
    /// The process that initialised it: a child made by `fork` may not use it.
    home: Process,
    /// Held during each call.
    calls: Mutex<()>,
}

static NVML: OnceLock<Option<Nvml>> = OnceLock::new();

impl Nvml {
    fn found() -> Option<Self> {
        if is_static() {
            return None;
        }
        // SAFETY: a library of that name is NVML, whose initialisers may run at any time.
        let library = unsafe { load(OsStr::new(LIBRARY)) }.ok()?;
        // SAFETY: as above; it is forgotten in the next line, and so stays.
        let api = unsafe { Api::of(&library) };
        mem::forget(library);
        let api = api.ok()?;
        // SAFETY: this is the first call, as the manual wants.
        let is_ready = unsafe { (api.init)() } == 0;
        is_ready.then(|| Self { api, home: Process::this(), calls: Mutex::new(()) })
    }
}

/// The fabric of the GPU with that place on the bus. `None`: it is in none, has not yet joined one, or NVML does not
/// say. The first call loads NVML, which takes up to seconds.
pub(crate) fn fabric_of(bus_id: &str) -> Option<Fabric> {
    /// `NVML_GPU_FABRIC_STATE_COMPLETED`: whether it has joined is then in the status.
    const COMPLETED: u8 = 3;
    /// The number of the struct above, and its size.
    const VERSION: c_uint = 2 << 24 | size_of::<FabricInfo>() as c_uint;
    let nvml = NVML.get_or_init(Nvml::found).as_ref().filter(|nvml| nvml.home.is_this())?;
    let bus_id = CString::new(bus_id).ok()?;
    let mut device = 0;
    let mut info = FabricInfo { version: VERSION, cluster: [0; 16], status: 0, clique: 0, state: 0, health: 0 };
    let _alone = nvml.calls.lock();
    // SAFETY: the text ends in a null, and NVML writes a handle.
    if unsafe { (nvml.api.device_by_bus_id)(bus_id.as_ptr(), ptr::from_mut(&mut device)) } != 0 {
        return None;
    }
    // SAFETY: NVML gave the handle, and writes no more than the version has the size of.
    if unsafe { (nvml.api.fabric)(device, ptr::from_mut(&mut info)) } != 0 {
        return None;
    }
    let is_member = info.state == COMPLETED && info.status == 0 && info.cluster != [0; 16];
    is_member.then_some(Fabric { cluster: info.cluster, clique: info.clique })
}

/// As NVML's header has it: `nvmlGpuFabricInfo_v2` is 0x2000024.
const _: () = assert!(size_of::<FabricInfo>() == 0x24 && mem::offset_of!(FabricInfo, health) == 0x20);
