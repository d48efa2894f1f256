//! Memory from which core cuts blocks: mapped, lent by a user's allocator, or foreign.

#![allow(unsafe_code, reason = "memory is held and given back by address")]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use purlin_base::fault::{self, Site};
use purlin_base::panics::{answered, caught};
use purlin_base::{Error, StatusOr};
use purlin_device::backend::Extent;

use crate::ByteSource;
use crate::memory::HUGE_PAGE_BYTES;
use crate::poison::{poison, unpoison};

/// Pages of the process's own, huge ones where the kernel gives them.
pub(crate) struct Mapped {
    pages: MmapRaw,
    /// Where the extent begins in them.
    offset_bytes: usize,
    size_bytes: usize,
}

impl Mapped {
    /// `None`: the system has no such memory.
    pub(crate) fn new(size_bytes: usize, alignment_bytes: usize) -> Option<Self> {
        // The kernel aligns to small pages only, and a huge page begins at a multiple of its size.
        let alignment_bytes =
            if size_bytes < HUGE_PAGE_BYTES { alignment_bytes } else { alignment_bytes.max(HUGE_PAGE_BYTES) };
        let total_bytes = size_bytes.checked_add(alignment_bytes)?;
        let pages: MmapRaw = MmapOptions::new().len(total_bytes).map_anon().ok()?.into();
        let offset_bytes = pages.as_ptr().align_offset(alignment_bytes);
        if size_bytes >= HUGE_PAGE_BYTES {
            // Advice: without huge pages it is as right, and slower.
            let _ = pages.advise_range(Advice::HugePage, offset_bytes, size_bytes);
        }
        Some(Self { pages, offset_bytes, size_bytes })
    }

    fn first(&self) -> *mut u8 {
        self.pages.as_mut_ptr().wrapping_add(self.offset_bytes)
    }
}

impl Extent for Mapped {
    fn address(&self) -> usize {
        self.first().expose_provenance()
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.first())
    }

    fn handed_out(&self, offset_bytes: usize, size_bytes: usize) {
        unpoison(self.first().wrapping_add(offset_bytes), size_bytes);
    }

    fn given_back(&self, offset_bytes: usize, size_bytes: usize) {
        poison(self.first().wrapping_add(offset_bytes), size_bytes);
    }

    fn discard(&self, offset_bytes: usize, size_bytes: usize) {
        // Whole huge pages only: their neighbours are in use.
        let start = offset_bytes.next_multiple_of(HUGE_PAGE_BYTES);
        let end = (offset_bytes + size_bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        if start < end {
            // SAFETY: the pages lie in our mapping, and core guarantees that the contents of this range are not needed;
            // it reads as zeros from then on. Failing, it stays as it was.
            let _ = unsafe {
                self.pages.unchecked_advise_range(UncheckedAdvice::DontNeed, self.offset_bytes + start, end - start)
            };
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        unpoison(self.first(), self.size_bytes);
    }
}

/// A block of a user's allocator.
pub(crate) struct Lent {
    address: NonNull<u8>,
    layout: Layout,
    source: Arc<dyn ByteSource>,
}

// SAFETY: the block belongs to this value alone, and memory may be used from any thread; reads and writes are ordered
// by the copies' events (RawBuffer's contract).
unsafe impl Send for Lent {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for Lent {}

impl Lent {
    /// # Errors
    /// `ResourceExhausted`: the source has no such memory. `Internal`: what it gave is not aligned, and was given back.
    pub(crate) fn new(source: Arc<dyn ByteSource>, layout: Layout) -> StatusOr<Self> {
        let none_left = || Error::resource_exhausted("the host has no such memory left");
        fault::point(Site::TakeHost)?;
        let what = || format!("the host's allocator, asked for {} bytes,", layout.size());
        let address = answered(what, || {
            fault::callback("allocator of host memory");
            source.take(layout).ok_or_else(none_left)
        })?;
        let lent = Self { address, layout, source };
        if !address.addr().get().is_multiple_of(layout.align()) {
            return Err(Error::internal(format!(
                "the host's allocator answered {address:p} for {} bytes at a multiple of {}, which it is not: given back",
                layout.size(),
                layout.align()
            )));
        }
        Ok(lent)
    }
}

impl Extent for Lent {
    fn address(&self) -> usize {
        self.address.as_ptr().expose_provenance()
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        Some(self.address)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: the block came from this source with this layout, and core drops an extent only when no handle and no
        // copy refers to it.
        let given_back = caught(|| unsafe {
            self.source.give_back(self.address, self.layout);
            fault::callback("allocator of host memory, taking back");
        });
        // The panic hook has reported it; no code waits for an answer.
        let _ = given_back;
    }
}
