//! The root of everything: a backend's devices and the runner that works for them.

mod dma_mapping;
mod shutdown;

use std::fmt;
use std::sync::Arc;

use crate::backend::Backend;
use crate::device::Device;
use crate::memory::{self, Instance, MemoryHook, SpaceRules};
use purlin_async::pool::{ShutdownOptions, ThreadPool, ThreadPoolOptions};
use purlin_base::status::{Error, StatusCode, StatusOr};
use purlin_base::sync::PinnedArc;

pub use dma_mapping::DmaMapping;

/// The most virtual devices that a client may have.
const MAX_DEVICES: usize = 1024;
/// The most threads that its runner may have.
const MAX_WORKERS: usize = 4096;

/// How to make a client.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::host::HostBackend;
/// use purlin::{Client, ClientOptions};
///
/// let options = ClientOptions { device_count: 4, worker_count: 2, ..Default::default() };
/// let client = Client::new(&options, Arc::new(HostBackend::new()))?;
/// assert_eq!((client.devices().len(), client.runner().num_threads()), (4, 2));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct ClientOptions {
    /// Devices, 1..=1024. Of hardware, 0 takes all; elsewhere devices are virtual, and 0 is an error.
    pub device_count: usize,
    /// Threads of the client's runner, 1..=4096; 0 takes what the machine allows.
    pub worker_count: usize,
    /// Which of the processes that work together this one is, if it is one of several. There is no default: without it,
    /// [`Client::process_index`] is an error.
    pub process_index: Option<i32>,
    /// The most bytes that each memory space takes from the system; 0: no limit. What is kept for later counts, and so
    /// does rounding (to 64 bytes, more for small allocations), so a space may be full a little earlier.
    pub memory_limit_bytes: usize,
    /// Called, under no lock, on the allocating thread, when an allocation with [`OomPolicy::Retry`](crate::OomPolicy)
    /// finds no memory: frees something and answers true, or answers false.
    pub on_out_of_memory: Option<MemoryHook>,
    /// For debugging: host memory that is to stay as it is while it is used (see
    /// [`HostBufferSemantics`](crate::HostBufferSemantics)) is summed up when its use begins and when it ends, and a
    /// difference is an error that names the array. The environment variable `PURLIN_CHECK_FROZEN_MEMORY=1` says the
    /// same for every client.
    pub check_frozen_memory: bool,
    /// What becomes of work in flight when the last handle to the client is dropped. `None`: it continues, and keeps
    /// what it needs of the client alive, for ever if an event that it waits for never completes. Otherwise that
    /// handle's drop is [`Client::shutdown`] with these options, blocks as that does, and logs what that fails with; on
    /// a thread of the client's own runner, or in a waiter of one of its operations, it does not block, and what has
    /// not begun fails at once.
    pub shutdown_at_end: Option<ShutdownOptions>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            device_count: 1,
            worker_count: 0,
            process_index: None,
            memory_limit_bytes: 0,
            on_out_of_memory: None,
            check_frozen_memory: false,
            shutdown_at_end: None,
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device_count,
            worker_count,
            process_index,
            memory_limit_bytes,
            on_out_of_memory,
            check_frozen_memory,
            shutdown_at_end,
        } = self;
        f.debug_struct("ClientOptions")
            .field("device_count", device_count)
            .field("worker_count", worker_count)
            .field("process_index", process_index)
            .field("memory_limit_bytes", memory_limit_bytes)
            .field("on_out_of_memory", &on_out_of_memory.is_some())
            .field("check_frozen_memory", check_frozen_memory)
            .field("shutdown_at_end", shutdown_at_end)
            .finish()
    }
}

/// A backend's devices and the runner that works for them. Devices, memory spaces, buffers and copies in flight keep
/// what they need of it alive, also when the client itself is gone; the last of them shuts the runner down, which runs
/// what is queued there.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::host::HostBackend;
/// use purlin::{Buffer, Client, ClientOptions};
///
/// let client = Client::new(&ClientOptions::default(), Arc::new(HostBackend::new()))?;
/// let space = client.devices()[0].default_memory_space();
/// let buffer = Buffer::from_slice(&[1.0_f32, 2.0], &[2], &space)?;
/// assert_eq!(buffer.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct Client {
    instance: PinnedArc<Instance>,
    process_index: Option<i32>,
    shutdown_at_end: Option<ShutdownOptions>,
}

impl Client {
    /// Opens `options.device_count` devices of `backend` and starts the runner.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the value: a device or worker count out of range, a negative process index.
    /// `ResourceExhausted`: threads could not be started. Or the backend's, if it cannot open a device.
    pub fn new(options: &ClientOptions, backend: Arc<dyn Backend>) -> StatusOr<Arc<Self>> {
        let device_count = match (options.device_count, backend.device_count()) {
            (0, Some(all)) => all,
            (count, _) => count,
        };
        let device_count = in_range("device_count", device_count, 1, MAX_DEVICES)?;
        let thread_count = in_range("worker_count", options.worker_count, 0, MAX_WORKERS)?;
        let runner = ThreadPool::new(&ThreadPoolOptions { thread_count, name: "purlin".to_owned() })?;
        let process_index = options.process_index;
        if let Some(index) = process_index.filter(|&index| index < 0) {
            return Err(Error::invalid_argument(format!("process_index is {index}; it must not be negative")));
        }
        let shutdown_at_end = options.shutdown_at_end;
        let memory_limit_bytes = (options.memory_limit_bytes > 0).then_some(options.memory_limit_bytes);
        let rules = SpaceRules {
            out_of_memory: options.on_out_of_memory.clone(),
            checks_frozen_memory: options.check_frozen_memory
                || std::env::var_os("PURLIN_CHECK_FROZEN_MEMORY").is_some_and(|value| value == "1"),
        };
        let instance = memory::open_memories(backend, device_count, memory_limit_bytes, &rules, runner)?;
        Ok(Arc::new(Self { instance, process_index, shutdown_at_end }))
    }

    /// The backend's name, such as `"host"`.
    #[must_use]
    pub fn platform_name(&self) -> &'static str {
        self.instance.backend().platform_name()
    }

    /// All devices; `devices()[i].id() == i`.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        (0..self.instance.device_count()).map(|index| Device::new(self.instance.clone(), index)).collect()
    }

    /// Device `id`.
    ///
    /// # Errors
    /// `NotFound`, naming the count.
    ///
    /// # Examples
    /// ```
    /// use purlin::StatusCode;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let device = &client.devices()[0];
    /// assert_eq!(client.lookup_device(device.id())?, *device);
    /// assert_eq!(client.lookup_device(99).unwrap_err().code(), StatusCode::NotFound);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn lookup_device(&self, id: i32) -> StatusOr<Device> {
        let count = self.instance.device_count();
        let index = usize::try_from(id)
            .ok()
            .filter(|&index| index < count)
            .ok_or_else(|| Error::not_found(format!("there is no device {id}: the client has {count}, from 0")))?;
        Ok(Device::new(self.instance.clone(), index))
    }

    /// Which of the processes that work together this one is.
    ///
    /// # Errors
    /// `FailedPrecondition`: the client was made without one.
    pub fn process_index(&self) -> StatusOr<i32> {
        self.process_index.ok_or_else(|| {
            Error::failed_precondition(
                "the client was made without a process_index, so nobody knows which process this is",
            )
        })
    }

    /// Which devices run `replica_count` replicas of a program in `partition_count` partitions: by replica, each the
    /// ids of its partitions' devices, the devices in their order.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the numbers: a count below 1, or more than there are devices.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    ///
    /// use purlin::host::HostBackend;
    /// use purlin::{Client, ClientOptions};
    ///
    /// let options = ClientOptions { device_count: 4, ..Default::default() };
    /// let client = Client::new(&options, Arc::new(HostBackend::new()))?;
    /// let assignment = client.default_device_assignment(2, 2)?;
    /// assert_eq!((assignment.len(), assignment[0].len()), (2, 2));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn default_device_assignment(&self, replica_count: usize, partition_count: usize) -> StatusOr<Vec<Vec<i32>>> {
        let device_count = self.instance.device_count();
        let needed = replica_count.checked_mul(partition_count);
        let needed = needed.filter(|needed| (1..=device_count).contains(needed)).ok_or_else(|| {
            Error::invalid_argument(format!(
                "{replica_count} replicas of {partition_count} partitions cannot be assigned to {device_count} devices"
            ))
        })?;
        let ids: Vec<i32> = (0..).take(needed).collect();
        Ok(ids.chunks(partition_count).map(<[i32]>::to_vec).collect())
    }

    /// Makes `size_bytes` bytes of host memory at `address` reachable for the hardware, where that is needed (pinning,
    /// registering); copies are faster from and to such memory. See [`DmaMapping`] for its end.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the range: null, empty, or past the end of the address space. `AlreadyExists`: it
    /// overlaps another mapping of this client. The backend's.
    pub fn dma_map(&self, address: *const u8, size_bytes: usize) -> StatusOr<DmaMapping> {
        DmaMapping::new(&self.instance, address.expose_provenance(), size_bytes)
    }

    /// Ends the client's work, and blocks until that is done; a second call waits for the same. From now on, copies,
    /// allocations and buffers behind events are refused with `FailedPrecondition`. With
    /// [`Drain`](purlin_async::ShutdownMode), what is in flight continues for the timeout; without one for as long
    /// as it takes, which stall reports show. Then, or at once with [`CancelPending`](purlin_async::ShutdownMode), what
    /// has not begun fails: copies and allocations behind events that have not happened, memory that is waited for or
    /// promised ([`RawBuffer::channel`](crate::RawBuffer::channel)), buffers whose definition has not happened, and
    /// events that report when the last use of a buffer is over
    /// ([`DonationHold::free_event`](crate::DonationHold::free_event), [`Buffer::release`](crate::Buffer::release);
    /// uses for which no such event was asked for are not in flight). Their errors, `DeadlineExceeded` after a timeout
    /// and else `Cancelled`, name them and what they waited for; their memory is released, and callbacks are called.
    /// Then the runner is shut down. Handles stay valid; memory lives as long as they do, and memory that foreign code
    /// may use until an event lives until that event.
    ///
    /// # Errors
    /// `FailedPrecondition`, and nothing happens: on a thread of the client's runner, in a waiter of one of the
    /// client's operations (also of one that a shutdown fails), or in a child made by `fork`. `DeadlineExceeded`:
    /// something was in flight when the timeout passed; what has failed for it, and what still runs, by name.
    ///
    /// # Examples
    /// ```
    /// use purlin::{Buffer, ShutdownOptions};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// client.shutdown(ShutdownOptions::default())?;
    /// assert!(Buffer::from_slice(&[1.0_f32], &[1], &space).is_err(), "the client has ended");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn shutdown(&self, options: ShutdownOptions) -> Result<(), Error> {
        shutdown::shut_down(&self.instance, &self.name(), options)
    }

    fn name(&self) -> String {
        format!("the client of {} {} device(s)", self.instance.device_count(), self.platform_name())
    }

    /// The pool on which the client's copies run; yours to schedule on.
    #[must_use]
    pub fn runner(&self) -> &ThreadPool {
        self.instance.runner().pool()
    }

    /// A few lines: platform, devices, memory in use, and why the runner has as many threads as it has.
    #[must_use]
    pub fn describe(&self) -> String {
        let devices = self.devices();
        let memory: Vec<String> = self
            .instance
            .backend()
            .memory_kinds()
            .iter()
            .enumerate()
            .map(|(kind, name)| {
                let in_use: u64 = devices.iter().map(|device| device.memory_spaces()[kind].stats().bytes_in_use).sum();
                format!("{in_use} bytes in {name}")
            })
            .collect();
        format!(
            "platform {}: {} device(s)\nmemory in use: {}\nrunner: {}",
            self.platform_name(),
            devices.len(),
            memory.join(", "),
            self.runner().describe()
        )
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let Some(options) = self.shutdown_at_end else { return };
        match self.shutdown(options) {
            Ok(()) => {}
            Err(error) if error.code() == StatusCode::FailedPrecondition => {
                shutdown::give_up(&self.instance, &self.name())
            }
            Err(error) => tracing::warn!(target: "purlin", %error, "a client's end"),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({} with {} device(s))", self.platform_name(), self.instance.device_count())
    }
}

/// `value`, if it is in `least..=most`.
fn in_range(name: &str, value: usize, least: usize, most: usize) -> StatusOr<usize> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::invalid_argument(format!("{name} is {value}; it must be in {least}..{most}")))
}

#[cfg(test)]
mod tests;
