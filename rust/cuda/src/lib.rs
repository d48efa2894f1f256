//! Purlin's CUDA backend: NVIDIA GPUs, by their driver, which is found at run time.
//!
//! A program that has this links and runs where no CUDA was ever installed; only a call that makes a client needs a
//! driver.
//!
//! Each device has three kinds of memory. The host does not reach `device`; `pinned_host` is page-locked, so that the
//! GPU copies from and to it by itself; `unpinned_host` is ordinary memory. Copies between a GPU and memory that
//! nothing has pinned, and arrays that are strided or packed on the host, go through pinned chunks.
//!
//! An operation waits for others of this backend by waits between streams, and for events of others on no thread: it
//! is enqueued when they have happened. A thread for each device of a client learns what is over.

#![deny(unsafe_code)]

mod api;
mod arrivals;
mod copy;
mod download;
mod driver;
mod err;
mod event_pool;
mod facts;
mod flow;
mod foreign;
mod gpu;
mod graph;
mod in_flight;
mod janitor;
mod known;
mod launch;
mod limits;
mod line;
mod loader;
mod mapped;
mod memory;
#[cfg(all(test, loom))]
mod model;
mod module;
mod nvml;
mod side_streams;
// Nothing of it has a model.
#[cfg(not(purlin_model))]
mod nvrtc;
mod operation_name;
mod orders;
mod overlapping;
mod parts;
mod peer;
mod pinned;
mod pointer;
mod poller;
mod route;
mod staging;
mod stall;
mod stream;
// A recording is one per process, which models cannot have.
#[cfg_attr(purlin_model, path = "trace/none.rs")]
mod trace;
mod upload;
mod uses;

use std::fmt;
use std::sync::Arc;

use purlin_async::Event;
use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{
    Backend, DeviceDescription, DeviceKernel, DmaRegistration, ForeignStream, ForeignWork, INLINE_LIMIT_BYTES,
    KernelCode, Memory, Operation, Schedule,
};
use purlin_device::platform::Platform;

#[cfg(not(purlin_model))]
pub use nvrtc::{CompileCache, Compiler, KernelSource, Ptx};

use driver::Driver;
use gpu::Gpu;
use line::Role;
use memory::{DeviceMemory, Keepers, PinnedMemory, Registration};
use module::Modules;
use orders::Orders;
use pointer::HostMemory;
use poller::Poller;
use staging::Staging;

/// The platform of this backend.
pub const PLATFORM: Platform = Platform {
    name: "cuda",
    make: |options| {
        options.without_host_memory_allocator("cuda")?;
        Ok(Arc::new(CudaBackend::new()?.with_virtual_devices(options.virtual_devices)))
    },
};

/// See the crate. What its devices say of themselves, as attributes, is listed in `purlin/cuda.h`.
///
/// ```
/// use purlin_cuda::CudaBackend;
///
/// // Without a driver or a GPU it says what is missing.
/// if let Err(error) = CudaBackend::new() {
///     assert_eq!(error.code(), purlin::StatusCode::Unavailable);
/// }
/// ```
pub struct CudaBackend {
    shared: Arc<Shared>,
    virtual_devices: bool,
    host: purlin_host::HostBackend,
}

/// What all operations of a backend share.
pub(crate) struct Shared {
    driver: &'static Driver,
    /// Opened when a client wants them, in the driver's order.
    units: Mutex<Vec<Arc<Unit>>>,
    pub(crate) orders: Orders,
    pub(crate) keepers: Arc<Keepers>,
    modules: Modules,
}

/// A GPU, with what moves its work along.
pub(crate) struct Unit {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) staging: Arc<Staging>,
    pub(crate) poller: Poller,
}

impl CudaBackend {
    /// A backend on the driver of this machine.
    ///
    /// # Errors
    /// `Unavailable`, with what would help: there is no driver, or it is older than 12.2 or has no device; the program
    /// is linked statically. `FailedPrecondition`: a child made by `fork` of a process that uses CUDA.
    pub fn new() -> StatusOr<Self> {
        let driver = Driver::get()?;
        let keepers = Arc::new(Keepers::new(driver));
        let (units, orders) = (Mutex::default(), Orders::default());
        let shared = Arc::new(Shared { driver, units, orders, keepers, modules: Modules::default() });
        Ok(Self { shared, virtual_devices: false, host: purlin_host::HostBackend::new() })
    }

    /// This backend, whose clients may, or may not, have more devices than there are GPUs. Device `d` is on GPU number
    /// `d % n` of `n` then, with streams and memory of its own, in the context that all devices of a GPU share. What
    /// breaks a GPU breaks all its devices.
    #[must_use]
    pub fn with_virtual_devices(mut self, virtual_devices: bool) -> Self {
        self.virtual_devices = virtual_devices;
        self
    }
}

impl Shared {
    /// Whether more than one GPU is open, of which one can break and another go on.
    pub(crate) fn has_several_units(&self) -> bool {
        self.units.lock().len() > 1
    }

    /// A GPU that is not broken, for what all share; the first, where all are broken.
    ///
    /// # Errors
    /// What the driver says.
    fn whole_gpu(&self) -> StatusOr<Arc<Gpu>> {
        let first = self.unit(0)?;
        let units = self.units.lock();
        let whole = units.iter().find(|unit| unit.gpu.check_whole().is_ok());
        Ok(Arc::clone(&whole.unwrap_or(&first).gpu))
    }

    /// The GPU of that device.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn unit(&self, device: usize) -> StatusOr<Arc<Unit>> {
        self.driver.check_process()?;
        let mut units = self.units.lock();
        while units.len() <= device {
            let gpu = Gpu::open(self.driver, units.len())?;
            units.iter().for_each(|unit| peer::connect(&unit.gpu, &gpu));
            let (staging, poller) =
                (Staging::new(Arc::clone(&gpu), Arc::clone(&self.keepers)), Poller::new(Arc::clone(&gpu)));
            units.push(Arc::new(Unit { gpu, staging, poller }));
        }
        Ok(Arc::clone(&units[device]))
    }
}

impl fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaBackend").field("device_count", &self.shared.driver.device_count).finish_non_exhaustive()
    }
}

impl Backend for CudaBackend {
    fn platform_name(&self) -> &'static str {
        "cuda"
    }

    fn devices(&self, count: usize) -> StatusOr<Vec<DeviceDescription>> {
        let there = self.shared.driver.device_count;
        if count > there && !self.virtual_devices {
            return Err(Error::invalid_argument(format!(
                "{count} devices are wanted, and CUDA's driver has {there}; with the option virtual_devices, several \
                 are on one GPU"
            )));
        }
        (0..count).map(|device| Ok(facts::describe(&self.shared.unit(device)?.gpu))).collect()
    }

    fn device_count(&self) -> Option<usize> {
        Some(self.shared.driver.device_count)
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device", "pinned_host", "unpinned_host"]
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        let gpu = Arc::clone(&self.shared.unit(device)?.gpu);
        let keepers = Arc::clone(&self.shared.keepers);
        let memory: Box<dyn Memory> = match kind {
            "device" => return Ok(Box::new(DeviceMemory { gpu, keepers })),
            "pinned_host" => Box::new(PinnedMemory { gpu: Arc::clone(&gpu), keepers: Arc::clone(&keepers) }),
            _ => self.host.open_memory(device, kind)?,
        };
        Ok(Box::new(HostMemory { memory, kind, gpu, keepers }))
    }

    fn dma_map(&self, address: usize, size_bytes: usize) -> StatusOr<DmaRegistration> {
        let gpu = self.shared.whole_gpu()?;
        Ok(Box::new(Registration::new(&gpu, &self.shared.keepers, address, size_bytes)?))
    }

    fn kernels_are_host_functions(&self) -> bool {
        false
    }

    fn load_kernel(&self, device: usize, code: &KernelCode<'_>) -> StatusOr<Arc<dyn DeviceKernel>> {
        let gpu = Arc::clone(&self.shared.unit(device)?.gpu);
        Ok(Arc::new(self.shared.modules.kernel(&gpu, &self.shared.keepers, code)?))
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        let Some(device) = copy::device_of(&operation) else {
            return match copy::check_on_host(&operation) {
                Ok(()) => schedule.run_in_pieces(operation, INLINE_LIMIT_BYTES, copy::on_host),
                Err(error) => Event::from_error(error),
            };
        };
        match self.shared.unit(device) {
            Ok(unit) => in_flight::run(&self.shared, unit, operation, schedule),
            Err(error) => Event::from_error(error),
        }
    }

    fn await_foreign(&self, device: usize, work: ForeignWork, operation: Operation, schedule: &Schedule<'_>) -> Event {
        match self.shared.unit(device) {
            Ok(unit) => foreign::import(&self.shared, unit, work, operation, schedule),
            Err(error) => Event::from_error(error),
        }
    }

    fn have_stream_wait(&self, device: usize, stream: ForeignStream, event: &Event) -> Result<(), Error> {
        foreign::have_stream_wait(&self.shared, &*self.shared.unit(device)?, stream, event)
    }

    fn launch_stream(&self, device: usize, number: u8) -> StatusOr<usize> {
        let unit = self.shared.unit(device)?;
        Ok(unit.gpu.stream(Role::of_launches(number)).handle().expose_provenance())
    }
}
