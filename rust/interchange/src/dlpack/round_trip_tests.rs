//! Arrays that are exported and imported again, each the next one's input, as loops over two libraries make them.

use std::sync::Arc;
use std::thread;

use purlin_device::{Aliasing, Buffer, MemorySpace};

use super::tests::Stranger;
use super::*;
use crate::testing::Host;

const TRIPS: usize = 8000;

fn there_and_back(buffer: &Buffer, space: &MemorySpace) -> Buffer {
    let tensor = DlpackTensor::new(buffer).unwrap().into_raw();
    // SAFETY: it is ours, given up here, and nothing writes it.
    let (back, aliasing) = unsafe { import_dlpack(tensor, space) }.unwrap();
    assert_eq!(aliasing, Aliasing::Aliased);
    back
}

fn address(buffer: &Buffer) -> usize {
    buffer.usage_hold().unwrap().memory().host_pointer().unwrap().addr().get()
}

/// What a stack overflow on 256 KiB ends, together with the process.
fn on_a_small_stack(f: impl FnOnce() + Send) {
    thread::scope(|scope| {
        thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, f).unwrap().join().unwrap();
    });
}

#[test]
fn any_number_of_round_trips_is_the_memory_of_the_first() {
    let host = Host::new();
    on_a_small_stack(|| {
        let values: Vec<f32> = (0..64_u8).map(f32::from).collect();
        let first = Buffer::from_slice(&values, &[64], &host.space).unwrap();
        let mut last = first.clone();
        for _ in 0..TRIPS {
            last = there_and_back(&last, &host.space);
        }
        assert_eq!((address(&last), last.to_vec::<f32>().unwrap()), (address(&first), values));
        let (refused, _) = (first.try_donate(c"test").unwrap_err(), last);
        assert!(refused.message().contains("external reference"), "{refused}");
        assert!(first.try_donate(c"test").is_ok(), "nobody reads it any more");
    });
    assert_eq!(host.space.stats().bytes_in_use, 0);
}

#[test]
fn a_struct_in_between_keeps_the_memory_until_its_own_deleter() {
    let host = Host::new();
    let first = Buffer::from_slice(&[1_u8; 64], &[64], &host.space).unwrap();
    let second = there_and_back(&first, &host.space);
    let between = DlpackTensor::new(&second).unwrap();
    let third = there_and_back(&second, &host.space);
    drop((second, third));
    assert!(first.try_donate(c"test").is_err());
    drop(between);
    assert!(first.try_donate(c"test").is_ok());
}

#[test]
fn a_strangers_array_ends_once_after_any_number_of_round_trips() {
    let host = Host::new();
    on_a_small_stack(|| {
        let u8s = DLDataType { code: code::UINT, bits: 8, lanes: 1 };
        let (stranger, ends) = Stranger::new(&[5; 64], u8s, &[64], None);
        // SAFETY: a `Stranger` is what DLPack says, and nothing writes it.
        let (mut last, _) = unsafe { import_dlpack(Stranger::managed(stranger), &host.space) }.unwrap();
        let first_address = address(&last);
        for _ in 0..TRIPS {
            last = there_and_back(&last, &host.space);
        }
        assert_eq!((address(&last), ends.count()), (first_address, 0));
        drop(last);
        assert_eq!(ends.count(), 1);
    });
}

#[test]
fn round_trips_through_two_clients_need_a_small_stack() {
    let (host, other) = (Host::new(), Host::new());
    on_a_small_stack(|| {
        let mut last = Buffer::from_slice(&[3_u8; 64], &[64], &host.space).unwrap();
        for _ in 0..TRIPS / 2 {
            last = there_and_back(&there_and_back(&last, &other.space), &host.space);
        }
        assert_eq!(last.to_vec::<u8>().unwrap(), [3; 64]);
    });
    assert_eq!(host.space.stats().bytes_in_use, 0);
}

#[test]
fn round_trips_end_on_a_pools_thread() {
    let (host, other) = (Host::new(), Host::new());
    let mut last = Buffer::from_slice(&[3_u8; 64], &[64], &host.space).unwrap();
    for _ in 0..TRIPS / 2 {
        last = there_and_back(&there_and_back(&last, &other.space), &host.space);
    }
    let over = Arc::new(purlin_async::EventPromise::new(c"over"));
    let tells = Arc::clone(&over);
    host.client.runner().schedule(c"end", move || _ = (drop(last), tells.set_ready())).unwrap();
    assert_eq!(over.event().wait(), Ok(()));
    assert_eq!(host.space.stats().bytes_in_use, 0);
}

#[test]
fn what_was_changed_in_a_struct_of_ours_is_what_counts() {
    let host = Host::new();
    let first = Buffer::from_slice(&[[1_u8; 64], [2; 64]].concat(), &[128], &host.space).unwrap();
    let constant = there_and_back(&first, &host.space);
    let tensor = DlpackTensor::new(&constant).unwrap().into_raw();
    // SAFETY: the struct is ours until it is imported; the second half is within the array.
    let (half, _) = unsafe {
        (*tensor).dl_tensor.byte_offset = 64;
        *(*tensor).dl_tensor.shape = 64;
        import_dlpack(tensor, &host.space)
    }
    .unwrap();
    assert_eq!(half.to_vec::<u8>().unwrap(), [2; 64]);
    assert_eq!(address(&half), address(&first) + 64);
    let tensor = DlpackTensor::new(&constant).unwrap().into_raw();
    // SAFETY: as above; the first half.
    let (half, _) = unsafe {
        *(*tensor).dl_tensor.shape = 64;
        import_dlpack(tensor, &host.space)
    }
    .unwrap();
    assert_eq!((half.to_vec::<u8>().unwrap(), address(&half)), (vec![1; 64], address(&first)));
}
