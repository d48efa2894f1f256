//! How copies fail: with the right code, a message that names the values, and nothing copied.

use std::slice;

use purlin_async::{Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_device::RawBuffer;

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, read};
use crate::host_copy::{HostCopy, between};

pub(crate) fn copies_past_the_end_are_out_of_range(fixture: &Fixture) {
    let whole = fixture.allocate(200);
    let buffer = whole.slice(50, 100).unwrap();
    let host = std::ptr::NonNull::<u8>::dangling().as_ptr();
    for (offset_bytes, size_bytes) in [
        (0, 101),
        (1, 100),
        (100, 1),
        (101, 0),
        (usize::MAX, 0),
        (usize::MAX, 1),
        (1, usize::MAX),
        (usize::MAX, usize::MAX),
        (usize::MAX / 2 + 1, usize::MAX / 2 + 1),
    ] {
        // SAFETY: the range is refused, so no byte is read or written.
        let events = unsafe {
            [
                buffer.copy_from_host(host, offset_bytes, size_bytes, &[]),
                buffer.copy_to_host(host, offset_bytes, size_bytes, &[]),
            ]
        };
        for event in events {
            let parts = [&offset_bytes.to_string(), &size_bytes.to_string(), "100"];
            assert_error(&event.wait().unwrap_err(), StatusCode::OutOfRange, &parts);
        }
    }
}

pub(crate) fn a_null_pointer_is_invalid(fixture: &Fixture) {
    let buffer = fixture.allocate(8);
    // SAFETY: the pointer is refused, so no byte is read or written.
    let events = unsafe {
        [
            buffer.copy_from_host(std::ptr::null(), 0, 8, &[]),
            buffer.copy_to_host(std::ptr::null_mut(), 0, 8, &[]),
            buffer.copy_to_host(std::ptr::null_mut(), 7, 1, &[EventPromise::new(c"failed").event()]),
        ]
    };
    for event in events {
        assert!(event.is_ready(), "what is wrong from the start is told at once");
        assert_error(&event.wait().unwrap_err(), StatusCode::InvalidArgument, &["null", &fixture.space().to_string()]);
    }
}

pub(crate) fn a_destination_that_is_too_small_is_invalid(fixture: &Fixture) {
    let (source, destination) = (fixture.allocate(77), fixture.allocate(200));
    let error = between(&source, &destination.slice(100, 76).unwrap(), &[]).wait().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["77", "76"]);
    let nothing = fixture.allocate(0);
    assert_error(&between(&source, &nothing, &[]).wait().unwrap_err(), StatusCode::InvalidArgument, &["77"]);
}

pub(crate) fn another_clients_buffer_is_invalid(fixture: &Fixture) {
    let theirs = RawBuffer::allocate(&fixture.other_client.devices()[0].default_memory_space(), 8).unwrap();
    let ours = fixture.allocate(8);
    for event in [between(&ours, &theirs, &[]), between(&theirs, &ours, &[])] {
        assert_error(&event.wait().unwrap_err(), StatusCode::InvalidArgument, &["another client"]);
    }
}

/// One copy of 8 bytes of each kind, behind `dependencies`.
struct Copies {
    to_device: HostCopy,
    from_device: HostCopy,
    between: Event,
}

impl Copies {
    fn new(fixture: &Fixture, dependencies: &[Event]) -> Self {
        let other = RawBuffer::allocate(&fixture.device(1).default_memory_space(), 8).unwrap();
        Self {
            to_device: HostCopy::to_device(&fixture.allocate(8), 0, vec![2; 8], dependencies),
            from_device: HostCopy::from_device(&fixture.allocate(8), 0, 8, dependencies),
            between: between(&fixture.allocate(8), &other, dependencies),
        }
    }

    fn events(&self) -> [Event; 3] {
        [self.to_device.event().clone(), self.from_device.event().clone(), self.between.clone()]
    }

    fn assert_pending(&self) {
        assert!(self.events().iter().all(|event| !event.is_ready()));
    }

    /// Checks that all three fail in the same way.
    fn assert_failed(&self, code: StatusCode, part: &str) {
        for event in self.events() {
            assert_error(&event.wait().unwrap_err(), code, &[part]);
        }
    }
}

pub(crate) fn a_failed_dependency_is_the_copys_error(fixture: &Fixture) {
    let failed = Event::from_error(Error::aborted("upstream broke"));
    let copies = Copies::new(fixture, &[Event::ready(), failed]);
    copies.assert_failed(StatusCode::Aborted, "upstream broke");
}

pub(crate) fn a_dependency_that_fails_later_is_the_copys_error(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let copies = Copies::new(fixture, &[gate.event()]);
    copies.assert_pending();
    gate.set_error(Error::unavailable("upstream broke"));
    copies.assert_failed(StatusCode::Unavailable, "upstream broke");
}

pub(crate) fn a_copy_behind_a_failed_dependency_copies_nothing(fixture: &Fixture) {
    let (source, targets) = (fixture.filled(&[2; 8]), [fixture.filled(&[1; 8]), fixture.filled(&[1; 8])]);
    let gate = EventPromise::new(c"gate");
    for dependency in [Event::from_error(Error::aborted("before")), gate.event()] {
        let sent = HostCopy::to_device(&targets[0], 0, vec![2; 8], slice::from_ref(&dependency));
        let moved = between(&source, &targets[1], slice::from_ref(&dependency));
        gate.set_error(Error::aborted("after"));
        assert_eq!(sent.wait_error().code(), StatusCode::Aborted);
        assert_eq!(moved.wait().unwrap_err().code(), StatusCode::Aborted);
        assert_eq!((read(&targets[0]), read(&targets[1])), (vec![1; 8], vec![1; 8]));
    }
}

pub(crate) fn the_error_of_the_first_failed_dependency_counts(fixture: &Fixture) {
    let gates: [EventPromise; 3] = std::array::from_fn(|_| EventPromise::new(c"gate"));
    let events: Vec<Event> = gates.iter().map(EventPromise::event).collect();
    let copies = Copies::new(fixture, &events);
    gates[2].set_error(Error::internal("the last in the list, the first in time"));
    gates[1].set_error(Error::data_loss("the first in the list"));
    copies.assert_pending();
    gates[0].set_ready();
    copies.assert_failed(StatusCode::DataLoss, "the first in the list");
}

pub(crate) fn a_dropped_promise_is_a_failed_dependency(fixture: &Fixture) {
    let gate = EventPromise::new(c"forgotten");
    let copies = Copies::new(fixture, &[gate.event()]);
    drop(gate);
    copies.assert_failed(StatusCode::Internal, "forgotten");
}

pub(crate) fn a_copy_of_nothing_fails_with_its_dependency(fixture: &Fixture) {
    let failed = [Event::from_error(Error::aborted("upstream broke"))];
    let buffer = fixture.allocate(8);
    let copies = [
        HostCopy::to_device(&buffer, 0, Vec::new(), &failed).wait_error(),
        HostCopy::from_device(&buffer, 8, 0, &failed).wait_error(),
        between(&fixture.allocate(0), &buffer, &failed).wait().unwrap_err(),
    ];
    for error in copies {
        assert_error(&error, StatusCode::Aborted, &["upstream broke"]);
    }
}

pub(crate) fn a_copy_released_after_shutdown_is_cancelled(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let copies = Copies::new(fixture, &[gate.event()]);
    fixture.client.runner().shutdown().unwrap();
    copies.assert_pending();
    gate.set_ready();
    copies.assert_failed(StatusCode::Cancelled, "copy of 8 bytes");
}

pub(crate) fn a_copy_that_needs_the_runner_after_shutdown_is_cancelled(fixture: &Fixture) {
    let (source, destination) = (fixture.allocate(LARGE_BYTES), fixture.allocate(LARGE_BYTES));
    fixture.client.runner().shutdown().unwrap();
    let copies = [
        HostCopy::to_device(&destination, 0, vec![1; LARGE_BYTES], &[]).wait_error(),
        HostCopy::from_device(&source, 0, LARGE_BYTES, &[]).wait_error(),
        between(&source, &destination, &[]).wait().unwrap_err(),
    ];
    for error in copies {
        assert_error(&error, StatusCode::Cancelled, &[&format!("copy of {LARGE_BYTES} bytes")]);
    }
}

pub(crate) fn a_failed_dependency_is_told_even_after_shutdown(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let copies = Copies::new(fixture, &[gate.event()]);
    fixture.client.runner().shutdown().unwrap();
    gate.set_error(Error::unavailable("upstream broke"));
    copies.assert_failed(StatusCode::Unavailable, "upstream broke");
}
