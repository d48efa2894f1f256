//! Waiters of callers run on no thread of a GPU: one that blocks would stop all that the GPU completes.

#![allow(unsafe_code, reason = "copies are ordered by the caller")]
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use purlin_async::ShutdownOptions;
use purlin_conformance::ledger::{Ledger, add_books};
use purlin_cuda::CudaBackend;
use purlin_device::{Client, ClientOptions, RawBuffer};
use purlin_fakecuda::{Driver, Options, process};

#[test]
fn waiters_run_on_no_thread_of_a_gpu() {
    process::run("waiters_run_on_no_thread_of_a_gpu", &Options::default(), || {
        const ROUNDS: usize = 32;
        let driver = Driver::open();
        driver.control.set_delays(1, 200);
        add_books(|| Driver::open().left());
        let before = Ledger::now();
        // All that there are.
        let options = ClientOptions { device_count: 0, worker_count: 2, ..Default::default() };
        let client = Client::new(&options, Arc::new(CudaBackend::new().unwrap())).unwrap();
        let kinds = ["device", "pinned_host", "unpinned_host"];
        let spaces: Vec<_> =
            client.devices().iter().flat_map(|device| kinds.map(|kind| device.memory_space(kind).unwrap())).collect();
        let (told, names) = mpsc::channel();
        let blocks: Vec<RawBuffer> = spaces.iter().map(|space| RawBuffer::allocate(space, 256).unwrap()).collect();
        let bytes = [7_u8; 256];
        // SAFETY: the bytes stay until the last copy has happened, which comes after this one.
        let mut last = unsafe { blocks[0].copy_from_host(bytes.as_ptr(), 0, bytes.len(), &[]) };
        for round in 0..ROUNDS {
            let (from, to) = (&blocks[round % blocks.len()], &blocks[(round + 1) % blocks.len()]);
            // SAFETY: each copy waits for the last.
            last = unsafe { from.copy_to(to, std::slice::from_ref(&last)) };
            let told = told.clone();
            last.on_ready(move |_| {
                let name = thread::current().name().unwrap_or_default().to_owned();
                told.send(name).expect("the test waits for it");
            });
        }
        for _ in 0..ROUNDS {
            let name = names.recv().unwrap();
            assert!(!name.starts_with("purlin-cuda"), "a waiter ran on the thread {name}");
        }
        drop((last, blocks, spaces));
        client.shutdown(ShutdownOptions::default()).unwrap();
        drop(client);
        assert_eq!(before.settles(), Ok(()));
        driver.control.no_reports();
    });
}
