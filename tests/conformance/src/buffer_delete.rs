//! What deleting an array ends, and what it does not.

#![allow(unsafe_code, reason = "host memory is written by address")]

use purlin_array::DType;
use purlin_base::{Error, StatusCode};
use purlin_device::Buffer;

use crate::buffer::{LARGE, behind};
use crate::fixture::{Fixture, LARGE_BYTES, assert_error, on_threads, read};

/// PJRT's words, which programs look for.
const DELETED: &str = "Buffer has been deleted or donated.";

fn four(fixture: &Fixture) -> Buffer {
    Buffer::from_slice(&[1_u8, 2, 3, 4], &[4], &fixture.space()).unwrap()
}

pub(crate) fn deleting_frees_the_memory(fixture: &Fixture) {
    let buffer = four(fixture);
    assert_eq!(fixture.space().stats().bytes_in_use, 4);
    buffer.delete();
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
}

pub(crate) fn deleting_twice_is_the_same(fixture: &Fixture) {
    let buffer = four(fixture);
    assert!(!buffer.is_deleted());
    buffer.delete();
    buffer.delete();
    assert!(buffer.is_deleted());
}

pub(crate) fn deleting_one_reference_deletes_all(fixture: &Fixture) {
    let buffer = four(fixture);
    let reference = buffer.clone();
    drop(buffer.clone());
    assert!(!reference.is_deleted(), "a reference that goes deletes nothing");
    reference.delete();
    assert!(buffer.is_deleted());
}

pub(crate) fn every_use_after_delete_says_so(fixture: &Fixture) {
    let buffer = four(fixture);
    buffer.delete();
    let place = format!("buffer_delete.rs:{}", line!() - 1);
    let mut host = [0_u8; 4];
    let errors: [Error; 5] = [
        // SAFETY: a deleted buffer is refused, so no byte is written.
        unsafe { buffer.copy_to_host(host.as_mut_ptr(), 4) }.wait().unwrap_err(),
        buffer.to_vec::<u8>().unwrap_err(),
        buffer.copy_to_device(&fixture.device(1)).unwrap_err(),
        buffer.copy_to_memory_space(&fixture.space()).unwrap_err(),
        buffer.raw_alias().unwrap_err(),
    ];
    for error in errors {
        assert_error(&error, StatusCode::InvalidArgument, &[DELETED, "It was deleted at", &place]);
    }
}

pub(crate) fn what_an_array_was_is_known_after_delete(fixture: &Fixture) {
    let buffer = four(fixture);
    let early = buffer.ready_event();
    buffer.delete();
    assert_eq!((early.wait(), buffer.ready_event().wait()), (Ok(()), Ok(())));
    assert_eq!((buffer.dtype(), buffer.dims(), buffer.size_bytes()), (DType::U8, &[4][..], 4));
    assert_eq!((buffer.memory_space(), buffer.device()), (fixture.space(), fixture.device(0)));
}

pub(crate) fn a_pending_read_survives_delete(fixture: &Fixture) {
    let occupied = fixture.keep_runner_busy();
    let buffer = behind(fixture, &LARGE);
    let copy = buffer.copy_to_device(&fixture.device(1)).unwrap();
    let ready = buffer.ready_event();
    buffer.delete();
    assert!(!ready.is_ready());
    assert_eq!(fixture.space().stats().bytes_in_use, LARGE_BYTES as u64);
    drop(occupied);
    assert!(copy.to_vec::<u8>().unwrap() == LARGE, "the bytes differ");
    assert_eq!(ready.wait(), Ok(()));
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
}

pub(crate) fn a_raw_alias_survives_delete(fixture: &Fixture) {
    let buffer = four(fixture);
    let alias = buffer.raw_alias().unwrap();
    buffer.delete();
    assert_eq!(fixture.space().stats().bytes_in_use, 4);
    assert_eq!(read(&alias), [1, 2, 3, 4]);
}

pub(crate) fn readers_race_with_delete(fixture: &Fixture) {
    for _ in 0..50 {
        let buffer = four(fixture);
        on_threads(5, |index| {
            if index == 4 {
                return buffer.delete();
            }
            let device = fixture.device(index as i32 % 3);
            let values = buffer.copy_to_device(&device).and_then(|copy| copy.to_vec::<u8>());
            match values {
                Ok(values) => assert_eq!(values, [1, 2, 3, 4]),
                Err(error) => assert!(error.message().starts_with(DELETED), "{error}"),
            }
        });
        assert!(buffer.is_deleted());
    }
}

pub(crate) fn a_pending_read_to_the_host_survives_delete(fixture: &Fixture) {
    let occupied = fixture.keep_runner_busy();
    let buffer = behind(fixture, &LARGE);
    let mut host = [vec![0_u8; LARGE_BYTES], vec![0_u8; 1000]];
    let [whole, part] = &mut host;
    // SAFETY: the vectors stay here until the waits.
    let reads = unsafe {
        [buffer.copy_to_host(whole.as_mut_ptr(), LARGE_BYTES), buffer.copy_raw_to_host(part.as_mut_ptr(), 77, 1000)]
    };
    buffer.delete();
    drop(buffer);
    assert!(reads.iter().all(|read| !read.is_ready()));
    assert_eq!(fixture.space().stats().bytes_in_use, LARGE_BYTES as u64);
    drop(occupied);
    for read in reads {
        assert_eq!(read.wait(), Ok(()));
    }
    assert!(host[0] == LARGE && host[1] == LARGE[77..1077], "the bytes differ");
}
