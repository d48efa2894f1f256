//! Allocation, slices, and the accounting.

use purlin_base::StatusCode;
use purlin_device::{Client, MemorySpace, MemoryStats, RawBuffer};

use crate::fixture::{Fixture, assert_error, on_threads};

pub(crate) fn an_allocation_has_the_size_that_was_asked_for(fixture: &Fixture) {
    for space in fixture.spaces() {
        for size_bytes in [1, 63, 64, 65, 4096, 1_000_003] {
            let buffer = RawBuffer::allocate(&space, size_bytes).unwrap();
            assert_eq!(buffer.size_bytes(), size_bytes);
            assert_eq!(buffer.memory_space(), space);
        }
    }
}

pub(crate) fn addresses_are_aligned_to_64_bytes(fixture: &Fixture) {
    for space in fixture.spaces() {
        for size_bytes in [0, 1, 8, 100, 4097] {
            let buffer = RawBuffer::allocate(&space, size_bytes).unwrap();
            let address = buffer.host_pointer().expect("the host reaches the memory").as_ptr() as usize;
            assert_eq!(address % 64, 0, "{size_bytes} bytes in {space}");
        }
    }
}

pub(crate) fn addresses_of_live_allocations_do_not_overlap(fixture: &Fixture) {
    let buffers: Vec<RawBuffer> = (1..200).map(|size_bytes| fixture.allocate(size_bytes)).collect();
    let mut ranges: Vec<(usize, usize)> = buffers
        .iter()
        .map(|buffer| {
            let address = buffer.host_pointer().expect("the host reaches the memory").as_ptr() as usize;
            (address, address + buffer.size_bytes())
        })
        .collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
}

pub(crate) fn zero_bytes_can_be_allocated(fixture: &Fixture) {
    let (a, b) = (fixture.allocate(0), fixture.allocate(0));
    assert_eq!((a.size_bytes(), b.size_bytes()), (0, 0));
    let stats = fixture.space().stats();
    assert_eq!((stats.bytes_in_use, stats.num_allocs), (0, 2));
}

pub(crate) fn absurd_sizes_are_resource_exhausted(fixture: &Fixture) {
    let _held = fixture.allocate(12_345);
    for size_bytes in [usize::MAX, usize::MAX - 63, usize::MAX / 2 + 1, usize::MAX / 2, usize::MAX / 2 - 63, 1 << 60] {
        let error = RawBuffer::allocate(&fixture.space(), size_bytes).expect_err("nobody has so much");
        assert_error(
            &error,
            StatusCode::ResourceExhausted,
            &[&size_bytes.to_string(), &fixture.space().to_string(), "12345 bytes in use"],
        );
    }
}

pub(crate) fn a_failed_allocation_changes_no_count(fixture: &Fixture) {
    let _held = fixture.allocate(100);
    let before = fixture.space().stats();
    assert!(RawBuffer::allocate(&fixture.space(), usize::MAX / 2).is_err());
    assert_eq!(fixture.space().stats(), before);
}

pub(crate) fn the_accounting_follows_allocations(fixture: &Fixture) {
    let space = fixture.space();
    let counts = || {
        let MemoryStats { bytes_in_use, peak_bytes_in_use, num_allocs, largest_alloc_size, .. } = space.stats();
        [bytes_in_use, peak_bytes_in_use, num_allocs, largest_alloc_size]
    };
    assert_eq!(counts(), [0; 4]);
    let a = fixture.allocate(1000);
    let b = fixture.allocate(24);
    drop(a);
    let c = fixture.allocate(500);
    assert_eq!(counts(), [524, 1024, 3, 1000]);
    space.clear_peak();
    assert_eq!(counts(), [524, 524, 3, 1000]);
    drop((b, c));
    assert_eq!(counts(), [0, 524, 3, 1000]);
}

pub(crate) fn each_space_has_its_own_accounting(fixture: &Fixture) {
    let spaces = fixture.spaces();
    let _buffers: Vec<RawBuffer> =
        spaces.iter().enumerate().map(|(index, space)| RawBuffer::allocate(space, 10 + index).unwrap()).collect();
    for (index, space) in spaces.iter().enumerate() {
        assert_eq!(space.stats().bytes_in_use, 10 + index as u64, "{space}");
    }
}

pub(crate) fn slices_keep_the_memory(fixture: &Fixture) {
    let whole = fixture.allocate(100);
    let part = whole.slice(10, 5).unwrap();
    let again = part.clone();
    drop(whole);
    drop(part);
    assert_eq!(fixture.space().stats().bytes_in_use, 100);
    drop(again);
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
}

pub(crate) fn slices_nest(fixture: &Fixture) {
    let whole = fixture.allocate(100);
    let inner = whole.slice(10, 50).unwrap().slice(5, 20).unwrap();
    assert_eq!(inner.size_bytes(), 20);
    assert_eq!(inner.memory_space(), whole.memory_space());
    assert_eq!(fixture.space().stats().num_allocs, 1);
    let address = |buffer: &RawBuffer| buffer.host_pointer().map(|pointer| pointer.as_ptr() as usize);
    assert_eq!(address(&inner), address(&whole).map(|base| base + 15));
    assert_error(&inner.slice(0, 21).unwrap_err(), StatusCode::OutOfRange, &["21", "20"]);
}

pub(crate) fn slices_of_nothing_may_stand_at_the_end(fixture: &Fixture) {
    let whole = fixture.allocate(100);
    let end = whole.slice(100, 0).unwrap();
    assert_eq!(end.size_bytes(), 0);
    assert_eq!(end.slice(0, 0).unwrap().size_bytes(), 0);
    assert_eq!(fixture.allocate(0).slice(0, 0).unwrap().size_bytes(), 0);
}

pub(crate) fn a_slice_past_the_end_is_out_of_range(fixture: &Fixture) {
    let whole = fixture.allocate(100);
    for (offset_bytes, size_bytes) in [
        (0, 101),
        (101, 0),
        (100, 1),
        (1, 100),
        (usize::MAX, 0),
        (usize::MAX, 1),
        (1, usize::MAX),
        (usize::MAX, usize::MAX),
        (usize::MAX / 2 + 1, usize::MAX / 2 + 1),
    ] {
        let error = whole.slice(offset_bytes, size_bytes).unwrap_err();
        assert_error(&error, StatusCode::OutOfRange, &[&offset_bytes.to_string(), &size_bytes.to_string(), "100"]);
    }
}

pub(crate) fn the_accounting_survives_many_threads(fixture: &Fixture) {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 200;
    let space = fixture.space();
    on_threads(THREADS as usize, |_| {
        for round in 0..ROUNDS {
            drop(RawBuffer::allocate(&space, round as usize).unwrap());
        }
    });
    let stats = space.stats();
    assert_eq!((stats.bytes_in_use, stats.num_allocs, stats.largest_alloc_size), (0, THREADS * ROUNDS, ROUNDS - 1));
    assert!((ROUNDS - 1..=THREADS * (ROUNDS - 1)).contains(&stats.peak_bytes_in_use), "{stats:?}");
}

pub(crate) fn kinds_are_interned(fixture: &Fixture) {
    let kinds = |client: &Client| -> Vec<Vec<&'static str>> {
        client.devices().iter().map(|device| device.memory_spaces().iter().map(MemorySpace::kind).collect()).collect()
    };
    let (ours, theirs) = (kinds(&fixture.client), kinds(&fixture.other_client));
    for of_device in ours.iter().chain(&theirs) {
        assert!(of_device.iter().zip(&ours[0]).all(|(kind, first)| std::ptr::eq(*kind, *first)), "{of_device:?}");
    }
    let mut ids: Vec<i32> = fixture.spaces().iter().map(MemorySpace::id).collect();
    for device in fixture.client.devices() {
        assert_eq!(device.default_memory_space(), device.memory_spaces()[0], "the first is the default");
        for space in device.memory_spaces() {
            assert_eq!(device.memory_space(space.kind()).as_ref(), Ok(&space), "each is found by its kind");
        }
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3 * ours[0].len(), "an id is one space's");
}

pub(crate) fn no_two_spaces_share_an_address(fixture: &Fixture) {
    let spaces = fixture.spaces();
    let buffers: Vec<RawBuffer> = (0..4)
        .flat_map(|round| spaces.iter().map(move |space| RawBuffer::allocate(space, 1000 << (4 * round)).unwrap()))
        .collect();
    let mut ranges: Vec<(usize, usize)> = buffers
        .iter()
        .map(|buffer| {
            let address = buffer.device_pointer().unwrap();
            (address, address + buffer.size_bytes())
        })
        .collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
}
