//! Many arrays from the host by one call.

#![allow(unsafe_code, reason = "host memory is read by address")]

use std::sync::{Arc, Mutex};

use purlin_array::{DType, HostArray, Layout, Shape};
use purlin_base::{Error, StatusCode, StatusOr};
use purlin_device::{AllocOptions, Buffer, ClientOptions, HostBufferSemantics, HostShard, MemorySpace, OnDone};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, pattern};

use HostBufferSemantics::{ImmutableOnlyDuringCall, ImmutableUntilTransferCompletes};

fn dense(size_bytes: usize) -> HostArray {
    HostArray::new(&Shape::new(DType::U8, &[size_bytes as i64]).unwrap(), None).unwrap()
}

/// What `on_done` was called with.
type DoneLog = Arc<Mutex<Vec<Result<(), Error>>>>;

/// The buffers, and what `on_done` was called with.
fn make(
    shards: &[(*const u8, &HostArray, &MemorySpace)],
    layout: Option<&Layout>,
    semantics: HostBufferSemantics,
) -> (StatusOr<Vec<Buffer>>, DoneLog) {
    let shards: Vec<HostShard<'_>> =
        shards.iter().map(|&(data, array, memory_space)| HostShard { data, array, layout, memory_space }).collect();
    let told = Arc::new(Mutex::new(Vec::new()));
    let out = Arc::clone(&told);
    let on_done: OnDone = Box::new(move |outcome| out.lock().unwrap().push(outcome));
    // SAFETY: the cases keep their bytes until `on_done` was called.
    (unsafe { Buffer::from_host_shards(&shards, semantics, &AllocOptions::default(), Some(on_done)) }, told)
}

pub(crate) fn every_shard_comes_to_its_device(fixture: &Fixture) {
    let spaces: Vec<MemorySpace> = (0..3).map(|id| fixture.device(id).default_memory_space()).collect();
    for semantics in [ImmutableOnlyDuringCall, ImmutableUntilTransferCompletes] {
        let bytes = [pattern(10, 1), pattern(LARGE_BYTES, 2), pattern(0, 3)];
        let arrays = bytes.each_ref().map(|bytes| dense(bytes.len()));
        let shards: Vec<_> = (0..3).map(|index| (bytes[index].as_ptr(), &arrays[index], &spaces[index])).collect();
        let (buffers, told) = make(&shards, None, semantics);
        let buffers = buffers.unwrap();
        for (index, buffer) in buffers.iter().enumerate() {
            assert_eq!(buffer.memory_space(), spaces[index]);
            assert_eq!(buffer.to_vec::<u8>().unwrap(), bytes[index]);
        }
        drop(buffers);
        while told.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(*told.lock().unwrap(), [Ok(())]);
    }
    let (none, told) = make(&[], None, ImmutableOnlyDuringCall);
    assert!(none.unwrap().is_empty() && *told.lock().unwrap() == [Ok(())]);
}

pub(crate) fn nothing_is_made_if_one_shard_is_wrong(fixture: &Fixture) {
    let (bytes, array, space) = (pattern(10, 1), dense(10), fixture.space());
    let good = (bytes.as_ptr(), &array, &space);
    let (other_client, other_kind) =
        (fixture.other_client.devices()[0].default_memory_space(), fixture.device(1).memory_spaces()[1].clone());
    let layout = Layout::new(&[0, 1]).unwrap();
    for (bad, layout, parts) in [
        ((std::ptr::null(), &array, &space), None, ["shard 1", "null"]),
        ((bytes.as_ptr(), &array, &other_client), None, ["shard 1", "same client"]),
        ((bytes.as_ptr(), &array, &other_kind), None, ["shard 1", "kind"]),
        (good, Some(&layout), ["shard 0", "{0,1}"]),
    ] {
        for semantics in [ImmutableOnlyDuringCall, ImmutableUntilTransferCompletes] {
            let (buffers, told) = make(&[good, bad, good], layout, semantics);
            let error = buffers.unwrap_err();
            assert_error(&error, StatusCode::InvalidArgument, &parts);
            assert_eq!((told.lock().unwrap().as_slice(), space.stats().num_allocs), ([Err(error)].as_slice(), 0));
        }
    }
}

pub(crate) fn nothing_stays_if_memory_runs_out(fixture: &Fixture) {
    let options = ClientOptions { memory_limit_bytes: 1 << 20, ..Default::default() };
    let space = fixture.client_with(&options).devices()[0].default_memory_space();
    let (bytes, array) = (pattern(600_000, 1), dense(600_000));
    let shard = (bytes.as_ptr(), &array, &space);
    let (buffers, told) = make(&[shard, shard], None, ImmutableOnlyDuringCall);
    let error = buffers.unwrap_err();
    assert_error(&error, StatusCode::ResourceExhausted, &["shard 1", "cannot allocate 600000 bytes"]);
    assert!(error.payload(purlin_device::memory::MEMORY_REPORT_TYPE_URL).is_some());
    assert_eq!((told.lock().unwrap().as_slice(), space.stats().bytes_in_use), ([Err(error)].as_slice(), 0));
}

pub(crate) fn a_copy_that_fails_is_told_of(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[0].default_memory_space();
    client.runner().shutdown().unwrap();
    let (empty, large) = (dense(0), pattern(LARGE_BYTES, 2));
    let array = dense(LARGE_BYTES);
    let shards = [(large.as_ptr(), &empty, &space), (large.as_ptr(), &array, &space)];
    let (buffers, told) = make(&shards, None, ImmutableUntilTransferCompletes);
    let buffers = buffers.unwrap();
    assert_eq!(buffers[0].ready_event().wait(), Ok(()));
    let error = buffers[1].ready_event().wait().unwrap_err();
    assert_eq!((error.code(), told.lock().unwrap().as_slice()), (StatusCode::Cancelled, [Err(error)].as_slice()));
}
