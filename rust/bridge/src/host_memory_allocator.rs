//! An allocator that C++ implements (`purlin/host_memory_allocator.h`), as a source of bytes for the host backend.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::NonNull;

use purlin_device::backend::ByteSource;

/// Owned: `release` is called once, when all of its memory is back.
#[repr(C)]
pub struct ForeignAllocator {
    /// What the functions take; null: there is no allocator.
    data: *mut c_void,
    /// Null: there is no memory. Does not unwind.
    allocate: unsafe extern "C" fn(data: *mut c_void, size_bytes: usize, alignment_bytes: usize) -> *mut c_void,
    /// Does not unwind.
    deallocate:
        unsafe extern "C" fn(data: *mut c_void, address: *mut c_void, size_bytes: usize, alignment_bytes: usize),
    /// Does not unwind.
    release: unsafe extern "C" fn(data: *mut c_void),
}

// SAFETY: purlin/host_memory_allocator.h's contract: an allocator is used and destroyed on any thread.
unsafe impl Send for ForeignAllocator {}
// SAFETY: the same contract: on several threads at once.
unsafe impl Sync for ForeignAllocator {}

impl ForeignAllocator {
    /// Itself, unless there is none.
    pub(crate) fn exists(self) -> Option<Self> {
        (!self.data.is_null()).then_some(self)
    }
}

// SAFETY: purlin/host_memory_allocator.h's contract: the memory is readable and writable, has no other owner, and stays
// until it is given back. That it is aligned is not taken on trust: the host backend looks.
unsafe impl ByteSource for ForeignAllocator {
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: C++ gave the function together with the data that it takes, which lives until drop().
        NonNull::new(unsafe { (self.allocate)(self.data, layout.size(), layout.align()) }.cast())
    }

    unsafe fn give_back(&self, address: NonNull<u8>, layout: Layout) {
        // SAFETY: as above; the caller gives back what take() answered, once.
        unsafe { (self.deallocate)(self.data, address.as_ptr().cast(), layout.size(), layout.align()) };
    }
}

impl Drop for ForeignAllocator {
    fn drop(&mut self) {
        if !self.data.is_null() {
            // SAFETY: as above; it is no longer used.
            unsafe { (self.release)(self.data) };
        }
    }
}
