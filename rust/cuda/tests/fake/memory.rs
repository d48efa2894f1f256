//! Memory that runs out, and memory without pools.

use purlin::StatusCode;
use purlin_fakecuda::{Options, process};

use crate::scenario;
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
        assert_eq!((driver.control.calls("cuMemAllocAsync"), driver.control.calls("cuMemFreeAsync")), (0, 0));
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
