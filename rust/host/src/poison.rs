//! Memory that is kept for later is out of bounds for AddressSanitizer: it sees a use of a block that was freed,
//! although the pages stay mapped.

#![allow(unsafe_code, reason = "the sanitizer takes addresses")]

unsafe extern "C" {
    fn __asan_poison_memory_region(address: *const u8, size_bytes: usize);
    fn __asan_unpoison_memory_region(address: *const u8, size_bytes: usize);
}

pub(crate) fn poison(address: *mut u8, size_bytes: usize) {
    // SAFETY: the sanitizer's runtime takes any range; this one is ours, and no code may touch it.
    unsafe { __asan_poison_memory_region(address, size_bytes) }
}

pub(crate) fn unpoison(address: *mut u8, size_bytes: usize) {
    // SAFETY: as above.
    unsafe { __asan_unpoison_memory_region(address, size_bytes) }
}
