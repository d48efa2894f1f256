//! The host memory that leases are cut from.
//!
//! A lease is a unit of a semaphore and a number from a list. The number is given back before the unit, so the caller
//! that gets the unit finds a number. First come, first served, as with the semaphore.

#![allow(unsafe_code, reason = "host memory is reached by address")]

use std::fmt;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use crate::memory::{AllocOptions, MemorySpace};
use crate::raw_buffer::RawBuffer;
use purlin_async::services::semaphore::{Permit, Semaphore};
use purlin_async::task::cancel::CancelToken;
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::Mutex;

/// How a [`StagingPool`] is made.
///
/// ```
/// use purlin::{StagingOptions, StagingPool};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = StagingOptions { lease_bytes: 1 << 16, lease_count: 4, label: c"network".into() };
/// let pool = StagingPool::new(&client.devices()[0].memory_space("pinned_host")?, &options)?;
/// assert_eq!((pool.lease_bytes(), pool.lease_count()), (1 << 16, 4));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StagingOptions {
    /// Bytes of each lease, `>= 1`.
    pub lease_bytes: usize,
    /// How many leases there are, `>= 1`.
    pub lease_count: usize,
    /// What the memory is called in reports.
    pub label: Label,
}

impl Default for StagingOptions {
    /// 16 leases of 4 MiB.
    fn default() -> Self {
        Self { lease_bytes: 4 << 20, lease_count: 16, label: Label::new(c"staging") }
    }
}

/// A handle; clones share the memory, which is freed with the last of them and the last lease.
///
/// ```
/// use purlin::{StagingOptions, StagingPool, StatusCode};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = StagingOptions { lease_bytes: 4096, lease_count: 1, ..Default::default() };
/// let pool = StagingPool::new(&client.devices()[0].memory_space("pinned_host")?, &options)?;
/// let lease = pool.try_acquire()?;
/// assert_eq!(pool.try_acquire().unwrap_err().code(), StatusCode::Unavailable);
/// drop(lease);
/// assert_eq!(pool.free_count(), 1);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct StagingPool(Arc<StagingPoolShared>);

struct StagingPoolShared {
    memory: RawBuffer,
    lease_bytes: usize,
    /// From one lease to the next.
    stride_bytes: usize,
    label: Label,
    free: Mutex<Free>,
    permits: Semaphore,
}

/// Numbers of leases that are free.
struct Free {
    /// The newest last, so that what is warm stays in use.
    returned: Vec<usize>,
    /// This one and those above it were never lent, and their memory was not touched.
    first_fresh: usize,
}

/// Host memory of [`StagingPool::lease_bytes`] bytes that has no other owner; dropping it gives it back, which may hand
/// it to a waiter on this thread.
///
/// ```
/// use purlin::{StagingOptions, StagingPool};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = StagingOptions { lease_bytes: 4096, lease_count: 2, ..Default::default() };
/// let pool = StagingPool::new(&client.devices()[0].memory_space("pinned_host")?, &options)?;
/// let mut lease = pool.try_acquire()?;
/// lease.bytes_mut()[..3].copy_from_slice(b"abc");
/// assert_eq!((&lease.bytes()[..3], lease.memory().size_bytes()), (&b"abc"[..], 4096));
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "the memory goes back when this is dropped"]
pub struct StagingLease {
    pool: Arc<StagingPoolShared>,
    number: usize,
    memory: RawBuffer,
    permit: Option<Permit>,
}

impl StagingPool {
    /// A pool in `memory_space`, all of whose memory is taken now and kept. A lease's bytes are touched when it is lent
    /// for the first time, and an idle lease is lent again before a fresh one: what was never needed at the same time
    /// costs no pages.
    ///
    /// # Errors
    /// `InvalidArgument`: no leases, leases of no bytes, more bytes than can be counted, or memory that the host cannot
    /// reach; `ResourceExhausted`: there is not so much.
    #[track_caller]
    pub fn new(memory_space: &MemorySpace, options: &StagingOptions) -> StatusOr<Self> {
        let StagingOptions { lease_bytes, lease_count, label } = *options;
        let properties = memory_space.properties();
        if !properties.is_host_visible {
            return Err(Error::invalid_argument(format!(
                "{memory_space} cannot be the memory of staging pool '{label}': the host does not reach it"
            )));
        }
        let stride = lease_bytes.checked_next_multiple_of(properties.alignment_bytes).filter(|&stride| stride > 0);
        let sizes = stride.and_then(|stride| Some((stride, stride.checked_mul(lease_count).filter(|&all| all > 0)?)));
        let Some((stride_bytes, size_bytes)) = sizes else {
            return Err(Error::invalid_argument(format!(
                "a staging pool has leases, of some bytes each: {lease_count} leases of {lease_bytes} bytes were asked for"
            )));
        };
        let options = AllocOptions { label, ..Default::default() };
        let memory = RawBuffer::allocate_with(memory_space, size_bytes, &options)?;
        if memory.host_pointer().is_none() {
            return Err(Error::internal(format!("{memory:?}, which the host reaches, has no address")));
        }
        let free = Mutex::new(Free { returned: Vec::new(), first_fresh: 0 });
        let permits = Semaphore::new(label, lease_count);
        Ok(Self(Arc::new(StagingPoolShared { memory, lease_bytes, stride_bytes, label, free, permits })))
    }

    /// Bytes of each lease.
    #[must_use]
    pub fn lease_bytes(&self) -> usize {
        self.0.lease_bytes
    }

    /// All leases, lent or not.
    #[must_use]
    pub fn lease_count(&self) -> usize {
        self.0.permits.capacity()
    }

    /// Leases that are free now; another thread may take them before you.
    #[must_use]
    pub fn free_count(&self) -> usize {
        self.0.permits.available()
    }

    /// Where the memory is.
    #[must_use]
    pub fn memory_space(&self) -> MemorySpace {
        self.0.memory.memory_space()
    }

    /// A lease, now.
    ///
    /// # Errors
    /// `Unavailable`: all are lent, or a caller waits already.
    pub fn try_acquire(&self) -> StatusOr<StagingLease> {
        self.0.permits.try_acquire(1).and_then(|permit| self.0.lend(permit))
    }

    /// A lease; blocks until there is one.
    ///
    /// # Errors
    /// `Cancelled`, with the reason of `cancel`, if that was cancelled first.
    pub fn acquire(&self, cancel: &CancelToken) -> StatusOr<StagingLease> {
        self.0.permits.acquire_with(1, None, cancel).and_then(|permit| self.0.lend(permit))
    }

    /// As [`acquire`](Self::acquire), without blocking: `callback` is called exactly once, on the thread that gave a
    /// lease back or cancelled, or on this one before this returns.
    pub fn acquire_then(&self, cancel: &CancelToken, callback: impl FnOnce(StatusOr<StagingLease>) + Send + 'static) {
        let pool = Arc::clone(&self.0);
        self.0.permits.acquire_then(1, cancel, move |permit| callback(permit.and_then(|permit| pool.lend(permit))));
    }
}

impl StagingPoolShared {
    fn lend(self: &Arc<Self>, permit: Permit) -> StatusOr<StagingLease> {
        let (number, is_fresh) = {
            let mut free = self.free.lock();
            match free.returned.pop() {
                Some(number) => (number, false),
                None => {
                    free.first_fresh += 1;
                    (free.first_fresh - 1, true)
                }
            }
        };
        let memory = self.memory.slice(number * self.stride_bytes, self.lease_bytes)?;
        let lease = StagingLease { pool: Arc::clone(self), number, memory, permit: Some(permit) };
        if is_fresh {
            // So that bytes are never uninitialised for code that looks at them, and no copy meets a page for the first
            // time.
            // SAFETY: the lease has that many bytes, and no other code knows them yet.
            unsafe { ptr::write_bytes(lease.address().as_ptr(), 0, self.lease_bytes) };
        }
        Ok(lease)
    }
}

impl StagingLease {
    /// The bytes, as memory that copies write and read. They are this lease's only while it exists.
    #[must_use]
    pub fn memory(&self) -> &RawBuffer {
        &self.memory
    }

    /// The bytes. Those that were not written since they were lent are what an earlier lease left.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the pool has written these bytes when it lent them for the first time, and keeps them. While the
        // lease exists only its owner writes there: by `bytes_mut`, which excludes this, or by copies, whose callers
        // promise that nothing reads.
        unsafe { slice::from_raw_parts(self.address().as_ptr(), self.memory.size_bytes()) }
    }

    /// The bytes, to be written.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; the lease is borrowed for as long.
        unsafe { slice::from_raw_parts_mut(self.address().as_ptr(), self.memory.size_bytes()) }
    }

    fn address(&self) -> NonNull<u8> {
        self.memory.host_pointer().expect("the pool has looked when it was made")
    }
}

impl Drop for StagingLease {
    fn drop(&mut self) {
        self.pool.free.lock().returned.push(self.number);
        drop(self.permit.take());
    }
}

impl fmt::Debug for StagingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (label, free, count) = (self.0.label, self.free_count(), self.lease_count());
        write!(f, "StagingPool({label:?}, {free} of {count} leases of {} bytes are free)", self.lease_bytes())
    }
}

impl fmt::Debug for StagingLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StagingLease({} of '{}', {:?})", self.number, self.pool.label, self.memory)
    }
}
