//! The CUDA backend under conformance, on the fake driver: cases pass, the fake's detector is silent, and its books are
//! empty at the end of each case.
//!
//! With PURLIN_GPU_DEVICES (`scripts/gpu`) it is the driver that programs find: NVIDIA's, which has no detector and no
//! books, or a fake one in its place.

#![allow(unsafe_code, reason = "the fake driver is told by the environment")]

use std::ffi::c_int;
use std::sync::{Arc, Once, OnceLock};
use std::thread;

use purlin::program::KernelPayload;
use purlin_async::{Event, EventPromise, Task};
use purlin_base::{Error, StatusOr};
use purlin_conformance::Lent;
use purlin_cuda::CudaBackend;
use purlin_device::backend::{
    Backend, DeviceDescription, DeviceKernel, DmaRegistration, KernelCode, Memory, Operation, Schedule,
};
use purlin_fakecuda::{Driver, Options, on_a_gpu};

/// The detector's, in the books.
const REPORTS: &str = "reports of the race detector";

/// A launch of a copy: a task of the client's runner.
struct Launch {
    promise: EventPromise,
    what: String,
}

impl Drop for Launch {
    fn drop(&mut self) {
        // Nothing, after the task has set it.
        self.promise.set_error(Error::cancelled(format!("the {} was not launched", self.what)));
    }
}

/// Fails the case that it serves if the detector found something. What it finds later, or where another thread drops
/// this, is in the books.
///
/// Cases keep copies pending by keeping the client's runner busy, which streams do not care about. So copies are
/// launched by the runner here, as they are where a thread of the host feeds a device; what the copies wait for is left
/// to the backend.
struct Audited {
    backend: CudaBackend,
    /// `None`: NVIDIA's.
    driver: Option<Driver>,
}

impl Drop for Audited {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.as_ref().filter(|_| !thread::panicking()) {
            driver.control.no_reports();
        }
    }
}

impl Backend for Audited {
    fn platform_name(&self) -> &'static str {
        self.backend.platform_name()
    }

    fn devices(&self, count: usize) -> StatusOr<Vec<DeviceDescription>> {
        self.backend.devices(count)
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        self.backend.memory_kinds()
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        self.backend.open_memory(device, kind)
    }

    fn dma_map(&self, address: usize, size_bytes: usize) -> StatusOr<DmaRegistration> {
        self.backend.dma_map(address, size_bytes)
    }

    fn kernels_are_host_functions(&self) -> bool {
        self.backend.kernels_are_host_functions()
    }

    fn load_kernel(&self, device: usize, code: &KernelCode<'_>) -> StatusOr<Arc<dyn DeviceKernel>> {
        self.backend.load_kernel(device, code)
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        if schedule.caller_waits {
            return self.backend.run(operation, schedule);
        }
        let launch = Launch { promise: EventPromise::new(c"launch"), what: format!("{operation:?}") };
        let dependencies = [schedule.dependencies, &[launch.promise.event()]].concat();
        // A refused task was dropped, and has failed the event.
        let _ = schedule.runner().execute(Task::new(c"launch", move || _ = launch.promise.set_ready()));
        self.backend.run(operation, &schedule.after(&dependencies))
    }
}

/// A backend on so many GPUs, on which devices are virtual where a case has more.
fn audited(seed: u64, gpus: usize) -> Arc<dyn Backend> {
    static DEVICES: Once = Once::new();
    DEVICES.call_once(|| {
        let variables = Options { devices: gpus, ..Options::default() }.variables();
        for (name, value) in variables.into_iter().filter(|_| !on_a_gpu()) {
            // SAFETY: nothing has asked for the driver, which reads them, and no other code of a case reads or writes
            // the environment.
            unsafe { std::env::set_var(name, value) };
        }
    });
    purlin_conformance::ledger::add_books(|| {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        let driver = DRIVER.get_or_init(Driver::open);
        let mut books = driver.left();
        books.push((REPORTS, driver.control.report_count() as u64));
        books
    });
    let driver = Driver::if_fake();
    if let Some(driver) = &driver {
        driver.control.set_delays(seed, 50);
    }
    Arc::new(Audited { backend: CudaBackend::new().unwrap().with_virtual_devices(true), driver })
}

/// Calls `body` with that context current on this thread.
fn in_context<R>(driver: &Driver, context: usize, body: impl FnOnce() -> R) -> R {
    let mut before = 0;
    // SAFETY: the driver writes a handle; the context is retained.
    unsafe {
        assert_eq!((driver.cuda.cuCtxGetCurrent)(&mut before), 0);
        assert_eq!((driver.cuda.cuCtxSetCurrent)(context), 0);
    }
    let result = body();
    // SAFETY: it was current before.
    assert_eq!(unsafe { (driver.cuda.cuCtxSetCurrent)(before) }, 0);
    result
}

/// Memory of a GPU that a stranger has allocated by the driver, as other libraries in the process do. The driver frees
/// it, and its detector reports a free that is not behind every use.
fn lend(device: usize, size_bytes: usize) -> Lent {
    let driver = Driver::open();
    let (mut count, mut context, mut address) = (0, 0, 0);
    // SAFETY: the driver writes a number.
    assert_eq!(unsafe { (driver.cuda.cuDeviceGetCount)(&mut count) }, 0);
    // Devices may be virtual.
    let ordinal = c_int::try_from(device).unwrap() % count;
    // SAFETY: the driver writes a handle, which is released when the memory is taken back.
    assert_eq!(unsafe { (driver.cuda.cuDevicePrimaryCtxRetain)(&mut context, ordinal) }, 0);
    in_context(&driver, context, || {
        // SAFETY: the driver writes an address.
        assert_eq!(unsafe { (driver.cuda.cuMemAlloc_v2)(&mut address, size_bytes) }, 0);
    });
    let take_back = move || {
        // SAFETY: it was allocated above, and this is called once.
        in_context(&driver, context, || assert_eq!(unsafe { (driver.cuda.cuMemFree_v2)(address) }, 0));
        // SAFETY: it was retained above.
        assert_eq!(unsafe { (driver.cuda.cuDevicePrimaryCtxRelease_v2)(ordinal) }, 0);
    };
    let address = std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap());
    Lent { address, size_bytes, take_back: Box::new(take_back) }
}

/// The kernel of the cases.
fn momentum() -> KernelPayload {
    KernelPayload::Ptx(include_str!("../../../tests/ptx/kernels/momentum.ptx").into())
}

macro_rules! suite_with_seeds {
    ($($module:ident: $seed:literal, $gpus:literal)*) => {
        $(mod $module {
            purlin_conformance::suite!(
                || crate::audited($seed, $gpus),
                device_memory = crate::lend,
                momentum = crate::momentum,
                unsupported = [
                    ("memory::addresses_are_aligned_to_64_bytes", "the host has no address for the memory of a device"),
                    (
                        "memory::addresses_of_live_allocations_do_not_overlap",
                        "the host has no address for the memory of a device"
                    ),
                    (
                        "failure::a_copy_released_after_shutdown_is_cancelled",
                        "copies run on the device's streams, which do not end with the client's runner"
                    ),
                    (
                        "lifetime::a_cancelled_copy_frees_its_ends",
                        "copies run on the device's streams, which do not end with the client's runner"
                    ),
                ]
            );
        })*
    };
}

suite_with_seeds! {
    seed_1: 1, 4
    seed_2: 2, 4
    seed_3: 0x7075_726c, 1
}
