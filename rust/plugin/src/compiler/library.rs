//! Where the plugin that compiles is, and how it is opened: once in a process, for ever.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::Library;
use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr};
use purlin_pjrt::abi::{Api, arguments};
use purlin_pjrt::foreign::Plugin;
use purlin_pjrt_abi::PluginInitializeArgs;

/// The library of PyPI's `lammps-jax-pjrt-cpu`, in the folder of Python's packages.
const OF_WHEEL: &str = "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so";

/// The plugin at `path`; without one, that of `PURLIN_PJRT_COMPILER`, or of the wheel beside this library.
///
/// # Errors
/// `NotFound`: there is none, and how to get one. `FailedPrecondition`: it cannot be opened, or is no such plugin.
pub(super) fn open(path: Option<&str>) -> StatusOr<Plugin> {
    static OPENED: Mutex<Vec<(PathBuf, Plugin)>> = Mutex::new(Vec::new());
    let path = match path {
        Some(path) => PathBuf::from(path),
        None => found()?,
    };
    let known = OPENED.lock().iter().find(|(opened, _)| *opened == path).map(|&(_, plugin)| plugin);
    if let Some(plugin) = known {
        return Ok(plugin);
    }
    let plugin = load(&path)?;
    // Of two threads that race, both have the same library: the system opens it once.
    OPENED.lock().push((path, plugin));
    Ok(plugin)
}

fn found() -> StatusOr<PathBuf> {
    if let Some(path) = std::env::var_os("PURLIN_PJRT_COMPILER").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    // Beside the folder of the wheel that this library is in.
    let own = own_path();
    let folders = own.iter().flat_map(|own| own.ancestors().skip(1).take(2));
    folders.map(|folder| folder.join(OF_WHEEL)).find(|path| path.exists()).ok_or_else(|| {
        Error::not_found(
            "there is no plugin that compiles: install the package lammps-jax-pjrt-cpu, or name the library of a PJRT \
             plugin for CPUs by the option 'compiler' or by PURLIN_PJRT_COMPILER",
        )
    })
}

/// Where this library is.
fn own_path() -> Option<PathBuf> {
    // SAFETY: all zeros are a value of it.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let here = own_path as *const ();
    // SAFETY: a function of this library, and a place for the answer, whose text lives as long as the library.
    unsafe {
        if libc::dladdr(here.cast(), &raw mut found) == 0 || found.dli_fname.is_null() {
            return None;
        }
        Some(PathBuf::from(OsStr::from_bytes(CStr::from_ptr(found.dli_fname).to_bytes())))
    }
}

fn load(path: &Path) -> StatusOr<Plugin> {
    let refused =
        |why: String| Error::failed_precondition(format!("the plugin that compiles, {}: {why}", path.display()));
    // SAFETY: its initializers run, as those of every library that a process names; the symbol has the type that PJRT
    // gives it; the library is never closed, because plugins have threads.
    let plugin = unsafe {
        let library = Library::new(path).map_err(|error| refused(error.to_string()))?;
        let get_api = *library
            .get::<unsafe extern "C" fn() -> *const Api>("GetPjrtApi")
            .map_err(|error| refused(error.to_string()))?;
        std::mem::forget(library);
        Plugin::new(get_api()).map_err(|error| refused(error.message().to_owned()))?
    };
    let (size, major) = plugin.version();
    if size < std::mem::offset_of!(Api, error_destroy) || major != 0 {
        return Err(refused(format!("its PJRT_Api has {size} bytes and version {major}; 0 is known")));
    }
    // SAFETY: the arguments are whole.
    unsafe { plugin.call(&mut arguments::<PluginInitializeArgs>()) }?;
    Ok(plugin)
}
