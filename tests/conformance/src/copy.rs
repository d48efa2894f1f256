//! Which bytes a copy moves.

use purlin_device::RawBuffer;

use crate::fixture::{Fixture, LARGE_BYTES, filled, on_threads, pattern, read};
use crate::host_copy::{HostCopy, between};

pub(crate) fn bytes_come_back(fixture: &Fixture) {
    for space in fixture.spaces() {
        let bytes = pattern(1000, space.id() as u8);
        assert_eq!(read(&filled(&space, &bytes)), bytes, "{space}");
    }
}

pub(crate) fn parts_go_where_they_should(fixture: &Fixture) {
    let buffer = fixture.filled(&[0; 16]);
    HostCopy::to_device(&buffer, 0, vec![1, 2], &[]).wait().unwrap();
    HostCopy::to_device(&buffer, 7, vec![3, 4, 5], &[]).wait().unwrap();
    HostCopy::to_device(&buffer, 15, vec![6], &[]).wait().unwrap();
    assert_eq!(read(&buffer), [1, 2, 0, 0, 0, 0, 0, 3, 4, 5, 0, 0, 0, 0, 0, 6]);
    assert_eq!(HostCopy::from_device(&buffer, 6, 3, &[]).wait().unwrap(), [0, 3, 4]);
    assert_eq!(HostCopy::from_device(&buffer, 15, 1, &[]).wait().unwrap(), [6]);
}

pub(crate) fn sizes_around_a_page_and_the_inline_limit_come_back(fixture: &Fixture) {
    for size_bytes in [1, 4095, 4096, 4097, 65_535, 65_536, 65_537, LARGE_BYTES] {
        let bytes = pattern(size_bytes, 1);
        let (source, destination) = (fixture.filled(&bytes), fixture.allocate(size_bytes));
        between(&source, &destination, &[]).wait().unwrap();
        assert!(read(&destination) == bytes, "{size_bytes} bytes differ");
    }
}

pub(crate) fn slices_are_copied_by_their_own_offsets(fixture: &Fixture) {
    let source = fixture.filled(&pattern(100, 2));
    let destination = fixture.filled(&[0; 100]);
    between(&source.slice(20, 30).unwrap(), &destination.slice(50, 40).unwrap(), &[]).wait().unwrap();
    HostCopy::to_device(&destination.slice(90, 10).unwrap(), 3, vec![7, 8], &[]).wait().unwrap();

    let mut expected = vec![0; 100];
    expected[50..80].copy_from_slice(&pattern(100, 2)[20..50]);
    expected[93..95].copy_from_slice(&[7, 8]);
    assert_eq!(read(&destination), expected);
    let inner = destination.slice(40, 50).unwrap().slice(10, 30).unwrap();
    assert_eq!(HostCopy::from_device(&inner, 1, 2, &[]).wait().unwrap(), expected[51..53]);
}

pub(crate) fn every_pair_of_spaces_copies(fixture: &Fixture) {
    for from in fixture.spaces() {
        for to in fixture.spaces() {
            let bytes = pattern(300, from.id() as u8 * 16 + to.id() as u8);
            let (source, destination) = (filled(&from, &bytes), filled(&to, &[0; 300]));
            between(&source, &destination, &[]).wait().unwrap();
            assert_eq!(read(&destination), bytes, "{from} to {to}");
        }
    }
}

pub(crate) fn a_copy_to_a_larger_buffer_leaves_the_rest(fixture: &Fixture) {
    let destination = fixture.filled(&[9; 8]);
    between(&fixture.filled(&[1, 2, 3]), &destination, &[]).wait().unwrap();
    assert_eq!(read(&destination), [1, 2, 3, 9, 9, 9, 9, 9]);
}

pub(crate) fn overlapping_ranges_move_forward(fixture: &Fixture) {
    overlapping(fixture, 0, 700);
}

pub(crate) fn overlapping_ranges_move_backward(fixture: &Fixture) {
    overlapping(fixture, 700, 0);
}

fn overlapping(fixture: &Fixture, from: usize, to: usize) {
    const SIZE_BYTES: usize = 100_000;
    let mut expected = pattern(SIZE_BYTES + 700, 3);
    let buffer = fixture.filled(&expected);
    let part = |offset_bytes| buffer.slice(offset_bytes, SIZE_BYTES).unwrap();
    between(&part(from), &part(to), &[]).wait().unwrap();
    expected.copy_within(from..from + SIZE_BYTES, to);
    assert!(read(&buffer) == expected, "the bytes differ");
}

pub(crate) fn a_buffer_copied_to_itself_stays(fixture: &Fixture) {
    let bytes = pattern(500, 4);
    let buffer = fixture.filled(&bytes);
    between(&buffer, &buffer, &[]).wait().unwrap();
    assert_eq!(read(&buffer), bytes);
}

pub(crate) fn nothing_is_copied_with_a_null_pointer(fixture: &Fixture) {
    for buffer in [fixture.allocate(0), fixture.allocate(4)] {
        for offset_bytes in [0, buffer.size_bytes()] {
            // SAFETY: no byte is read or written.
            let events = unsafe {
                [
                    buffer.copy_from_host(std::ptr::null(), offset_bytes, 0, &[]),
                    buffer.copy_to_host(std::ptr::null_mut(), offset_bytes, 0, &[]),
                ]
            };
            for event in events {
                assert!(event.is_ready());
                assert_eq!(event.wait(), Ok(()));
            }
        }
    }
}

pub(crate) fn nothing_is_copied_between_devices(fixture: &Fixture) {
    let empty = RawBuffer::allocate(&fixture.device(1).default_memory_space(), 0).unwrap();
    for destination in [fixture.allocate(0), fixture.allocate(4)] {
        assert_eq!(between(&empty, &destination, &[]).wait(), Ok(()));
    }
}

pub(crate) fn many_threads_copy_at_once(fixture: &Fixture) {
    on_threads(8, |seed| {
        let spaces = fixture.spaces();
        for round in 0..20 {
            // Some run inside the call, some on the runner.
            let bytes = pattern(20_000 * (round % 5 + 1), seed as u8);
            let buffers: Vec<RawBuffer> =
                spaces.iter().map(|space| RawBuffer::allocate(space, bytes.len()).unwrap()).collect();
            let sent = HostCopy::to_device(&buffers[0], 0, bytes.clone(), &[]);
            let mut moved = sent.event().clone();
            for pair in buffers.windows(2) {
                moved = between(&pair[0], &pair[1], &[moved]);
            }
            let last = buffers.last().expect("there is a space");
            assert!(HostCopy::from_device(last, 0, bytes.len(), &[moved]).wait().unwrap() == bytes);
        }
    });
}

pub(crate) fn writers_of_disjoint_parts_need_no_order(fixture: &Fixture) {
    const PART: usize = 30_000;
    let buffer = fixture.allocate(8 * PART);
    on_threads(4, |thread| {
        let bytes = pattern(2 * PART, thread as u8);
        let first = 2 * thread * PART;
        // One from the host, one from another buffer; some in the call, some on the runner.
        let sent = HostCopy::to_device(&buffer, first, bytes[..PART].to_vec(), &[]);
        let source = fixture.filled(&bytes[PART..]);
        between(&source, &buffer.slice(first + PART, PART).unwrap(), &[]).wait().unwrap();
        sent.wait().unwrap();
    });
    let expected: Vec<u8> = (0..4).flat_map(|thread| pattern(2 * PART, thread)).collect();
    assert!(read(&buffer) == expected, "the bytes differ");
}
