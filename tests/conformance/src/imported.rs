//! Memory of devices that somebody else has allocated, as buffers: used like any other, and its owner is told when its
//! last use is over. The lender overwrites or frees it then, so a use that is still to come finds other bytes, or is
//! found.

#![allow(unsafe_code, reason = "foreign memory is taken by address")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin_array::{DType, HostArray, Shape};
use purlin_async::{Event, EventPromise, ShutdownMode, ShutdownOptions};
use purlin_base::{Error, StatusCode};
use purlin_device::{
    Aliasing, Buffer, Device, FromHostOptions, HostBufferSemantics, MemorySpace, Mutability, RawBuffer,
};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, on_threads, pattern, read, takes_host_memory};
use crate::host_copy::{HostCopy, between};

const SIZE_BYTES: usize = 256;

/// How often owners were told that their memory is not used any more.
#[derive(Clone, Default)]
struct Told(Arc<AtomicUsize>);

impl Told {
    fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// A buffer in `space` over lent memory of the device of that number.
fn import_into(
    fixture: &Fixture,
    space: &MemorySpace,
    device: usize,
    size_bytes: usize,
    mutability: Mutability,
    told: &Told,
) -> RawBuffer {
    let (lent, told) = (fixture.lent(device, size_bytes), told.clone());
    let (address, take_back) = (lent.address, lent.take_back);
    let release = move || {
        take_back();
        told.0.fetch_add(1, Ordering::Release);
    };
    // SAFETY: the memory is there until it is released, and only the buffer uses it.
    unsafe { RawBuffer::import(space, address, size_bytes, mutability, Some(Box::new(release))) }.unwrap()
}

fn import_on(fixture: &Fixture, device: usize, size_bytes: usize, told: &Told) -> RawBuffer {
    let space = fixture.client.devices()[device].default_memory_space();
    import_into(fixture, &space, device, size_bytes, Mutability::Mutable, told)
}

fn import(fixture: &Fixture, told: &Told) -> RawBuffer {
    import_on(fixture, 0, SIZE_BYTES, told)
}

fn shape() -> Shape {
    Shape::new(DType::U8, &[SIZE_BYTES as i64]).unwrap()
}

pub(crate) fn memory_of_a_device_is_used_in_place(fixture: &Fixture) {
    let (lent, told) = (fixture.lent(0, SIZE_BYTES), Told::default());
    let (address, take_back, count) = (lent.address, lent.take_back, told.clone());
    let release = move || {
        take_back();
        count.0.fetch_add(1, Ordering::Release);
    };
    let before = fixture.space().stats();
    // SAFETY: the memory is there until it is released, and only the buffer uses it.
    let buffer = unsafe {
        RawBuffer::import(&fixture.space(), address, SIZE_BYTES, Mutability::Mutable, Some(Box::new(release)))
    };
    let buffer = buffer.unwrap();
    assert_eq!(buffer.device_pointer().unwrap(), address.addr());
    assert_eq!((buffer.size_bytes(), buffer.memory_space()), (SIZE_BYTES, fixture.space()));
    assert_eq!((fixture.space().stats().bytes_in_use, before.bytes_in_use), (0, 0), "it is not counted");
    HostCopy::to_device(&buffer, 0, pattern(SIZE_BYTES, 1), &[]).wait().unwrap();
    assert_eq!(read(&buffer), pattern(SIZE_BYTES, 1));
    let part = buffer.slice(10, 20).unwrap();
    assert_eq!(part.device_pointer().unwrap(), address.addr() + 10);
    HostCopy::to_device(&part, 0, vec![9; 20], &[]).wait().unwrap();
    drop(buffer);
    assert_eq!((read(&part), told.count()), (vec![9; 20], 0));
    drop(part);
    assert_eq!(told.count(), 1);
}

pub(crate) fn every_device_takes_its_own_memory(fixture: &Fixture) {
    let told = Told::default();
    let buffers: Vec<_> = (0..3).map(|device| import_on(fixture, device, SIZE_BYTES, &told)).collect();
    for (buffer, seed) in buffers.iter().zip(1..) {
        HostCopy::to_device(buffer, 0, pattern(SIZE_BYTES, seed), &[]).wait().unwrap();
    }
    for (buffer, seed) in buffers.iter().zip(1..) {
        assert_eq!(read(buffer), pattern(SIZE_BYTES, seed));
    }
    drop(buffers);
    assert_eq!(told.count(), 3);
}

/// From the host through memory of ours and of others on three devices and back, after `gate`. No thread waits, and
/// nothing but the copies keeps the memory.
fn round_trip(fixture: &Fixture, size_bytes: usize, seed: u8, gate: &Event, told: &Told) -> (HostCopy, HostCopy) {
    let of_others: Vec<_> = (0..3).map(|device| import_on(fixture, device, size_bytes, told)).collect();
    let again = import_on(fixture, 0, size_bytes, told);
    let ours = fixture.allocate(size_bytes);
    let up = HostCopy::to_device(&of_others[0], 0, pattern(size_bytes, seed), std::slice::from_ref(gate));
    let within = between(&of_others[0], &ours, std::slice::from_ref(up.event()));
    let back = between(&ours, &again, &[within]);
    let away = between(&again, &of_others[1], &[back]);
    let on = between(&of_others[1], &of_others[2], &[away]);
    let down = HostCopy::from_device(&of_others[2], 0, size_bytes, &[on]);
    (up, down)
}

pub(crate) fn bytes_pass_through_imported_memory_by_events_alone(fixture: &Fixture) {
    for size_bytes in [SIZE_BYTES, LARGE_BYTES] {
        let (gate, told) = (EventPromise::new(c"gate"), Told::default());
        let (up, down) = round_trip(fixture, size_bytes, 2, &gate.event(), &told);
        assert_eq!(told.count(), 0, "copies in flight use it");
        gate.set_ready();
        assert_eq!(down.wait().unwrap(), pattern(size_bytes, 2));
        assert!(up.event().is_ready());
        assert_eq!(told.count(), 4);
    }
}

pub(crate) fn imported_memory_is_crossed_again_and_again(fixture: &Fixture) {
    let told = Told::default();
    let ends = [import(fixture, &told), fixture.allocate(SIZE_BYTES)];
    let (mut last, mut uploads, mut reads) = (Event::ready(), Vec::new(), Vec::new());
    for seed in 0..12_u8 {
        let (from, to) = (&ends[usize::from(seed % 2)], &ends[usize::from((seed + 1) % 2)]);
        let up = HostCopy::to_device(from, 0, pattern(SIZE_BYTES, seed), std::slice::from_ref(&last));
        let moved = between(from, to, std::slice::from_ref(up.event()));
        let read = HostCopy::from_device(to, 0, SIZE_BYTES, &[moved]);
        last = read.event().clone();
        uploads.push(up);
        reads.push(read);
    }
    drop(ends);
    for (read, seed) in reads.into_iter().zip(0..) {
        assert_eq!(read.wait().unwrap(), pattern(SIZE_BYTES, seed), "round {seed}");
    }
    assert_eq!(told.count(), 1);
}

pub(crate) fn memory_imported_twice_is_the_same_memory(fixture: &Fixture) {
    let told = Told::default();
    let first = import(fixture, &told);
    let (owner, address) = (first.clone(), first.device_pointer().unwrap());
    let address = std::ptr::with_exposed_provenance_mut(address);
    let release = move || drop(owner);
    // SAFETY: the first buffer keeps the memory until this one is released; events order their uses.
    let second = unsafe {
        RawBuffer::import(&fixture.space(), address, SIZE_BYTES, Mutability::Mutable, Some(Box::new(release)))
    };
    let second = second.unwrap();
    let up = HostCopy::to_device(&first, 0, pattern(SIZE_BYTES, 4), &[]);
    let down = HostCopy::from_device(&second, 0, SIZE_BYTES, std::slice::from_ref(up.event()));
    drop((first, second));
    assert_eq!(down.wait().unwrap(), pattern(SIZE_BYTES, 4));
    assert_eq!(told.count(), 1);
}

pub(crate) fn its_owner_is_told_once_and_after_the_last_copy(fixture: &Fixture) {
    for size_bytes in [SIZE_BYTES, LARGE_BYTES] {
        let (gate, told) = (EventPromise::new(c"gate"), Told::default());
        let buffer = import_on(fixture, 0, size_bytes, &told);
        let (slice, other) = (buffer.slice(0, 16).unwrap(), fixture.allocate(size_bytes));
        let up = HostCopy::to_device(&buffer, 0, pattern(size_bytes, 5), &[]);
        let copied = between(&buffer, &other, &[up.event().clone(), gate.event()]);
        drop((buffer, slice));
        up.wait().unwrap();
        assert_eq!(told.count(), 0, "a copy in flight uses it");
        gate.set_ready();
        copied.wait().unwrap();
        assert_eq!((told.count(), read(&other)), (1, pattern(size_bytes, 5)));
    }
}

pub(crate) fn its_owner_is_told_after_a_read_of_all_its_bytes(fixture: &Fixture) {
    for size_bytes in [SIZE_BYTES, 5 << 20] {
        let told = Told::default();
        let buffer = import_on(fixture, 0, size_bytes, &told);
        HostCopy::to_device(&buffer, 0, pattern(size_bytes, 6), &[]).wait().unwrap();
        let down = HostCopy::from_device(&buffer, 0, size_bytes, &[]);
        drop(buffer);
        assert_eq!(down.wait().unwrap(), pattern(size_bytes, 6));
        assert_eq!(told.count(), 1);
    }
}

pub(crate) fn owners_are_told_whoever_is_last(fixture: &Fixture) {
    const ROUNDS: usize = 20;
    let told = Told::default();
    on_threads(4, |thread| {
        for round in 0..ROUNDS {
            let buffer = import_on(fixture, thread % 3, SIZE_BYTES, &told);
            let seed = (thread * ROUNDS + round) as u8;
            let up = HostCopy::to_device(&buffer, 0, pattern(SIZE_BYTES, seed), &[]);
            let down = HostCopy::from_device(&buffer, 0, SIZE_BYTES, std::slice::from_ref(up.event()));
            drop(buffer);
            assert_eq!(down.wait().unwrap(), pattern(SIZE_BYTES, seed));
        }
    });
    assert_eq!(told.count(), 4 * ROUNDS);
}

pub(crate) fn a_failed_copy_tells_its_owner(fixture: &Fixture) {
    let (gate, told) = (EventPromise::new(c"gate"), Told::default());
    let buffer = import(fixture, &told);
    let copy = HostCopy::to_device(&buffer, 0, pattern(SIZE_BYTES, 7), &[gate.event()]);
    drop(buffer);
    assert_eq!(told.count(), 0);
    gate.set_error(Error::aborted("upstream broke"));
    assert_eq!(copy.wait_error().code(), StatusCode::Aborted);
    assert_eq!(told.count(), 1);
}

pub(crate) fn a_shutdown_waits_for_copies_of_imported_memory(fixture: &Fixture) {
    let (client, told) = (fixture.own_client(), Told::default());
    let space = client.devices()[0].default_memory_space();
    let buffer = import_into(fixture, &space, 0, LARGE_BYTES, Mutability::Mutable, &told);
    let up = HostCopy::to_device(&buffer, 0, pattern(LARGE_BYTES, 8), &[]);
    let down = HostCopy::from_device(&buffer, 0, LARGE_BYTES, std::slice::from_ref(up.event()));
    drop(buffer);
    client.shutdown(ShutdownOptions::default()).unwrap();
    assert!(up.event().is_ready() && down.event().is_ready());
    assert_eq!(told.count(), 1);
    assert_eq!(down.wait().unwrap(), pattern(LARGE_BYTES, 8));
}

pub(crate) fn a_shutdown_that_cancels_tells_every_owner(fixture: &Fixture) {
    let (client, gate, told) = (fixture.own_client(), EventPromise::new(c"gate"), Told::default());
    let space = client.devices()[0].default_memory_space();
    let buffers: Vec<_> =
        (0..3).map(|_| import_into(fixture, &space, 0, SIZE_BYTES, Mutability::Mutable, &told)).collect();
    let up = HostCopy::to_device(&buffers[0], 0, pattern(SIZE_BYTES, 9), &[gate.event()]);
    let on = between(&buffers[0], &buffers[1], std::slice::from_ref(up.event()));
    let kept = buffers[2].clone();
    drop(buffers);
    assert_eq!(told.count(), 0);
    client.shutdown(ShutdownOptions { mode: ShutdownMode::CancelPending, timeout: None }).unwrap();
    assert_eq!(up.wait_error().code(), StatusCode::Cancelled);
    assert_eq!(on.wait().unwrap_err().code(), StatusCode::Cancelled);
    assert_eq!(told.count(), 2, "a handle keeps the third");
    drop((client, space));
    drop(kept);
    assert_eq!(told.count(), 3);
}

pub(crate) fn imported_memory_outlives_its_client(fixture: &Fixture) {
    let (client, gate, told) = (fixture.own_client(), EventPromise::new(c"gate"), Told::default());
    let space = client.devices()[0].default_memory_space();
    let buffer = import_into(fixture, &space, 0, SIZE_BYTES, Mutability::Mutable, &told);
    let up = HostCopy::to_device(&buffer, 0, pattern(SIZE_BYTES, 10), &[gate.event()]);
    let down = HostCopy::from_device(&buffer, 0, SIZE_BYTES, std::slice::from_ref(up.event()));
    drop((buffer, space, client));
    assert_eq!(told.count(), 0);
    gate.set_ready();
    assert_eq!(down.wait().unwrap(), pattern(SIZE_BYTES, 10));
    assert_eq!(told.count(), 1);
}

/// An array over imported memory, whose bytes come after `gate`; and the copy that brings them.
fn array(fixture: &Fixture, seed: u8, gate: &Event, told: &Told) -> (Buffer, HostCopy) {
    let memory = import(fixture, told);
    let up = HostCopy::to_device(&memory, 0, pattern(SIZE_BYTES, seed), std::slice::from_ref(gate));
    (Buffer::from_raw(memory, &shape(), None, up.event()).unwrap(), up)
}

pub(crate) fn an_array_of_imported_memory_is_copied_and_deleted(fixture: &Fixture) {
    let (gate, told) = (EventPromise::new(c"gate"), Told::default());
    let (array, _up) = array(fixture, 11, &gate.event(), &told);
    let copies: Vec<_> = fixture
        .client
        .devices()
        .iter()
        .map(Device::default_memory_space)
        .map(|space| array.copy_to_memory_space(&space).unwrap())
        .collect();
    array.delete();
    drop(array);
    assert_eq!(told.count(), 0);
    gate.set_ready();
    for copy in &copies {
        assert_eq!(copy.to_vec::<u8>().unwrap(), pattern(SIZE_BYTES, 11));
    }
    assert_eq!(told.count(), 1);
}

pub(crate) fn a_donated_array_keeps_imported_memory(fixture: &Fixture) {
    let (gate, told) = (EventPromise::new(c"gate"), Told::default());
    let (old, _up) = array(fixture, 12, &Event::ready(), &told);
    let address = old.raw_alias().unwrap().device_pointer().unwrap();
    let new = old.donate_after(&gate.event()).unwrap();
    drop(old);
    assert_eq!((new.raw_alias().unwrap().device_pointer().unwrap(), told.count()), (address, 0));
    gate.set_ready();
    assert_eq!(new.to_vec::<u8>().unwrap(), pattern(SIZE_BYTES, 12));
    assert_eq!(told.count(), 0);
    drop(new);
    assert_eq!(told.count(), 1);
}

pub(crate) fn a_donee_writes_imported_memory(fixture: &Fixture) {
    let told = Told::default();
    let (mut state, up) = array(fixture, 0, &Event::ready(), &told);
    let (mut uploads, mut history) = (vec![up], Vec::new());
    for seed in 1..8 {
        history.push(state.copy_to_memory_space(&fixture.space()).unwrap());
        let hold = state.donate(c"step").unwrap();
        let free = hold.free_event();
        let memory = hold.confirm();
        let up = HostCopy::to_device(&memory, 0, pattern(SIZE_BYTES, seed), &[free]);
        state = Buffer::from_raw(memory, &shape(), None, up.event()).unwrap();
        uploads.push(up);
    }
    for (version, seed) in history.iter().zip(0..) {
        assert_eq!(version.to_vec::<u8>().unwrap(), pattern(SIZE_BYTES, seed), "version {seed}");
    }
    assert_eq!((state.to_vec::<u8>().unwrap(), told.count()), (pattern(SIZE_BYTES, 7), 0));
    drop(state);
    assert_eq!(told.count(), 1);
}

pub(crate) fn read_only_memory_of_a_device_is_not_written(fixture: &Fixture) {
    let told = Told::default();
    let writable = import(fixture, &told);
    HostCopy::to_device(&writable, 0, pattern(SIZE_BYTES, 13), &[]).wait().unwrap();
    let address = std::ptr::with_exposed_provenance_mut(writable.device_pointer().unwrap());
    let mutability = Mutability::Immutable;
    // SAFETY: the first buffer keeps the memory for longer, and it is not written any more.
    let buffer = unsafe { RawBuffer::import(&fixture.space(), address, SIZE_BYTES, mutability, None) }.unwrap();
    let error = HostCopy::to_device(&buffer, 0, vec![1; 4], &[]).wait_error();
    assert_error(&error, StatusCode::InvalidArgument, &["may not be written", "read-only"]);
    let other = fixture.filled(&pattern(SIZE_BYTES, 14));
    let error = between(&other, &buffer, &[]).wait().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["may not be written"]);
    between(&buffer, &other, &[]).wait().unwrap();
    assert_eq!((read(&other), read(&writable)), (pattern(SIZE_BYTES, 13), pattern(SIZE_BYTES, 13)));
}

pub(crate) fn host_memory_that_a_space_does_not_take_is_copied(fixture: &Fixture) {
    #[repr(align(64))]
    struct Aligned([u8; SIZE_BYTES]);
    let array = HostArray::new(&shape(), None).unwrap();
    for space in fixture.spaces() {
        let expected = if takes_host_memory(&space) { Aliasing::Aliased } else { Aliasing::Copied };
        for semantics in [HostBufferSemantics::ImmutableZeroCopy, HostBufferSemantics::MutableZeroCopy] {
            let (mut bytes, told) = (Box::new(Aligned([0; SIZE_BYTES])), Told::default());
            bytes.0.copy_from_slice(&pattern(SIZE_BYTES, 15));
            let count = told.clone();
            let on_done = move |outcome: Result<(), Error>| {
                outcome.unwrap();
                count.0.fetch_add(1, Ordering::Release);
            };
            let options = FromHostOptions { semantics, on_done: Some(Box::new(on_done)), ..Default::default() };
            // SAFETY: the bytes stay until the end of this turn, before which it is told that they are not used.
            let (buffer, aliasing) =
                unsafe { Buffer::from_host_array(bytes.0.as_mut_ptr(), &array, &space, options) }.unwrap();
            assert_eq!(aliasing, expected, "{space}");
            assert_eq!(buffer.to_vec::<u8>().unwrap(), pattern(SIZE_BYTES, 15), "{space}");
            drop(buffer);
            assert_eq!(told.count(), 1, "{space}");
        }
    }
}
