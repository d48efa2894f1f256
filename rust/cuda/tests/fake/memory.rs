//! Memory that runs out, memory without pools, memory that is mapped, and which memory it is.

#![allow(unsafe_code, reason = "copies are made by address")]

use purlin::{Event, RawBuffer, StatusCode};
use purlin_fakecuda::{Options, process};

use crate::scenario;
use crate::stranger::Stranger;
use crate::support::*;

#[test]
fn out_of_memory_is_a_report_with_what_the_driver_says() {
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    process::run("memory::out_of_memory_is_a_report_with_what_the_driver_says", &options, || {
        Session::with(1, |session| {
            let kept = session.block(0, "device", 40 << 20);
            let error = block(&session.client, 0, "device", 40 << 20).unwrap_err();
            assert_eq!(error.code(), StatusCode::ResourceExhausted);
            let total = (64 << 20).to_string();
            for words in ["CUDA_ERROR_OUT_OF_MEMORY (2)", "GPU 0 says that", &total, "cuda:0/device", "others"] {
                assert!(error.message().contains(words), "'{words}' in: {error}");
            }
            drop(kept);
            let again = session.block(0, "device", 40 << 20);
            write(&again, &pattern(40 << 20, 1)).unwrap();
        });
    });
}

#[test]
fn without_pools_everything_works() {
    let options = Options { without_pools: true, ..Options::default() };
    process::run("memory::without_pools_everything_works", &options, || {
        assert_eq!(scenario::run(), Ok(()));
        let driver = purlin_fakecuda::Driver::open();
        assert_eq!((driver.control.calls("cuMemAllocFromPoolAsync"), driver.control.calls("cuMemFreeAsync")), (0, 0));
        assert!(driver.control.calls("cuMemAlloc_v2") > 0);
        nothing_is_left(&driver);
        driver.control.no_reports();
    });
}

#[test]
fn without_pools_a_caller_does_not_wait_for_the_gpu_to_give_memory_back() {
    let name = "memory::without_pools_a_caller_does_not_wait_for_the_gpu_to_give_memory_back";
    process::run(name, &Options { without_pools: true, ..Options::default() }, || {
        Session::with(1, |session| {
            let (from, to) = (session.block(0, "pinned_host", 64), session.block(0, "device", 64));
            let unused = session.block(0, "device", 64 << 20);
            let held = Held::new(&session.driver);
            let pending = copy(&from, &to, &[]);
            // The driver's free waits for what is pending, so it would never return here.
            drop(unused);
            session.client.devices()[0].default_memory_space().trim();
            assert!(!pending.is_ready());
            drop(held);
            outcome(&pending).unwrap();
            until(|| "the memory is not freed".to_owned(), || session.driver.control.calls("cuMemFree_v2") == 1);
        });
    });
}

/// The driver frees pinned memory when the GPU has nothing to do.
#[test]
fn a_caller_does_not_wait_for_the_gpu_to_give_pinned_memory_back() {
    let name = "memory::a_caller_does_not_wait_for_the_gpu_to_give_pinned_memory_back";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let (from, to) = (session.block(0, "pinned_host", 64), session.block(0, "device", 64));
            // Extents of their own: one that is freed with its block, and one that is trimmed.
            let unused = [40, 42].map(|mebi| session.block(0, "pinned_host", mebi << 20));
            let pinned_bytes = || session.driver.control.ledger("pinned_bytes");
            let before = pinned_bytes();
            let held = Held::new(&session.driver);
            let pending = copy(&from, &to, &[]);
            drop(unused);
            session.client.devices()[0].memory_space("pinned_host").unwrap().trim();
            assert!(!pending.is_ready());
            assert_eq!(pinned_bytes(), before);
            drop(held);
            outcome(&pending).unwrap();
            until(|| format!("{before} bytes, then {}", pinned_bytes()), || pinned_bytes() == before - (82 << 20));
        });
    });
}

/// While `body` runs, this process gets no memory from the system, and so no thread.
fn without_threads(body: impl FnOnce()) {
    let mut usual = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes the limit.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut usual) }, 0);
    // SAFETY: it reads the limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &libc::rlimit { rlim_cur: 1, ..usual }) }, 0);
    body();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &usual) }, 0);
}

#[test]
fn memory_is_given_back_later_where_no_thread_can_be_made() {
    let name = "memory::memory_is_given_back_later_where_no_thread_can_be_made";
    if ["ASAN_OPTIONS", "TSAN_OPTIONS"].iter().any(|name| std::env::var_os(name).is_some()) {
        return eprintln!("{name}: skipped: sanitizers need memory at any time");
    }
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let unused = [40, 42].map(|mebi| session.block(0, "pinned_host", mebi << 20));
            let space = session.client.devices()[0].memory_space("pinned_host").unwrap();
            let pinned_bytes = || session.driver.control.ledger("pinned_bytes");
            let [first, second] = unused;
            without_threads(|| {
                drop(first);
                space.trim();
            });
            assert_eq!((pinned_bytes(), threads()), (82 << 20, vec![]));
            drop(second);
            space.trim();
            until(|| format!("{} bytes are left", pinned_bytes()), || pinned_bytes() == 0);
        });
        // The end gives back what is left.
        let session = Session::new(1);
        let unused = session.block(0, "pinned_host", 40 << 20);
        without_threads(|| drop(unused));
        session.end();
    });
}

#[test]
fn memory_is_of_the_kind_and_the_gpu_that_was_asked_for() {
    let options = Options { devices: 3, ..Options::default() };
    process::run("memory::memory_is_of_the_kind_and_the_gpu_that_was_asked_for", &options, || {
        Session::with(3, |session| {
            let stranger = Stranger::on(0);
            for device in 0..3 {
                for (kind, expected) in [("device", 2), ("pinned_host", 1), ("unpinned_host", 0)] {
                    // Of an extent that others share, and of one of its own.
                    for bytes in [100, 64 << 20] {
                        let block = session.block(device, kind, bytes);
                        let first = block.device_pointer().unwrap();
                        for address in [first, first + bytes - 1] {
                            let (found, of) = stranger.kind_of(address);
                            assert_eq!(found, expected, "{bytes} bytes of {kind}");
                            assert!(kind == "unpinned_host" || of == device as i32, "GPU {of} instead of {device}");
                        }
                        assert_eq!(block.host_pointer().is_none(), kind == "device");
                    }
                }
            }
        });
    });
}

#[test]
fn mapped_memory_is_copied_directly_and_unmapped_after_its_last_copy() {
    let name = "memory::mapped_memory_is_copied_directly_and_unmapped_after_its_last_copy";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let bytes = 9 << 20;
            let (source, device) = (session.block(0, "unpinned_host", bytes), session.block(0, "device", bytes));
            let address = source.host_pointer().unwrap().as_ptr().cast_const();
            write(&source, &pattern(bytes, 1)).unwrap();
            let mapping = session.client.dma_map(address, bytes).unwrap();
            let control = &session.driver.control;
            control.reset_calls();
            let held = Held::new(&session.driver);
            let up = copy_from(address, &device);
            drop(mapping);
            assert_eq!(control.calls("cuMemHostUnregister"), 0, "a copy uses the memory");
            drop(held);
            outcome(&up).unwrap();
            assert_eq!(control.calls("cuMemHostUnregister"), 1, "the memory may be freed from here on");
            let calls = ["cuMemcpyHtoDAsync_v2", "cuMemHostAlloc"].map(|name| control.calls(name));
            assert_eq!(calls, [1, 0], "one copy, through no other memory");
            assert_eq!(read(&device).unwrap(), pattern(bytes, 1));
        });
    });
}

#[test]
fn memory_that_somebody_else_has_pinned_is_mapped_and_stays_theirs() {
    let name = "memory::memory_that_somebody_else_has_pinned_is_mapped_and_stays_theirs";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, device) = (Stranger::on(0), session.block(0, "device", 4096));
            let theirs = stranger.allocate_host(4096);
            let mapping = session.client.dma_map(theirs, 4096).unwrap();
            write(&device, &pattern(4096, 2)).unwrap();
            outcome(&copy_from(theirs, &device)).unwrap();
            mapping.unmap().map_err(|(error, _)| error).unwrap();
            assert_eq!(session.driver.control.calls("cuMemHostUnregister"), 0);
            stranger.free_host(theirs);
        });
    });
}

/// As many bytes as the block has, from memory that the test keeps until the event.
fn copy_from(address: *const u8, to: &RawBuffer) -> Event {
    // SAFETY: the test keeps the bytes, and uses the block for nothing else meanwhile.
    unsafe { to.copy_from_host(address, 0, to.size_bytes(), &[]) }
}

#[test]
fn a_large_upload_fills_all_chunks_while_the_gpu_is_busy_and_goes_on_as_they_come_back() {
    /// As many as a GPU has, of 4 MiB each.
    const CHUNKS: u64 = 16;
    let name = "memory::a_large_upload_fills_all_chunks_while_the_gpu_is_busy_and_goes_on_as_they_come_back";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let (block, bytes) = (session.block(0, "device", 83 << 20), pattern(83 << 20, 6));
            let calls = || session.driver.control.calls("cuMemcpyHtoDAsync_v2");
            let held = Held::new(&session.driver);
            session.driver.control.reset_calls();
            // SAFETY: the bytes stay until the event, which outcome() waits for or fails the process.
            let up = unsafe { block.copy_from_host(bytes.as_ptr(), 0, bytes.len(), &[]) };
            until(|| format!("{} chunks are filled", calls()), || calls() == CHUNKS);
            assert!(!up.is_ready());
            drop(held);
            outcome(&up).unwrap();
            assert_eq!(calls(), 21);
            assert!(read(&block).unwrap() == bytes);
        });
    });
}
