//! The driver of this process: found, initialised and asked for its devices, once.

#![allow(unsafe_code, reason = "the driver is called")]

use std::ffi::{OsStr, c_int};
use std::mem;

use cudarc::driver::sys::is_culib_present;
use purlin_base::sync::{OnceLock, Process};
use purlin_base::{Error, StatusOr};

use crate::api::{Api, ResultCode};
use crate::err;
use crate::loader::{is_static, load};

/// 12.2: the first with all entry points, and with the PTX that is shipped.
const LEAST_VERSION: c_int = 12020;
/// The library that every driver has.
const LIBRARY: &str = "libcuda.so.1";

/// See the module.
pub(crate) struct Driver {
    pub(crate) api: Api,
    pub(crate) device_count: usize,
    /// As the driver says it: 12040 is 12.4.
    version: c_int,
    /// The process that initialised it: a child made by `fork` may not use it.
    home: Process,
}

static DRIVER: OnceLock<StatusOr<Driver>> = OnceLock::new();

impl Driver {
    /// The one driver.
    ///
    /// # Errors
    /// `Unavailable`, with what would help: there is none, it is too old, or it has no device; the program is static.
    /// `FailedPrecondition`: this is a child of a process that uses it.
    pub(crate) fn get() -> StatusOr<&'static Self> {
        let driver = DRIVER.get_or_init(Self::found).as_ref().map_err(Clone::clone)?;
        driver.check_process()?;
        Ok(driver)
    }

    /// # Errors
    /// `FailedPrecondition`: this is a child made by `fork`.
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.is_here() {
            return Ok(());
        }
        Err(Error::failed_precondition(
            "CUDA was initialised by the parent of this process, and cannot be used in a child made by fork: fork \
             before, or start the child by exec",
        ))
    }

    /// False in a child made by `fork`, where no entry point may be called.
    pub(crate) fn is_here(&self) -> bool {
        self.home.is_this()
    }

    /// The newest CUDA that it is for, such as `12.4`.
    pub(crate) fn version_text(&self) -> String {
        version_text(self.version)
    }

    /// For models.
    #[cfg(all(test, loom))]
    pub(crate) fn of(api: Api) -> Self {
        Self { api, device_count: 1, version: LEAST_VERSION, home: Process::this() }
    }

    fn found() -> StatusOr<Self> {
        if is_static() {
            return Err(Error::unavailable(
                "this program is linked statically, and a static program cannot load CUDA's driver: link it against \
                 the C library dynamically",
            ));
        }
        // SAFETY: it opens a library by the names that drivers have.
        if !unsafe { is_culib_present() } {
            return Err(not_loaded());
        }
        // SAFETY: it is there, and a library of that name is a driver.
        let api = unsafe { Api::of_library() }?;
        let unavailable = |code, what: &str| {
            Error::unavailable(format!("{}; {}", err::error(&api, code, what).message(), what_helps(code)))
        };
        // SAFETY: this is the first call, as the manual wants.
        match unsafe { (api.base.init)(0) } {
            0 => {}
            code => return Err(unavailable(code, "CUDA's driver cannot be initialised")),
        }
        let (mut version, mut count) = (0, 0);
        // SAFETY: each writes a number to a place of this frame.
        let codes = unsafe { ((api.base.driver_version)(&mut version), (api.base.device_count)(&mut count)) };
        if codes.0 != 0 {
            return Err(unavailable(codes.0, "CUDA's driver does not say its version"));
        }
        if version < LEAST_VERSION {
            return Err(Error::unavailable(format!(
                "CUDA's driver is for CUDA {}, and 12.2 is the least: install driver 535 or newer",
                version_text(version)
            )));
        }
        if codes.1 != 0 || count <= 0 {
            return Err(unavailable(if codes.1 == 0 { 100 } else { codes.1 }, "CUDA's driver has no device"));
        }
        Ok(Self { api, device_count: count as usize, version, home: Process::this() })
    }
}

fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// That there is no driver, with what the loader says: there is no such file, or it is none that can be loaded.
fn not_loaded() -> Error {
    // SAFETY: a library of that name is a driver, whose initialisers may run at any time.
    let loaded = unsafe { load(OsStr::new(LIBRARY)) }.map(mem::forget);
    let why = loaded.err().unwrap_or_else(|| format!("{LIBRARY}: it was not there before"));
    Error::unavailable(format!(
        "CUDA's driver cannot be loaded ({why}): install NVIDIA's driver, or add its folder to LD_LIBRARY_PATH"
    ))
}

/// What helps a driver that answers the code to its first calls.
fn what_helps(code: ResultCode) -> &'static str {
    match code {
        3 => {
            "if fork made this process after its parent had used CUDA, no CUDA can be had here: fork before, or start a \
             program by exec"
        }
        34 => "this is the stub that programs are linked with: take the folder 'stubs' of CUDA from LD_LIBRARY_PATH",
        100 => "see whether nvidia-smi lists a GPU, and whether CUDA_VISIBLE_DEVICES hides it",
        101 => "see whether CUDA_VISIBLE_DEVICES names only GPUs that nvidia-smi lists",
        802 => "the machine's GPUs are still being started: see whether NVIDIA's fabric manager runs",
        803 => {
            "libcuda.so.1 and the driver in the kernel are of different versions: restart the machine after an \
             update, or see which libcuda.so.1 LD_LIBRARY_PATH has before the driver's"
        }
        804 => "libcuda.so.1 is a newer one for other GPUs: take the folder 'compat' of CUDA from LD_LIBRARY_PATH",
        _ => "see whether nvidia-smi works on this machine",
    }
}
