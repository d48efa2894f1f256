//! An allocator of the user's: a door, behind which tests can make it fail, too.

#![allow(unsafe_code, reason = "memory is taken from and given to an allocator by address")]

use std::alloc::{self, Layout};
use std::ptr::NonNull;

/// Memory to hand out.
///
/// # Safety
/// Memory that [`take`](Self::take) returned is readable and writable as the layout says, has no other owner, and stays
/// so until it is given back.
pub unsafe trait ByteSource: Send + Sync {
    /// Memory of `layout`, whose size is not 0; contents unspecified. `None` if there is none: never aborts.
    fn take(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    /// `address` came from [`take`](Self::take) of this source with the same `layout`, is given back once, and is no
    /// longer used.
    unsafe fn give_back(&self, address: NonNull<u8>, layout: Layout);
}

/// The allocator of the process.
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
