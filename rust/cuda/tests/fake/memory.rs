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
            let stranger = Stranger::on(0);
            let theirs = stranger.allocate(10 << 20);
            // Of what this client had before, nothing is its own any more.
            drop(session.block(0, "device", 42 << 20));
            session.client.devices()[0].default_memory_space().trim();
            let kept = session.block(0, "device", 40 << 20);
            let error = block(&session.client, 0, "device", 40 << 20).unwrap_err();
            assert_eq!(error.code(), StatusCode::ResourceExhausted);
            let [free, total, own, others] = [14, 64, 40, 10].map(|mebi| mebi << 20);
            let says = format!("GPU 0 says that {free} of its {total} bytes are free: this client has {own}, and");
            let of_others = format!("others in this process or on the GPU have {others}");
            for words in ["CUDA_ERROR_OUT_OF_MEMORY (2)", &says, &of_others, "cuda:0/device"] {
                assert!(error.message().contains(words), "'{words}' in: {error}");
            }
            drop(kept);
            stranger.free(theirs);
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

#[test]
fn small_copies_go_through_slabs_and_larger_ones_through_chunks() {
    let name = "memory::small_copies_go_through_slabs_and_larger_ones_through_chunks";
    process::run(name, &Options::default(), || {
        for is_read in [false, true] {
            Session::with(1, |session| {
                let block = session.block(0, "device", (64 << 10) + 1);
                if is_read {
                    // From pinned memory, so that nothing is there to copy through.
                    let pinned = session.block(0, "pinned_host", block.size_bytes());
                    write(&pinned, &pattern(block.size_bytes(), 1)).unwrap();
                    outcome(&copy(&pinned, &block, &[])).unwrap();
                }
                // How much is pinned for the first copy of so many bytes, and for the next.
                let pinned_for = |bytes: usize| {
                    let part = block.slice(0, bytes).unwrap();
                    [0, 1].map(|_| {
                        let before = session.driver.control.ledger("pinned_bytes");
                        if is_read {
                            drop(read(&part).unwrap())
                        } else {
                            write(&part, &pattern(bytes, 1)).unwrap()
                        }
                        session.driver.control.ledger("pinned_bytes") - before
                    })
                };
                assert_eq!(pinned_for(64 << 10), [64 << 10, 0]);
                assert_eq!(pinned_for(1), [0, 0]);
                assert_eq!(pinned_for((64 << 10) + 1), [4 << 20, 0]);
            });
        }
    });
}

/// A filler that gets no chunk waits for one to come back, which none does while the GPU is held: the others go on.
#[test]
fn several_tasks_fill_an_upload() {
    process::run("memory::several_tasks_fill_an_upload", &Options::default(), || {
        Session::with(1, |session| {
            let (block, bytes) = (session.block(0, "device", 17 << 20), pattern(17 << 20, 6));
            let calls = || session.driver.control.calls("cuMemcpyHtoDAsync_v2");
            let held = Held::new(&session.driver);
            session.driver.control.reset_calls();
            session.driver.control.set_faults("cuMemHostAlloc:2:2");
            // SAFETY: the bytes stay until the event, which outcome() waits for or fails the process.
            let up = unsafe { block.copy_from_host(bytes.as_ptr(), 0, bytes.len(), &[]) };
            until(|| format!("{} chunks are filled", calls()), || calls() == 5);
            drop(held);
            outcome(&up).unwrap();
            assert!(read(&block).unwrap() == bytes);
        });
    });
}

/// While `body` runs, this process gets no memory from the system, and so no thread. No thread has ended before, whose
/// stack another one would get.
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

/// Has two extents of pinned memory, of 40 and 42 MiB, the first of which is trimmed where no thread can be made.
fn trimmed_without_a_thread(name: &str, then: impl FnOnce(Session, RawBuffer)) {
    if ["ASAN_OPTIONS", "TSAN_OPTIONS"].iter().any(|name| std::env::var_os(name).is_some()) {
        return eprintln!("{name}: skipped: sanitizers need memory at any time");
    }
    process::run(name, &Options::default(), || {
        let session = Session::new(1);
        let [first, second] = [40, 42].map(|mebi| session.block(0, "pinned_host", mebi << 20));
        let space = session.client.devices()[0].memory_space("pinned_host").unwrap();
        without_threads(|| {
            drop(first);
            space.trim();
        });
        drop(space);
        assert_eq!((session.driver.control.ledger("pinned_bytes"), threads()), (82 << 20, vec![]));
        then(session, second);
    });
}

#[test]
fn memory_is_given_back_later_where_no_thread_can_be_made() {
    let name = "memory::memory_is_given_back_later_where_no_thread_can_be_made";
    trimmed_without_a_thread(name, |session, other| {
        drop(other);
        session.client.devices()[0].memory_space("pinned_host").unwrap().trim();
        let pinned_bytes = || session.driver.control.ledger("pinned_bytes");
        until(|| format!("{} bytes are left", pinned_bytes()), || pinned_bytes() == 0);
        session.end();
    });
}

#[test]
fn an_allocation_that_finds_no_memory_gives_back_what_no_thread_could() {
    let name = "memory::an_allocation_that_finds_no_memory_gives_back_what_no_thread_could";
    trimmed_without_a_thread(name, |session, _other| {
        let error = block(&session.client, 0, "device", 1 << 50).unwrap_err();
        assert_eq!(error.code(), StatusCode::ResourceExhausted, "{error}");
        assert_eq!((session.driver.control.ledger("pinned_bytes"), threads()), (42 << 20, vec![]));
    });
}

#[test]
fn memory_is_of_the_kind_and_the_gpu_that_was_asked_for() {
    let options = Options { devices: 3, ..Options::default() };
    process::run("memory::memory_is_of_the_kind_and_the_gpu_that_was_asked_for", &options, || {
        Session::with(3, |session| {
            let (stranger, gpus) = (Stranger::on(0), gpus());
            for device in 0..3 {
                for (kind, expected) in [("device", 2), ("pinned_host", 1), ("unpinned_host", 0)] {
                    // Of an extent that others share, and of one of its own.
                    for bytes in [100, 64 << 20] {
                        let block = session.block(device, kind, bytes);
                        let first = block.device_pointer().unwrap();
                        for address in [first, first + bytes - 1] {
                            let (found, of) = stranger.kind_of(address);
                            assert_eq!(found, expected, "{bytes} bytes of {kind}");
                            let expected = (device % gpus) as i32;
                            assert!(kind == "unpinned_host" || of == expected, "GPU {of} instead of {expected}");
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
            session.driver.control.reset_calls();
            let held = Held::new(&session.driver);
            let up = copy_from(address, &device);
            drop(mapping);
            session.called(&[("cuMemHostUnregister", 0)], "a copy uses the memory");
            drop(held);
            outcome(&up).unwrap();
            session.called(&[("cuMemHostUnregister", 1)], "the memory may be freed from here on");
            session.called(&[("cuMemcpyHtoDAsync_v2", 1), ("cuMemHostAlloc", 0)], "one copy, through no other memory");
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
            session.called(&[("cuMemHostUnregister", 0)], "it stays theirs");
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
            if session.driver.control.is_fake() {
                until(|| format!("{} chunks are filled", calls()), || calls() == CHUNKS);
            }
            held.keeps([&up]);
            drop(held);
            outcome(&up).unwrap();
            session.called(&[("cuMemcpyHtoDAsync_v2", 21)], "a copy for each chunk");
            assert!(read(&block).unwrap() == bytes);
        });
    });
}
