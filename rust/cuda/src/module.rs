//! Code on a GPU: modules, loaded once for each context however often they are asked for, and their kernels.

#![allow(unsafe_code, reason = "the driver is called")]

use std::collections::HashMap;
use std::ffi::{CString, c_uint, c_void};
use std::ptr;
use std::sync::{Arc, Weak};

use cudarc::driver::sys::{CUcontext, CUfunction, CUmodule};
use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{DeviceKernel, KernelCode, KernelImage, LaunchDimensions};

use crate::err;
use crate::gpu::Gpu;
use crate::janitor::Garbage;
use crate::limits::Limits;
use crate::memory::Keepers;

/// The modules of a backend, by context and code. One that no kernel has any more is unloaded.
#[derive(Default)]
pub(crate) struct Modules(Mutex<HashMap<Key, Arc<Slot>>>);

/// A context, by its address, and code.
type Key = (usize, Arc<[u8]>);

/// The module for a code, if it is loaded. The lock is held while it is being loaded, so others wait for the same
/// module rather than load it again.
type Slot = Mutex<Weak<Module>>;

/// Code in a context.
pub(crate) struct Module {
    gpu: Arc<Gpu>,
    keepers: Weak<Keepers>,
    handle: CUmodule,
}

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; nothing changes.
unsafe impl Sync for Module {}

/// A kernel of a module.
pub(crate) struct Kernel {
    name: String,
    function: CUfunction,
    limits: Limits,
    /// `None`: somebody else has loaded it.
    _module: Option<Arc<Module>>,
    gpu: Arc<Gpu>,
}

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above; nothing changes.
unsafe impl Sync for Kernel {}

/// How ELF and a fatbin begin.
const MAGICS: [&[u8]; 2] = [b"\x7fELF", &0xBA55_ED50_u32.to_le_bytes()];

impl Modules {
    /// The module of that code on a GPU. May wait for another thread that loads the same.
    ///
    /// # Errors
    /// As [`Module::load`].
    fn get(&self, gpu: &Arc<Gpu>, keepers: &Arc<Keepers>, image: Arc<[u8]>, what: &str) -> StatusOr<Arc<Module>> {
        let key = (gpu.context() as usize, Arc::clone(&image));
        let slot = {
            let mut modules = self.0.lock();
            // What nobody has or loads is forgotten.
            modules.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.lock().strong_count() > 0);
            Arc::clone(modules.entry(key).or_default())
        };
        let mut loaded = slot.lock();
        if let Some(module) = loaded.upgrade() {
            return Ok(module);
        }
        let module = Arc::new(Module::load(gpu, keepers, &image, what)?);
        *loaded = Arc::downgrade(&module);
        Ok(module)
    }

    /// Loads a kernel.
    ///
    /// # Errors
    /// As [`Backend::load_kernel`](purlin_device::backend::Backend::load_kernel).
    pub(crate) fn kernel(&self, gpu: &Arc<Gpu>, keepers: &Arc<Keepers>, code: &KernelCode<'_>) -> StatusOr<Kernel> {
        let what = format!("loading {code} on GPU {}", gpu.ordinal);
        let image = match code.image {
            // The driver reads PTX to its null.
            KernelImage::Ptx(text) => Some(text.trim_end_matches('\0').as_bytes()),
            KernelImage::Cubin(bytes) if MAGICS.iter().any(|magic| bytes.starts_with(magic)) => Some(bytes),
            // It would be read as PTX.
            KernelImage::Cubin(_) => {
                return Err(Error::invalid_argument(format!("{what}: it begins neither as ELF nor as a fatbin")));
            }
            KernelImage::Loaded(_) => None,
            _ => return Err(Error::unimplemented(format!("{what}: code in a form that this backend does not know"))),
        };
        let name = CString::new(code.name)
            .map_err(|_| Error::invalid_argument(format!("{what}: the name {:?} has a zero byte", code.name)))?;
        gpu.driver.check_process()?;
        gpu.check_whole()?;
        let _current = gpu.enter()?;
        // The driver reads PTX to its null.
        let image = image.map(|image| image.iter().copied().chain([0]).collect());
        let module = image.map(|image| self.get(gpu, keepers, image, &what)).transpose()?;
        let function = match (&module, code.image) {
            (None, KernelImage::Loaded(handle)) => handle.as_ptr().cast(),
            (module, _) => {
                let (mut function, module) = (ptr::null_mut(), module.as_ref().map_or(ptr::null_mut(), |it| it.handle));
                // SAFETY: the driver writes a handle, which is good as long as the module, which the kernel keeps.
                let answer = unsafe { (gpu.api().base.function)(&mut function, module, name.as_ptr()) };
                gpu.check(answer, || what.clone())?;
                function
            }
        };
        check_parameters(gpu, function, code, &what)?;
        let limits = Limits::of(gpu, function).map_err(|answer| gpu.failed(answer, &what))?;
        Ok(Kernel { name: code.name.to_owned(), function, limits, _module: module, gpu: Arc::clone(gpu) })
    }
}

impl Module {
    /// The context of `gpu` is current.
    ///
    /// # Errors
    /// What the driver says, with what its compiler has logged: `InvalidArgument` for PTX that is none, `Unimplemented`
    /// for code that the GPU or the driver cannot run.
    fn load(gpu: &Arc<Gpu>, keepers: &Arc<Keepers>, image: &[u8], what: &str) -> StatusOr<Self> {
        /// `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
        const LOG: [c_uint; 2] = [5, 6];
        const LOG_BYTES: usize = 8192;
        let (mut handle, mut log) = (ptr::null_mut(), vec![0_u8; LOG_BYTES]);
        let mut numbers = LOG;
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
        let count = numbers.len() as c_uint;
        let load = gpu.api().base.load_module;
        // SAFETY: PTX ends in a null. A cubin begins as one and says how long it is, which is trusted as its code is.
        // Options and log are there for the call.
        let answer =
            unsafe { load(&mut handle, image.as_ptr().cast(), count, numbers.as_mut_ptr(), values.as_mut_ptr()) };
        if answer == 0 {
            return Ok(Self { gpu: Arc::clone(gpu), keepers: Arc::downgrade(keepers), handle });
        }
        let error = gpu.failed(answer, what);
        let log = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default());
        match log.trim() {
            "" => Err(error),
            log => Err(Error::new(error.code(), format!("{}; its log says: {log}", error.message()))),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let (true, Some(keepers)) = (self.gpu.driver.is_here(), self.keepers.upgrade()) {
            // The driver may wait for the GPU when it unloads code.
            keepers.janitor.take(Garbage::Module(Arc::clone(&self.gpu), self.handle));
        }
    }
}

impl Kernel {
    pub(crate) fn function(&self) -> CUfunction {
        self.function
    }

    /// Where it may be launched.
    pub(crate) fn context(&self) -> CUcontext {
        self.gpu.context()
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

impl DeviceKernel for Kernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, dimensions: &LaunchDimensions) -> Result<(), Error> {
        self.limits.check(dimensions).map_err(|why| {
            Error::invalid_argument(format!(
                "the kernel '{}' cannot be launched with {dimensions} on GPU {}: {why}",
                self.name, self.gpu.ordinal
            ))
        })
    }
}

/// That the kernel has the parameters that its caller will pass, where the driver says.
///
/// # Errors
/// `InvalidArgument`, with the first that differs. What the driver says.
fn check_parameters(gpu: &Gpu, function: CUfunction, code: &KernelCode<'_>, what: &str) -> Result<(), Error> {
    let Some(parameters) = gpu.api().parameters else { return Ok(()) };
    let ask = |index: usize| {
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: the driver writes two numbers.
        let answer = unsafe { (parameters.info)(function, index, &mut offset, &mut bytes) };
        (answer, bytes)
    };
    let passed = code.parameter_bytes.len();
    for (index, &wanted) in code.parameter_bytes.iter().enumerate() {
        match ask(index) {
            (0, bytes) if bytes == wanted => {}
            (0, bytes) => {
                let why = format!("{what}: its parameter {index} has {bytes} bytes, and {wanted} are passed");
                return Err(Error::invalid_argument(why));
            }
            (err::INVALID_VALUE, _) => {
                return Err(Error::invalid_argument(format!(
                    "{what}: it has {index} parameters, and {passed} are passed"
                )));
            }
            (answer, _) => return Err(gpu.failed(answer, what)),
        }
    }
    match ask(passed) {
        (0, _) => {
            Err(Error::invalid_argument(format!("{what}: it has more than the {passed} parameters that are passed")))
        }
        (err::INVALID_VALUE, _) => Ok(()),
        (answer, _) => Err(gpu.failed(answer, what)),
    }
}
