//! How a client ends, with work in flight.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use purlin_async::{EventPromise, ShutdownMode, ShutdownOptions};
use purlin_base::StatusCode;
use purlin_device::{AllocOptions, ClientOptions, RawBuffer};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, becomes_free};
use crate::host_copy::between;

const LATE: ShutdownOptions = ShutdownOptions { mode: ShutdownMode::Drain, timeout: Some(Duration::from_millis(1)) };
const CANCEL: ShutdownOptions = ShutdownOptions { mode: ShutdownMode::CancelPending, timeout: None };

pub(crate) fn a_shutdown_drains_what_is_in_flight(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[0].default_memory_space();
    let gate = EventPromise::new(c"gate");
    let buffers = [0, 1].map(|_| RawBuffer::allocate(&space, LARGE_BYTES).unwrap());
    let there = between(&buffers[0], &buffers[1], &[gate.event()]);
    let back = between(&buffers[1], &buffers[0], std::slice::from_ref(&there));
    let ending = {
        let client = Arc::clone(&client);
        thread::spawn(move || client.shutdown(ShutdownOptions::default()))
    };
    while RawBuffer::allocate(&space, 1).is_ok() {
        thread::yield_now();
    }
    assert!(!there.is_ready() && !back.is_ready());
    gate.set_ready();
    assert_eq!(ending.join().unwrap(), Ok(()));
    assert!(there.is_ready() && back.is_ready());
    assert_eq!((there.wait(), back.wait()), (Ok(()), Ok(())));
}

pub(crate) fn what_waits_for_ever_fails_by_the_deadline_and_is_named(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[0].default_memory_space();
    let gate = EventPromise::new(c"gradient");
    let buffers = [0, 1].map(|_| RawBuffer::allocate(&space, 100).unwrap());
    let there = between(&buffers[0], &buffers[1], &[gate.event()]);
    let back = between(&buffers[1], &buffers[0], std::slice::from_ref(&there));
    let after = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let later = RawBuffer::allocate_with(&space, 100, &after).unwrap();
    drop(buffers);
    let name = format!("copy of 100 bytes from {space} to {space}");
    let error = client.shutdown(LATE).unwrap_err();
    assert_error(&error, StatusCode::DeadlineExceeded, &[&name, "'gradient'"]);
    for event in [&there, &back, &later.allocation_event()] {
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::DeadlineExceeded);
    }
    assert_error(&there.error().unwrap(), StatusCode::DeadlineExceeded, &[&name, "'gradient'"]);
    assert!(becomes_free(&space));
    gate.set_ready();
}

pub(crate) fn what_waits_is_cancelled_at_once_if_asked(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[0].default_memory_space();
    let gate = EventPromise::new(c"gate");
    let memory = RawBuffer::allocate(&space, 100).unwrap();
    let copied = between(&memory, &memory, &[gate.event()]);
    assert_eq!(client.shutdown(CANCEL), Ok(()));
    assert_error(&copied.wait().unwrap_err(), StatusCode::Cancelled, &["'gate'"]);
}

pub(crate) fn nothing_begins_after_a_shutdown(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[0].default_memory_space();
    let memory = RawBuffer::allocate(&space, 100).unwrap();
    client.shutdown(ShutdownOptions::default()).unwrap();
    let copied = between(&memory, &memory, &[]).wait().unwrap_err();
    for error in [copied, RawBuffer::allocate(&space, 100).unwrap_err()] {
        assert_error(&error, StatusCode::FailedPrecondition, &["has been shut down"]);
    }
    assert_eq!(client.shutdown(ShutdownOptions::default()), Ok(()));
}

pub(crate) fn the_last_handle_ends_the_client_if_told_to(fixture: &Fixture) {
    let options = ClientOptions { worker_count: 2, shutdown_at_end: Some(LATE), ..Default::default() };
    let client = fixture.client_with(&options);
    let space = client.devices()[0].default_memory_space();
    let gate = EventPromise::new(c"gate");
    let memory = RawBuffer::allocate(&space, 100).unwrap();
    let copied = between(&memory, &memory, &[gate.event()]);
    drop((memory, client));
    assert_eq!(copied.wait().unwrap_err().code(), StatusCode::DeadlineExceeded);
    assert!(becomes_free(&space));
}
