//! Arrays from the memory of the host and back: every semantics, stride, layout and width.

#![allow(unsafe_code, reason = "host memory is read and written by address")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use purlin_array::{DType, HostArray, Layout, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode, StatusOr};
use purlin_device::{Aliasing, AllocOptions, Buffer, ClientOptions, FromHostOptions, HostBufferSemantics, MemorySpace};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, host_space, pattern};
use crate::host_copy::HostCopy;

pub(crate) const SEMANTICS: [HostBufferSemantics; 4] = [
    HostBufferSemantics::ImmutableOnlyDuringCall,
    HostBufferSemantics::ImmutableUntilTransferCompletes,
    HostBufferSemantics::ImmutableZeroCopy,
    HostBufferSemantics::MutableZeroCopy,
];

/// Bytes that begin at a multiple of 64.
fn aligned(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut memory = vec![0; bytes.len() + 64];
    let start = memory.as_ptr().align_offset(64);
    memory[start..start + bytes.len()].copy_from_slice(bytes);
    (memory, start)
}

/// What `on_done` was called with.
pub(crate) struct DoneOutcome(Receiver<Result<(), Error>>);

impl DoneOutcome {
    pub(crate) fn options(semantics: HostBufferSemantics) -> (FromHostOptions, Self) {
        let (sender, receiver) = channel();
        let sender = std::sync::Mutex::new(sender);
        let on_done = move |outcome| sender.lock().unwrap().send(outcome).unwrap();
        (FromHostOptions { semantics, on_done: Some(Box::new(on_done)), ..Default::default() }, Self(receiver))
    }

    /// The one outcome, once no other can be sent.
    #[track_caller]
    pub(crate) fn once(self) -> Result<(), Error> {
        let all: Vec<_> = self.0.iter().collect();
        assert_eq!(all.len(), 1, "on_done is called once: {all:?}");
        all[0].clone()
    }
}

pub(crate) fn make(
    data: *const u8,
    array: &HostArray,
    space: &MemorySpace,
    options: FromHostOptions,
) -> StatusOr<(Buffer, Aliasing)> {
    // SAFETY: the cases keep their memory, unchanged, until `on_done` was called.
    unsafe { Buffer::from_host_array(data, array, space, options) }
}

fn dense(dtype: DType, dims: &[i64]) -> HostArray {
    HostArray::new(&Shape::new(dtype, dims).unwrap(), None).unwrap()
}

pub(crate) fn every_semantics_brings_the_bytes(fixture: &Fixture) {
    for semantics in SEMANTICS {
        for size_bytes in [0, 1, 4096, 100_000, LARGE_BYTES] {
            let bytes = pattern(size_bytes, 3);
            let (memory, start) = aligned(&bytes);
            let (options, told) = DoneOutcome::options(semantics);
            let array = dense(DType::U8, &[size_bytes as i64]);
            let (buffer, aliasing) = make(memory[start..].as_ptr(), &array, &fixture.host_space(), options).unwrap();
            let may_alias = semantics as i32 >= 2 && size_bytes > 0;
            assert_eq!(aliasing == Aliasing::Aliased, may_alias, "{semantics:?}, {size_bytes} bytes");
            assert_eq!(buffer.to_vec::<u8>().unwrap(), bytes);
            drop(buffer);
            assert!(told.once().is_ok());
        }
    }
}

pub(crate) fn aliased_memory_is_the_hosts_until_the_last_use(fixture: &Fixture) {
    let (memory, start) = aligned(&pattern(256, 1));
    let (options, told) = DoneOutcome::options(HostBufferSemantics::ImmutableZeroCopy);
    let (buffer, aliasing) =
        make(memory[start..].as_ptr(), &dense(DType::U8, &[256]), &fixture.host_space(), options).unwrap();
    assert_eq!(aliasing, Aliasing::Aliased);
    let raw = buffer.raw_alias().unwrap();
    assert_eq!(raw.device_pointer().unwrap(), memory[start..].as_ptr().addr());
    assert!(!raw.is_mutable(), "it was lent for reading");
    assert_eq!(fixture.host_space().stats().bytes_in_use, 0);
    buffer.delete();
    assert!(told.0.try_recv().is_err(), "somebody has the memory");
    drop(raw);
    assert!(told.once().is_ok());
    let (options, told) = DoneOutcome::options(HostBufferSemantics::MutableZeroCopy);
    let (buffer, _) =
        make(memory[start..].as_ptr(), &dense(DType::U8, &[256]), &fixture.host_space(), options).unwrap();
    assert!(buffer.raw_alias().unwrap().is_mutable());
    drop(buffer);
    assert!(told.once().is_ok());
}

pub(crate) fn what_cannot_be_aliased_is_copied(fixture: &Fixture) {
    let (memory, start) = aligned(&pattern(256, 1));
    let base = memory[start..].as_ptr();
    let shape = Shape::new(DType::U8, &[4, 4]).unwrap();
    let strided = HostArray::new(&shape, Some(&[8, 1])).unwrap();
    let column_major = Some(Layout::new(&[0, 1]).unwrap());
    for (data, array, layout) in [
        (base.wrapping_add(1), dense(DType::U8, &[4, 4]), None),
        (base, strided, None),
        (base, dense(DType::U8, &[4, 4]), column_major),
        (base, dense(DType::S4, &[4, 4]), None),
    ] {
        for semantics in [HostBufferSemantics::ImmutableZeroCopy, HostBufferSemantics::MutableZeroCopy] {
            let (options, told) = DoneOutcome::options(semantics);
            let options = FromHostOptions { layout: layout.clone(), ..options };
            let (buffer, aliasing) = make(data, &array, &fixture.space(), options).unwrap();
            assert_eq!(aliasing, Aliasing::Copied, "{array:?}");
            assert_eq!(buffer.ready_event().wait(), Ok(()));
            assert!(told.once().is_ok(), "it is told when the copy is over");
        }
    }
}

pub(crate) fn who_is_told_is_told_before_the_array_is_ready(fixture: &Fixture) {
    let bytes = pattern(LARGE_BYTES, 2);
    let seen = Arc::new(AtomicUsize::new(0));
    let occupied = fixture.occupy_runner();
    let count = Arc::clone(&seen);
    let options = FromHostOptions {
        semantics: HostBufferSemantics::ImmutableUntilTransferCompletes,
        on_done: Some(Box::new(move |outcome| {
            assert_eq!((outcome, count.fetch_add(1, Ordering::Relaxed)), (Ok(()), 0))
        })),
        ..Default::default()
    };
    let (buffer, _) =
        make(bytes.as_ptr(), &dense(DType::U8, &[LARGE_BYTES as i64]), &fixture.space(), options).unwrap();
    assert!(!buffer.ready_event().is_ready(), "the copy runs behind");
    assert_eq!(seen.load(Ordering::Relaxed), 0);
    let count = Arc::clone(&seen);
    buffer.ready_event().on_ready(move |_status| assert_eq!(count.load(Ordering::Relaxed), 1));
    drop(occupied);
    assert_eq!(buffer.to_vec::<u8>().unwrap(), bytes);
}

pub(crate) fn every_failure_is_told_once(fixture: &Fixture) {
    let space = {
        let options = ClientOptions { memory_limit_bytes: 1 << 20, ..Default::default() };
        fixture.client_with(&options).devices()[0].default_memory_space()
    };
    let bytes = [0_u8; 64];
    let large = dense(DType::U8, &[2 << 20]);
    for semantics in SEMANTICS {
        let (options, told) = DoneOutcome::options(semantics);
        let error = make(std::ptr::null(), &dense(DType::U8, &[8]), &space, options).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["8 bytes of u8[8] is null"]);
        assert_eq!(told.once(), Err(error));

        let (options, told) = DoneOutcome::options(semantics);
        let options = FromHostOptions { layout: Some(Layout::row_major(2)), ..options };
        let error = make(bytes.as_ptr(), &dense(DType::U8, &[8]), &space, options).unwrap_err();
        assert_eq!((error.code(), told.once()), (StatusCode::InvalidArgument, Err(error)));
    }
    for semantics in &SEMANTICS[..2] {
        let (options, told) = DoneOutcome::options(*semantics);
        let error = make(bytes.as_ptr(), &large, &space, options).unwrap_err();
        assert_eq!((error.code(), told.once()), (StatusCode::ResourceExhausted, Err(error)));
    }
}

pub(crate) fn a_transfer_after_shutdown_is_told_too(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[0].default_memory_space();
    client.runner().shutdown().unwrap();
    let bytes = pattern(LARGE_BYTES, 2);
    let (options, told) = DoneOutcome::options(HostBufferSemantics::ImmutableUntilTransferCompletes);
    let (buffer, _) = make(bytes.as_ptr(), &dense(DType::U8, &[LARGE_BYTES as i64]), &space, options).unwrap();
    let error = buffer.ready_event().wait().unwrap_err();
    assert_eq!((error.code(), told.once()), (StatusCode::Cancelled, Err(error)));
}

pub(crate) fn a_panic_of_who_is_told_harms_nobody(fixture: &Fixture) {
    let options =
        FromHostOptions { on_done: Some(Box::new(|_status| panic!("expected by a test"))), ..Default::default() };
    let (buffer, _) = make([7_u8].as_ptr(), &dense(DType::U8, &[1]), &fixture.space(), options).unwrap();
    assert_eq!(buffer.ready_event().wait(), Ok(()));
}

pub(crate) fn a_token_from_the_host_is_told_of(fixture: &Fixture) {
    for semantics in SEMANTICS {
        let (options, told) = DoneOutcome::options(semantics);
        let array = HostArray::new(&Shape::token(), None).unwrap();
        let (token, aliasing) = make(std::ptr::null(), &array, &fixture.space(), options).unwrap();
        assert_eq!((token.dtype(), token.ready_event().wait(), aliasing), (DType::Token, Ok(()), Aliasing::Copied));
        assert!(told.once().is_ok());
    }
}

/// The elements of `array` as they are on the host, in row-major order.
pub(crate) fn elements(memory: &[u8], origin: usize, array: &HostArray) -> Vec<u8> {
    let (dims, width) = (array.shape().dims(), array.shape().dtype().host_byte_width());
    let mut out = Vec::new();
    for index in 0..array.shape().element_count() {
        let (mut rest, mut at) = (index, origin as i64);
        for (dim, stride) in dims.iter().zip(array.byte_strides()).rev() {
            at += rest % dim * stride;
            rest /= dim;
        }
        out.extend_from_slice(&memory[at as usize..at as usize + width]);
    }
    out
}

pub(crate) fn read(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0xEE; buffer.shape().host_size_bytes()];
    // SAFETY: the vector stays here until the wait.
    unsafe { buffer.copy_to_host(bytes.as_mut_ptr(), bytes.len()) }.wait().unwrap();
    bytes
}

pub(crate) fn any_strides_and_layouts_come_back_row_major(fixture: &Fixture) {
    let memory = pattern(4096, 5);
    let layouts = [vec![0, 1, 2], vec![2, 1, 0], vec![1, 2, 0], vec![0, 2, 1]];
    let cases: [(usize, [i64; 3]); 6] = [
        (0, [96, 24, 4]),
        (2000, [-96, 24, 4]),
        (0, [0, 0, 4]),
        (1000, [-200, 40, -4]),
        (0, [4, 8, 32]),
        (3, [7, 101, 13]),
    ];
    for (origin, strides) in cases {
        let shape = Shape::new(DType::F32, &[3, 4, 5]).unwrap();
        let array = HostArray::new(&shape, Some(&strides)).unwrap();
        let expected = elements(&memory, origin, &array);
        for (layout, semantics) in layouts.iter().flat_map(|layout| SEMANTICS.map(|semantics| (layout, semantics))) {
            let options =
                FromHostOptions { semantics, layout: Some(Layout::new(layout).unwrap()), ..Default::default() };
            let (buffer, _) = make(memory[origin..].as_ptr(), &array, &fixture.space(), options).unwrap();
            assert_eq!(read(&buffer), expected, "strides {strides:?}, layout {layout:?}");
            let copy = buffer.copy_to_device(&fixture.device(1)).unwrap();
            assert_eq!((copy.layout(), read(&copy)), (buffer.layout(), expected.clone()));
        }
    }
}

pub(crate) fn narrow_elements_are_packed_and_come_back(fixture: &Fixture) {
    for (dtype, values, on_device) in [
        (DType::U4, vec![1, 2, 15, 0, 9], vec![0x21, 0x0F, 0x09]),
        (DType::S4, vec![0xFF, 7, 0xF8], vec![0x7F, 0x08]),
        (DType::U2, vec![3, 0, 1, 2, 3], vec![0b1001_0011, 0b11]),
        (DType::S2, vec![0xFF, 1, 0xFE, 0], vec![0b0010_0111]),
    ] {
        for semantics in SEMANTICS {
            let array = dense(dtype, &[values.len() as i64]);
            let options = FromHostOptions { semantics, ..Default::default() };
            let (buffer, aliasing) = make(values.as_ptr(), &array, &fixture.space(), options).unwrap();
            assert_eq!((buffer.size_bytes(), aliasing), (on_device.len(), Aliasing::Copied));
            let mut raw = vec![0; on_device.len()];
            // SAFETY: the vector stays here until the wait.
            unsafe { buffer.copy_raw_to_host(raw.as_mut_ptr(), 0, raw.len()) }.wait().unwrap();
            assert_eq!(raw, on_device, "{dtype}");
            assert_eq!(read(&buffer), values, "{dtype}");
        }
    }
}

pub(crate) fn large_strided_arrays_do_not_block_the_call(fixture: &Fixture) {
    let bytes = pattern(LARGE_BYTES, 6);
    let side = 600;
    let shape = Shape::new(DType::U8, &[side, side]).unwrap();
    let array = HostArray::new(&shape, Some(&[1, side])).unwrap();
    let expected = elements(&bytes, 0, &array);
    let occupied = fixture.occupy_runner();
    let (options, told) = DoneOutcome::options(HostBufferSemantics::ImmutableUntilTransferCompletes);
    let (buffer, _) = make(bytes.as_ptr(), &array, &fixture.space(), options).unwrap();
    assert!(!buffer.ready_event().is_ready() && told.0.try_recv().is_err());
    drop(occupied);
    assert_eq!(read(&buffer), expected);
    assert!(told.once().is_ok());
}

pub(crate) fn reads_go_to_any_strides(fixture: &Fixture) {
    let bytes = pattern(24, 7);
    let buffer = Buffer::from_slice(&bytes, &[4, 6], &fixture.space()).unwrap();
    let shape = Shape::new(DType::U8, &[4, 6]).unwrap();
    for (origin, strides) in [(0, [10, 1]), (0, [1, 4]), (30, [-10, 1]), (46, [-12, -2]), (0, [6, 1])] {
        let array = HostArray::new(&shape, Some(&strides)).unwrap();
        let mut host = vec![0xEE; 64];
        // SAFETY: the vector stays here until the wait.
        unsafe { buffer.copy_to_host_array(host[origin..].as_mut_ptr(), &array) }.wait().unwrap();
        assert_eq!(elements(&host, origin, &array), bytes, "{strides:?}");
        assert_eq!(
            host.iter().filter(|&&byte| byte == 0xEE).count(),
            64 - bytes.iter().filter(|&&byte| byte != 0xEE).count()
        );
    }
    let overlapping = HostArray::new(&shape, Some(&[0, 1])).unwrap();
    let other = dense(DType::U8, &[24]);
    let mut host = vec![0; 64];
    for (array, part) in [(&overlapping, "written over each other"), (&other, "cannot be read as u8[24]")] {
        // SAFETY: it is refused.
        let error = unsafe { buffer.copy_to_host_array(host.as_mut_ptr(), array) }.wait().unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &[part]);
    }
}

pub(crate) fn raw_reads_are_ranges_of_what_is_there(fixture: &Fixture) {
    let bytes = pattern(100, 8);
    let gate = EventPromise::new(c"gate");
    let buffer = Buffer::from_slice(&bytes, &[100], &fixture.space()).unwrap().donate_after(&gate.event()).unwrap();
    let mut host = [0_u8; 100];
    // SAFETY: the array outlives the waits below.
    let mut read = |offset, size_bytes| unsafe { buffer.copy_raw_to_host(host.as_mut_ptr(), offset, size_bytes) };
    let pending = read(10, 20);
    assert!(!pending.is_ready());
    for (offset, size_bytes) in [(0, 101), (100, 1), (usize::MAX, 1), (1, usize::MAX)] {
        let error = read(offset, size_bytes).wait().unwrap_err();
        assert_error(&error, StatusCode::OutOfRange, &[&size_bytes.to_string(), "100 bytes"]);
    }
    gate.set_ready();
    assert_eq!(pending.wait(), Ok(()));
    assert_eq!(host[..20], bytes[10..30]);
}

pub(crate) fn a_dynamic_array_says_its_dimensions(fixture: &Fixture) {
    let shape = Shape::with_dynamic(DType::U8, &[5, 3], &[true, false]).unwrap();
    assert_eq!(shape.on_device_size_bytes(), 15 + 8);
    let make = |sizes: [i32; 2]| {
        let mut bytes = pattern(15, 1);
        bytes.extend(sizes.iter().flat_map(|size| size.to_ne_bytes()));
        let memory = crate::fixture::filled(&fixture.space(), &bytes);
        Buffer::from_raw(memory, &shape, None, &purlin_async::Event::ready()).unwrap()
    };
    let buffer = make([2, 3]);
    assert_eq!((buffer.dims(), buffer.logical_dims().unwrap()), ([5, 3].as_slice(), vec![2, 3]));
    let mut host = [0_u8; 15];
    // SAFETY: it is refused.
    let error = unsafe { buffer.copy_to_host(host.as_mut_ptr(), 15) }.wait().unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["<=5"]);
    for sizes in [[6, 3], [-1, 3], [2, 2]] {
        assert_error(&make(sizes).logical_dims().unwrap_err(), StatusCode::DataLoss, &["<=5"]);
    }
    let fixed = Buffer::from_slice(&[1_u8, 2], &[2], &fixture.space()).unwrap();
    assert_eq!(fixed.logical_dims().unwrap(), [2]);
}

pub(crate) fn frozen_memory_that_is_written_is_found_out(fixture: &Fixture) {
    let options = ClientOptions { check_frozen_memory: true, worker_count: 1, ..Default::default() };
    let client = fixture.client_with(&options);
    let space = host_space(&client.devices()[0]);
    let array = dense(DType::U8, &[200]);
    for writes in [false, true] {
        let (mut memory, start) = aligned(&pattern(200, 9));
        let (options, told) = DoneOutcome::options(HostBufferSemantics::ImmutableZeroCopy);
        let (buffer, aliasing) = make(memory[start..].as_ptr(), &array, &space, options).unwrap();
        assert_eq!(aliasing, Aliasing::Aliased);
        if writes {
            memory[start + 199] ^= 1;
        }
        drop(buffer);
        let outcome = told.once();
        assert_eq!(outcome.is_ok(), !writes, "{outcome:?}");
        if let Err(error) = outcome {
            assert_error(&error, StatusCode::FailedPrecondition, &["u8[200]", "from_host.rs", "was written"]);
        }
    }
    // While a copy has not run yet.
    let gate = EventPromise::new(c"gate");
    let (mut memory, start) = aligned(&pattern(200, 9));
    let (options, told) = DoneOutcome::options(HostBufferSemantics::ImmutableUntilTransferCompletes);
    let options =
        FromHostOptions { alloc: AllocOptions { after: Some(gate.event()), ..Default::default() }, ..options };
    let (buffer, _) = make(memory[start..].as_ptr(), &array, &space, options).unwrap();
    memory[start] ^= 1;
    gate.set_ready();
    let error = buffer.ready_event().wait().unwrap_err();
    assert_eq!((error.code(), told.once()), (StatusCode::FailedPrecondition, Err(error)));
}

pub(crate) fn memory_lent_for_writing_is_shared(fixture: &Fixture) {
    let (mut memory, start) = aligned(&pattern(256, 1));
    let host = memory[start..].as_mut_ptr();
    let (options, told) = DoneOutcome::options(HostBufferSemantics::MutableZeroCopy);
    let (buffer, aliasing) = make(host, &dense(DType::U8, &[256]), &fixture.host_space(), options).unwrap();
    assert_eq!((aliasing, buffer.ready_event().wait()), (Aliasing::Aliased, Ok(())));
    assert_eq!(read(&buffer), pattern(256, 1));
    // SAFETY: the byte lives in `memory`, and nothing else uses it now.
    unsafe { host.add(7).write(99) };
    assert_eq!(read(&buffer)[6..9], [pattern(256, 1)[6], 99, pattern(256, 1)[8]]);
    HostCopy::to_device(&buffer.raw_alias().unwrap(), 8, vec![98], &[]).wait().unwrap();
    // SAFETY: as above; the copy is over.
    assert_eq!(unsafe { host.add(8).read() }, 98);
    drop(buffer);
    assert!(told.once().is_ok());
}
