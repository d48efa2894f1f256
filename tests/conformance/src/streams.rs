//! Programs of many operations that are ordered by events alone: no thread of the host waits between them. A backend
//! that loses one of the waits computes other bytes.

mod array;
mod chain;
mod client;
mod diamond;
mod host_memory;
mod large;
mod launch;
mod order;
mod peer;
mod stranger;

pub(crate) use array::*;
pub(crate) use chain::*;
pub(crate) use client::*;
pub(crate) use diamond::*;
pub(crate) use host_memory::*;
pub(crate) use large::*;
pub(crate) use launch::*;
pub(crate) use order::*;
pub(crate) use peer::*;
pub(crate) use stranger::*;

use purlin_async::Event;
use purlin_device::{MemorySpace, RawBuffer};

use crate::fixture::{Fixture, pattern};
use crate::host_copy::{HostCopy, between};

const SIZE_BYTES: usize = 256;

/// A program under way: what it has written from the host is kept until its end.
#[derive(Default)]
struct Program(Vec<HostCopy>);

impl Program {
    /// `bytes` to the start of `to`.
    fn write(&mut self, to: &RawBuffer, bytes: Vec<u8>, after: &[&Event]) -> Event {
        let copy = HostCopy::to_device(to, 0, bytes, &owned(after));
        let written = copy.event().clone();
        self.keep(copy);
        written
    }

    fn keep(&mut self, copy: HostCopy) {
        self.0.push(copy);
    }
}

fn owned(events: &[&Event]) -> Vec<Event> {
    events.iter().copied().cloned().collect()
}

fn copy(from: &RawBuffer, to: &RawBuffer, after: &[&Event]) -> Event {
    between(from, to, &owned(after))
}

fn read(from: &RawBuffer, after: &[&Event]) -> HostCopy {
    HostCopy::from_device(from, 0, from.size_bytes(), &owned(after))
}

fn memory(space: &MemorySpace) -> RawBuffer {
    RawBuffer::allocate(space, SIZE_BYTES).expect("a few kilobytes are there")
}

fn blocks(fixture: &Fixture, count: usize) -> Vec<RawBuffer> {
    (0..count).map(|_| memory(&fixture.space())).collect()
}

/// The default memory of each of three devices.
fn three_spaces(fixture: &Fixture) -> [MemorySpace; 3] {
    [0, 1, 2].map(|id| fixture.device(id).default_memory_space())
}

#[track_caller]
fn assert_bytes(copy: HostCopy, seed: u8) {
    let bytes = copy.wait().unwrap();
    assert!(bytes == pattern(bytes.len(), seed), "other bytes than those of seed {seed}");
}
