//! How long memory lives: as long as a handle or a copy in flight refers to it, and no longer.

use std::sync::Arc;

use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::RawBuffer;

use crate::fixture::{Fixture, LARGE_BYTES, pattern};
use crate::host_copy::{HostCopy, between};

pub(crate) fn a_copy_in_flight_keeps_both_ends(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let (source, destination) = (fixture.allocate(1000), fixture.allocate(24));
    let copied = between(&source.slice(10, 20).unwrap(), &destination, &[gate.event()]);
    drop((source, destination));
    assert_eq!(fixture.space().stats().bytes_in_use, 1024);
    gate.set_ready();
    assert_eq!(copied.wait(), Ok(()));
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
}

pub(crate) fn what_a_copy_in_flight_keeps_is_intact(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let (source, destination) = (fixture.filled(&pattern(1000, 1)), fixture.allocate(1000));
    let moved = between(&source, &destination, &[gate.event()]);
    let back = HostCopy::from_device(&destination, 0, 1000, &[moved]);
    drop((source, destination));
    let _others: Vec<RawBuffer> = (0..10).map(|seed| fixture.filled(&pattern(1000, seed + 2))).collect();
    gate.set_ready();
    assert_eq!(back.wait().unwrap(), pattern(1000, 1));
}

pub(crate) fn memory_is_free_when_the_event_says_so(fixture: &Fixture) {
    for size_bytes in [100, LARGE_BYTES] {
        let gate = EventPromise::new(c"gate");
        let (source, destination) = (fixture.allocate(size_bytes), fixture.allocate(size_bytes));
        let copied = between(&source, &destination, &[gate.event()]);
        drop((source, destination));
        let space = fixture.space();
        let found = EventPromise::new(c"found");
        let free = found.event();
        copied.on_ready(move |outcome| {
            let in_use = space.stats().bytes_in_use;
            found.set(match (outcome, in_use) {
                (Ok(()), 0) => Ok(()),
                _ => Err(Error::internal(format!("{in_use} bytes were in use, with {outcome:?}"))),
            });
        });
        gate.set_ready();
        assert_eq!(free.wait(), Ok(()));
    }
}

pub(crate) fn a_failed_copy_frees_its_ends(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let (source, destination) = (fixture.allocate(10), fixture.allocate(10));
    let copied = between(&source, &destination, &[gate.event()]);
    drop((source, destination));
    gate.set_error(Error::aborted("upstream broke"));
    assert_eq!(copied.wait().unwrap_err().code(), StatusCode::Aborted);
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
}

pub(crate) fn a_cancelled_copy_frees_its_ends(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let (source, destination) = (fixture.allocate(10), fixture.allocate(10));
    let copied = between(&source, &destination, &[gate.event()]);
    drop((source, destination));
    fixture.client.runner().shutdown().unwrap();
    gate.set_ready();
    assert_eq!(copied.wait().unwrap_err().code(), StatusCode::Cancelled);
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
}

pub(crate) fn a_copy_in_flight_outlives_its_client(fixture: &Fixture) {
    let client = fixture.own_client();
    let gate = EventPromise::new(c"gate");
    let spaces = [client.devices()[0].default_memory_space(), client.devices()[1].default_memory_space()];
    let buffers = spaces.each_ref().map(|space| RawBuffer::allocate(space, LARGE_BYTES).unwrap());
    let there = between(&buffers[0], &buffers[1], &[gate.event()]);
    let back = between(&buffers[1], &buffers[0], &[there]);
    assert_eq!(Arc::strong_count(&client), 1);
    drop((buffers, spaces, client));
    // Now only the copies keep the runner, and the last of them releases it on one of its own threads.
    gate.set_ready();
    assert_eq!(back.wait(), Ok(()));
}

pub(crate) fn memory_outlives_the_client_handle(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[2].default_memory_space();
    drop(client);
    let buffer = RawBuffer::allocate(&space, 100).unwrap();
    assert_eq!(buffer.memory_space(), space);
    HostCopy::to_device(&buffer, 0, pattern(100, 3), &[]).wait().unwrap();
    assert_eq!(space.device().id(), 2);
    drop(buffer);
    assert_eq!(space.stats().bytes_in_use, 0);
}
