//! Which code may use a buffer's memory at the same time, and which not.

#![allow(unsafe_code, reason = "foreign memory is taken by address")]

use std::sync::mpsc;

use purlin_array::{DType, Shape};
use purlin_async::{Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_device::{AllocOptions, Buffer, Mutability, RawBuffer};

use crate::fixture::{Fixture, assert_error, becomes_free, on_threads, pattern, read};
use crate::host_copy::HostCopy;

const INVALID: &str = "Donation requested for invalid buffer.";

/// Four bytes on device 0.
fn four(fixture: &Fixture) -> Buffer {
    Buffer::from_slice(&[1_u8, 2, 3, 4], &[4], &fixture.space()).unwrap()
}

fn in_use(fixture: &Fixture) -> u64 {
    fixture.space().stats().bytes_in_use
}

pub(crate) fn holds_are_counted(fixture: &Fixture) {
    let buffer = four(fixture);
    let holds = [buffer.usage_hold().unwrap(), buffer.try_usage_hold().unwrap()];
    let reference = buffer.external_reference().unwrap();
    assert_eq!(buffer.hold_counts(), (2, 1));
    assert_eq!(holds[0].memory().size_bytes(), 4);
    assert_eq!(reference.memory().device_pointer().unwrap(), holds[1].memory().device_pointer().unwrap());
    drop(holds);
    drop(reference);
    assert_eq!(buffer.hold_counts(), (0, 0));
}

pub(crate) fn usage_keeps_donation_out(fixture: &Fixture) {
    let buffer = four(fixture);
    let hold = buffer.usage_hold().unwrap();
    assert_error(&buffer.try_donate(c"step").unwrap_err(), StatusCode::FailedPrecondition, &["1 usage holds"]);
    drop(hold);
    let _memory = buffer.try_donate(c"step").unwrap().confirm();
    assert!(buffer.is_deleted());
}

pub(crate) fn donation_keeps_usage_out(fixture: &Fixture) {
    let buffer = four(fixture);
    let donation = buffer.donate(c"step").unwrap();
    assert_error(
        &buffer.try_usage_hold().unwrap_err(),
        StatusCode::FailedPrecondition,
        &["being donated by 'step'", "holds.rs"],
    );
    assert_error(&buffer.try_donate(c"other").unwrap_err(), StatusCode::FailedPrecondition, &["'step'"]);
    drop(donation);
    drop(buffer.try_usage_hold().expect("it was given back"));
    assert!(!buffer.is_deleted());
}

pub(crate) fn donation_waits_for_usage(fixture: &Fixture) {
    let buffer = four(fixture);
    let hold = buffer.usage_hold().unwrap();
    std::thread::scope(|scope| {
        let donor = scope.spawn(|| buffer.donate(c"step").unwrap().confirm());
        // Whether it has begun to wait or not, it must not get the memory.
        assert!(!buffer.is_deleted());
        drop(hold);
        assert_eq!(donor.join().unwrap().size_bytes(), 4);
    });
    assert!(buffer.is_deleted());
}

pub(crate) fn usage_waits_for_donation(fixture: &Fixture) {
    for confirms in [false, true] {
        let buffer = four(fixture);
        let donation = buffer.donate(c"step").unwrap();
        std::thread::scope(|scope| {
            let user = scope.spawn(|| buffer.usage_hold().map(drop));
            if confirms {
                drop(donation.confirm());
            } else {
                drop(donation);
            }
            assert_eq!(user.join().unwrap().is_err(), confirms);
        });
    }
}

pub(crate) fn the_second_donation_is_told_of_the_first(fixture: &Fixture) {
    let buffer = four(fixture);
    drop(buffer.donate(c"train step").unwrap().confirm());
    let line = line!() - 1;
    let place = format!("holds.rs:{line}");
    for error in [buffer.donate(c"other").unwrap_err(), buffer.try_donate(c"other").unwrap_err()] {
        assert_error(&error, StatusCode::InvalidArgument, &[INVALID, "donated by 'train step'", &place, "ms ago"]);
    }
    let error = buffer.usage_hold().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["Buffer has been deleted or donated.", "'train step'", &place]);
}

pub(crate) fn of_racing_donations_one_wins(fixture: &Fixture) {
    for _ in 0..50 {
        let buffer = four(fixture);
        let (won, winners) = mpsc::channel();
        on_threads(4, |_| match buffer.donate(c"race") {
            Ok(hold) => won.send(hold.confirm().size_bytes()).unwrap(),
            Err(error) => assert_error(&error, StatusCode::InvalidArgument, &[INVALID]),
        });
        drop(won);
        assert_eq!(winners.iter().collect::<Vec<_>>(), [4]);
    }
    assert_eq!(in_use(fixture), 0);
}

pub(crate) fn donations_given_back_let_the_next_try(fixture: &Fixture) {
    let buffer = four(fixture);
    on_threads(4, |_| {
        for _ in 0..200 {
            drop(buffer.donate(c"try").unwrap());
            drop(buffer.usage_hold().unwrap());
        }
    });
    assert_eq!(buffer.hold_counts(), (0, 0));
    assert!(!buffer.is_deleted());
}

pub(crate) fn an_external_reference_forbids_donation(fixture: &Fixture) {
    let buffer = four(fixture);
    let reference = buffer.external_reference().unwrap();
    for error in [buffer.donate(c"step").unwrap_err(), buffer.try_donate(c"step").unwrap_err()] {
        assert_error(&error, StatusCode::InvalidArgument, &["Donation requested for buffer with external reference"]);
    }
    assert!(!buffer.is_deleted());
    drop(reference);
    drop(buffer.donate(c"step").unwrap().confirm());
}

pub(crate) fn an_external_reference_outlives_its_buffer(fixture: &Fixture) {
    let buffer = four(fixture);
    let reference = buffer.external_reference().unwrap();
    buffer.delete();
    drop(buffer);
    assert_eq!(in_use(fixture), 4);
    assert_eq!(reference.ready_event().wait(), Ok(()));
    assert!(reference.memory().device_pointer().is_ok());
    drop(reference);
    assert_eq!(in_use(fixture), 0);
}

pub(crate) fn usage_outlives_delete(fixture: &Fixture) {
    let buffer = four(fixture);
    let hold = buffer.usage_hold().unwrap();
    buffer.delete();
    assert!(buffer.is_deleted() && in_use(fixture) == 4);
    let gate = EventPromise::new(c"gate");
    hold.release_after(gate.event());
    assert_eq!(in_use(fixture), 4, "until its work is over");
    gate.set_error(Error::aborted("it failed, which ends it too"));
    assert_eq!(in_use(fixture), 0);
}

pub(crate) fn delete_under_a_donation_waits_for_its_end(fixture: &Fixture) {
    for confirms in [false, true] {
        let buffer = four(fixture);
        let donation = buffer.donate(c"step").unwrap();
        buffer.delete();
        assert!(buffer.is_deleted());
        assert_eq!(buffer.try_usage_hold().unwrap_err().code(), StatusCode::InvalidArgument);
        assert_eq!(in_use(fixture), 4);
        let memory = if confirms { Some(donation.confirm()) } else { drop_and_none(donation) };
        assert_eq!(in_use(fixture), if confirms { 4 } else { 0 });
        let error = buffer.usage_hold().unwrap_err();
        assert!(error.message().contains(if confirms { "It was donated" } else { "It was deleted" }), "{error}");
        drop(memory);
    }
}

fn drop_and_none(donation: purlin_device::DonationHold) -> Option<RawBuffer> {
    drop(donation);
    None
}

pub(crate) fn the_donee_is_told_what_still_uses_the_memory(fixture: &Fixture) {
    let (produced, used) = (EventPromise::new(c"produced"), EventPromise::new(c"used"));
    let memory = fixture.allocate(4);
    let shape = Shape::new(DType::U8, &[4]).unwrap();
    let buffer = Buffer::from_raw(memory, &shape, None, &produced.event()).unwrap();
    buffer.usage_hold().unwrap().release_after(used.event());
    // More uses than a buffer keeps in place; those that are over are forgotten.
    for _ in 0..10 {
        buffer.usage_hold().unwrap().release_after(Event::ready());
        let over = EventPromise::new(c"over");
        buffer.usage_hold().unwrap().release_after(over.event());
        over.set_ready();
    }
    let donation = buffer.donate(c"step").unwrap();
    let free = donation.free_event();
    assert!(!free.is_ready());
    used.set_error(Error::aborted("a reader that failed has stopped reading"));
    assert!(!free.is_ready());
    produced.set_ready();
    assert_eq!(free.wait(), Ok(()));
    drop(donation.confirm());
}

pub(crate) fn releasing_gives_the_memory_away(fixture: &Fixture) {
    let buffer = four(fixture);
    let used = EventPromise::new(c"used");
    buffer.usage_hold().unwrap().release_after(used.event());
    let (memory, free) = buffer.release().unwrap();
    assert!(buffer.is_deleted() && buffer.release().is_none());
    assert_error(&buffer.usage_hold().unwrap_err(), StatusCode::InvalidArgument, &["It was released at", "holds.rs"]);
    assert!(!free.is_ready());
    used.set_ready();
    assert_eq!(free.wait(), Ok(()));
    assert_eq!(memory.size_bytes(), 4);
}

pub(crate) fn a_buffer_without_memory_answers_with_its_error(fixture: &Fixture) {
    let shape = Shape::new(DType::F32, &[2]).unwrap();
    let buffer = Buffer::error(Error::not_found("no such weights"), &shape, &fixture.space());
    assert_eq!((in_use(fixture), buffer.size_bytes(), buffer.is_deleted()), (0, 8, false));
    let mut host = [0_u8; 8];
    let errors = [
        buffer.ready_event().wait().unwrap_err(),
        buffer.usage_hold().unwrap_err(),
        buffer.external_reference().unwrap_err(),
        buffer.donate(c"step").unwrap_err(),
        buffer.raw_alias().unwrap_err(),
        buffer.to_vec::<f32>().unwrap_err(),
        // SAFETY: the buffer has failed, so nothing is written.
        unsafe { buffer.copy_to_host(host.as_mut_ptr(), 8) }.wait().unwrap_err(),
        buffer.copy_to_device(&fixture.device(1)).unwrap().ready_event().wait().unwrap_err(),
    ];
    for error in errors {
        assert_error(&error, StatusCode::NotFound, &["no such weights"]);
    }
    assert_eq!(buffer.hold_counts(), (0, 0));
    let poisoned = buffer.donate_after(&Event::ready()).unwrap();
    assert!(buffer.is_deleted() && poisoned.usage_hold().unwrap_err().code() == StatusCode::NotFound);
    buffer.delete();
}

pub(crate) fn raw_memory_becomes_an_array_of_its_size(fixture: &Fixture) {
    let shape = Shape::new(DType::F32, &[2, 3]).unwrap();
    let error = Buffer::from_raw(fixture.allocate(23), &shape, None, &Event::ready()).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["f32[2,3] is 24 bytes", "[0, 23)"]);
    let buffer = Buffer::from_raw(fixture.allocate(24), &shape, None, &Event::ready()).unwrap();
    assert_eq!(buffer.ready_event().wait(), Ok(()));
    let failed = Event::from_error(Error::data_loss("bad disk"));
    let poisoned = Buffer::from_raw(fixture.allocate(24), &shape, None, &failed).unwrap();
    assert_eq!(poisoned.to_vec::<f32>().unwrap_err().code(), StatusCode::DataLoss);
    let uninitialized = Buffer::uninitialized(&shape, None, &fixture.space(), &AllocOptions::default()).unwrap();
    assert_eq!((uninitialized.size_bytes(), uninitialized.ready_event().wait()), (24, Ok(())));
}

pub(crate) fn a_part_of_raw_memory_becomes_an_array(fixture: &Fixture) {
    let shape = Shape::new(DType::U8, &[8]).unwrap();
    let (whole, bytes) = (fixture.filled(&pattern(64, 3)), pattern(64, 3));
    let part = Buffer::from_raw(whole.slice(16, 8).unwrap(), &shape, None, &Event::ready()).unwrap();
    assert_eq!(part.to_vec::<u8>().unwrap(), bytes[16..24]);
    assert_eq!(read(&part.raw_alias().unwrap().slice(2, 4).unwrap()), bytes[18..22]);
    // The memory is the same, and it stays.
    HostCopy::to_device(&whole, 17, vec![99], &[]).wait().unwrap();
    drop(whole);
    assert_eq!(part.to_vec::<u8>().unwrap()[1], 99);
    let (memory, free) = part.release().unwrap();
    assert_eq!((memory.size_bytes(), free.wait()), (8, Ok(())));
    assert_eq!(fixture.space().stats().bytes_in_use, 64);
    drop((memory, free, part));
    assert!(becomes_free(&fixture.space()));
    // Of memory that is there later, and of memory that never is.
    let (later, provides) = RawBuffer::channel(&fixture.space(), 64, &AllocOptions::default());
    let part = Buffer::from_raw(later.slice(16, 8).unwrap(), &shape, None, &Event::ready()).unwrap();
    assert!(!part.ready_event().is_ready());
    provides.fulfil(&fixture.filled(&bytes)).map_err(|(error, _)| error).unwrap();
    assert_eq!(part.to_vec::<u8>().unwrap(), bytes[16..24]);
    let (never, provides) = RawBuffer::channel(&fixture.space(), 64, &AllocOptions::default());
    let part = Buffer::from_raw(never.slice(16, 8).unwrap(), &shape, None, &Event::ready()).unwrap();
    provides.fail(Error::data_loss("bad disk"));
    assert_eq!(part.to_vec::<u8>().unwrap_err().message(), "bad disk");
}

pub(crate) fn tokens_have_no_bytes(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let token = Buffer::token(&fixture.space(), &gate.event()).unwrap();
    assert_eq!((token.dtype(), token.size_bytes(), token.dims().len()), (DType::Token, 0, 0));
    let copy = token.copy_to_device(&fixture.device(1)).unwrap();
    assert!(!copy.ready_event().is_ready());
    gate.set_error(Error::aborted("upstream"));
    assert_eq!(copy.ready_event().wait().unwrap_err().message(), "upstream");
    let token = Buffer::token(&fixture.space(), &Event::ready()).unwrap();
    // SAFETY: there is nothing to write.
    assert_eq!(unsafe { token.copy_to_host(std::ptr::null_mut(), 0) }.wait(), Ok(()));
    assert_eq!(token.copy_to_device(&fixture.device(2)).unwrap().ready_event().wait(), Ok(()));
}

pub(crate) fn read_only_memory_cannot_be_copied_into(fixture: &Fixture) {
    #[repr(align(64))]
    struct Aligned([u8; 4]);
    let mut bytes = Aligned([9; 4]);
    // SAFETY: the bytes outlive the buffer.
    let memory =
        unsafe { RawBuffer::import(&fixture.host_space(), bytes.0.as_mut_ptr(), 4, Mutability::Immutable, None) }
            .unwrap();
    let shape = Shape::new(DType::U8, &[4]).unwrap();
    let target = Buffer::from_raw(memory, &shape, None, &Event::ready()).unwrap();
    let error = four(fixture).copy_into(&target).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["read-only"]);
    assert!(!target.is_deleted());
}

pub(crate) fn a_buffer_forgets_uses_that_are_over(fixture: &Fixture) {
    let buffer = Buffer::from_slice(&[1_u8; 16], &[16], &fixture.space()).unwrap();
    // More than a buffer keeps in place, for a long time.
    let long: Vec<EventPromise> = (0..5).map(|_| EventPromise::new(c"long use")).collect();
    let use_until = |event: Event| buffer.usage_hold().unwrap().release_after(event);
    long.iter().for_each(|promise| use_until(promise.event()));
    let mut short = Vec::new();
    for _ in 0..1000 {
        let promise = EventPromise::new(c"short use");
        short.push(promise.event());
        use_until(promise.event());
        promise.set_ready();
    }
    let kept = short.iter().filter(|event| event.ref_count() > 1).count();
    assert!(kept < 16, "{kept} of 1000 uses that are over are kept");
    long.into_iter().for_each(|promise| _ = promise.set_ready());
}
