//! Foreign memory as a buffer.

#![allow(unsafe_code, reason = "foreign memory is taken by address")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin_async::EventPromise;
use purlin_base::StatusCode;
use purlin_device::{Mutability, RawBuffer};

use crate::fixture::{Fixture, assert_error, pattern, read};
use crate::host_copy::HostCopy;

/// Memory of the test's, aligned to 64 bytes.
#[repr(C, align(64))]
struct Owned([u8; 256]);

fn owned(seed: u8) -> Box<Owned> {
    let mut bytes = Box::new(Owned([0; 256]));
    bytes.0.copy_from_slice(&pattern(256, seed));
    bytes
}

/// A buffer over `bytes`, which live until it is released, and how often that was.
fn import(fixture: &Fixture, bytes: Box<Owned>, mutability: Mutability) -> (RawBuffer, Arc<AtomicUsize>) {
    let released = Arc::new(AtomicUsize::new(0));
    let address = Box::into_raw(bytes);
    let (count, owner) = (Arc::clone(&released), address.expose_provenance());
    let release = move || {
        count.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the address came from Box::into_raw above, and this is called once.
        drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Owned>(owner)) });
    };
    // SAFETY: the memory lives until it is released, and only the buffer uses it.
    let buffer =
        unsafe { RawBuffer::import(&fixture.host_space(), address.cast(), 256, mutability, Some(Box::new(release))) };
    (buffer.unwrap(), released)
}

pub(crate) fn imported_memory_is_used_in_place(fixture: &Fixture) {
    let bytes = owned(1);
    let address = std::ptr::from_ref(&*bytes).addr();
    let (buffer, released) = import(fixture, bytes, Mutability::Mutable);
    assert_eq!((buffer.size_bytes(), buffer.memory_space()), (256, fixture.host_space()));
    assert_eq!(buffer.host_pointer().map(|pointer| pointer.addr().get()), Some(address));
    assert_eq!(read(&buffer), pattern(256, 1));
    assert!(buffer.is_mutable());
    HostCopy::to_device(&buffer, 10, vec![9; 5], &[]).wait().unwrap();
    assert_eq!(read(&buffer.slice(9, 7).unwrap())[1..6], [9; 5]);
    assert_eq!(released.load(Ordering::Relaxed), 0);
}

pub(crate) fn bytes_past_the_end_of_the_address_space_cannot_be_imported(fixture: &Fixture) {
    let bytes = owned(3);
    let address = std::ptr::from_ref(&*bytes).cast_mut().cast::<u8>();
    let last = std::ptr::without_provenance_mut(usize::MAX - 63);
    let half = isize::MAX as usize + 1;
    for (address, size_bytes) in [(last, 64), (last, 65), (address, usize::MAX), (address, half)] {
        let mutability = Mutability::Immutable;
        // SAFETY: it is refused, or not used.
        let refused =
            unsafe { RawBuffer::import(&fixture.host_space(), address, size_bytes, mutability, None) }.unwrap_err();
        let (size_bytes, address) = (size_bytes.to_string(), format!("{address:p}"));
        assert_error(&refused, StatusCode::InvalidArgument, &[&size_bytes, &address, "address space"]);
    }
}

pub(crate) fn imported_memory_is_not_counted(fixture: &Fixture) {
    let (_buffer, _released) = import(fixture, owned(1), Mutability::Mutable);
    assert_eq!((fixture.host_space().stats().bytes_in_use, fixture.host_space().stats().num_allocs), (0, 0));
}

pub(crate) fn the_last_use_releases_imported_memory_once(fixture: &Fixture) {
    let (buffer, released) = import(fixture, owned(2), Mutability::Mutable);
    let (slice, gate) = (buffer.slice(0, 16).unwrap(), EventPromise::new(c"gate"));
    let copied = HostCopy::to_device(&buffer, 0, vec![1; 16], &[gate.event()]);
    drop(buffer);
    drop(slice);
    assert_eq!(released.load(Ordering::Relaxed), 0, "a copy in flight uses it");
    gate.set_ready();
    copied.wait().unwrap();
    assert_eq!(released.load(Ordering::Relaxed), 1);
}

pub(crate) fn read_only_memory_is_not_written(fixture: &Fixture) {
    let (buffer, released) = import(fixture, owned(3), Mutability::Immutable);
    assert!(!buffer.is_mutable() && !buffer.slice(1, 2).unwrap().is_mutable());
    let error = HostCopy::to_device(&buffer, 0, vec![1; 4], &[]).wait().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["may not be written", "read-only"]);
    let source = fixture.allocate(256);
    // SAFETY: nothing else uses the bytes.
    let error = unsafe { source.copy_to(&buffer, &[]) }.wait().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["may not be written"]);
    // SAFETY: as above.
    assert_eq!(unsafe { buffer.copy_to(&source, &[]) }.wait(), Ok(()));
    drop(buffer);
    assert_eq!(released.load(Ordering::Relaxed), 1);
}

pub(crate) fn what_cannot_be_imported_is_named_and_not_released(fixture: &Fixture) {
    let released = Arc::new(AtomicUsize::new(0));
    let mut bytes = owned(4);
    let first = bytes.0.as_mut_ptr();
    for address in [std::ptr::null_mut(), first.wrapping_add(1)] {
        let count = Arc::clone(&released);
        let release = move || _ = count.fetch_add(1, Ordering::Relaxed);
        // SAFETY: it is refused.
        let refused = unsafe {
            RawBuffer::import(&fixture.host_space(), address, 8, Mutability::Mutable, Some(Box::new(release)))
        };
        assert_error(&refused.unwrap_err(), StatusCode::InvalidArgument, &["8 bytes", "multiple of"]);
    }
    assert_eq!((released.load(Ordering::Relaxed), Arc::strong_count(&released)), (0, 1));
}

pub(crate) fn a_release_that_panics_harms_nobody(fixture: &Fixture) {
    let mut bytes = owned(5);
    let release = || panic!("expected by a test");
    // SAFETY: the memory outlives the buffer.
    let buffer = unsafe {
        RawBuffer::import(&fixture.host_space(), bytes.0.as_mut_ptr(), 8, Mutability::Mutable, Some(Box::new(release)))
    };
    drop(buffer.unwrap());
}

pub(crate) fn a_release_may_use_the_space(fixture: &Fixture) {
    let (space, source) = (fixture.space(), fixture.filled(&pattern(256, 6)));
    let bytes = owned(6);
    let address = Box::into_raw(bytes);
    let owner = address.expose_provenance();
    let (sender, released) = std::sync::mpsc::channel();
    let release = move || {
        // SAFETY: the address came from Box::into_raw above, and this is called once.
        drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Owned>(owner)) });
        let again = RawBuffer::allocate(&space, 256).unwrap();
        // SAFETY: nothing else uses the bytes.
        let copied = unsafe { source.copy_to(&again, &[]) };
        space.trim();
        sender.send((copied, space.stats().num_allocs, space.report().holder_count)).unwrap();
    };
    // SAFETY: the memory lives until it is released.
    let buffer = unsafe {
        RawBuffer::import(&fixture.host_space(), address.cast(), 256, Mutability::Mutable, Some(Box::new(release)))
    };
    drop(buffer.unwrap());
    let (copied, num_allocs, holder_count) = released.recv().unwrap();
    assert_eq!((copied.wait(), num_allocs), (Ok(()), 2));
    assert!(holder_count >= 1);
}
