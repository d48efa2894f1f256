//! Several devices: on GPUs that reach each other or do not, and virtual ones.

use purlin::{Client, ClientOptions, StatusCode};
use purlin_cuda::CudaBackend;
use purlin_fakecuda::{Options, process};
use std::sync::Arc;

use crate::support::*;

const BYTES: usize = 300_000;

/// A session whose devices may be more than there are GPUs.
fn virtual_session(devices: usize) -> Session {
    let options = ClientOptions { device_count: devices, worker_count: 2, ..ClientOptions::default() };
    let driver = purlin_fakecuda::Driver::open();
    let backend = CudaBackend::new().unwrap().with_virtual_devices(true);
    Session { driver, client: Client::new(&options, Arc::new(backend)).unwrap() }
}

/// Bytes go from each memory space to each other, by events alone.
fn every_pair(session: &Session) {
    let spaces: Vec<_> = session.client.devices().iter().flat_map(|device| device.memory_spaces().to_vec()).collect();
    for (from, source) in spaces.iter().enumerate() {
        for (to, destination) in spaces.iter().enumerate() {
            let [first, second] = [source, destination].map(|space| purlin::RawBuffer::allocate(space, BYTES).unwrap());
            let (sent, mut received) = (pattern(BYTES, from * spaces.len() + to), vec![0; BYTES]);
            // SAFETY: the bytes stay until the last event, which outcome() waits for or fails the process.
            let written = unsafe { first.copy_from_host(sent.as_ptr(), 0, BYTES, &[]) };
            let moved = copy(&first, &second, &[written]);
            // SAFETY: as above.
            outcome(&unsafe { second.copy_to_host(received.as_mut_ptr(), 0, BYTES, &[moved]) }).unwrap();
            assert!(sent == received, "from {source} to {destination}");
        }
    }
}

#[test]
fn bytes_go_from_every_space_of_four_gpus_to_every_other() {
    let name = "devices::bytes_go_from_every_space_of_four_gpus_to_every_other";
    process::run(name, &Options { devices: 4, ..Options::default() }, || {
        let session = Session::new(4);
        // Each of the pairs once for each direction; again by another client, to which "already" is success.
        let opened = |count| {
            session.called(&[("cuCtxEnablePeerAccess", count), ("cuMemPoolSetAccess", count)], "pairs of GPUs");
        };
        opened(12);
        every_pair(&session);
        let beside = client(4).unwrap();
        // What is open to others stays so, and pools are opened again all the same.
        opened(24);
        shut_down(&beside).unwrap();
        drop(beside);
        session.end();
    });
}

#[test]
fn gpus_that_do_not_reach_each_other_copy_through_the_host() {
    let name = "devices::gpus_that_do_not_reach_each_other_copy_through_the_host";
    process::run(name, &Options { devices: 4, without_peers: true, ..Options::default() }, || {
        Session::with(4, |session| {
            assert_eq!(session.driver.control.calls("cuCtxEnablePeerAccess"), 0);
            every_pair(session);
        });
    });
}

#[test]
fn a_refusal_of_access_costs_nothing_but_time() {
    let name = "devices::a_refusal_of_access_costs_nothing_but_time";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        for fault in ["cuCtxEnablePeerAccess:0:711", "cuDeviceCanAccessPeer:0:1", "cuMemPoolSetAccess:0:801"] {
            purlin_fakecuda::Driver::open().control.set_faults(fault);
            Session::with(2, every_pair);
        }
    });
}

#[test]
fn virtual_devices_share_gpus_in_turn() {
    let name = "devices::virtual_devices_share_gpus_in_turn";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        let (session, count) = (virtual_session(5), gpus());
        let gpus: Vec<_> = session.client.devices().iter().map(|device| device.local_hardware_id()).collect();
        let expected: Vec<_> = (0..5).map(|device| (device % count) as i32).collect();
        assert_eq!(gpus, expected);
        every_pair(&session);
        session.end();
    });
}

#[test]
fn a_gpu_that_breaks_breaks_all_its_virtual_devices_and_no_other() {
    let name = "devices::a_gpu_that_breaks_breaks_all_its_virtual_devices_and_no_other";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        let session = virtual_session(5);
        let blocks: Vec<_> = (0..5).map(|device| session.block(device, "device", BYTES)).collect();
        session.driver.control.set_faults("cuMemcpyHtoDAsync_v2:0:700:sticky");
        let bytes = pattern(BYTES, 1);
        assert_eq!(write(&blocks[2], &bytes).unwrap_err().code(), StatusCode::Internal);
        session.driver.control.set_faults("");
        for (device, block) in blocks.iter().enumerate() {
            let outcome = write(block, &bytes).and_then(|()| read(block));
            match outcome {
                Ok(read) => assert!(device % 2 == 1 && read == bytes, "device {device}"),
                Err(error) => {
                    assert!(device % 2 == 0, "device {device}: {error}");
                    assert!(error.message().contains("GPU 0 is broken until this process ends"), "{error}");
                }
            }
        }
        drop(blocks);
        session.end_broken();
    });
}

#[test]
fn order_passes_through_a_peer_copy_to_memory_of_the_host() {
    let name = "devices::order_passes_through_a_peer_copy_to_memory_of_the_host";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        Session::with(2, |session| {
            let [pinned, other] = [0, 1].map(|_| session.block(0, "pinned_host", BYTES));
            let [first, last] = [0, 1].map(|_| session.block(0, "device", BYTES));
            let there = session.block(1, "device", BYTES);
            let (sent, replaced) = (pattern(BYTES, 1), pattern(BYTES, 2));
            write(&pinned, &sent).unwrap();
            write(&last, &replaced).unwrap();
            let held = Held::new(&session.driver);
            let up = copy(&pinned, &first, &[]);
            let away = copy(&first, &there, &[up]);
            // It has nothing of the GPUs in common with the copies that it comes after.
            let overwritten = copy(&last, &pinned, std::slice::from_ref(&away));
            let back = copy(&there, &other, &[away]);
            drop(held);
            outcome(&overwritten).unwrap();
            outcome(&back).unwrap();
            assert!(read(&other).unwrap() == sent && read(&pinned).unwrap() == replaced);
        });
    });
}

#[test]
fn order_passes_from_memory_of_the_host_through_a_peer_copy() {
    let name = "devices::order_passes_from_memory_of_the_host_through_a_peer_copy";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        Session::with(2, |session| {
            let pinned = session.block(0, "pinned_host", BYTES);
            let [first, other, last] = [0, 1, 2].map(|_| session.block(0, "device", BYTES));
            let there = session.block(1, "device", BYTES);
            let sent = pattern(BYTES, 1);
            write(&first, &sent).unwrap();
            write(&other, &pattern(BYTES, 2)).unwrap();
            let held = Held::new(&session.driver);
            let down = copy(&first, &pinned, &[]);
            // It has nothing in common with the copies before and after it.
            let away = copy(&other, &there, &[down]);
            let up = copy(&pinned, &last, &[away]);
            drop(held);
            outcome(&up).unwrap();
            assert!(read(&last).unwrap() == sent);
        });
    });
}
