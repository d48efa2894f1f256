//! Programs: compiled by the plugin that compiles, run by Purlin where it can, by that plugin where it cannot.
//!
//! | module | what it is |
//! |---|---|
//! | here | what a `PJRT_LoadedExecutable` and a `PJRT_Executable` share; how they are made and end |
//! | `native` | the same program, loaded by Purlin |
//! | `policy` | which programs the mode `auto` does not run by Purlin although it could |
//! | `facts` | what the compiler knows of a program, passed on |
//! | `run` | `PJRT_LoadedExecutable_Execute`: the arguments, and where the program runs |
//! | `delegated` | a run by the plugin that compiles |
//! | `check` | whether both come to the same |

mod check;
mod delegated;
mod facts;
pub(crate) mod native;
mod policy;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use purlin_array::{Layout, Shape};
use purlin_base::sync::OnceLock;
use purlin_base::{Error, Label, StatusOr};
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi::{
    self as abi, ClientCompileArgs, ExecutableDeserializeAndLoadArgs, ExecutableDestroyArgs, ExecutableNameArgs,
    ExecutableOutputDimensionsArgs, ExecutableOutputElementTypesArgs, ExecutableOutputMemoryKindsArgs,
    LoadedExecutableAddressableDevicesArgs, LoadedExecutableDeleteArgs, LoadedExecutableDestroyArgs,
    LoadedExecutableGetExecutableArgs, LoadedExecutableIsDeletedArgs,
};

use tracing::trace_span;

use crate::answer::Answer;
use crate::compiler::Compiler;
use crate::diagnosis;
use crate::handle::{self, Handle, lent, take};
use crate::layouts::Layouts;
use crate::platform::Platform;
use crate::read;

use native::Native;

/// See the module.
pub(crate) struct Compiled {
    pub(crate) platform: Arc<Platform>,
    pub(crate) compiler: Arc<Compiler>,
    /// The compiler's two objects.
    loaded: *mut abi::LoadedExecutable,
    pub(crate) executable: *mut abi::Executable,
    /// The results of each device, and the kinds of their memories.
    outputs: Vec<(Shape, String)>,
    /// Ours, in the order of the arguments of a run.
    devices: Vec<*mut abi::Device>,
    /// The same program, or why Purlin does not run it.
    native: StatusOr<Native>,
    /// The parameters whose memory results get, sorted.
    donated: Vec<usize>,
    /// The program's name, as the label of its runs.
    label: Label,
    is_deleted: AtomicBool,
    /// Layouts of results and of parameters, when they were asked for.
    pub(crate) output_layouts: OnceLock<StatusOr<Layouts>>,
    pub(crate) parameter_layouts: OnceLock<StatusOr<Layouts>>,
    /// Those of results, read; `None` where it is row-major.
    pub(crate) result_layouts: OnceLock<StatusOr<Vec<Option<Layout>>>>,
}

// SAFETY: the addresses are of objects that threads share.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Handle for abi::LoadedExecutable {
    type Object = Arc<Compiled>;
    const NAME: &'static str = "PJRT_LoadedExecutable";
}

impl Handle for abi::Executable {
    type Object = Arc<Compiled>;
    const NAME: &'static str = "PJRT_Executable";
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let plugin = &self.compiler.plugin;
        // SAFETY: both are ours, and end here.
        unsafe {
            plugin.end(ExecutableDestroyArgs { executable: self.executable, ..arguments() });
            plugin.end(LoadedExecutableDestroyArgs { executable: self.loaded, ..arguments() });
        }
    }
}

impl Compiled {
    /// # Errors
    /// What the compiler says; `Unimplemented` in the mode `native`: why Purlin cannot run it.
    ///
    /// `serialized` is what the compiler has loaded it from: of a program that it has loaded, it serializes no code.
    ///
    /// # Safety
    /// `loaded` is an executable of the compiler's that is given up.
    unsafe fn new(
        platform: &Arc<Platform>,
        compiler: &Arc<Compiler>,
        loaded: *mut abi::LoadedExecutable,
        serialized: Option<&[u8]>,
    ) -> StatusOr<Arc<Self>> {
        let plugin = &compiler.plugin;
        let mut found = LoadedExecutableGetExecutableArgs { loaded_executable: loaded, ..arguments() };
        // SAFETY: the caller's promise.
        if let Err(error) = unsafe { plugin.call(&mut found) } {
            // SAFETY: as above.
            unsafe { plugin.end(LoadedExecutableDestroyArgs { executable: loaded, ..arguments() }) };
            return Err(error);
        }
        // From here on, it ends both.
        let mut compiled = Self {
            platform: Arc::clone(platform),
            compiler: Arc::clone(compiler),
            loaded,
            executable: found.executable,
            outputs: Vec::new(),
            devices: Vec::new(),
            native: Err(Error::unimplemented("not tried")),
            donated: Vec::new(),
            label: Label::default(),
            is_deleted: AtomicBool::new(false),
            output_layouts: OnceLock::new(),
            parameter_layouts: OnceLock::new(),
            result_layouts: OnceLock::new(),
        };
        // SAFETY: as above.
        unsafe {
            compiled.devices = compiled.read_devices()?;
            compiled.outputs = compiled.read_outputs()?;
        }
        compiled.label = diagnosis::label_of(&compiled.name());
        native::load(&mut compiled, serialized)?;
        Ok(Arc::new(compiled))
    }

    unsafe fn read_devices(&self) -> StatusOr<Vec<*mut abi::Device>> {
        let mut found = LoadedExecutableAddressableDevicesArgs { executable: self.loaded, ..arguments() };
        // SAFETY: the executable is alive, and lends its devices.
        let theirs = unsafe {
            self.compiler.plugin.call(&mut found)?;
            read::list("devices", found.addressable_devices, found.num_addressable_devices)?
        };
        let ours = theirs.iter().map(|&device| {
            let index = self.compiler.index_of(device).and_then(|index| self.platform.devices().get(index).copied());
            index.ok_or_else(|| Error::internal("a program was compiled for a device that the client has not"))
        });
        ours.collect()
    }

    unsafe fn read_outputs(&self) -> StatusOr<Vec<(Shape, String)>> {
        let plugin = &self.compiler.plugin;
        let executable = self.executable;
        let mut types = ExecutableOutputElementTypesArgs { executable, ..arguments() };
        let mut found = ExecutableOutputDimensionsArgs { executable, ..arguments() };
        let mut memories = ExecutableOutputMemoryKindsArgs { executable, ..arguments() };
        // SAFETY: the executable is alive, and lends what it says.
        unsafe {
            plugin.call(&mut types)?;
            plugin.call(&mut found)?;
            plugin.call(&mut memories)?;
            let kinds = read::list("memory kinds", memories.memory_kinds, memories.num_outputs)?;
            let sizes = read::list("their sizes", memories.memory_kind_sizes, memories.num_outputs)?;
            let types = read::list("output types", types.output_types.cast_const(), types.num_output_types)?;
            let ranks = read::list("output ranks", found.dim_sizes, found.num_outputs)?;
            let mut dims = read::list("output dimensions", found.dims, ranks.iter().sum())?;
            let mut outputs = Vec::new();
            for ((&element_type, &rank), (&kind, &size)) in types.iter().zip(ranks).zip(kinds.iter().zip(sizes)) {
                let (own, rest) = dims.split_at(rank);
                dims = rest;
                let kind = read::text("the kind of a memory", kind, size)?.to_owned();
                outputs.push((Shape::new(read::dtype(element_type)?, own)?, kind));
            }
            Ok(outputs)
        }
    }

    /// The number of results of each device.
    pub(crate) fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// The program's name, for people.
    pub(crate) fn name(&self) -> String {
        let mut found = ExecutableNameArgs { executable: self.executable, ..arguments() };
        // SAFETY: the executable is alive, and lends its name.
        let name = unsafe {
            let called = self.compiler.plugin.call(&mut found);
            called.and_then(|()| read::text("a name", found.executable_name, found.executable_name_size))
        };
        name.unwrap_or("unnamed").to_owned()
    }

    /// # Errors
    /// `FailedPrecondition`: it was deleted.
    fn check_alive(&self) -> Result<(), Error> {
        if self.is_deleted.load(Relaxed) {
            return Err(Error::failed_precondition("the executable was deleted by PJRT_LoadedExecutable_Delete"));
        }
        Ok(())
    }
}

impl Answer for ClientCompileArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let platform = &lent::<Self, _>(self.client)?.platform;
            let compiler = platform.compiler()?;
            let _span = trace_span!(target: "purlin", "compile").entered();
            let mut theirs = Self { client: compiler.client, ..*self };
            compiler.plugin.call(&mut theirs)?;
            self.executable = handle::give(Compiled::new(platform, compiler, theirs.executable, None)?);
            Ok(())
        }
    }
}

impl Answer for ExecutableDeserializeAndLoadArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let platform = &lent::<Self, _>(self.client)?.platform;
            let compiler = platform.compiler()?;
            let bytes = self.serialized_executable.cast::<u8>();
            let serialized = read::list("serialized_executable", bytes, self.serialized_executable_size)?;
            let mut theirs = Self { client: compiler.client, ..*self };
            compiler.plugin.call(&mut theirs)?;
            let compiled = Compiled::new(platform, compiler, theirs.loaded_executable, Some(serialized))?;
            self.loaded_executable = handle::give(compiled);
            Ok(())
        }
    }
}

impl Answer for ExecutableDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.executable) }.map(drop)
    }
}

impl Answer for LoadedExecutableDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.executable) }.map(drop)
    }
}

impl Answer for LoadedExecutableGetExecutableArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.executable = handle::give(Arc::clone(unsafe { lent::<Self, _>(self.loaded_executable) }?));
        Ok(())
    }
}

impl Answer for LoadedExecutableAddressableDevicesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let devices = &unsafe { lent::<Self, _>(self.executable) }?.devices;
        (self.addressable_devices, self.num_addressable_devices) = (devices.as_ptr(), devices.len());
        Ok(())
    }
}

impl Answer for LoadedExecutableDeleteArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let compiled = unsafe { lent::<Self, _>(self.executable) }?;
        if !compiled.is_deleted.swap(true, Relaxed) {
            // SAFETY: alive.
            unsafe { compiled.compiler.plugin.call(&mut Self { executable: compiled.loaded, ..arguments() }) }?;
        }
        Ok(())
    }
}

impl Answer for LoadedExecutableIsDeletedArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.is_deleted = u8::from(unsafe { lent::<Self, _>(self.executable) }?.is_deleted.load(Relaxed));
        Ok(())
    }
}
