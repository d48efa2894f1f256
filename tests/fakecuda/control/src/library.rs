//! Where the fakes are, and opening them.

#![allow(unsafe_code, reason = "libraries are opened")]

use std::error::Error;
use std::ffi::{CString, c_char};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, io};

use libloading::Library;

use crate::{Control, Cuda, Nvml, Options};

/// What [`Driver::left`] counts.
pub const LEFT: [&str; 8] =
    ["contexts", "streams", "events", "modules", "graphs", "pools", "device_bytes", "pinned_bytes"];

/// The fake driver.
#[derive(Debug)]
pub struct Driver {
    /// The entry points.
    pub cuda: Cuda,
    /// What the fake has besides.
    pub control: Control,
}

impl Driver {
    /// The fake driver, found beside the test program or on LD_LIBRARY_PATH. It stays loaded. On a GPU ([`on_a_gpu`])
    /// it is the driver that this process finds by its name, as programs do, and may be NVIDIA's.
    ///
    /// # Panics
    /// Without one, with a line that says how to build it.
    #[must_use]
    pub fn open() -> Self {
        let library = open(driver());
        Self { cuda: Cuda::of(library), control: Control::of(library) }
    }

    /// As [`open`](Self::open), for tests that meet a real driver as well: `None` if it is not the fake one.
    ///
    /// # Panics
    /// As that does.
    #[must_use]
    pub fn if_fake() -> Option<Self> {
        Some(Self::open()).filter(|driver| driver.control.is_fake())
    }

    /// As [`open`](Self::open), with options in the place of the environment. Nothing has called the driver yet.
    ///
    /// # Panics
    /// As that does, and if something has.
    #[must_use]
    pub fn open_with(options: &Options) -> Self {
        let driver = Self::open();
        assert!(driver.control.configure(options), "the driver was called before");
        driver
    }

    /// What was made and not destroyed, as name and number.
    #[must_use]
    pub fn left(&self) -> Vec<(&'static str, u64)> {
        LEFT.into_iter().map(|what| (what, self.control.ledger(what))).filter(|(_, count)| *count > 0).collect()
    }
}

impl Nvml {
    /// The fake NVML, found as [`Driver::open`] finds the driver.
    ///
    /// # Panics
    /// As that does.
    #[must_use]
    pub fn open() -> Self {
        Self::of(open(find("libnvidia_ml.so")))
    }

    /// Sets faults in the place of those that there are, as the driver's: `ENTRY:NUMBER:CODE`, separated by commas.
    ///
    /// # Panics
    /// If the text is not understood.
    pub fn set_faults(&self, faults: &str) {
        told(self.purlin_fakenvml_set_faults, faults);
    }

    /// Says the fabric of each device from now on: `STATE:STATUS:CLIQUE`.
    ///
    /// # Panics
    /// If the text is not understood.
    pub fn set_fabric(&self, fabric: &str) {
        told(self.purlin_fakenvml_set_fabric, fabric);
    }
}

fn told(function: unsafe extern "C" fn(*const c_char) -> u32, text: &str) {
    let words = CString::new(text).expect("a text has no null");
    // SAFETY: the text ends in a null and lives during the call.
    assert_eq!(unsafe { function(words.as_ptr()) }, 0, "'{text}' is not understood");
}

/// Whether tests meet the driver of this machine and its GPUs (`scripts/gpu`).
#[must_use]
pub fn on_a_gpu() -> bool {
    env::var_os("PURLIN_GPU_DEVICES").is_some()
}

/// Where the driver is that tests meet.
fn driver() -> Result<PathBuf, String> {
    if on_a_gpu() { Ok(PathBuf::from("libcuda.so.1")) } else { find("libcuda.so") }
}

/// The driver, if this process has loaded it already, by whatever name.
pub(crate) fn loaded() -> Option<&'static Library> {
    use libloading::os::unix;
    let path = driver().ok()?;
    // SAFETY: nothing is loaded, so no initialiser runs.
    let library = unsafe { unix::Library::open(Some(path), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }.ok()?;
    Some(keep(library.into()))
}

pub(crate) fn open(path: Result<PathBuf, String>) -> &'static Library {
    let path = path.unwrap_or_else(|why| panic!("{why}"));
    // SAFETY: the fakes' initialisers do nothing, a driver's may run at any time, and they are never unloaded, so
    // finalisers do not run.
    let library = unsafe { Library::new(&path) }.unwrap_or_else(|why| {
        // The loader's own words are behind libloading's.
        let loader = why.source().map(|source| format!(": {source}")).unwrap_or_default();
        panic!("{}: {why}{loader}", path.display())
    });
    keep(library)
}

/// It stays loaded.
fn keep(library: Library) -> &'static Library {
    let library: &'static Library = Box::leak(Box::new(library));
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).push(library);
    library
}

/// Keeps what is never closed in LeakSanitizer's sight.
static OPENED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// Where cargo put one of `libcuda.so` and `libnvidia_ml.so`: beside this program, above it, or on LD_LIBRARY_PATH.
///
/// # Errors
/// A line that says how to build it, or that there are two.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let program = env::current_exe().unwrap_or_default();
    let paths = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = program.ancestors().skip(1).take(2).map(Path::to_owned).collect();
    folders.extend(env::split_paths(&paths));
    let mut found = folders.into_iter().map(|folder| folder.join(name)).filter(|path| path.exists());
    let first = found.next().ok_or_else(|| format!("{name} is not built: cargo build -p purlin-fakecuda"))?;
    // The loader may find another one by its name, and a program would have two drivers.
    match found.find(|other| !is_same_file(&first, other)) {
        Some(other) => Err(format!("{} and {} differ: remove the older one", first.display(), other.display())),
        None => Ok(first),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    identity(one) == identity(other)
}

/// Makes the folder, with links to the fakes by the names that programs look for: for their LD_LIBRARY_PATH.
///
/// # Errors
/// Those of the file system, or that the fakes are not built, with a line that says how to.
pub fn links(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // By both names of the driver: a machine with a GPU may have either.
    for (built, wanted) in
        [("libcuda.so", "libcuda.so"), ("libcuda.so", "libcuda.so.1"), ("libnvidia_ml.so", "libnvidia-ml.so.1")]
    {
        let target = find(built).map_err(io::Error::other)?;
        let link = folder.join(wanted);
        match fs::remove_file(&link) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => symlink(target, link)?,
        }
    }
    Ok(())
}
