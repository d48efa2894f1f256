//! Copies past the caches of x86-64: lines that are written whole are neither read from memory before, nor do they
//! displace what others have in the caches.

use std::arch::x86_64::{__cpuid_count, __m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128, CpuidResult};
use std::ptr;

use purlin_base::sync::atomic::AtomicUsize;
use purlin_base::sync::atomic::Ordering::Relaxed;

/// What is written at once.
const LINE_BYTES: usize = 64;

/// No processor lists more.
const MOST_CACHES: u32 = 8;
/// Where the processor does not say how large its caches are.
const USUAL_CACHE_BYTES: usize = 32 << 20;

/// As [`ptr::copy_nonoverlapping`].
///
/// # Safety
/// As there.
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, size_bytes: usize) {
    let before = to.align_offset(LINE_BYTES).min(size_bytes);
    let lines = (size_bytes - before) / LINE_BYTES;
    let after = before + lines * LINE_BYTES;
    // SAFETY: all three parts lie within the caller's ranges, and behind `before` is an address of `to` that is aligned
    // for lines. The fence orders the lines before whatever tells other threads of them, as the instruction set asks.
    unsafe {
        ptr::copy_nonoverlapping(from, to, before);
        let (mut line_from, mut line_to) = (from.add(before).cast::<__m128i>(), to.add(before).cast::<__m128i>());
        for _ in 0..lines {
            let words = [
                _mm_loadu_si128(line_from),
                _mm_loadu_si128(line_from.add(1)),
                _mm_loadu_si128(line_from.add(2)),
                _mm_loadu_si128(line_from.add(3)),
            ];
            _mm_stream_si128(line_to, words[0]);
            _mm_stream_si128(line_to.add(1), words[1]);
            _mm_stream_si128(line_to.add(2), words[2]);
            _mm_stream_si128(line_to.add(3), words[3]);
            (line_from, line_to) = (line_from.add(4), line_to.add(4));
        }
        _mm_sfence();
        ptr::copy_nonoverlapping(from.add(after), to.add(after), size_bytes - after);
    }
}

/// How large the largest cache of this processor is.
pub(super) fn last_cache_bytes() -> usize {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: threads that ask at the same time find the same number.
    match BYTES.load(Relaxed) {
        0 => {
            let bytes = largest_cache().unwrap_or(USUAL_CACHE_BYTES);
            BYTES.store(bytes, Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// By the leaf that lists caches: 4 of Intel's processors, 0x8000001d of AMD's, in one form (Intel's manual, volume 2,
/// CPUID; AMD's, volume 3, appendix E).
fn largest_cache() -> Option<usize> {
    let listed = |(first, leaf): (u32, u32)| {
        let caches = if cpuid(first, 0).eax >= leaf { MOST_CACHES } else { 0 };
        (0..caches).filter_map(move |index| cache_bytes(&cpuid(leaf, index)))
    };
    [(0, 4), (0x8000_0000, 0x8000_001d)].into_iter().flat_map(listed).max()
}

#[allow(unused_unsafe, reason = "unsafe to call in older versions of Rust")]
fn cpuid(leaf: u32, index: u32) -> CpuidResult {
    // SAFETY: all processors of x86-64 have the instruction.
    unsafe { __cpuid_count(leaf, index) }
}

/// Its ways times partitions times bytes of a line times sets, each of which the registers have less one; `None` if it
/// is no cache.
pub(super) fn cache_bytes(cache: &CpuidResult) -> Option<usize> {
    if cache.eax & 0x1f == 0 {
        return None;
    }
    let field = |low: u32, bits: u32| ((cache.ebx >> low) & ((1 << bits) - 1)) as usize + 1;
    let sets = (cache.ecx as usize).checked_add(1)?;
    [field(22, 10), field(12, 10), field(0, 12)].into_iter().try_fold(sets, usize::checked_mul)
}
