//! Buffers that become others: donated after an event, bitcast, copied into, provided later.

use purlin_array::{DType, Layout, Shape};
use purlin_async::{Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_device::Buffer;

use crate::fixture::{Fixture, assert_error, on_threads};

fn shape(dims: &[i64]) -> Shape {
    Shape::new(DType::U8, dims).unwrap()
}

fn six(fixture: &Fixture) -> Buffer {
    Buffer::from_slice(&[1_u8, 2, 3, 4, 5, 6], &[2, 3], &fixture.space()).unwrap()
}

pub(crate) fn a_donated_array_is_another_one_after_the_event(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let old = six(fixture);
    let address = old.raw_alias().unwrap().device_pointer().unwrap();
    let new = old.donate_after(&gate.event()).unwrap();
    assert!(old.is_deleted() && !new.ready_event().is_ready());
    assert_eq!((new.shape(), new.raw_alias().unwrap().device_pointer().unwrap()), (&shape(&[2, 3]), address));
    gate.set_ready();
    assert_eq!(new.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_error(
        &old.usage_hold().unwrap_err(),
        StatusCode::InvalidArgument,
        &["donated by 'DonateAfter'", "donation.rs"],
    );
}

pub(crate) fn a_failed_event_poisons_the_donated_array(fixture: &Fixture) {
    let old = six(fixture);
    let new = old.donate_after(&Event::from_error(Error::not_found("upstream"))).unwrap();
    assert!(old.is_deleted());
    assert_error(&new.to_vec::<u8>().unwrap_err(), StatusCode::NotFound, &["upstream"]);
    let copied = new.copy_to_device(&fixture.device(1)).unwrap();
    assert_error(&copied.ready_event().wait().unwrap_err(), StatusCode::NotFound, &["upstream"]);
}

pub(crate) fn uses_travel_with_donated_memory(fixture: &Fixture) {
    let used = EventPromise::new(c"used");
    let old = six(fixture);
    old.usage_hold().unwrap().release_after(used.event());
    let new = old.donate_after(&Event::ready()).unwrap();
    assert_eq!(new.ready_event().wait(), Ok(()), "reading beside another reader is fine");
    let cast = new.bitcast(&shape(&[6]), None).unwrap();
    let donation = cast.donate(c"writer").unwrap();
    assert!(!donation.free_event().is_ready(), "writing is not");
    used.set_ready();
    assert_eq!(donation.free_event().wait(), Ok(()));
}

pub(crate) fn bitcasts_share_the_bytes(fixture: &Fixture) {
    let bytes: Vec<u8> = (0..16).collect();
    let old = Buffer::from_slice(&bytes, &[16], &fixture.space()).unwrap();
    let address = old.raw_alias().unwrap().device_pointer().unwrap();
    let new = old.bitcast(&Shape::new(DType::U32, &[2, 2]).unwrap(), None).unwrap();
    assert!(old.is_deleted());
    assert_eq!(new.raw_alias().unwrap().device_pointer().unwrap(), address);
    assert_eq!(new.to_vec::<u32>().unwrap(), [0x0302_0100, 0x0706_0504, 0x0b0a_0908, 0x0f0e_0d0c].map(u32::from_le));
}

pub(crate) fn a_bitcast_may_change_the_layout(fixture: &Fixture) {
    let layout = Layout::new(&[0, 1]).unwrap();
    let new = six(fixture).bitcast(&shape(&[3, 2]), Some(&layout)).unwrap();
    assert_eq!(new.layout(), layout);
    assert_eq!(new.to_vec::<u8>().unwrap(), [1, 4, 2, 5, 3, 6]);
}

pub(crate) fn a_bitcast_that_does_not_fit_changes_nothing(fixture: &Fixture) {
    let old = six(fixture);
    let dynamic = Shape::with_dynamic(DType::U8, &[6], &[true]).unwrap();
    let layout = Layout::new(&[0, 1]).unwrap();
    for (shape, layout, parts) in [
        (&shape(&[7]), None, ["u8[2,3] of 6 bytes", "u8[7] of 7 bytes"]),
        (&Shape::token(), None, ["arrays of static shape", "token"]),
        (&dynamic, None, ["arrays of static shape", "<=6"]),
        (&shape(&[6]), Some(&layout), ["{0,1}", "u8[6]"]),
    ] {
        let error = old.bitcast(shape, layout).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &parts);
    }
    assert!(!old.is_deleted());
}

pub(crate) fn a_copy_goes_into_given_memory(fixture: &Fixture) {
    let source = six(fixture);
    for space in fixture.spaces() {
        let target = Buffer::from_slice(&[0_u8; 6], &[2, 3], &space).unwrap();
        let address = target.raw_alias().unwrap().device_pointer().unwrap();
        let copy = source.copy_into(&target).unwrap();
        assert!(target.is_deleted());
        assert_eq!((copy.memory_space(), copy.raw_alias().unwrap().device_pointer().unwrap()), (space, address));
        assert_eq!(copy.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    }
    assert!(!source.is_deleted());
}

pub(crate) fn a_copy_that_does_not_fit_consumes_nothing(fixture: &Fixture) {
    let source = six(fixture);
    let wrong = [
        Buffer::from_slice(&[0_u8; 6], &[3, 2], &fixture.space()).unwrap(),
        Buffer::from_slice(&[0_u8; 7], &[7], &fixture.space()).unwrap(),
        Buffer::from_slice(&[0_i8; 6], &[2, 3], &fixture.space()).unwrap(),
        Buffer::from_slice(&[0_u8; 6], &[2, 3], &fixture.other_client.devices()[0].default_memory_space()).unwrap(),
    ];
    for target in &wrong {
        assert_eq!(source.copy_into(target).unwrap_err().code(), StatusCode::InvalidArgument, "{target:?}");
        assert!(!target.is_deleted() && target.hold_counts() == (0, 0));
    }
    assert_error(&source.copy_into(&source).unwrap_err(), StatusCode::InvalidArgument, &["into itself"]);
    let target = six(fixture);
    let reference = target.external_reference().unwrap();
    assert_error(&source.copy_into(&target).unwrap_err(), StatusCode::InvalidArgument, &["external reference"]);
    drop(reference);
    target.delete();
    assert_error(&source.copy_into(&target).unwrap_err(), StatusCode::InvalidArgument, &["invalid buffer"]);
    let (gone, target) = (six(fixture), six(fixture));
    gone.delete();
    assert_eq!(gone.copy_into(&target).unwrap_err().code(), StatusCode::InvalidArgument);
    assert!(!target.is_deleted(), "the source was checked first");
    assert_eq!((source.hold_counts(), target.hold_counts()), ((0, 0), (0, 0)));
}

pub(crate) fn a_copy_waits_for_the_readers_of_what_it_overwrites(fixture: &Fixture) {
    let used = EventPromise::new(c"used");
    let target = six(fixture);
    target.usage_hold().unwrap().release_after(used.event());
    let copy = six(fixture).copy_into(&target).unwrap();
    assert!(!copy.ready_event().is_ready());
    used.set_ready();
    assert_eq!(copy.ready_event().wait(), Ok(()));
}

pub(crate) fn copies_into_one_anothers_sources_end(fixture: &Fixture) {
    for _ in 0..50 {
        let buffers = [six(fixture), six(fixture)];
        on_threads(2, |index| {
            // One of them wins, or both, one after the other; none waits for ever.
            if let Ok(copy) = buffers[index].copy_into(&buffers[1 - index]) {
                assert_eq!(copy.ready_event().wait(), Ok(()));
            }
        });
    }
}

pub(crate) fn an_array_may_be_provided_later(fixture: &Fixture) {
    let (later, promise) = Buffer::channel(&shape(&[2, 3]), None, &fixture.space()).unwrap();
    let copy = later.copy_to_device(&fixture.device(1)).unwrap();
    assert!(!later.ready_event().is_ready() && !copy.ready_event().is_ready());
    let source = six(fixture);
    promise.fulfil(&source).map_err(|(error, _)| error).unwrap();
    assert!(source.is_deleted());
    assert_eq!(copy.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(later.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
}

pub(crate) fn what_does_not_fit_is_refused_and_the_promise_stays(fixture: &Fixture) {
    let (later, promise) = Buffer::channel(&shape(&[6]), None, &fixture.space()).unwrap();
    let elsewhere = Buffer::from_slice(&[0_u8; 6], &[6], &fixture.device(1).default_memory_space()).unwrap();
    let deleted = Buffer::from_slice(&[0_u8; 6], &[6], &fixture.space()).unwrap();
    deleted.delete();
    let mut promise = promise;
    for wrong in [&six(fixture), &elsewhere, &deleted] {
        let (error, back) = promise.fulfil(wrong).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
        promise = back;
    }
    assert!(!elsewhere.is_deleted() && !later.ready_event().is_ready());
    promise.fail(Error::unavailable("nothing fits"));
    assert_error(&later.ready_event().wait().unwrap_err(), StatusCode::Unavailable, &["nothing fits"]);
    assert_error(&later.to_vec::<u8>().unwrap_err(), StatusCode::Unavailable, &["nothing fits"]);
}

pub(crate) fn a_failed_array_may_be_provided(fixture: &Fixture) {
    let (later, promise) = Buffer::channel(&shape(&[2, 3]), None, &fixture.space()).unwrap();
    let poisoned = six(fixture).donate_after(&Event::from_error(Error::aborted("upstream"))).unwrap();
    promise.fulfil(&poisoned).map_err(|(error, _)| error).unwrap();
    assert_eq!(later.ready_event().wait().unwrap_err().message(), "upstream");
}

pub(crate) fn a_promise_that_is_dropped_fails_its_array(fixture: &Fixture) {
    let (later, promise) = Buffer::channel(&shape(&[6]), None, &fixture.space()).unwrap();
    let copy = later.copy_to_device(&fixture.device(1)).unwrap();
    drop(promise);
    for event in [later.ready_event(), copy.ready_event()] {
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::Internal);
    }
}

pub(crate) fn readers_race_with_donation(fixture: &Fixture) {
    for _ in 0..50 {
        let buffer = six(fixture);
        let (sender, donated) = std::sync::mpsc::channel();
        on_threads(5, |index| {
            if index == 4 {
                let new = buffer.donate_after(&Event::ready()).unwrap();
                let overwritten = Buffer::from_slice(&[9_u8; 6], &[2, 3], &fixture.space()).unwrap().copy_into(&new);
                return sender.send(overwritten.unwrap()).unwrap();
            }
            let device = fixture.device(index as i32 % 3);
            for _ in 0..4 {
                match buffer.copy_to_device(&device).and_then(|copy| copy.to_vec::<u8>()) {
                    Ok(values) => assert_eq!(values, [1, 2, 3, 4, 5, 6], "what a reader began it reads to the end"),
                    Err(error) => {
                        assert!(error.message().starts_with("Buffer has been deleted or donated."), "{error}")
                    }
                }
            }
        });
        assert!(buffer.is_deleted());
        assert_eq!(donated.recv().unwrap().to_vec::<u8>().unwrap(), [9; 6]);
    }
}
