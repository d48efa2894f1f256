//! A device of a client. Its handles keep the client alive.

use std::fmt;
use std::sync::Arc;

use crate::backend::{DeviceAttribute, DeviceDescription, DeviceKernel, KernelCode};
use crate::memory::{Instance, MemorySpace};
use purlin_async::event::StreamEventMap;
use purlin_async::pool::ThreadPool;
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::PinnedArc;

/// A handle to a device; it keeps its client alive. Equal if it is the same device of the same client.
///
/// ```
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let device = &client.devices()[0];
/// assert_eq!((device.to_string().as_str(), device.kind()), ("host:0", "host"));
/// assert_eq!(device.memory_space("pinned_host")?.device(), *device);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct Device {
    instance: PinnedArc<Instance>,
    /// In 0..instance.device_count().
    index: usize,
}

impl Device {
    /// `index < instance.device_count()`
    pub(crate) fn new(instance: PinnedArc<Instance>, index: usize) -> Self {
        Self { instance, index }
    }

    /// Its index in `Client::devices()`.
    #[must_use]
    pub fn id(&self) -> i32 {
        i32::try_from(self.index).expect("a client has at most 1024 devices")
    }

    /// The backend's name, as [`Client::platform_name`](crate::Client::platform_name).
    #[must_use]
    pub fn platform_name(&self) -> &'static str {
        self.instance.backend().platform_name()
    }

    /// The backend's name for its model, such as `"host"`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.description().kind
    }

    /// The number by which the driver knows it; of virtual devices, [`id`](Self::id).
    #[must_use]
    pub fn local_hardware_id(&self) -> i32 {
        self.description().local_hardware_id.unwrap_or_else(|| self.id())
    }

    /// What else the backend says of it.
    ///
    /// ```
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// let attributes = client.devices()[0].attributes().to_vec();
    /// assert!(attributes.iter().any(|attribute| attribute.name == "core_count"), "{attributes:?}");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    pub fn attributes(&self) -> &[DeviceAttribute] {
        &self.description().attributes
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Its number at its backend.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The client's pool; yours to schedule on.
    #[must_use]
    pub fn runner(&self) -> &ThreadPool {
        self.instance.runner().pool()
    }

    /// Whether a launch on this device may wait for launches on other devices of the client: each has a thread.
    #[must_use]
    pub fn launches_may_wait(&self) -> bool {
        self.instance.backend().launches_may_wait()
    }

    /// The client's execution streams: for each number, an event that is ready after the last run with that number. The
    /// rooms that start runs record them.
    #[must_use]
    pub fn execution_streams(&self) -> &StreamEventMap {
        self.instance.execution_streams()
    }

    /// Whether its kernels are functions of the host: see
    /// [`Backend::kernels_are_host_functions`](crate::backend::Backend::kernels_are_host_functions).
    #[must_use]
    pub fn kernels_are_host_functions(&self) -> bool {
        self.instance.backend().kernels_are_host_functions()
    }

    /// Loads a kernel for this device: see [`Backend::load_kernel`](crate::backend::Backend::load_kernel).
    ///
    /// # Errors
    /// As there.
    pub fn load_kernel(&self, code: &KernelCode<'_>) -> StatusOr<Arc<dyn DeviceKernel>> {
        self.instance.backend().load_kernel(self.index, code)
    }

    fn description(&self) -> &DeviceDescription {
        &self.instance.devices()[self.index]
    }

    /// All memory spaces, the default one first.
    #[must_use]
    pub fn memory_spaces(&self) -> Vec<MemorySpace> {
        (0..self.instance.kind_count()).map(|kind| self.nth_memory_space(kind)).collect()
    }

    /// The first of [`memory_spaces`](Self::memory_spaces).
    #[must_use]
    pub fn default_memory_space(&self) -> MemorySpace {
        self.nth_memory_space(0)
    }

    /// The space of that kind.
    ///
    /// # Errors
    /// `NotFound`, naming the kinds that exist.
    ///
    /// # Examples
    /// ```
    /// use purlin::StatusCode;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let device = &client.devices()[0];
    /// assert_eq!(device.memory_space("pinned_host")?.kind(), "pinned_host");
    /// assert_eq!(device.memory_space("attic").unwrap_err().code(), StatusCode::NotFound);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn memory_space(&self, kind: &str) -> StatusOr<MemorySpace> {
        let kinds = self.instance.backend().memory_kinds();
        let index = kinds.iter().position(|known| *known == kind).ok_or_else(|| {
            Error::not_found(format!("{self} has no memory space '{kind}'; it has {}", kinds.join(", ")))
        })?;
        Ok(self.nth_memory_space(index))
    }

    fn nth_memory_space(&self, kind: usize) -> MemorySpace {
        MemorySpace::new(self.instance.clone(), self.index * self.instance.kind_count() + kind)
    }
}

impl MemorySpace {
    /// The device it belongs to.
    #[must_use]
    pub fn device(&self) -> Device {
        Device::new(self.shared_instance(), self.device_index())
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        PinnedArc::ptr_eq(&self.instance, &other.instance) && self.index == other.index
    }
}

impl Eq for Device {}

/// `host:2`
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.instance.backend().platform_name(), self.index)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
