//! Which library is looked for, and where; and the one beside it.
//!
//! nvrtc looks for its builtins, a library of their own, by name and when it first compiles. Where it was itself found
//! by its path, the loader does not find them, unless they are loaded already: so they are loaded here, from the folder
//! in which nvrtc is. Nothing is ever unloaded.

#![allow(unsafe_code, reason = "libraries are loaded")]

use std::ffi::{CStr, OsStr, OsString, c_int, c_void};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::Library;
use purlin_base::sync::{OnceLock, Process};
use purlin_base::{Error, StatusOr};

use super::api::Api;
use crate::loader::{self, is_static};

/// The names of nvrtc, the newest first. Since 11.3, all of version 11 has that of 11.2.
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];
/// Names another one: the only one that is looked for then.
const VARIABLE: &str = "PURLIN_NVRTC";

/// The process that has loaded an nvrtc: a child made by `fork` may not use it.
static HOME: OnceLock<Process> = OnceLock::new();

/// An nvrtc that is loaded, for as long as the process lives.
pub(super) struct Nvrtc {
    pub(super) api: Api,
    /// As the loader has it.
    pub(super) path: PathBuf,
    /// Such as (12, 2).
    pub(super) version: (u32, u32),
    /// The targets that it knows, such as 75; none if it does not say.
    pub(super) targets: Vec<u32>,
    /// Why its builtins were not loaded.
    pub(super) why_no_builtins: Option<String>,
}

impl Nvrtc {
    /// The nvrtc that the variable names, else the first of the names that the loader finds.
    ///
    /// # Errors
    /// `Unimplemented`: there is none, or what there is is none; the program is static. `FailedPrecondition`: a child
    /// of a process that uses one.
    pub(super) fn find() -> StatusOr<Self> {
        match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Self::load(&[path], &format!("as the variable {VARIABLE} names it")),
            None => {
                let advice = format!(
                    "install CUDA's nvrtc, add its folder to LD_LIBRARY_PATH, or set {VARIABLE} to the library's path"
                );
                Self::load(&NAMES.map(OsString::from), &advice)
            }
        }
    }

    /// The first of these that the loader finds.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub(super) fn load(names: &[OsString], advice: &str) -> StatusOr<Self> {
        if is_static() {
            return Err(Error::unimplemented(
                "this program is linked statically, and a static program cannot load nvrtc: link it against the C \
                 library dynamically",
            ));
        }
        check_process()?;
        let mut words = Vec::new();
        for name in names {
            // SAFETY: the initialisers are those of nvrtc, or of what the caller calls so.
            match unsafe { loader::load(name) } {
                Ok(library) => return Self::of(library, name),
                Err(why) => words.push(why),
            }
        }
        Err(Error::unimplemented(format!(
            "CUDA C cannot be compiled, because nvrtc was not found ({advice}): {}",
            words.join("; ")
        )))
    }

    fn of(library: Library, name: &OsStr) -> StatusOr<Self> {
        // SAFETY: a library of that name is nvrtc; it is forgotten below, and so stays.
        let api = unsafe { Api::of(&library) };
        mem::forget(library);
        HOME.get_or_init(Process::this);
        let shown = name.display();
        let api = api.map_err(|lacks| {
            Error::unimplemented(format!("{shown} is no nvrtc of 11.2 or newer: it has no {lacks}"))
        })?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: it writes two numbers to places of this frame.
        let code = unsafe { (api.base.version)(&mut major, &mut minor) };
        let (Ok(major), Ok(minor), 0) = (u32::try_from(major), u32::try_from(minor), code) else {
            let answer = api.describe(code);
            return Err(Error::unimplemented(format!("{shown} does not say its version: {answer}, {major}.{minor}")));
        };
        let path = path_of(api.base.version as *const c_void).unwrap_or_else(|| PathBuf::from(name));
        let why_no_builtins = load_builtins(&path, (major, minor)).err();
        Ok(Self { api, path, version: (major, minor), targets: targets(&api), why_no_builtins })
    }
}

/// In a child of a process that has loaded an nvrtc, locks of it may be held for ever.
///
/// # Errors
/// `FailedPrecondition`: this is such a child.
pub(super) fn check_process() -> Result<(), Error> {
    if HOME.get().is_none_or(|home| home.is_this()) {
        return Ok(());
    }
    Err(Error::failed_precondition(
        "nvrtc was loaded by the parent of this process, and cannot be used in a child made by fork: compile before, \
         or start the child by exec",
    ))
}

/// The file that has that function.
fn path_of(function: *const c_void) -> Option<PathBuf> {
    let mut found = mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: it writes into the place, which is one of pointers, for which zeros are valid.
    let (is_found, found) = unsafe { (libc::dladdr(function, found.as_mut_ptr()) != 0, found.assume_init()) };
    if !is_found || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's text, which stays as long as the library.
    let path = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

/// # Errors
/// What the loader says.
fn load_builtins(nvrtc: &Path, (major, minor): (u32, u32)) -> Result<(), String> {
    let path = nvrtc.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
    // SAFETY: the initialisers are those of nvrtc's builtins.
    unsafe { loader::load(path.as_os_str()) }.map(mem::forget)
}

fn targets(api: &Api) -> Vec<u32> {
    let mut count: c_int = 0;
    // SAFETY: it writes a number.
    let code = unsafe { (api.base.target_count)(&mut count) };
    // No compiler knows so many; one that says so is not asked.
    let Some(count) = usize::try_from(count).ok().filter(|count| code == 0 && *count <= 1024) else {
        return Vec::new();
    };
    let mut targets: Vec<c_int> = vec![0; count];
    // SAFETY: it writes as many numbers as it has said.
    let code = unsafe { (api.base.targets)(targets.as_mut_ptr()) };
    let numbers = targets.into_iter().filter_map(|target| u32::try_from(target).ok());
    if code == 0 { numbers.collect() } else { Vec::new() }
}
