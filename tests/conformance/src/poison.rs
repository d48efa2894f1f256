//! What failed fails all that is made of it, with all that its error said; and nothing else.

#![allow(unsafe_code, reason = "host memory is written by address")]

use purlin_array::{DType, Shape};
use purlin_async::{Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_device::{
    AllocOptions, AsyncHostToDeviceTransferManager, Buffer, OomPolicy, RawBuffer, StagingCopier, StagingOptions,
    StagingPool, TransferSpec,
};

use crate::fixture::{Fixture, assert_error};
use crate::host_copy::{HostCopy, between};

const PAYLOAD: &str = "type.purlin.dev/test.Where";

fn shape(dims: &[i64]) -> Shape {
    Shape::new(DType::U8, dims).unwrap()
}

fn four(fixture: &Fixture) -> Buffer {
    Buffer::from_slice(&[1_u8, 2, 3, 4], &[4], &fixture.space()).unwrap()
}

/// Everything that can be made of `source`, and the events that report how it went.
fn descendants(fixture: &Fixture, source: Buffer) -> Vec<Event> {
    let copy = source.copy_to_device(&fixture.device(1)).unwrap();
    let further = copy.copy_to_memory_space(&fixture.space()).unwrap();
    let (later, promise) = Buffer::channel(&shape(&[4]), None, &fixture.space()).unwrap();
    let of_later = later.copy_to_device(&fixture.device(2)).unwrap();
    promise.fulfil(&further).map_err(|(error, _)| error).unwrap();
    let into = source.copy_into(&four(fixture)).unwrap();
    let raw = between(&source.raw_alias().unwrap(), &fixture.allocate(4), &[source.ready_event()]);
    let mut host = [0_u8; 4];
    // SAFETY: what fails writes nothing, and all of it fails.
    let reads =
        unsafe { [source.copy_to_host(host.as_mut_ptr(), 4), source.copy_raw_to_host(host.as_mut_ptr(), 1, 2)] };
    let donated = source.donate_after(&Event::ready()).unwrap();
    let cast = donated.bitcast(&shape(&[2, 2]), None).unwrap();
    let buffers = [source, copy, later, of_later, into, donated, cast];
    buffers.iter().map(Buffer::ready_event).chain(reads).chain([raw]).collect()
}

pub(crate) fn every_error_travels_whole(fixture: &Fixture) {
    for code in (1..=16).map(StatusCode::from_raw) {
        let mut error = Error::new(code, format!("boom {}", code.name()));
        error.set_payload(PAYLOAD, &[0, 255]);
        let gate = EventPromise::new(c"gate");
        for failed in [Event::from_error(error.clone()), gate.event()] {
            let source = Buffer::from_raw(fixture.allocate(4), &shape(&[4]), None, &failed).unwrap();
            let events = descendants(fixture, source);
            gate.set_error(error.clone());
            for (index, event) in events.iter().enumerate() {
                assert_eq!(event.wait(), Err(error.clone()), "descendant {index}");
            }
        }
        let nothing = Buffer::error(error.clone(), &shape(&[4]), &fixture.space());
        assert_eq!(nothing.copy_into(&four(fixture)).unwrap_err(), error);
        assert_eq!(nothing.to_vec::<u8>().unwrap_err(), error);
        let copy = nothing.copy_to_device(&fixture.device(1)).unwrap();
        assert_eq!(copy.donate_after(&Event::ready()).unwrap().ready_event().wait(), Err(error));
    }
}

pub(crate) fn transfers_and_staging_hand_errors_on_whole(fixture: &Fixture) {
    let mut error = Error::data_loss("a bad disk");
    error.set_payload(PAYLOAD, b"sector 7");
    let specs = [TransferSpec { shape: shape(&[4]), layout: None }];
    let manager = AsyncHostToDeviceTransferManager::new(&specs, &fixture.space(), &AllocOptions::default()).unwrap();
    let buffer = manager.retrieve_buffer(0).unwrap();
    let copy = buffer.copy_to_device(&fixture.device(1)).unwrap();
    manager.set_buffer_error(0, error.clone()).unwrap();
    let pool_options = StagingOptions { lease_bytes: 4, lease_count: 1, ..Default::default() };
    let space = fixture.device(0).memory_space("pinned_host").unwrap();
    let copier = StagingCopier::new(&StagingPool::new(&space, &pool_options).unwrap());
    let (sender, told) = std::sync::mpsc::channel();
    let staged = copier.read_buffer(&buffer, move |piece| sender.send(piece.map(drop)).unwrap()).unwrap();
    for event in [buffer.ready_event(), copy.ready_event(), staged, manager.ready_event()] {
        assert_eq!(event.wait(), Err(error.clone()));
    }
    assert_eq!(told.iter().collect::<Vec<_>>(), [Err(error)]);
}

pub(crate) fn the_error_of_a_release_keeps_its_code(fixture: &Fixture) {
    let mut error = Error::not_found("no such weights");
    error.set_payload(PAYLOAD, b"here");
    let failed = Event::from_error(error);
    let buffer = Buffer::from_raw(fixture.allocate(4), &shape(&[4]), None, &failed).unwrap();
    let told = buffer.release_ownership(true).unwrap_err();
    assert_error(&told, StatusCode::NotFound, &["Error Execute: no such weights"]);
    assert_eq!(told.payload(PAYLOAD), Some(&b"here"[..]));
    assert!(buffer.is_deleted());
}

pub(crate) fn arrays_without_bytes_fail_too(fixture: &Fixture) {
    let error = Error::aborted("upstream");
    let failed = Event::from_error(error.clone());
    let of_memory = Buffer::from_raw(fixture.allocate(0), &shape(&[3, 0]), None, &failed).unwrap();
    let of_nothing = Buffer::error(error.clone(), &shape(&[0]), &fixture.space());
    let token = Buffer::token(&fixture.space(), &failed).unwrap();
    let token_of_nothing = Buffer::error(error.clone(), &Shape::token(), &fixture.space());
    for buffer in [of_memory, of_nothing, token, token_of_nothing] {
        // SAFETY: there is nothing to write.
        let read = unsafe { buffer.copy_to_host(std::ptr::null_mut(), 0) };
        let copy = buffer.copy_to_device(&fixture.device(1)).unwrap();
        let donated = buffer.donate_after(&Event::ready()).unwrap();
        for event in [read, copy.ready_event(), donated.ready_event()] {
            assert_eq!(event.wait(), Err(error.clone()), "{buffer:?}");
        }
    }
}

pub(crate) fn what_comes_later_is_well(fixture: &Fixture) {
    let (source, target) = (fixture.filled(&[1; 8]), fixture.filled(&[2; 8]));
    let failed = [Event::from_error(Error::aborted("upstream"))];
    assert!(between(&source, &target, &failed).wait().is_err());
    assert_eq!(between(&source, &target, &[]).wait(), Ok(()), "the memory is as good as before");

    // A reader that failed is no reason for what happens to the bytes after it.
    let buffer = four(fixture);
    buffer.usage_hold().unwrap().release_after(failed[0].clone());
    assert_eq!(buffer.copy_to_device(&fixture.device(1)).unwrap().ready_event().wait(), Ok(()));
    let into = four(fixture).copy_into(&buffer).unwrap();
    assert_eq!(into.ready_event().wait(), Ok(()));
    // Nor is an error of the bytes that are overwritten.
    let poisoned = Buffer::from_raw(fixture.allocate(4), &shape(&[4]), None, &failed[0]).unwrap();
    assert_eq!(four(fixture).copy_into(&poisoned).unwrap().ready_event().wait(), Ok(()));
}

pub(crate) fn of_siblings_that_wait_for_an_event_all_are_told(fixture: &Fixture) {
    const LIMIT_BYTES: usize = 1 << 20;
    let client =
        fixture.client_with(&purlin_device::ClientOptions { memory_limit_bytes: LIMIT_BYTES, ..Default::default() });
    let space = client.devices()[0].default_memory_space();
    let gate = EventPromise::new(c"gate");
    let options = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let siblings: Vec<RawBuffer> =
        (0..5).map(|_| RawBuffer::allocate_with(&space, LIMIT_BYTES / 2, &options).unwrap()).collect();
    let copies: Vec<HostCopy> =
        siblings.iter().map(|sibling| HostCopy::to_device(sibling, 0, vec![7; 10], &[])).collect();
    gate.set_ready();
    let codes = |event: &Event| event.wait().map_or_else(|error| error.code(), |()| StatusCode::Ok);
    let allocated: Vec<StatusCode> = siblings.iter().map(|sibling| codes(&sibling.allocation_event())).collect();
    let copied: Vec<StatusCode> = copies.iter().map(|copy| codes(copy.event())).collect();
    assert_eq!(allocated, copied);
    assert_eq!(allocated.iter().filter(|code| **code == StatusCode::Ok).count(), 2);
    assert_eq!(allocated.iter().filter(|code| **code == StatusCode::ResourceExhausted).count(), 3);
}

pub(crate) fn a_maker_of_several_that_stops_at_an_error_leaves_nobody_waiting(fixture: &Fixture) {
    let client =
        fixture.client_with(&purlin_device::ClientOptions { memory_limit_bytes: 1 << 20, ..Default::default() });
    let space = client.devices()[0].default_memory_space();
    let options = AllocOptions::default();
    let (outputs, promises): (Vec<_>, Vec<_>) =
        [100, 2 << 20, 100].map(|size_bytes| RawBuffer::channel(&space, size_bytes, &options)).into_iter().unzip();
    let copies: Vec<HostCopy> = outputs.iter().map(|output| HostCopy::to_device(output, 0, vec![7; 10], &[])).collect();
    // What a launch does: memory for each output, until one has none.
    let launched = promises.into_iter().try_for_each(|promise| promise.allocate(OomPolicy::Fail));
    assert_eq!(launched.unwrap_err().code(), StatusCode::ResourceExhausted);
    assert_eq!(copies[0].event().wait(), Ok(()));
    assert_eq!(copies[1].event().wait().unwrap_err().code(), StatusCode::ResourceExhausted);
    assert_error(&copies[2].event().wait().unwrap_err(), StatusCode::Internal, &["abandoned"]);
}
