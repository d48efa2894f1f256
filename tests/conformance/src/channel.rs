//! Buffers whose memory is provided elsewhere.

#![allow(unsafe_code, reason = "foreign memory is taken by address")]

use purlin_async::Event;
use purlin_base::{Error, Label, StatusCode};
use purlin_device::{AllocOptions, ClientOptions, Mutability, OomPolicy, RawBuffer, RawBufferPromise};

use crate::fixture::{Fixture, assert_cycle, assert_error, pattern, read};
use crate::host_copy::HostCopy;

fn channel(fixture: &Fixture, size_bytes: usize) -> (RawBuffer, RawBufferPromise) {
    let options = AllocOptions { label: Label::new(c"output"), ..Default::default() };
    RawBuffer::channel(&fixture.space(), size_bytes, &options)
}

pub(crate) fn a_channel_has_a_size_and_no_memory(fixture: &Fixture) {
    let (buffer, promise) = channel(fixture, 1000);
    assert_eq!((buffer.size_bytes(), buffer.memory_space()), (1000, fixture.space()));
    assert!(!buffer.allocation_event().is_ready() && buffer.host_pointer().is_none());
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
    assert!(format!("{promise:?}").contains("1000 bytes"));
}

pub(crate) fn a_fulfilled_channel_is_the_other_buffer(fixture: &Fixture) {
    let bytes = pattern(100, 1);
    let source = fixture.filled(&bytes);
    let (buffer, promise) = channel(fixture, 60);
    let part = buffer.slice(10, 20).unwrap();
    let early = HostCopy::from_device(&buffer, 0, 60, &[]);
    assert!(!early.event().is_ready());
    promise.fulfil(&source.slice(30, 60).unwrap()).map_err(|(error, _)| error).unwrap();
    assert_eq!(early.wait().unwrap(), bytes[30..90]);
    assert_eq!(read(&part), bytes[40..60]);
    let address = source.device_pointer().unwrap();
    assert_eq!(part.device_pointer().unwrap(), address + 40);
    drop(source);
    assert_eq!(read(&buffer), bytes[30..90], "it keeps the memory");
}

pub(crate) fn an_allocated_channel_has_memory_of_its_own(fixture: &Fixture) {
    let bytes = pattern(5000, 2);
    let (buffer, promise) = channel(fixture, 5000);
    let copied = HostCopy::to_device(&buffer, 0, bytes.clone(), &[]);
    let (other, other_promise) = channel(fixture, 5000);
    // SAFETY: nothing else uses the bytes.
    let between = unsafe { buffer.copy_to(&other, &[copied.event().clone()]) };
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
    promise.allocate(OomPolicy::Fail).unwrap();
    copied.wait().unwrap();
    assert_eq!(read(&buffer), bytes);
    assert!(!between.is_ready(), "the other end's memory is not there");
    other_promise.allocate(OomPolicy::Fail).unwrap();
    assert_eq!(between.wait(), Ok(()));
    assert_eq!(read(&other), bytes);
}

pub(crate) fn memory_that_does_not_fit_is_refused_and_the_promise_stays(fixture: &Fixture) {
    let (buffer, promise) = channel(fixture, 100);
    let elsewhere = RawBuffer::allocate(&fixture.device(1).default_memory_space(), 100).unwrap();
    let (error, promise) = promise.fulfil(&elsewhere).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["100 bytes"]);
    let (error, promise) = promise.fulfil(&fixture.allocate(99)).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["99", "100 bytes"]);
    assert!(!buffer.allocation_event().is_ready());
    promise.fulfil(&fixture.allocate(100)).map_err(|(error, _)| error).unwrap();
    assert_eq!(buffer.allocation_event().wait(), Ok(()));
}

pub(crate) fn a_failed_channel_fails_what_waits_for_it(fixture: &Fixture) {
    let (buffer, promise) = channel(fixture, 100);
    let copied = HostCopy::to_device(&buffer, 0, vec![0; 100], &[]);
    promise.fail(Error::data_loss("the tape broke"));
    for error in [copied.wait().unwrap_err(), buffer.device_pointer().unwrap_err()] {
        assert_error(&error, StatusCode::DataLoss, &["the tape broke"]);
    }
    let late = HostCopy::from_device(&buffer.slice(1, 2).unwrap(), 0, 2, &[]);
    assert_eq!(late.wait().unwrap_err().code(), StatusCode::DataLoss);
}

pub(crate) fn a_dropped_promise_fails_its_channel(fixture: &Fixture) {
    let (buffer, promise) = channel(fixture, 100);
    drop(promise);
    let error = buffer.allocation_event().wait().unwrap_err();
    assert_error(&error, StatusCode::Internal, &["memory", "abandoned"]);
}

pub(crate) fn channels_of_channels_follow(fixture: &Fixture) {
    let (first, first_promise) = channel(fixture, 64);
    let (second, second_promise) = channel(fixture, 64);
    let (third, third_promise) = channel(fixture, 64);
    second_promise.fulfil(&first).map_err(|(error, _)| error).unwrap();
    third_promise.fulfil(&second).map_err(|(error, _)| error).unwrap();
    assert!(!third.allocation_event().is_ready());
    first_promise.allocate(OomPolicy::Fail).unwrap();
    assert_eq!(third.allocation_event().wait(), Ok(()));
    assert_eq!(third.device_pointer().unwrap(), first.device_pointer().unwrap());

    let (last, last_promise) = channel(fixture, 64);
    let (failed, failed_promise) = channel(fixture, 64);
    last_promise.fulfil(&failed).map_err(|(error, _)| error).unwrap();
    failed_promise.fail(Error::aborted("upstream"));
    assert_eq!(last.allocation_event().wait().unwrap_err().message(), "upstream");
}

/// Memory of the process that must not be written.
#[repr(C, align(64))]
struct Constant([u8; 64]);

static CONSTANT: Constant = Constant([7; 64]);

pub(crate) fn a_copy_to_a_channel_does_not_write_read_only_memory(fixture: &Fixture) {
    let (buffer, promise) = RawBuffer::channel(&fixture.host_space(), 64, &AllocOptions::default());
    let part = buffer.slice(0, 16).unwrap();
    assert!(buffer.is_mutable(), "nobody knows better yet");
    let from_host = HostCopy::to_device(&buffer, 0, vec![1; 64], &[]);
    let source = fixture.filled(&[2; 64]);
    // SAFETY: nothing else uses the bytes.
    let between = unsafe { source.copy_range_to(0, &part, 0, 16, &[]) };
    let to_host = HostCopy::from_device(&buffer, 0, 64, &[]);
    let address = std::ptr::from_ref(&CONSTANT).cast::<u8>().cast_mut();
    // SAFETY: it is there for ever, and nothing writes it.
    let constant =
        unsafe { RawBuffer::import(&fixture.host_space(), address, 64, Mutability::Immutable, None) }.unwrap();
    promise.fulfil(&constant).map_err(|(error, _)| error).unwrap();
    for error in [from_host.wait().unwrap_err(), between.wait().unwrap_err()] {
        assert_error(&error, StatusCode::InvalidArgument, &["may not be written"]);
    }
    assert_eq!(to_host.wait().unwrap(), [7; 64]);
    assert!(!buffer.is_mutable() && !part.is_mutable());
}

pub(crate) fn a_channel_of_memory_that_comes_after_it_fails(fixture: &Fixture) {
    let (buffer, promise) = channel(fixture, 64);
    let options = AllocOptions { after: Some(buffer.allocation_event()), ..Default::default() };
    let later = RawBuffer::allocate_with(&fixture.space(), 64, &options).unwrap();
    promise.fulfil(&later).map_err(|(error, _)| error).unwrap();
    for memory in [&buffer, &later] {
        assert_cycle(&memory.allocation_event().error().unwrap());
    }
    // By way of a copy.
    let (buffer, promise) = channel(fixture, 64);
    let copied = HostCopy::to_device(&buffer, 0, vec![1; 64], &[]);
    let options = AllocOptions { after: Some(copied.event().clone()), ..Default::default() };
    let later = RawBuffer::allocate_with(&fixture.space(), 64, &options).unwrap();
    promise.fulfil(&later).map_err(|(error, _)| error).unwrap();
    assert_cycle(&buffer.allocation_event().error().unwrap());
    assert_cycle(&copied.wait_error());
    assert_cycle(&later.allocation_event().wait().unwrap_err());
}

pub(crate) fn a_channel_without_memory_is_exhausted(fixture: &Fixture) {
    let options = ClientOptions { memory_limit_bytes: 1 << 20, ..Default::default() };
    let space = fixture.client_with(&options).devices()[0].default_memory_space();
    let (buffer, promise) = RawBuffer::channel(&space, 2 << 20, &AllocOptions::default());
    let error = promise.allocate(OomPolicy::Fail).unwrap_err();
    assert_error(&error, StatusCode::ResourceExhausted, &["cannot allocate 2097152 bytes"]);
    assert_eq!(buffer.allocation_event().wait(), Err(error));
}

pub(crate) fn a_channel_may_be_fulfilled_after_its_reader_has_gone(fixture: &Fixture) {
    let (buffer, promise) = channel(fixture, 64);
    drop(buffer);
    promise.allocate(OomPolicy::Fail).unwrap();
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
    let (buffer, promise) = channel(fixture, 64);
    let event: Event = buffer.allocation_event();
    drop(buffer);
    promise.fail(Error::aborted("nobody wants it"));
    assert_eq!(event.wait().unwrap_err().code(), StatusCode::Aborted);
}
