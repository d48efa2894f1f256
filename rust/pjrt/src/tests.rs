//! What C++ cannot bring about (panics), tables of every size, and races. The slots are tested from the other side, in
//! tests/cpp/pjrt_*_test.cc.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;

use purlin_async::{Event, EventPromise, EventState};
use purlin_base::{Error, StatusCode};
use purlin_device::RawBuffer as Bytes;

use purlin_base::StatusOr;
use purlin_device::backend::{Backend, Memory, NullBackend, Operation, Schedule};
use purlin_device::{Client, ClientOptions, MemorySpace};

use super::abi::{DeviceEvent, DeviceEventCallback, DeviceEventTable, DeviceEventVector, slot};
use super::{device_event, error, label, promise, raw_buffer, vector};

/// A foreign device event, which has failed; counts its references.
struct Foreign {
    refs: AtomicUsize,
    message: &'static str,
}

impl Foreign {
    fn failed() -> Self {
        Self { refs: AtomicUsize::new(1), message: "theirs" }
    }

    fn with(&self, table: &DeviceEventTable) -> DeviceEvent {
        DeviceEvent { table, event: ptr::from_ref(self).cast_mut().cast() }
    }

    unsafe extern "C" fn inc_ref(event: *mut c_void) {
        // SAFETY: the test's own.
        unsafe { &*event.cast::<Self>() }.refs.fetch_add(1, SeqCst);
    }

    unsafe extern "C" fn dec_ref(event: *mut c_void) {
        // SAFETY: the test's own.
        let before = unsafe { &*event.cast::<Self>() }.refs.fetch_sub(1, SeqCst);
        assert_ne!(before, 0, "one reference too many was given up");
    }

    unsafe extern "C" fn and_then(_event: *mut c_void, callback: DeviceEventCallback, user_arg: *mut c_void) {
        // SAFETY: what the caller gave.
        unsafe { callback.unwrap()(user_arg) };
    }

    unsafe extern "C" fn get_error_if_present(
        event: *mut c_void,
        code: *mut c_int,
        message: *mut *const std::ffi::c_char,
        size: *mut usize,
    ) -> c_int {
        // SAFETY: the test's own, and places of the caller's.
        unsafe {
            let text = (*event.cast::<Self>()).message;
            code.write(5);
            message.write(text.as_ptr().cast());
            size.write(text.len());
        }
        1
    }

    unsafe extern "C" fn get_state(_event: *mut c_void) -> c_int {
        2
    }

    fn table(struct_size: usize) -> DeviceEventTable {
        DeviceEventTable {
            struct_size,
            extension_start: ptr::null_mut(),
            inc_ref: Some(Self::inc_ref),
            dec_ref: Some(Self::dec_ref),
            and_then: Some(Self::and_then),
            get_error_if_present: Some(Self::get_error_if_present),
            parent: ptr::null(),
            get_state: Some(Self::get_state),
            get_definition_stream: None,
        }
    }
}

#[test]
fn a_table_is_read_as_far_as_it_goes() {
    for size in 0..=size_of::<DeviceEventTable>() + 16 {
        let (foreign, table) = (Foreign::failed(), Foreign::table(size));
        // SAFETY: the only reference to the foreign event is given up.
        let taken = unsafe { device_event::take(foreign.with(&table)) };
        let outcome = taken.wait();
        let has = |offset: usize| size >= offset + 8;
        let (code, refs) = if has(offset_of!(DeviceEventTable, get_error_if_present)) {
            (StatusCode::NotFound, 0)
        } else if has(offset_of!(DeviceEventTable, and_then)) {
            // It called back, and its table says no more than that.
            (StatusCode::Ok, 0)
        } else if has(offset_of!(DeviceEventTable, dec_ref)) {
            (StatusCode::InvalidArgument, 0)
        } else {
            (StatusCode::InvalidArgument, 1)
        };
        let said = outcome.as_ref().err().map_or(StatusCode::Ok, Error::code);
        assert_eq!((said, foreign.refs.load(SeqCst)), (code, refs), "struct_size {size}: {outcome:?}");
    }
}

#[test]
fn null_slots_are_as_good_as_none() {
    let (foreign, mut table) = (Foreign::failed(), Foreign::table(size_of::<DeviceEventTable>()));
    table.get_error_if_present = None;
    // SAFETY: as above.
    let taken = unsafe { device_event::take(foreign.with(&table)) };
    assert_eq!(taken.error().unwrap().code(), StatusCode::Unknown, "get_state said that it has failed");
    table.and_then = None;
    foreign.refs.store(1, SeqCst);
    // SAFETY: as above.
    let refused = unsafe { device_event::take(foreign.with(&table)) }.error().unwrap();
    assert_eq!((refused.code(), foreign.refs.load(SeqCst)), (StatusCode::InvalidArgument, 0), "{refused}");
}

#[test]
fn every_slot_of_ours_is_filled() {
    // SAFETY: our own tables.
    unsafe {
        assert!(slot!(device_event::TABLE, DeviceEventTable, get_definition_stream).is_some());
        for (table, first, end) in [
            (ptr::from_ref(device_event::TABLE).cast::<usize>(), 2, 6),
            (ptr::from_ref(device_event::TABLE).cast(), 7, 9),
            ((&raw const promise::TABLE).cast(), 3, 9),
            ((&raw const error::TABLE).cast(), 3, 7),
            ((&raw const raw_buffer::TABLE).cast(), 3, 16),
        ] {
            assert_eq!(table.read() % 8, 0);
            assert!(table.read() / 8 >= end, "struct_size {}", table.read());
            assert!((first..end).all(|index| table.add(index).read() != 0));
        }
    }
}

#[test]
fn a_chain_of_parents_that_reaches_our_table_makes_an_event_ours() {
    let promise = EventPromise::new(label());
    let mut middle = Foreign::table(size_of::<DeviceEventTable>());
    middle.dec_ref = device_event::TABLE.dec_ref;
    let mut outer = Foreign::table(size_of::<DeviceEventTable>());
    outer.dec_ref = device_event::TABLE.dec_ref;
    middle.parent = device_event::TABLE;
    outer.parent = &raw const middle;
    let given = DeviceEvent { table: &outer, event: device_event::give(promise.event()).event };
    // SAFETY: the reference that was just given.
    let taken = unsafe { device_event::take(given) };
    assert_eq!(taken, promise.event());
    drop(taken);
    assert_eq!(promise.event().ref_count(), 2, "the promise's and this one");
}

#[test]
fn a_chain_of_parents_that_leads_nowhere_ends() {
    // A circle of two, and one that is its own parent.
    for is_own in [true, false] {
        let mut tables = [(); 2].map(|()| Foreign::table(size_of::<DeviceEventTable>()));
        let first = tables.as_mut_ptr();
        // SAFETY: both are of the array.
        unsafe {
            (*first).parent = if is_own { first } else { first.add(1) };
            (*first.add(1)).parent = first;
        }
        let foreign = Foreign::failed();
        // SAFETY: the only reference to the foreign event is given up.
        let taken = unsafe { device_event::take(DeviceEvent { table: first, ..foreign.with(&tables[0]) }) };
        assert_eq!((taken.error().unwrap().message(), foreign.refs.load(SeqCst)), ("theirs", 0));
    }
}

#[test]
fn of_racing_sets_one_decides_and_nothing_is_lost() {
    for _ in 0..100 {
        let given = promise::give(pending());
        // SAFETY: alive until the last dec_ref.
        let event = unsafe { promise::event_of(given) };
        let (table, address, barrier) = (&promise::TABLE, given as usize, Arc::new(Barrier::new(3)));
        let owed = EventPromise::new(label());
        let followed = owed.event();
        let setters: Vec<_> = (0..3)
            .map(|setter| {
                let (barrier, followed) = (Arc::clone(&barrier), followed.clone());
                thread::spawn(move || {
                    let promise = ptr::with_exposed_provenance_mut::<super::abi::DeviceEventPromise>(address);
                    barrier.wait();
                    // SAFETY: the main thread keeps a reference; what is passed is given up.
                    unsafe {
                        match setter {
                            0 => table.set_ready.unwrap()(promise),
                            1 => table.set_error.unwrap()(promise, error::give(Error::aborted("second"))),
                            _ => table.set.unwrap()(promise, device_event::give(followed)),
                        }
                    }
                })
            })
            .collect();
        setters.into_iter().for_each(|setter| setter.join().unwrap());
        // SAFETY: the only reference.
        unsafe { table.dec_ref.unwrap()(given) };
        owed.set_error(Error::data_loss("third"));
        let ended = event.wait().err().map_or(StatusCode::Ok, |error| error.code());
        assert!(matches!(ended, StatusCode::Ok | StatusCode::Aborted | StatusCode::DataLoss), "{ended:?}");
        drop(followed);
        assert_eq!(owed.event().ref_count(), 2, "the loser has let go of what it was given");
    }
}

/// A pending event whose only reference is the caller's.
fn pending() -> Event {
    // SAFETY: a static label; the reference becomes the event's.
    unsafe {
        Event::from_raw(purlin_async::event::raw::new(
            label().as_cstr().as_ptr(),
            purlin_base::SourceLocation::UNKNOWN,
            purlin_async::event::raw::OwedBy::User,
        ))
    }
}

#[test]
fn a_promise_that_goes_unset_fails_its_event() {
    let given = promise::give(pending());
    // SAFETY: alive until dec_ref, which gives up the only reference.
    let event = unsafe {
        let event = promise::event_of(given);
        promise::TABLE.dec_ref.unwrap()(given);
        event
    };
    assert_eq!(event.error().unwrap().code(), StatusCode::Internal);
    assert!(event.error().unwrap().message().contains("abandoned"), "{:?}", event.error());
}

#[test]
fn promises_that_are_set_to_each_others_events_fail() {
    type Close = fn(*mut super::abi::DeviceEventPromise, Event);
    let by_set: Close = |given, event| {
        // SAFETY: alive; the reference to the event is given up.
        unsafe { promise::TABLE.set.unwrap()(given, device_event::give(event)) };
    };
    let by_forward: Close = |given, event| {
        // SAFETY: alive, and one more reference, which is given up.
        unsafe {
            promise::TABLE.inc_ref.unwrap()(given);
            promise::forward(given, &event).unwrap();
        }
    };
    for close in [by_set, by_forward] {
        let (a, b) = (promise::give(pending()), promise::give(pending()));
        // SAFETY: alive until dec_ref, which gives up the only reference.
        unsafe {
            let events = [promise::event_of(a), promise::event_of(b)];
            close(a, events[1].clone());
            assert!(!events[0].is_ready());
            close(b, events[0].clone());
            for event in &events {
                assert!(event.error().unwrap().message().contains("would wait for itself"), "{:?}", event.error());
            }
            promise::TABLE.dec_ref.unwrap()(a);
            promise::TABLE.dec_ref.unwrap()(b);
            assert!(events.iter().all(|event| event.ref_count() == 1), "nothing is left behind");
        }
    }
}

#[test]
fn a_vector_is_taken_once() {
    let promise = EventPromise::new(label());
    let mut given = vector::give(&[Event::ready(), promise.event(), promise.event()]);
    assert_eq!((given.size, given.capacity, promise.event().ref_count()), (3, 3, 4));
    // SAFETY: a vector of ours.
    let (taken, again) = unsafe { (vector::take(&mut given), vector::take(&mut given)) };
    assert_eq!((taken.len(), again.len(), given.size, given.data), (3, 0, 0, ptr::null_mut()));
    assert_eq!(taken, [Event::ready(), promise.event(), promise.event()]);
    drop(taken);
    assert_eq!(promise.event().ref_count(), 2);
    let mut lies = DeviceEventVector { data: ptr::null_mut(), size: 7, capacity: 0, destroy: None };
    // SAFETY: it has no elements.
    let events = unsafe { vector::take(&mut lies) };
    assert_eq!(events[0].error().unwrap().code(), StatusCode::InvalidArgument);
    assert_eq!(events.len(), 1);
}

#[test]
fn a_panicking_copy_is_an_error() {
    let given = raw_buffer::give(Bytes::allocate(&memory_that_cannot_copy(), 8).unwrap(), ptr::null_mut());
    let (bytes, mut event) = ([0_u8; 8], DeviceEvent { table: ptr::null(), event: ptr::null_mut() });
    // SAFETY: the bytes live long enough; the reference is the only one.
    let error = unsafe {
        let copy = raw_buffer::TABLE.copy_raw_host_to_device_and_return_event.unwrap();
        let refused = copy(given, bytes.as_ptr().cast(), 0, 8, ptr::null_mut(), &raw mut event);
        raw_buffer::TABLE.dec_ref.unwrap()(given);
        error::take(refused).unwrap_or_else(|| device_event::take(event).wait().unwrap_err())
    };
    assert_eq!(error.code(), StatusCode::Internal);
    assert!(error.message().starts_with("a call into Purlin panicked: cannot do the copy of 8 bytes"), "{error}");
}

#[test]
fn states_have_pjrt_numbers() {
    let numbers = [EventState::Unavailable, EventState::Ready, EventState::Error].map(|state| state as c_int);
    assert_eq!(numbers, [0, 1, 2]);
}

/// A backend of which every copy panics.
struct CannotCopy;

impl Backend for CannotCopy {
    fn platform_name(&self) -> &'static str {
        "cannot copy"
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device"]
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        NullBackend::new().open_memory(device, kind)
    }

    fn run(&self, operation: Operation, _schedule: &Schedule<'_>) -> Event {
        panic!("cannot do the {operation:?}")
    }
}

fn memory_that_cannot_copy() -> MemorySpace {
    let options = ClientOptions { device_count: 1, worker_count: 1, ..Default::default() };
    Client::new(&options, Arc::new(CannotCopy)).unwrap().lookup_device(0).unwrap().default_memory_space()
}
