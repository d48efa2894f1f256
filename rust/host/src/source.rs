//! The allocator of the process, as a source of memory.

#![allow(unsafe_code, reason = "memory is taken from and given to an allocator by address")]

use std::alloc::{self, Layout};
use std::ptr::NonNull;

use purlin_device::backend::ByteSource;

/// The allocator of the process.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::host::{HostBackend, SystemSource};
/// use purlin::{Buffer, Client, ClientOptions};
///
/// let backend = HostBackend::with_source(Arc::new(SystemSource));
/// let client = Client::new(&ClientOptions::default(), Arc::new(backend))?;
/// let buffer = Buffer::from_slice(&[1_u8, 2], &[2], &client.devices()[0].default_memory_space())?;
/// assert_eq!(buffer.to_vec::<u8>()?, [1, 2]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSource;

// SAFETY: the contract of the global allocator is that of ByteSource.
unsafe impl ByteSource for SystemSource {
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the size is not 0, by the contract of take().
        NonNull::new(unsafe { alloc::alloc(layout) })
    }

    unsafe fn give_back(&self, address: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller gives back what take() allocated, with the same layout.
        unsafe { alloc::dealloc(address.as_ptr(), layout) }
    }
}
