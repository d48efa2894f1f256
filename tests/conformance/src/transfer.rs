//! Buffers that are filled piece by piece.

#![allow(unsafe_code, reason = "host memory is read by address")]

use std::sync::{Arc, Mutex};

use purlin_array::{DType, HostArray, Layout, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::{AllocOptions, AsyncHostToDeviceTransferManager, ClientOptions, OnDone, TransferSpec};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, becomes_free, on_threads, pattern};

fn bytes_of(size_bytes: usize) -> TransferSpec {
    TransferSpec { shape: Shape::new(DType::U8, &[size_bytes as i64]).unwrap(), layout: None }
}

fn manager(fixture: &Fixture, sizes: &[usize]) -> AsyncHostToDeviceTransferManager {
    let specs: Vec<TransferSpec> = sizes.iter().map(|&size_bytes| bytes_of(size_bytes)).collect();
    AsyncHostToDeviceTransferManager::new(&specs, &fixture.space(), &AllocOptions::default()).unwrap()
}

/// Transfers a piece; `bytes` outlive the transfer.
fn piece(
    manager: &AsyncHostToDeviceTransferManager,
    index: usize,
    bytes: &[u8],
    offset_bytes: usize,
    is_last: bool,
    on_done: Option<OnDone>,
) -> Result<(), Error> {
    // SAFETY: the cases keep their bytes until the buffer is ready or `on_done` was called.
    unsafe {
        manager.transfer_raw_data_to_sub_buffer(index, bytes.as_ptr(), offset_bytes, bytes.len(), is_last, on_done)
    }
}

/// Outcomes in the order in which they were reported.
#[derive(Clone, Default)]
struct DoneLog(Arc<Mutex<Vec<Result<(), Error>>>>);

impl DoneLog {
    fn on_done(&self) -> Option<OnDone> {
        let told = Arc::clone(&self.0);
        Some(Box::new(move |outcome| told.lock().unwrap().push(outcome)))
    }

    fn all(&self) -> Vec<Result<(), Error>> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn a_manager_knows_its_buffers(fixture: &Fixture) {
    let manager = manager(fixture, &[10, 0, 300]);
    assert_eq!(
        (manager.buffer_count(), manager.device(), manager.memory_space()),
        (3, fixture.device(0), fixture.space())
    );
    assert_eq!([0, 1, 2].map(|index| manager.buffer_size(index).unwrap()), [10, 0, 300]);
    assert_eq!(fixture.space().stats().bytes_in_use, 310);
    manager.add_transfer_metadata("step", "7");
    manager.add_transfer_metadata("step", "8");
    assert_eq!(manager.transfer_metadata(), [("step".to_owned(), "8".to_owned())]);
}

pub(crate) fn a_buffer_is_retrieved_once_and_used_at_once(fixture: &Fixture) {
    let manager = manager(fixture, &[10]);
    let buffer = manager.retrieve_buffer(0).unwrap();
    let copy = buffer.copy_to_device(&fixture.device(1)).unwrap();
    assert!(!copy.ready_event().is_ready());
    assert_error(&manager.retrieve_buffer(0).unwrap_err(), StatusCode::FailedPrecondition, &["buffer 0", "retrieved"]);
    let bytes = pattern(10, 1);
    piece(&manager, 0, &bytes, 0, true, None).unwrap();
    assert_eq!(copy.to_vec::<u8>().unwrap(), bytes);
    assert_eq!(manager.ready_event().wait(), Ok(()));
}

pub(crate) fn pieces_come_in_any_order(fixture: &Fixture) {
    let manager = manager(fixture, &[LARGE_BYTES, 100]);
    let buffers = [manager.retrieve_buffer(0).unwrap(), manager.retrieve_buffer(1).unwrap()];
    let (large, small, told) = (pattern(LARGE_BYTES, 2), pattern(100, 3), DoneLog::default());
    let half = LARGE_BYTES / 2;
    piece(&manager, 0, &large[half..], half, false, told.on_done()).unwrap();
    piece(&manager, 1, &small[70..], 70, false, told.on_done()).unwrap();
    piece(&manager, 1, &small[..70], 0, false, told.on_done()).unwrap();
    assert!(!buffers[1].ready_event().is_ready(), "no piece was the last");
    piece(&manager, 1, &[], 50, true, told.on_done()).unwrap();
    piece(&manager, 0, &large[..half], 0, true, told.on_done()).unwrap();
    drop(manager);
    assert_eq!(buffers[0].to_vec::<u8>().unwrap(), large);
    assert_eq!(buffers[1].to_vec::<u8>().unwrap(), small);
    assert_eq!(told.all(), vec![Ok(()); 5]);
}

pub(crate) fn everybody_was_told_before_the_buffer_is_ready(fixture: &Fixture) {
    let manager = manager(fixture, &[LARGE_BYTES * 2]);
    let buffer = manager.retrieve_buffer(0).unwrap();
    let (bytes, told) = (pattern(LARGE_BYTES, 2), DoneLog::default());
    let occupied = fixture.occupy_runner();
    for (index, is_last) in [(0, false), (1, true)] {
        piece(&manager, 0, &bytes, index * LARGE_BYTES, is_last, told.on_done()).unwrap();
    }
    assert!(!buffer.ready_event().is_ready());
    let seen = told.clone();
    buffer.ready_event().on_ready(move |outcome| assert_eq!((outcome, seen.all().len()), (&Ok(()), 2)));
    drop(occupied);
    assert_eq!(buffer.ready_event().wait(), Ok(()));
}

pub(crate) fn who_is_told_may_drop_the_manager(fixture: &Fixture) {
    let owner = Arc::new(Mutex::new(None));
    let manager = Arc::new(manager(fixture, &[LARGE_BYTES]));
    let buffer = manager.retrieve_buffer(0).unwrap();
    let (bytes, occupied) = (pattern(LARGE_BYTES, 4), fixture.occupy_runner());
    let last = Arc::clone(&owner);
    let on_done: OnDone = Box::new(move |_status| drop(last.lock().unwrap().take()));
    piece(&manager, 0, &bytes, 0, true, Some(on_done)).unwrap();
    *owner.lock().unwrap() = Some(manager);
    drop(occupied);
    assert_eq!(buffer.ready_event().wait(), Ok(()));
    assert!(owner.lock().unwrap().is_none());
}

pub(crate) fn illegal_steps_are_errors_and_change_nothing(fixture: &Fixture) {
    let manager = manager(fixture, &[10, 10]);
    let (bytes, told) = (pattern(10, 5), DoneLog::default());
    let errors = [
        piece(&manager, 2, &bytes, 0, true, told.on_done()).unwrap_err(),
        piece(&manager, usize::MAX, &bytes, 0, true, told.on_done()).unwrap_err(),
        piece(&manager, 0, &bytes, 1, true, told.on_done()).unwrap_err(),
        piece(&manager, 0, &bytes, usize::MAX, false, told.on_done()).unwrap_err(),
        // SAFETY: it is refused.
        unsafe { manager.transfer_raw_data_to_sub_buffer(0, std::ptr::null(), 0, 1, true, told.on_done()) }
            .unwrap_err(),
        // SAFETY: it is refused.
        unsafe { manager.transfer_raw_data_to_buffer(0, bytes.as_ptr(), 9, told.on_done()) }.unwrap_err(),
        // SAFETY: it is refused.
        unsafe { manager.transfer_raw_data_to_buffer(5, bytes.as_ptr(), 9, told.on_done()) }.unwrap_err(),
    ];
    use StatusCode::{InvalidArgument, OutOfRange};
    let codes = errors.each_ref().map(Error::code);
    assert_eq!(
        codes,
        [InvalidArgument, InvalidArgument, OutOfRange, OutOfRange, InvalidArgument, InvalidArgument, InvalidArgument]
    );
    assert_eq!(told.all(), errors.map(Err), "each is told, once");
    for error in [manager.buffer_size(2).unwrap_err(), manager.retrieve_buffer(2).unwrap_err()] {
        assert_error(&error, StatusCode::InvalidArgument, &["no buffer 2", "has 2"]);
    }
    // SAFETY: the bytes live until the wait.
    unsafe { manager.transfer_raw_data_to_buffer(0, bytes.as_ptr(), 10, None) }.unwrap();
    assert_eq!(manager.retrieve_buffer(0).unwrap().to_vec::<u8>().unwrap(), bytes);
    for error in
        [piece(&manager, 0, &bytes, 0, true, None).unwrap_err(), piece(&manager, 0, &[], 0, false, None).unwrap_err()]
    {
        assert_error(&error, StatusCode::InvalidArgument, &["already been fully transferred"]);
    }
    let error = manager.set_buffer_error(0, Error::aborted("late")).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["already been fully transferred"]);
}

pub(crate) fn a_buffer_fails_once(fixture: &Fixture) {
    let manager = manager(fixture, &[LARGE_BYTES, 10]);
    let buffer = manager.retrieve_buffer(0).unwrap();
    let (bytes, told) = (pattern(LARGE_BYTES, 6), DoneLog::default());
    let occupied = fixture.occupy_runner();
    piece(&manager, 0, &bytes, 0, false, told.on_done()).unwrap();
    manager.set_buffer_error(0, Error::data_loss("a bad disk")).unwrap();
    assert_eq!(buffer.ready_event().wait().unwrap_err().code(), StatusCode::DataLoss);
    for again in [
        manager.set_buffer_error(0, Error::aborted("again")).unwrap_err(),
        piece(&manager, 0, &bytes, 0, true, told.on_done()).unwrap_err(),
    ] {
        assert_error(&again, StatusCode::DataLoss, &["a bad disk"]);
    }
    drop(occupied);
    // The piece on its way is reported, and so was the refused one.
    while told.all().len() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(
        buffer.copy_to_device(&fixture.device(1)).unwrap().to_vec::<u8>().unwrap_err().code(),
        StatusCode::DataLoss
    );
    piece(&manager, 1, &bytes[..10], 0, true, None).unwrap();
    assert_eq!(manager.retrieve_buffer(1).unwrap().ready_event().wait(), Ok(()), "the other buffer is well");
}

pub(crate) fn a_piece_that_cannot_be_copied_fails_its_buffer_at_once(fixture: &Fixture) {
    let client = fixture.own_client();
    let space = client.devices()[0].default_memory_space();
    let manager =
        AsyncHostToDeviceTransferManager::new(&[bytes_of(2 * LARGE_BYTES)], &space, &AllocOptions::default()).unwrap();
    let buffer = manager.retrieve_buffer(0).unwrap();
    client.runner().shutdown().unwrap();
    let (bytes, told) = (pattern(LARGE_BYTES, 7), DoneLog::default());
    piece(&manager, 0, &bytes, 0, false, told.on_done()).unwrap();
    let error = buffer.ready_event().wait().unwrap_err();
    assert_eq!((error.code(), told.all()), (StatusCode::Cancelled, vec![Err(error)]));
    assert_eq!(piece(&manager, 0, &bytes, 0, true, None).unwrap_err().code(), StatusCode::Cancelled);
}

pub(crate) fn what_was_not_finished_fails_with_its_manager(fixture: &Fixture) {
    let manager = manager(fixture, &[10, 10, 10]);
    let buffers = [0, 1].map(|index| manager.retrieve_buffer(index).unwrap());
    let bytes = pattern(10, 8);
    piece(&manager, 0, &bytes, 0, true, None).unwrap();
    piece(&manager, 1, &bytes[..5], 0, false, None).unwrap();
    drop(manager);
    assert_eq!(buffers[0].ready_event().wait(), Ok(()));
    let error = buffers[1].ready_event().wait().unwrap_err();
    assert_error(&error, StatusCode::Internal, &["Async transfer object was deleted before transfers completed."]);
    drop(buffers);
    // A piece may still be on its way.
    assert!(becomes_free(&fixture.space()));
}

pub(crate) fn whole_arrays_are_packed_and_ordered(fixture: &Fixture) {
    let shape = Shape::new(DType::U8, &[2, 3]).unwrap();
    let packed = Shape::new(DType::S4, &[4]).unwrap();
    let specs = [
        TransferSpec { shape: shape.clone(), layout: Some(Layout::new(&[0, 1]).unwrap()) },
        TransferSpec { shape: packed.clone(), layout: None },
        TransferSpec { shape: Shape::token(), layout: None },
    ];
    let manager = AsyncHostToDeviceTransferManager::new(&specs, &fixture.space(), &AllocOptions::default()).unwrap();
    let (bytes, narrow, told) = ([1_u8, 2, 3, 4, 5, 6], [1_u8, 0xFF, 7, 0xF8], DoneLog::default());
    let dense = |shape: &Shape| HostArray::new(shape, None).unwrap();
    let give = |index: usize, data: *const u8, array: &HostArray| {
        // SAFETY: the bytes live until the waits below.
        unsafe { manager.transfer_array(index, data, array, told.on_done()) }
    };
    assert_eq!(manager.buffer_size(1).unwrap(), 2);
    assert_error(
        &give(0, narrow.as_ptr(), &dense(&packed)).unwrap_err(),
        StatusCode::InvalidArgument,
        &["u8[2,3]", "s4[4]"],
    );
    give(0, bytes.as_ptr(), &dense(&shape)).unwrap();
    give(1, narrow.as_ptr(), &dense(&packed)).unwrap();
    give(2, std::ptr::null(), &dense(&Shape::token())).unwrap();
    assert_error(&give(1, narrow.as_ptr(), &dense(&packed)).unwrap_err(), StatusCode::InvalidArgument, &["already"]);
    assert_eq!(manager.ready_event().wait(), Ok(()));
    assert_eq!(manager.retrieve_buffer(0).unwrap().to_vec::<u8>().unwrap(), bytes);
    let mut host = [0_u8; 4];
    // SAFETY: the array lives until the wait.
    unsafe { manager.retrieve_buffer(1).unwrap().copy_to_host(host.as_mut_ptr(), 4) }.wait().unwrap();
    assert_eq!((host, told.all().iter().filter(|outcome| outcome.is_ok()).count()), (narrow, 3));
}

pub(crate) fn memory_may_come_after_the_pieces(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let options = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let manager = AsyncHostToDeviceTransferManager::new(&[bytes_of(10)], &fixture.space(), &options).unwrap();
    let (bytes, told) = (pattern(10, 9), DoneLog::default());
    piece(&manager, 0, &bytes, 0, true, told.on_done()).unwrap();
    let buffer = manager.retrieve_buffer(0).unwrap();
    assert!(!buffer.ready_event().is_ready() && told.all().is_empty());
    gate.set_ready();
    assert_eq!((buffer.ready_event().wait(), told.all()), (Ok(()), vec![Ok(())]));
}

pub(crate) fn a_manager_without_memory_leaves_nothing(fixture: &Fixture) {
    let options = ClientOptions { memory_limit_bytes: 1 << 20, ..Default::default() };
    let space = fixture.client_with(&options).devices()[0].default_memory_space();
    let specs = [bytes_of(600_000), bytes_of(600_000)];
    let error = AsyncHostToDeviceTransferManager::new(&specs, &space, &AllocOptions::default()).unwrap_err();
    assert_eq!((error.code(), space.stats().bytes_in_use), (StatusCode::ResourceExhausted, 0));
}

pub(crate) fn pieces_come_from_many_threads(fixture: &Fixture) {
    const PIECE: usize = 70_000;
    let manager = manager(fixture, &[8 * PIECE]);
    let buffer = manager.retrieve_buffer(0).unwrap();
    let (bytes, told) = (pattern(8 * PIECE, 10), DoneLog::default());
    on_threads(4, |thread| {
        for index in [thread, thread + 4] {
            let range = index * PIECE..(index + 1) * PIECE;
            piece(&manager, 0, &bytes[range.clone()], range.start, false, told.on_done()).unwrap();
        }
    });
    piece(&manager, 0, &[], 0, true, None).unwrap();
    assert_eq!(buffer.to_vec::<u8>().unwrap(), bytes);
    assert_eq!(told.all(), vec![Ok(()); 8]);
}
