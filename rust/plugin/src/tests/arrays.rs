//! Arrays: made of the caller's bytes, read, copied, viewed, referenced, deleted.

use std::ffi::c_void;
use std::ptr;

use purlin_base::StatusCode;
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi as abi;

use super::{F32, TestClient, call, destroy, end_event, is_deleted, ready, refusal, values};

#[test]
fn an_array_goes_to_the_device_and_back() {
    let client = TestClient::new(2);
    let buffer = client.array(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    assert_eq!(ready(buffer), None);
    let mut element_type = abi::BufferElementTypeArgs { buffer, ..arguments() };
    call(&mut element_type).unwrap();
    let mut dims = abi::BufferDimensionsArgs { buffer, ..arguments() };
    call(&mut dims).unwrap();
    // SAFETY: lent by the array.
    let dims = unsafe { std::slice::from_raw_parts(dims.dims, dims.num_dims) };
    assert_eq!((element_type.r#type, dims), (F32, &[2_i64, 3][..]));
    let mut place = abi::BufferDeviceArgs { buffer, ..arguments() };
    call(&mut place).unwrap();
    let mut memory = abi::BufferMemoryArgs { buffer, ..arguments() };
    call(&mut memory).unwrap();
    assert_eq!((place.device, memory.memory), (client.devices()[0], client.memory(0)));
    let mut size = abi::BufferOnDeviceSizeInBytesArgs { buffer, ..arguments() };
    call(&mut size).unwrap();
    assert_eq!(size.on_device_size_in_bytes, 24);
    assert_eq!(values(buffer, 6).unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut needed = abi::BufferToHostBufferArgs { src: buffer, ..arguments() };
    call(&mut needed).unwrap();
    assert_eq!(needed.dst_size, 24);
    assert_eq!(values(buffer, 5).unwrap_err().code(), StatusCode::InvalidArgument);
    destroy(buffer);
}

#[test]
fn strides_and_layouts_say_where_elements_stand() {
    let client = TestClient::new(1);
    let (columns, strides, dims) = ([1.0_f32, 4.0, 2.0, 5.0, 3.0, 6.0], [4_i64, 8], [2_i64, 3]);
    let order = [0_i64, 1];
    let tiled = abi::BufferMemoryLayoutTiled {
        minor_to_major: order.as_ptr(),
        minor_to_major_size: order.len(),
        ..arguments()
    };
    let mut layout = abi::BufferMemoryLayout {
        value: abi::BufferMemoryLayoutValue { tiled },
        r#type: abi::buffer_memory_layout_type::TILED,
        ..arguments()
    };
    let mut args = abi::ClientBufferFromHostBufferArgs {
        client: client.client,
        data: columns.as_ptr().cast(),
        r#type: F32,
        dims: dims.as_ptr(),
        num_dims: 2,
        byte_strides: strides.as_ptr(),
        num_byte_strides: 2,
        device: client.devices()[0],
        device_layout: &raw mut layout,
        ..arguments()
    };
    call(&mut args).unwrap();
    end_event(args.done_with_host_buffer);
    let buffer = args.buffer;
    let mut found = abi::BufferGetMemoryLayoutArgs { buffer, layout, ..arguments() };
    call(&mut found).unwrap();
    // SAFETY: lent by the array.
    let found = unsafe {
        let tiled = found.layout.value.tiled;
        std::slice::from_raw_parts(tiled.minor_to_major, tiled.minor_to_major_size)
    };
    assert_eq!(found, order);
    let mut read = [0.0_f32; 6];
    for (order, expected) in [([1_i64, 0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ([0, 1], columns)] {
        let mut layout = layout;
        layout.value.tiled.minor_to_major = order.as_ptr();
        let mut args = abi::BufferToHostBufferArgs {
            src: buffer,
            host_layout: &raw mut layout,
            dst: read.as_mut_ptr().cast(),
            dst_size: 24,
            ..arguments()
        };
        call(&mut args).unwrap();
        assert_eq!(end_event(args.event), None);
        assert_eq!(read, expected);
    }
    destroy(buffer);
    let mut tiles = layout;
    tiles.value.tiled.num_tiles = 1;
    args.device_layout = &raw mut tiles;
    assert_eq!(refusal(&mut args).0, StatusCode::Unimplemented);
    let mut unknown = abi::BufferMemoryLayout { r#type: 7, ..layout };
    args.device_layout = &raw mut unknown;
    assert!(refusal(&mut args).1.contains("no PJRT_Buffer_MemoryLayout_Type 7"));
}

#[test]
fn a_deleted_array_says_so_and_memory_is_free() {
    let client = TestClient::new(1);
    let buffer = client.array(&[1.0], &[1]);
    assert!(!is_deleted(buffer) && client.bytes_in_use() > 0);
    call(&mut abi::BufferDeleteArgs { buffer, ..arguments() }).unwrap();
    assert!(is_deleted(buffer) && client.bytes_in_use() == 0);
    let error = values(buffer, 1).unwrap_err();
    assert!(error.message().contains("deleted or donated"), "{error}");
    let (code, text) = refusal(&mut abi::BufferReadyEventArgs { buffer, ..arguments() });
    assert_eq!(code, StatusCode::InvalidArgument);
    assert!(text.contains("deleted or donated"), "{text}");
    destroy(buffer);
}

#[test]
fn external_references_keep_the_memory() {
    let client = TestClient::new(1);
    let buffer = client.array(&[7.0], &[]);
    let mut address = abi::BufferOpaqueDeviceMemoryDataPointerArgs { buffer, ..arguments() };
    call(&mut abi::BufferIncreaseExternalReferenceCountArgs { buffer, ..arguments() }).unwrap();
    call(&mut address).unwrap();
    call(&mut abi::BufferDeleteArgs { buffer, ..arguments() }).unwrap();
    // SAFETY: the reference keeps the memory, which the array's value was written to.
    assert_eq!(unsafe { *address.device_memory_ptr.cast::<f32>() }, 7.0);
    assert!(client.bytes_in_use() > 0);
    call(&mut abi::BufferDecreaseExternalReferenceCountArgs { buffer, ..arguments() }).unwrap();
    assert_eq!(client.bytes_in_use(), 0);
    let (code, text) = refusal(&mut abi::BufferDecreaseExternalReferenceCountArgs { buffer, ..arguments() });
    assert_eq!(code, StatusCode::InvalidArgument);
    assert!(text.contains("no external reference"), "{text}");
    destroy(buffer);
}

#[repr(C, align(64))]
struct Aligned([f32; 16]);

unsafe extern "C" fn count(_memory: *mut c_void, calls: *mut c_void) {
    // SAFETY: the test's own number.
    unsafe { *calls.cast::<usize>() += 1 };
}

#[test]
fn a_view_calls_back_once_when_its_memory_is_free() {
    let client = TestClient::new(1);
    let (mut memory, mut calls, dims) = (Aligned([3.0; 16]), 0_usize, [16_i64]);
    let mut args = abi::ClientCreateViewOfDeviceBufferArgs {
        client: client.client,
        device_buffer_ptr: memory.0.as_mut_ptr().cast(),
        dims: dims.as_ptr(),
        num_dims: 1,
        element_type: F32,
        on_delete_callback: Some(count),
        on_delete_callback_arg: (&raw mut calls).cast(),
        memory: client.memory(0),
        ..arguments()
    };
    call(&mut args).unwrap();
    let mut address = abi::BufferUnsafePointerArgs { buffer: args.buffer, ..arguments() };
    call(&mut address).unwrap();
    assert_eq!(address.buffer_pointer, memory.0.as_ptr().addr());
    assert_eq!((values(args.buffer, 16).unwrap(), calls), (vec![3.0; 16], 0));
    destroy(args.buffer);
    assert_eq!(calls, 1);
    args.device_buffer_ptr = memory.0[1..].as_mut_ptr().cast();
    args.stream = 0;
    let (code, text) = refusal(&mut args);
    assert_eq!((code, calls), (StatusCode::InvalidArgument, 1));
    assert!(text.contains("no multiple of 64"), "{text}");
}

#[test]
fn zero_copy_uses_the_callers_memory_until_the_event() {
    let client = TestClient::new(1);
    let (memory, dims) = (Aligned([5.0; 16]), [16_i64]);
    let mut args = abi::ClientBufferFromHostBufferArgs {
        client: client.client,
        data: memory.0.as_ptr().cast(),
        r#type: F32,
        dims: dims.as_ptr(),
        num_dims: 1,
        host_buffer_semantics: abi::host_buffer_semantics::IMMUTABLE_ZERO_COPY,
        memory: client.memory(0),
        ..arguments()
    };
    call(&mut args).unwrap();
    let mut is_done = abi::EventIsReadyArgs { event: args.done_with_host_buffer, ..arguments() };
    call(&mut is_done).unwrap();
    assert_eq!((is_done.is_ready, client.bytes_in_use()), (0, 0));
    assert_eq!(values(args.buffer, 16).unwrap(), [5.0; 16]);
    destroy(args.buffer);
    assert_eq!(end_event(args.done_with_host_buffer), None);
    args.host_buffer_semantics = 4;
    assert!(refusal(&mut args).1.contains("no PJRT_HostBufferSemantics 4"));
    args.host_buffer_semantics = 0;
    args.r#type = 31;
    assert_eq!(refusal(&mut args).0, StatusCode::Unimplemented);
    args.r#type = 0;
    assert!(refusal(&mut args).1.contains("no PJRT_Buffer_Type 0"));
    args.r#type = F32;
    args.num_dims = 1 << 60;
    assert!(refusal(&mut args).1.starts_with("the dimensions of an array: 1152921504606846976 elements"));
    (args.num_dims, args.memory) = (1, ptr::null_mut());
    assert!(refusal(&mut args).1.contains("neither a memory nor a device"));
}

#[test]
fn arrays_move_between_devices_and_memories() {
    let client = TestClient::new(2);
    let buffer = client.array(&[1.0, 2.0], &[2]);
    let mut to_device = abi::BufferCopyToDeviceArgs { buffer, dst_device: client.devices()[1], ..arguments() };
    call(&mut to_device).unwrap();
    let mut memories = abi::DeviceAddressableMemoriesArgs { device: client.devices()[1], ..arguments() };
    call(&mut memories).unwrap();
    // SAFETY: lent by the device.
    let pinned = unsafe { *memories.memories.add(1) };
    let mut kind = abi::MemoryKindArgs { memory: pinned, ..arguments() };
    call(&mut kind).unwrap();
    // SAFETY: lent by the memory.
    let kind = unsafe { std::slice::from_raw_parts(kind.kind.cast::<u8>(), kind.kind_size) };
    assert_eq!((memories.num_memories, kind), (3, &b"pinned_host"[..]));
    let mut to_memory = abi::BufferCopyToMemoryArgs { buffer: to_device.dst_buffer, dst_memory: pinned, ..arguments() };
    call(&mut to_memory).unwrap();
    let mut place = abi::BufferMemoryArgs { buffer: to_memory.dst_buffer, ..arguments() };
    call(&mut place).unwrap();
    assert_eq!(place.memory, pinned);
    assert_eq!(values(to_memory.dst_buffer, 2).unwrap(), [1.0, 2.0]);
    for buffer in [buffer, to_device.dst_buffer, to_memory.dst_buffer] {
        destroy(buffer);
    }
}

#[test]
fn bits_are_read_as_another_type() {
    let client = TestClient::new(1);
    let buffer = client.array(&[1.0], &[]);
    let mut args = abi::BufferBitcastArgs { buffer, element_type: abi::buffer_type::U32, ..arguments() };
    call(&mut args).unwrap();
    assert!(is_deleted(buffer));
    let mut bits = 0_u32;
    let mut read = abi::BufferCopyRawToHostArgs {
        buffer: args.out_buffer,
        dst: (&raw mut bits).cast(),
        transfer_size: 4,
        ..arguments()
    };
    call(&mut read).unwrap();
    assert_eq!((end_event(read.event), bits), (None, 0x3f80_0000));
    read.offset = -1;
    assert!(refusal(&mut read).1.contains("the offset is -1"));
    destroy(buffer);
    destroy(args.out_buffer);
}

#[test]
fn an_array_outlives_its_client() {
    let client = TestClient::new(1);
    let buffer = client.array(&[9.0], &[]);
    call(&mut abi::ClientDestroyArgs { client: client.client, ..arguments() }).unwrap();
    std::mem::forget(client);
    assert_eq!(values(buffer, 1).unwrap(), [9.0]);
    destroy(buffer);
}
