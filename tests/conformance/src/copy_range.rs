//! Copies of parts, several slices at once, and memory that outlives its handles.

#![allow(unsafe_code, reason = "copies are the caller's to order")]

use purlin_async::{Event, EventPromise};
use purlin_base::StatusCode;
use purlin_device::RawBuffer;

use crate::fixture::{Fixture, assert_error, pattern, read};

/// Copies between buffers that have no other user.
fn copy(source: &RawBuffer, from: usize, target: &RawBuffer, to: usize, size_bytes: usize, after: &[Event]) -> Event {
    // SAFETY: the cases use their buffers in order.
    unsafe { source.copy_range_to(from, target, to, size_bytes, after) }
}

pub(crate) fn parts_are_copied_to_parts(fixture: &Fixture) {
    let bytes = pattern(1000, 1);
    let source = fixture.filled(&bytes);
    for space in fixture.spaces() {
        let target = crate::fixture::filled(&space, &[0; 500]);
        copy(&source, 700, &target, 100, 300, &[]).wait().unwrap();
        let expected = [&[0; 100], &bytes[700..1000], &[0; 100]].concat();
        assert_eq!(read(&target), expected, "{space}");
    }
}

pub(crate) fn parts_of_one_buffer_may_overlap(fixture: &Fixture) {
    let bytes = pattern(100, 2);
    for (from, to) in [(0, 10), (10, 0), (5, 5)] {
        let buffer = fixture.filled(&bytes);
        copy(&buffer, from, &buffer, to, 90, &[]).wait().unwrap();
        let mut expected = bytes.clone();
        expected.copy_within(from..from + 90, to);
        assert_eq!(read(&buffer), expected);
    }
}

pub(crate) fn a_part_past_either_end_is_out_of_range(fixture: &Fixture) {
    let (source, target) = (fixture.allocate(100), fixture.allocate(50));
    for (from, to, size_bytes) in [
        (0, 0, 51),
        (51, 0, 50),
        (0, 1, 50),
        (usize::MAX, 0, 1),
        (0, usize::MAX, 1),
        (0, 0, usize::MAX),
        (101, 0, 0),
        (0, 51, 0),
    ] {
        let error = copy(&source, from, &target, to, size_bytes, &[]).wait().unwrap_err();
        assert_error(&error, StatusCode::OutOfRange, &[&size_bytes.to_string(), "do not lie within"]);
    }
    assert_eq!(copy(&source, 100, &target, 50, 0, &[]).wait(), Ok(()));
}

pub(crate) fn a_part_waits_for_its_dependencies(fixture: &Fixture) {
    let (source, target) = (fixture.filled(&[1; 64]), fixture.filled(&[0; 64]));
    let gate = EventPromise::new(c"gate");
    let copied = copy(&source, 0, &target, 32, 32, &[gate.event()]);
    assert!(!copied.is_ready());
    gate.set_ready();
    assert_eq!(copied.wait(), Ok(()));
    assert_eq!(read(&target), [[0; 32], [1; 32]].concat());
}

pub(crate) fn slices_come_together_or_not_at_all(fixture: &Fixture) {
    let bytes = pattern(100, 3);
    let whole = fixture.filled(&bytes);
    let parts = whole.slices(&[(0, 10), (90, 10), (5, 0), (5, 20)]).unwrap();
    let read_parts: Vec<Vec<u8>> = parts.iter().map(read).collect();
    assert_eq!(read_parts, [&bytes[..10], &bytes[90..], &[], &bytes[5..25]]);
    assert!(whole.slices(&[]).unwrap().is_empty());
    let error = whole.slices(&[(0, 10), (95, 6), (0, 200)]).unwrap_err();
    assert_error(&error, StatusCode::OutOfRange, &["6 bytes at offset 95", "100"]);
}

pub(crate) fn memory_is_kept_until_the_event(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let buffer = fixture.allocate(100);
    buffer.retain_until(&Event::ready());
    buffer.retain_until(&gate.event());
    drop(buffer);
    assert_eq!(fixture.space().stats().bytes_in_use, 100);
    drop(gate);
    assert_eq!(fixture.space().stats().bytes_in_use, 0, "a failed event ends it too");
}
