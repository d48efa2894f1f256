//! When a copy happens: after its dependencies, and before its event.

use std::sync::mpsc;

use purlin_async::{AsyncWorkRunner, Event, EventPromise, Task, when_all};
use purlin_device::RawBuffer;

use crate::fixture::{Fixture, LARGE_BYTES, assert_cycle, pattern};
use crate::host_copy::{HostCopy, between};

pub(crate) fn happened_dependencies_are_fine(fixture: &Fixture) {
    let promise = EventPromise::new(c"done");
    promise.set_ready();
    let (source, destination) = (fixture.filled(&[1, 2, 3]), fixture.allocate(3));
    assert_eq!(between(&source, &destination, &[promise.event(), Event::ready()]).wait(), Ok(()));
}

pub(crate) fn a_copy_waits_for_its_dependency(fixture: &Fixture) {
    for size_bytes in [8, LARGE_BYTES] {
        let gate = EventPromise::new(c"gate");
        let (source, destination) = (fixture.allocate(size_bytes), fixture.allocate(size_bytes));
        let sent = HostCopy::to_device(&source, 0, pattern(size_bytes, 5), &[gate.event()]);
        let copied = between(&source, &destination, &[sent.event().clone()]);
        assert!(!sent.event().is_ready() && !copied.is_ready());
        gate.set_ready();
        assert_eq!(copied.wait(), Ok(()));
        assert!(sent.event().is_ready());
    }
}

pub(crate) fn a_copy_that_its_dependency_waits_for_fails(fixture: &Fixture) {
    let (source, destination) = (fixture.filled(&[1; 8]), fixture.allocate(8));
    let (first, second) = (EventPromise::new(c"first"), EventPromise::new(c"second"));
    let (of_first, of_second) = (first.event(), second.event());
    let sent = HostCopy::to_device(&source, 0, vec![2; 8], &[of_first.clone(), of_second.clone()]);
    let copied = between(&source, &destination, &[Event::ready(), sent.event().clone()]);
    let read = HostCopy::from_device(&destination, 0, 8, std::slice::from_ref(&copied));
    second.forward(&when_all(&[Event::ready(), read.event().clone()]));
    assert_cycle(&of_second.error().unwrap());
    assert!(!copied.is_ready(), "the first is pending");
    first.set_ready();
    for error in [sent.wait_error(), copied.wait().unwrap_err(), read.wait_error()] {
        assert_cycle(&error);
    }
}

pub(crate) fn a_copy_finds_what_is_there_when_it_begins(fixture: &Fixture) {
    let buffer = fixture.filled(&[1; 4]);
    let gate = EventPromise::new(c"gate");
    let copy = HostCopy::from_device(&buffer, 0, 4, &[gate.event()]);
    HostCopy::to_device(&buffer, 0, vec![2; 4], &[]).wait().unwrap();
    assert!(!copy.event().is_ready());
    gate.set_ready();
    assert_eq!(copy.wait().unwrap(), [2; 4]);
}

pub(crate) fn a_copy_waits_for_all_dependencies_in_any_order(fixture: &Fixture) {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let gates: [EventPromise; 3] = std::array::from_fn(|_| EventPromise::new(c"gate"));
        let events: Vec<Event> = gates.iter().map(EventPromise::event).collect();
        let source = fixture.filled(&[5; 10]);
        let destination = fixture.allocate(10);
        let copied = between(&source, &destination, &events);
        for (opened, gate) in order.into_iter().enumerate() {
            assert!(!copied.is_ready(), "after {opened} of 3 gates");
            gates[gate].set_ready();
        }
        assert_eq!(copied.wait(), Ok(()));
    }
}

pub(crate) fn a_copy_of_nothing_waits_too(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let buffer = fixture.allocate(8);
    let copies = [
        HostCopy::to_device(&buffer, 0, Vec::new(), &[gate.event()]).event().clone(),
        HostCopy::from_device(&buffer, 8, 0, &[gate.event()]).event().clone(),
        between(&fixture.allocate(0), &buffer, &[gate.event()]),
    ];
    assert!(copies.iter().all(|copied| !copied.is_ready()));
    gate.set_ready();
    for copied in copies {
        assert_eq!(copied.wait(), Ok(()));
    }
}

pub(crate) fn one_event_releases_many_copies(fixture: &Fixture) {
    const COPIES: usize = 300;
    let gate = EventPromise::new(c"gate");
    let (source, destination) = (fixture.filled(&pattern(COPIES, 6)), fixture.filled(&[0; COPIES]));
    let copied: Vec<Event> = (0..COPIES)
        .map(|at| {
            let (from, to) = (source.slice(at, 1).unwrap(), destination.slice(at, 1).unwrap());
            between(&from, &to, &[gate.event()])
        })
        .collect();
    assert!(copied.iter().all(|copied| !copied.is_ready()));
    gate.set_ready();
    assert_eq!(when_all(&copied).wait(), Ok(()));
    assert!(copied.iter().all(Event::is_ready));
}

pub(crate) fn copies_chain_by_their_events(fixture: &Fixture) {
    let bytes = pattern(70_000, 7);
    let gate = EventPromise::new(c"gate");
    let mut current = fixture.filled(&bytes);
    let mut moved = gate.event();
    for link in 0..20 {
        let space = &fixture.spaces()[link % fixture.spaces().len()];
        let next = RawBuffer::allocate(space, bytes.len()).unwrap();
        moved = between(&current, &next, &[moved]);
        current = next;
    }
    let back = HostCopy::from_device(&current, 0, bytes.len(), &[moved]);
    assert!(!back.event().is_ready());
    gate.set_ready();
    assert!(back.wait().unwrap() == bytes, "the bytes differ");
}

pub(crate) fn a_copy_may_be_asked_for_by_a_waiter(fixture: &Fixture) {
    for size_bytes in [100, LARGE_BYTES] {
        let gate = EventPromise::new(c"gate");
        let (source, destination) = (fixture.allocate(size_bytes), fixture.allocate(size_bytes));
        let (send, asked) = mpsc::channel();
        gate.event().on_ready(move |_status| {
            let copied = between(&source, &destination, &[]);
            drop((source, destination));
            send.send(copied).expect("the case waits for it");
        });
        gate.set_ready();
        assert_eq!(asked.recv().expect("the waiter runs").wait(), Ok(()));
    }
}

pub(crate) fn a_copy_may_be_asked_for_by_a_task(fixture: &Fixture) {
    for size_bytes in [100, LARGE_BYTES] {
        let gate = EventPromise::new(c"gate");
        let (source, destination) = (fixture.allocate(size_bytes), fixture.allocate(size_bytes));
        let (send, asked) = mpsc::channel();
        let task = Task::new(c"ask", move || {
            let copied = between(&source, &destination, &[]);
            drop((source, destination));
            send.send(copied).expect("the case waits for it");
        });
        fixture.client.runner().schedule_when_ready(&[gate.event()], task).unwrap();
        gate.set_ready();
        assert_eq!(asked.recv().expect("the task runs").wait(), Ok(()));
    }
}

pub(crate) fn a_waiter_sees_the_bytes(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let (source, destination) = (fixture.filled(&pattern(LARGE_BYTES, 10)), fixture.allocate(LARGE_BYTES));
    let copied = between(&source, &destination, &[gate.event()]);
    let (send, seen) = mpsc::channel();
    copied.on_ready(move |outcome| {
        let back = HostCopy::from_device(&destination, 0, LARGE_BYTES, &[]);
        drop(destination);
        send.send((outcome.clone(), back)).expect("the case waits for it");
    });
    gate.set_ready();
    let (outcome, back) = seen.recv().expect("the waiter runs");
    assert_eq!(outcome, Ok(()));
    assert!(back.wait().unwrap() == pattern(LARGE_BYTES, 10), "the bytes differ");
}
