//! Foreign memory as a buffer.

#![allow(unsafe_code, reason = "foreign memory is taken by address")]

use std::ptr::NonNull;

use super::RawBuffer;
use crate::memory::{Backing, Imported, MemoryBlock, MemorySpace, Notified, Owner, Release, Tag};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation, StatusOr};

/// Whether memory may be written.
///
/// ```
/// use std::sync::mpsc;
///
/// use purlin::{Mutability, RawBuffer};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let bytes: &'static mut [u64] = Box::leak(vec![0_u64; 64].into_boxed_slice());
/// let (address, (sender, receiver)) = (bytes.as_mut_ptr().cast::<u8>(), mpsc::channel());
/// let release = Box::new(move || sender.send("released").unwrap());
/// // SAFETY: the memory is never freed, and no other code uses it.
/// let memory = unsafe { RawBuffer::import(&space, address, 512, Mutability::Immutable, Some(release))? };
/// assert!(!memory.is_mutable());
/// drop(memory);
/// assert_eq!(receiver.recv(), Ok("released"));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    /// Read only.
    Immutable,
    /// Read and written.
    Mutable,
}

impl RawBuffer {
    /// A buffer over `size_bytes` bytes at `address` that belong to another owner: no copy. `on_release` is called
    /// once, on the thread that is the last to use the memory (a handle, a slice, a copy in flight); if this fails, it
    /// is dropped uncalled, and the memory was not touched. Such memory is not in the statistics of its space.
    ///
    /// `address` is that of the host where the host reaches the space, and that of the device elsewhere: of memory that
    /// `cuMemAlloc` returned, say, for the space `device` of that GPU.
    ///
    /// # Errors
    /// `InvalidArgument`: null, not aligned as the space needs for imports, or bytes past the end of the address space;
    /// the values are named. `Unimplemented`: the backend cannot use foreign memory in this space. Any other: why the
    /// backend refuses this memory, such as `InvalidArgument` with what the memory is instead.
    ///
    /// # Safety
    /// Until `on_release` is called (or, without it, for ever), the device may read these bytes (and write them if
    /// `Mutable`) from any thread, and nothing else writes them except as ordered by events.
    #[track_caller]
    pub unsafe fn import(
        memory_space: &MemorySpace,
        address: *mut u8,
        size_bytes: usize,
        mutability: Mutability,
        on_release: Option<Release>,
    ) -> StatusOr<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::import_notifying(memory_space, address, size_bytes, mutability, on_release) }
    }

    /// As [`import`](Self::import), with a closure that needs no box.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    pub unsafe fn import_notifying<F: FnOnce() + Send + Sync + 'static>(
        memory_space: &MemorySpace,
        address: *mut u8,
        size_bytes: usize,
        mutability: Mutability,
        on_release: Option<F>,
    ) -> StatusOr<Self> {
        let tag = Tag::new(Label::new(c"imported"), SourceLocation::caller());
        let first = Self::check_import(memory_space, address, size_bytes)?;
        let owner = on_release.map(Notified);
        // SAFETY: the caller's promise.
        let imported = unsafe { Self::import_from(memory_space, first, size_bytes, mutability, owner, tag) };
        imported.map_err(|(error, _uncalled)| error)
    }

    /// The address, if these are bytes that can be handed to a backend as memory to import.
    ///
    /// # Errors
    /// `InvalidArgument`, as [`import`](Self::import).
    pub(crate) fn check_import(
        memory_space: &MemorySpace,
        address: *mut u8,
        size_bytes: usize,
    ) -> StatusOr<NonNull<u8>> {
        let least = memory_space.properties().import_alignment_bytes;
        let Some(first) = NonNull::new(address).filter(|_| address.addr().is_multiple_of(least)) else {
            return Err(Error::invalid_argument(format!(
                "cannot import {size_bytes} bytes at {address:p} into {memory_space}: the address must be a multiple of {least}, \
                 and not null"
            )));
        };
        // No object is larger than half of an address space, or wraps around its end.
        if isize::try_from(size_bytes).is_err() || address.addr().checked_add(size_bytes).is_none() {
            return Err(Error::invalid_argument(format!(
                "cannot import {size_bytes} bytes at {address:p} into {memory_space}: they end past the end of the address space"
            )));
        }
        Ok(first)
    }

    /// As [`import`](Self::import), of bytes that were [checked](Self::check_import), and of any owner, which is
    /// returned with the error.
    ///
    /// # Errors
    /// The backend's, of any code.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn import_from<O: Owner>(
        memory_space: &MemorySpace,
        first: NonNull<u8>,
        size_bytes: usize,
        mutability: Mutability,
        owner: Option<O>,
        tag: Tag,
    ) -> Result<Self, (Error, Option<O>)> {
        let import = || {
            fault::point(Site::Import)?;
            memory_space.memory().import(first.as_ptr().expose_provenance(), size_bytes)
        };
        let extent = match import() {
            Ok(extent) => extent,
            Err(error) => return Err((error, owner)),
        };
        let block = MemoryBlock::new(memory_space.clone(), size_bytes, mutability == Mutability::Mutable, tag);
        let imported = Imported::new(first, extent, owner).boxed();
        // SAFETY: the block is new.
        unsafe { block.provide(Backing::Imported(imported)) };
        Ok(Self::whole(block))
    }
}
