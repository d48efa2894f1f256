use super::*;
use purlin_async::pool::{ThreadPool, ThreadPoolOptions};

/// So many bytes, of which each differs from its neighbours and from zero.
fn pattern(size_bytes: usize) -> Vec<u8> {
    (0..size_bytes).map(|at| (at % 251) as u8 + 1).collect()
}

/// Bytes around a destination, to see whether they stay.
const MARGIN: usize = 96;

#[test]
fn a_copy_past_the_caches_writes_its_bytes_and_no_others() {
    for size_bytes in [0, 1, 15, 16, 63, 64, 65, 127, 128, 129, 1000, 4096 + 17] {
        for (from_offset, to_offset) in [(0, 0), (1, 0), (0, 1), (3, 63), (64, 32), (17, 16)] {
            let from = pattern(from_offset + size_bytes);
            let mut to = vec![0_u8; MARGIN + to_offset + size_bytes + MARGIN];
            let begin = MARGIN + to_offset;
            // SAFETY: both ranges lie within the vectors.
            unsafe { stream::copy(from.as_ptr().add(from_offset), to.as_mut_ptr().add(begin), size_bytes) };
            assert_eq!(
                to[begin..begin + size_bytes],
                from[from_offset..],
                "{size_bytes} at {from_offset}, {to_offset}"
            );
            assert!(to[..begin].iter().chain(&to[begin + size_bytes..]).all(|&byte| byte == 0));
        }
    }
}

#[test]
fn copies_of_all_sizes_arrive() {
    let largest = stream::last_cache_bytes().clamp(LEAST_SHARED_BYTES, 64 << 20) + PIECE_BYTES + 5;
    let from = pattern(largest);
    let mut to = vec![0_u8; largest + 1];
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap();
    let submitter = pool.submitter();
    for size_bytes in [1, LEAST_SHARED_BYTES - 1, LEAST_SHARED_BYTES, LEAST_SHARED_BYTES + PIECE_BYTES + 3, largest] {
        for idle in [IdleWorkers::none(), IdleWorkers::of(&submitter)] {
            to[..=size_bytes].fill(0);
            // SAFETY: both vectors are as long.
            unsafe { move_bytes(from.as_ptr(), to.as_mut_ptr(), size_bytes, idle) }.unwrap();
            assert!(to[..size_bytes] == from[..size_bytes], "{size_bytes} bytes");
            assert_eq!(to[size_bytes], 0, "the byte after {size_bytes}");
        }
    }
}

#[test]
fn ends_that_overlap_are_moved_as_by_memmove() {
    const SHIFT: usize = 1000;
    let size_bytes = LEAST_SHARED_BYTES + 7;
    let expected = pattern(size_bytes);
    for (from, to) in [(0, SHIFT), (SHIFT, 0)] {
        let mut bytes = vec![0_u8; size_bytes + SHIFT];
        bytes[from..from + size_bytes].copy_from_slice(&expected);
        let base = bytes.as_mut_ptr();
        // SAFETY: both ranges lie within the vector.
        unsafe { move_bytes(base.add(from), base.add(to), size_bytes, IdleWorkers::none()) }.unwrap();
        assert!(bytes[to..to + size_bytes] == expected, "from {from} to {to}");
    }
}

#[cfg(all(target_arch = "x86_64", not(any(miri, purlin_asan, purlin_tsan))))]
#[test]
fn the_size_of_a_cache_is_read_as_the_processor_says_it() {
    use std::arch::x86_64::CpuidResult;

    let cache = |eax, ebx, ecx| stream::cache_bytes(&CpuidResult { eax, ebx, ecx, edx: 0 });
    // An EPYC's: 32 KiB of 8 ways, 1 MiB of 8 ways, 32 MiB of 16.
    assert_eq!(cache(0x121, 0x1c0_003f, 63), Some(32 << 10));
    assert_eq!(cache(0x143, 0x1c0_003f, 2047), Some(1 << 20));
    assert_eq!(cache(0x4163, 0x3c0_003f, 32767), Some(32 << 20));
    assert_eq!(cache(0, 0x3c0_003f, 32767), None, "the end of the list");
    assert!((32 << 10..1 << 40).contains(&stream::last_cache_bytes()));
}
