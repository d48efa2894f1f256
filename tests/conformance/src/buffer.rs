//! Typed arrays: shapes, copies from and to the host, and what is made of an array.

use std::sync::mpsc;

use purlin_array::DType;
use purlin_async::EventPromise;
use purlin_base::StatusCode;
use purlin_device::{Buffer, HostBufferSemantics};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, pattern, read};
use crate::host_copy::HostCopy;

/// An array of bytes in the fixture's space, whose copy may run behind.
pub(crate) fn behind(fixture: &Fixture, source: &'static [u8]) -> Buffer {
    let dims = [source.len() as i64];
    let semantics = HostBufferSemantics::ImmutableUntilTransferCompletes;
    let space = fixture.space();
    // SAFETY: the source is never written and never freed.
    unsafe { Buffer::from_host(source.as_ptr(), source.len(), DType::U8, &dims, &space, semantics) }.unwrap()
}

/// More than any backend copies inside the call.
pub(crate) static LARGE: [u8; LARGE_BYTES] = [0xA5; LARGE_BYTES];

pub(crate) fn an_array_comes_back(fixture: &Fixture) {
    let space = fixture.space();
    let floats = [1.5_f32, -2.0, f32::MIN, 0.0, 1e-40, 3.25];
    assert_eq!(Buffer::from_slice(&floats, &[2, 3], &space).unwrap().to_vec::<f32>(), Ok(floats.to_vec()));
    let words = [i64::MIN, 0, i64::MAX];
    assert_eq!(Buffer::from_slice(&words, &[3], &space).unwrap().to_vec::<i64>(), Ok(words.to_vec()));
    let bytes = pattern(LARGE_BYTES, 1);
    let large = Buffer::from_slice(&bytes, &[LARGE_BYTES as i64], &space).unwrap();
    assert!(large.to_vec::<u8>().unwrap() == bytes, "the bytes differ");
}

pub(crate) fn an_array_knows_its_shape_and_place(fixture: &Fixture) {
    for space in fixture.spaces() {
        let buffer = Buffer::from_slice(&[0_u16; 24], &[2, 3, 4], &space).unwrap();
        assert_eq!((buffer.dtype(), buffer.dims(), buffer.size_bytes()), (DType::U16, &[2, 3, 4][..], 48));
        assert_eq!((buffer.memory_space(), buffer.device()), (space.clone(), space.device()));
        assert_eq!(space.stats().bytes_in_use, 48);
        assert_eq!(buffer.ready_event().wait(), Ok(()));
        assert!(!buffer.is_deleted());
    }
}

pub(crate) fn a_scalar_is_one_element(fixture: &Fixture) {
    let scalar = Buffer::from_slice(&[2.5_f64], &[], &fixture.space()).unwrap();
    assert_eq!((scalar.dims(), scalar.size_bytes()), (&[][..], 8));
    assert_eq!(scalar.to_vec::<f64>(), Ok(vec![2.5]));
}

pub(crate) fn empty_arrays_have_no_bytes(fixture: &Fixture) {
    for dims in [&[0][..], &[3, 0, 2], &[i64::MAX, i64::MAX, 0]] {
        let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
        // SAFETY: no byte is read.
        let empty = unsafe { Buffer::from_host(std::ptr::null(), 0, DType::S32, dims, &fixture.space(), semantics) };
        let empty = empty.unwrap();
        assert_eq!((empty.dims(), empty.size_bytes()), (dims, 0));
        assert_eq!(empty.to_vec::<i32>(), Ok(Vec::new()));
        // SAFETY: no byte is written.
        assert_eq!(unsafe { empty.copy_to_host(std::ptr::null_mut(), 0) }.wait(), Ok(()));
        let copy = empty.copy_to_device(&fixture.device(1)).unwrap();
        assert_eq!(copy.ready_event().wait(), Ok(()));
    }
}

pub(crate) fn every_dtype_has_its_width(fixture: &Fixture) {
    for raw in 1..=15 {
        let dtype = DType::from_raw(raw).expect("PJRT's numbers 1..=15 are types");
        let bytes = vec![raw; dtype.byte_width() * 6];
        let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
        let make = |size_bytes| {
            // SAFETY: `bytes` outlives the call; a size that is not its own is refused.
            unsafe { Buffer::from_host(bytes.as_ptr(), size_bytes, dtype, &[3, 2], &fixture.space(), semantics) }
        };
        let buffer = make(bytes.len()).unwrap();
        assert_eq!((buffer.dtype(), buffer.size_bytes()), (dtype, bytes.len()));
        assert_error(&make(bytes.len() - 1).unwrap_err(), StatusCode::InvalidArgument, &[dtype.name()]);
    }
}

pub(crate) fn shapes_that_make_no_sense_are_named(fixture: &Fixture) {
    let space = fixture.space();
    for (dims, parts) in [
        (&[-1][..], ["f32[-1]", "negative"]),
        (&[2, i64::MIN], ["f32[2,-9223372036854775808]", "negative"]),
        (&[0, -5], ["f32[0,-5]", "negative"]),
        (&[1 << 62], ["f32[4611686018427387904]", "18446744073709551615"]),
        (&[1 << 40, 1 << 40], ["f32[1099511627776,1099511627776]", "18446744073709551615"]),
        (&[i64::MAX, 2], ["f32[9223372036854775807,2]", "18446744073709551615"]),
    ] {
        let error = Buffer::from_slice(&[1_f32], dims, &space).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &parts);
    }
    assert_eq!(space.stats().num_allocs, 0, "what is refused allocates nothing");
}

pub(crate) fn sizes_that_do_not_fit_are_named(fixture: &Fixture) {
    let space = fixture.space();
    for dims in [&[][..], &[2, 3], &[5], &[7], &[0]] {
        let error = Buffer::from_slice(&[0_i16; 12], dims, &space).unwrap_err();
        let needed = dims.iter().product::<i64>() * 2;
        assert_error(&error, StatusCode::InvalidArgument, &["s16[", &needed.to_string(), "24"]);
    }
    assert_eq!(space.stats().num_allocs, 0, "what is refused allocates nothing");

    let buffer = Buffer::from_slice(&[1_i16, 2], &[2], &space).unwrap();
    let mut host = [0_u8; 8];
    for size_bytes in [0, 3, 5, usize::MAX] {
        // SAFETY: the size is refused, so no byte is written.
        let error = unsafe { buffer.copy_to_host(host.as_mut_ptr(), size_bytes) }.wait().unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["s16[2]", "4", &size_bytes.to_string()]);
    }
    assert_eq!(host, [0; 8]);
}

pub(crate) fn null_data_is_invalid(fixture: &Fixture) {
    let space = fixture.space();
    for semantics in
        [HostBufferSemantics::ImmutableOnlyDuringCall, HostBufferSemantics::ImmutableUntilTransferCompletes]
    {
        // SAFETY: the pointer is refused, so no byte is read.
        let buffer = unsafe { Buffer::from_host(std::ptr::null(), 12, DType::U32, &[3], &space, semantics) };
        assert_error(&buffer.unwrap_err(), StatusCode::InvalidArgument, &["null", "12 bytes", "u32[3]"]);
    }
    let buffer = Buffer::from_slice(&[1_u32, 2, 3], &[3], &space).unwrap();
    // SAFETY: the pointer is refused, so no byte is written.
    let error = unsafe { buffer.copy_to_host(std::ptr::null_mut(), 12) }.wait().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["null", "12 bytes", "u32[3]"]);
}

pub(crate) fn an_array_is_read_as_its_own_type_only(fixture: &Fixture) {
    let buffer = Buffer::from_slice(&[1_u32, 2], &[2], &fixture.space()).unwrap();
    assert_error(&buffer.to_vec::<f32>().unwrap_err(), StatusCode::InvalidArgument, &["u32[2]", "f32"]);
    assert_error(&buffer.to_vec::<u64>().unwrap_err(), StatusCode::InvalidArgument, &["u32[2]", "u64"]);
}

pub(crate) fn the_source_is_free_after_the_call(fixture: &Fixture) {
    for size_bytes in [100, LARGE_BYTES] {
        let mut source = pattern(size_bytes, 2);
        let buffer = Buffer::from_slice(&source, &[size_bytes as i64], &fixture.space()).unwrap();
        assert!(buffer.ready_event().is_ready());
        source.fill(0);
        assert!(buffer.to_vec::<u8>().unwrap() == pattern(size_bytes, 2), "the bytes differ");
    }
}

pub(crate) fn the_source_is_read_until_the_event(fixture: &Fixture) {
    let occupied = fixture.occupy_runner();
    let pending = behind(fixture, &LARGE);
    assert!(!pending.ready_event().is_ready());
    drop(occupied);
    assert_eq!(pending.ready_event().wait(), Ok(()));
    assert!(pending.to_vec::<u8>().unwrap() == LARGE, "the bytes differ");
}

pub(crate) fn a_blocked_runner_does_not_block_the_call(fixture: &Fixture) {
    let _occupied = fixture.occupy_runner();
    let buffer = Buffer::from_slice(&LARGE, &[LARGE_BYTES as i64], &fixture.space()).unwrap();
    assert!(buffer.to_vec::<u8>().unwrap() == LARGE, "the bytes differ");
}

pub(crate) fn copies_to_every_space_come_back(fixture: &Fixture) {
    let values: Vec<u32> = (0..20_000).collect();
    let original = Buffer::from_slice(&values, &[200, 100], &fixture.space()).unwrap();
    for space in fixture.spaces() {
        let copy = original.copy_to_memory_space(&space).unwrap();
        assert_eq!((copy.memory_space(), copy.shape()), (space, original.shape()));
        assert!(copy.to_vec::<u32>().unwrap() == values, "the values differ");
    }
    let device = fixture.device(2);
    let copy = original.copy_to_device(&device).unwrap();
    assert_eq!(copy.memory_space(), device.default_memory_space());
    assert!(copy.to_vec::<u32>().unwrap() == values, "the values differ");
}

pub(crate) fn a_copy_is_another_array(fixture: &Fixture) {
    let original = Buffer::from_slice(&[1_u8, 2, 3], &[3], &fixture.space()).unwrap();
    let copy = original.copy_to_memory_space(&fixture.space()).unwrap();
    assert_eq!(copy.ready_event().wait(), Ok(()));
    original.delete();
    assert!(!copy.is_deleted());
    assert_eq!(copy.to_vec::<u8>(), Ok(vec![1, 2, 3]));
}

pub(crate) fn a_pending_array_can_be_copied_on(fixture: &Fixture) {
    let occupied = fixture.occupy_runner();
    let pending = behind(fixture, &LARGE);
    let copy = pending.copy_to_device(&fixture.device(1)).unwrap();
    let further = copy.copy_to_device(&fixture.device(2)).unwrap();
    for buffer in [&pending, &copy, &further] {
        assert!(!buffer.ready_event().is_ready());
    }
    drop(occupied);
    assert!(further.to_vec::<u8>().unwrap() == LARGE, "the bytes differ");
    assert!(pending.ready_event().is_ready() && copy.ready_event().is_ready());
}

pub(crate) fn a_failed_array_fails_what_is_made_of_it(fixture: &Fixture) {
    fixture.client.runner().shutdown().unwrap();
    let failed = behind(fixture, &LARGE);
    let reason = failed.ready_event().wait().unwrap_err();
    assert_eq!(reason.code(), StatusCode::Cancelled);
    assert_eq!(failed.to_vec::<u8>(), Err(reason.clone()));
    let copy = failed.copy_to_device(&fixture.device(1)).unwrap();
    assert_eq!(copy.ready_event().wait(), Err(reason.clone()));
    let further = copy.copy_to_device(&fixture.device(2)).unwrap();
    assert_eq!(further.to_vec::<u8>(), Err(reason));
}

pub(crate) fn another_clients_device_is_invalid(fixture: &Fixture) {
    let buffer = Buffer::from_slice(&[1_u8], &[1], &fixture.space()).unwrap();
    let theirs = &fixture.other_client.devices()[0];
    for error in [
        buffer.copy_to_device(theirs).unwrap_err(),
        buffer.copy_to_memory_space(&theirs.default_memory_space()).unwrap_err(),
    ] {
        assert_error(&error, StatusCode::InvalidArgument, &["u8[1]", "another client"]);
    }
    assert_eq!(theirs.default_memory_space().stats().num_allocs, 0);
}

pub(crate) fn the_raw_alias_is_the_same_memory(fixture: &Fixture) {
    let buffer = Buffer::from_slice(&[1_u8, 2, 3, 4], &[4], &fixture.space()).unwrap();
    let alias = buffer.raw_alias().unwrap();
    assert_eq!((alias.size_bytes(), alias.memory_space()), (4, buffer.memory_space()));
    assert_eq!(fixture.space().stats().num_allocs, 1);
    let (send, written) = mpsc::channel();
    let gate = EventPromise::new(c"gate");
    let copy = HostCopy::to_device(&alias, 1, vec![9], &[gate.event()]);
    copy.event().on_ready(move |outcome| send.send(outcome.clone()).expect("the case waits for it"));
    gate.set_ready();
    assert_eq!(written.recv().expect("the waiter runs"), Ok(()));
    assert_eq!(buffer.to_vec::<u8>(), Ok(vec![1, 9, 3, 4]));
    assert_eq!(read(&alias), [1, 9, 3, 4]);
}
