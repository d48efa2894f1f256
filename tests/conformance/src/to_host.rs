//! Reads that wait: for an address, and for dimensions.

#![allow(unsafe_code, reason = "host memory is written by address")]

use purlin_array::{DType, Shape};
use purlin_async::{EventPromise, Promise};
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, HostAddress};

use crate::fixture::{Fixture, assert_error, pattern};

pub(crate) fn raw_reads_wait_for_their_address(fixture: &Fixture) {
    let bytes = pattern(100, 8);
    let buffer = Buffer::from_slice(&bytes, &[100], &fixture.space()).unwrap();
    let (found, lost, forgotten) = (Promise::new(c"found"), Promise::new(c"lost"), Promise::new(c"forgotten"));
    // SAFETY: `host` outlives the waits below, and is touched after them only.
    let read = |promise: &Promise<HostAddress>, offset, size| unsafe {
        buffer.copy_raw_to_host_when(&promise.future(), offset, size)
    };
    let mut host = [0xEE_u8; 20];
    let reads = [read(&found, 10, 20), read(&lost, 0, 20), read(&forgotten, 0, 20)];
    for (offset, size_bytes) in [(0, 101), (usize::MAX, 1), (1, usize::MAX)] {
        let event = read(&found, offset, size_bytes);
        assert!(event.is_ready(), "a range is checked at once");
        assert_error(&event.wait().unwrap_err(), StatusCode::OutOfRange, &[&size_bytes.to_string()]);
    }
    // Donation succeeds, and the donee waits for the reads; so does the memory.
    let donation = buffer.try_donate(c"step").unwrap();
    let free = donation.free_event();
    drop(donation.confirm());
    assert_error(&read(&found, 0, 1).wait().unwrap_err(), StatusCode::InvalidArgument, &["deleted or donated"]);
    assert!(reads.iter().all(|read| !read.is_ready()) && !free.is_ready());
    assert_eq!(fixture.space().stats().bytes_in_use, 100);
    lost.set(Err(Error::aborted("no room"))).unwrap();
    drop(forgotten);
    assert_eq!(reads[1].wait().unwrap_err(), Error::aborted("no room"));
    assert_error(&reads[2].wait().unwrap_err(), StatusCode::Internal, &["forgotten"]);
    assert!(!free.is_ready());
    found.set(Ok(HostAddress(host.as_mut_ptr()))).unwrap();
    assert_eq!((reads[0].wait(), free.wait()), (Ok(()), Ok(())));
    assert_eq!(host, bytes[10..30]);
    assert_eq!(fixture.space().stats().bytes_in_use, 0);
}

pub(crate) fn dimensions_are_waited_for_without_a_hold(fixture: &Fixture) {
    let shape = Shape::with_dynamic(DType::U8, &[4], &[true]).unwrap();
    for _ in 0..20 {
        let gate = EventPromise::new(c"gate");
        let memory = crate::fixture::filled(&fixture.space(), &[&[0; 4][..], &3_i32.to_ne_bytes()].concat());
        let buffer = Buffer::from_raw(memory, &shape, None, &gate.event()).unwrap();
        let reader = buffer.clone();
        let dims = std::thread::spawn(move || reader.logical_dims());
        // Whether the reader waits by now or not, this does not wait for it: the gate opens only afterwards.
        let donated = buffer.donate_after(&purlin_async::Event::ready()).unwrap();
        gate.set_ready();
        match dims.join().unwrap() {
            Ok(dims) => assert_eq!(dims, [3]),
            Err(error) => assert_error(&error, StatusCode::InvalidArgument, &["deleted or donated"]),
        }
        assert_eq!(donated.logical_dims(), Ok(vec![3]));
    }
}
