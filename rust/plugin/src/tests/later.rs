//! Arrays whose bytes come later: uninitialised, failed, aliases, transfers, dependencies.

use std::ptr;

use purlin_base::StatusCode;
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi as abi;

use super::{F32, TestClient, call, destroy, end_event, is_deleted, ready, refusal, values};

#[test]
fn an_uninitialised_array_is_ready_at_once() {
    let client = TestClient::new(1);
    let dims = [4_i64];
    let mut args = abi::ClientCreateUninitializedBufferArgs {
        client: client.client,
        shape_dims: dims.as_ptr(),
        shape_num_dims: 1,
        shape_element_type: F32,
        memory: client.memory(0),
        ..arguments()
    };
    call(&mut args).unwrap();
    assert_eq!((ready(args.buffer), client.bytes_in_use()), (None, 16));
    destroy(args.buffer);
}

#[test]
fn a_failed_array_has_its_error_and_payloads() {
    let client = TestClient::new(1);
    let (message, name, text) = ("gone", "where", "rack 7");
    let payload = abi::NamedValue {
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: abi::named_value_type::STRING,
        value: abi::NamedValueValue { string_value: text.as_ptr().cast() },
        value_size: text.len(),
        ..arguments()
    };
    let mut args = abi::ClientCreateErrorBufferArgs {
        client: client.client,
        error_code: abi::error_code::UNAVAILABLE,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
        shape_element_type: F32,
        memory: client.memory(0),
        payload: &raw const payload,
        num_payload: 1,
        ..arguments()
    };
    call(&mut args).unwrap();
    let error = ready(args.buffer).unwrap();
    assert_eq!((error.code(), error.message()), (StatusCode::Unavailable, message));
    assert_eq!(error.payloads().collect::<Vec<_>>(), [("where", text.as_bytes())]);
    assert_eq!(values(args.buffer, 1).unwrap_err().code(), StatusCode::Unavailable);
    destroy(args.buffer);
    args.error_code = abi::error_code::OK;
    assert_eq!(refusal(&mut args).0, StatusCode::InvalidArgument);
}

fn alias(client: &TestClient) -> abi::ClientCreateAliasBufferArgs {
    let mut args = abi::ClientCreateAliasBufferArgs {
        client: client.client,
        memory: client.memory(0),
        shape_element_type: F32,
        ..arguments()
    };
    call(&mut args).unwrap();
    args
}

#[test]
fn an_alias_becomes_another_array_or_fails() {
    let client = TestClient::new(1);
    let made = alias(&client);
    let source = client.array(&[2.0], &[]);
    let wrong = client.array(&[2.0, 3.0], &[2]);
    let mut fulfil = abi::ClientFulfillAliasBufferArgs {
        client: client.client,
        buffer: wrong,
        fulfill_alias_buffer_cb: made.fulfill_alias_buffer_cb,
        ..arguments()
    };
    assert_eq!(refusal(&mut fulfil).0, StatusCode::InvalidArgument, "of another shape: the alias waits on");
    fulfil.buffer = source;
    call(&mut fulfil).unwrap();
    assert_eq!((values(made.alias_buffer, 1).unwrap(), is_deleted(source)), (vec![2.0], true));
    let failed = alias(&client);
    let message = "no producer";
    call(&mut abi::ClientFulfillAliasBufferArgs {
        client: client.client,
        buffer: ptr::null_mut(),
        status_code: abi::error_code::ABORTED,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
        fulfill_alias_buffer_cb: failed.fulfill_alias_buffer_cb,
        ..arguments()
    })
    .unwrap();
    assert_eq!(ready(failed.alias_buffer).unwrap().code(), StatusCode::Aborted);
    for buffer in [source, wrong, made.alias_buffer, failed.alias_buffer] {
        destroy(buffer);
    }
}

#[test]
fn a_transfer_fills_its_arrays_piece_by_piece() {
    let client = TestClient::new(1);
    let dims = [4_i64];
    let spec = abi::ShapeSpec { dims: dims.as_ptr(), num_dims: 1, element_type: F32, ..arguments() };
    let mut specs = [spec; 2];
    let mut made = abi::ClientCreateBuffersForAsyncHostToDeviceArgs {
        client: client.client,
        shape_specs: specs.as_mut_ptr(),
        num_shape_specs: specs.len(),
        memory: client.memory(0),
        ..arguments()
    };
    call(&mut made).unwrap();
    let transfer_manager = made.transfer_manager;
    let mut count = abi::AsyncHostToDeviceTransferManagerBufferCountArgs { transfer_manager, ..arguments() };
    call(&mut count).unwrap();
    let mut size =
        abi::AsyncHostToDeviceTransferManagerBufferSizeArgs { transfer_manager, buffer_index: 1, ..arguments() };
    call(&mut size).unwrap();
    assert_eq!((count.buffer_count, size.buffer_size), (2, 16));
    let buffers = [0, 1].map(|buffer_index| {
        let mut args =
            abi::AsyncHostToDeviceTransferManagerRetrieveBufferArgs { transfer_manager, buffer_index, ..arguments() };
        call(&mut args).unwrap();
        args.buffer_out
    });
    let data = [1.0_f32, 2.0, 3.0, 4.0];
    for (first, is_last) in [(0, 0), (2, 1)] {
        let mut args = abi::AsyncHostToDeviceTransferManagerTransferDataArgs {
            transfer_manager,
            data: data[first..].as_ptr().cast(),
            offset: 4 * first as i64,
            transfer_size: 8,
            is_last_transfer: is_last,
            ..arguments()
        };
        call(&mut args).unwrap();
        assert_eq!(end_event(args.done_with_h2d_transfer), None);
    }
    assert_eq!(values(buffers[0], 4).unwrap(), data);
    let message = "the file ends";
    call(&mut abi::AsyncHostToDeviceTransferManagerSetBufferErrorArgs {
        transfer_manager,
        buffer_index: 1,
        error_code: abi::error_code::DATA_LOSS,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
        ..arguments()
    })
    .unwrap();
    assert!(ready(buffers[1]).unwrap().message().contains(message));
    let mut args =
        abi::AsyncHostToDeviceTransferManagerRetrieveBufferArgs { transfer_manager, buffer_index: -1, ..arguments() };
    assert!(refusal(&mut args).1.contains("there is no buffer -1"));
    call(&mut abi::AsyncHostToDeviceTransferManagerDestroyArgs { transfer_manager, ..arguments() }).unwrap();
    buffers.into_iter().for_each(destroy);
}

#[test]
fn a_donated_array_waits_for_its_dependency() {
    let client = TestClient::new(1);
    for (code, expected) in [(abi::error_code::OK, None), (abi::error_code::ABORTED, Some(StatusCode::Aborted))] {
        let buffer = client.array(&[4.0], &[]);
        let mut args = abi::BufferDonateWithControlDependencyArgs { buffer, ..arguments() };
        call(&mut args).unwrap();
        assert!(is_deleted(buffer));
        let mut told = abi::BufferDonateWithControlDependencyCallbackArgs {
            callback_data: args.callback_data,
            error_code: code,
            ..arguments()
        };
        // SAFETY: the function that the call gave, with what it gave, once.
        unsafe { args.dependency_ready_callback.unwrap()(&raw mut told) };
        assert_eq!(values(args.out_buffer, 1).map_err(|error| error.code()).err(), expected);
        destroy(buffer);
        destroy(args.out_buffer);
    }
}

#[test]
fn a_raw_copy_waits_for_its_destination() {
    let client = TestClient::new(1);
    let buffer = client.array(&[1.0, 2.0, 3.0], &[3]);
    let mut args = abi::BufferCopyRawToHostFutureArgs { buffer, offset: 4, transfer_size: 8, ..arguments() };
    call(&mut args).unwrap();
    let mut room = [0.0_f32; 2];
    let mut told = abi::BufferCopyRawToHostFutureCallbackArgs {
        callback_data: args.callback_data,
        dst: room.as_mut_ptr().cast(),
        ..arguments()
    };
    // SAFETY: the function that the call gave, with what it gave, once.
    unsafe { args.future_ready_callback.unwrap()(&raw mut told) };
    assert_eq!((end_event(args.event), room), (None, [2.0, 3.0]));
    destroy(buffer);
}
