//! Legal calls that end the process, or lie, in XLA's CPU plugin 0.115, one case each.

#![allow(unsafe_code, reason = "host memory is read by address")]

use purlin_array::{DType, Shape};
use purlin_async::Event;
use purlin_base::{Error, StatusCode};
use purlin_device::{AllocOptions, AsyncHostToDeviceTransferManager, Buffer, TransferSpec};

use crate::fixture::{Fixture, assert_error, read};

const BYTES: [u8; 4] = [1, 2, 3, 4];

fn shape() -> Shape {
    Shape::new(DType::U8, &[4]).unwrap()
}

/// For two buffers of four bytes.
fn manager(fixture: &Fixture) -> AsyncHostToDeviceTransferManager {
    let specs = [(); 2].map(|()| TransferSpec { shape: shape(), layout: None });
    AsyncHostToDeviceTransferManager::new(&specs, &fixture.space(), &AllocOptions::default()).unwrap()
}

fn piece(
    manager: &AsyncHostToDeviceTransferManager,
    index: usize,
    offset_bytes: usize,
    is_last: bool,
) -> Result<(), Error> {
    // SAFETY: the bytes are never written and never go.
    unsafe { manager.transfer_raw_data_to_sub_buffer(index, BYTES.as_ptr(), offset_bytes, 4, is_last, None) }
}

/// Both buffers can still be filled.
fn assert_works(manager: &AsyncHostToDeviceTransferManager) {
    for index in [0, 1] {
        piece(manager, index, 0, true).unwrap();
        assert_eq!(manager.retrieve_buffer(index).unwrap().to_vec::<u8>().unwrap(), BYTES);
    }
    assert_eq!(manager.ready_event().wait(), Ok(()));
}

/// Upstream: twice InvalidArgument, then SIGABRT, "remaining_buffer_count_ > 0".
pub(crate) fn a_manager_survives_three_pieces_out_of_range(fixture: &Fixture) {
    let manager = manager(fixture);
    for offset_bytes in [1, 4, 1 << 40, usize::MAX, 3] {
        assert_error(&piece(&manager, 0, offset_bytes, false).unwrap_err(), StatusCode::OutOfRange, &["4"]);
    }
    assert_works(&manager);
}

/// Upstream: SIGSEGV.
pub(crate) fn a_manager_has_no_buffer_a_million(fixture: &Fixture) {
    let manager = manager(fixture);
    assert_error(&piece(&manager, 1_000_000, 0, true).unwrap_err(), StatusCode::InvalidArgument, &["1000000", "2"]);
    let error = manager.set_buffer_error(1_000_000, Error::aborted("x")).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["1000000"]);
    assert_works(&manager);
}

/// Upstream: SIGABRT at the second step, whichever it is.
pub(crate) fn an_error_set_twice_and_a_piece_after_it(fixture: &Fixture) {
    let manager = manager(fixture);
    manager.set_buffer_error(0, Error::data_loss("first")).unwrap();
    for _ in 0..2 {
        let again = manager.set_buffer_error(0, Error::aborted("second")).unwrap_err();
        assert_error(&again, StatusCode::DataLoss, &["first"]);
        assert_error(&piece(&manager, 0, 0, true).unwrap_err(), StatusCode::DataLoss, &["first"]);
    }
    let failed = manager.retrieve_buffer(0).unwrap();
    assert_error(&failed.ready_event().wait().unwrap_err(), StatusCode::DataLoss, &["first"]);
    piece(&manager, 1, 0, true).unwrap();
    assert_eq!(manager.retrieve_buffer(1).unwrap().to_vec::<u8>().unwrap(), BYTES, "the other one is well");
}

/// Upstream, in C++: "CHECK failed" when the buffer is destroyed, or freed memory read after Delete.
pub(crate) fn a_reference_survives_delete_twice_and_the_last_handle(fixture: &Fixture) {
    let buffer = Buffer::from_slice(&BYTES, &[4], &fixture.space()).unwrap();
    let reference = buffer.external_reference().unwrap();
    buffer.delete();
    buffer.delete();
    assert_error(&buffer.to_vec::<u8>().unwrap_err(), StatusCode::InvalidArgument, &["deleted or donated"]);
    drop(buffer);
    assert_eq!(reference.ready_event().wait(), Ok(()));
    assert_eq!(read(reference.memory()), BYTES);
}

/// Upstream: NOT_FOUND is put in, INTERNAL is returned.
pub(crate) fn an_error_buffer_keeps_its_code_in_what_is_made_of_it(fixture: &Fixture) {
    let error = Buffer::error(Error::not_found("boom"), &shape(), &fixture.space());
    let made = error.copy_to_device(&fixture.device(1)).unwrap().donate_after(&Event::ready()).unwrap();
    assert_eq!(made.ready_event().wait(), Err(Error::not_found("boom")));
}
