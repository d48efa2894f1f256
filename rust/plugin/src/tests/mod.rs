//! The table from the caller's side: every function with nothing, with garbage, and with what it is for.

mod arrays;
mod events;
mod hostile;
mod later;

use std::ffi::c_int;

use purlin_pjrt::abi::arguments;
use purlin_pjrt::foreign::Plugin;
use purlin_pjrt_abi::{self as abi, Slot};

use super::GetPjrtApi;
use purlin_base::{Error, StatusCode};

/// The plugin as its caller sees it.
fn plugin() -> Plugin {
    // SAFETY: the table lives as long as the process.
    unsafe { Plugin::new(GetPjrtApi()) }.unwrap()
}

/// Calls the function for `args`.
fn call<A: Slot>(args: &mut A) -> Result<(), Error> {
    // SAFETY: each test gives what the function wants, or what it must refuse.
    unsafe { plugin().call(args) }
}

/// Says what a call was refused with.
fn refusal<A: Slot>(args: &mut A) -> (StatusCode, String) {
    let error = call(args).unwrap_err();
    (error.code(), error.message().to_owned())
}

/// A client with `devices` devices, destroyed at the end; all memory of its devices is free then.
struct TestClient {
    client: *mut abi::Client,
}

impl TestClient {
    fn new(devices: i64) -> Self {
        let limit = integer("memory_limit_bytes", 1 << 30);
        let options = [integer("device_count", devices), integer("worker_count", 1), limit];
        let mut args =
            abi::ClientCreateArgs { create_options: options.as_ptr(), num_options: options.len(), ..arguments() };
        call(&mut args).unwrap();
        Self { client: args.client }
    }

    fn devices(&self) -> Vec<*mut abi::Device> {
        let mut args = abi::ClientDevicesArgs { client: self.client, ..arguments() };
        call(&mut args).unwrap();
        // SAFETY: lent by the client.
        unsafe { std::slice::from_raw_parts(args.devices, args.num_devices) }.to_vec()
    }

    fn memory(&self, device: usize) -> *mut abi::Memory {
        let mut args = abi::DeviceDefaultMemoryArgs { device: self.devices()[device], ..arguments() };
        call(&mut args).unwrap();
        args.memory
    }

    fn bytes_in_use(&self) -> i64 {
        let bytes = self.devices().into_iter().map(|device| {
            let mut args = abi::DeviceMemoryStatsArgs { device, ..arguments() };
            call(&mut args).unwrap();
            args.bytes_in_use
        });
        bytes.sum()
    }

    /// An array of `f32`, copied during the call.
    fn array(&self, values: &[f32], dims: &[i64]) -> *mut abi::Buffer {
        let mut args = abi::ClientBufferFromHostBufferArgs {
            client: self.client,
            data: values.as_ptr().cast(),
            r#type: abi::buffer_type::F32,
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            memory: self.memory(0),
            ..arguments()
        };
        call(&mut args).unwrap();
        end_event(args.done_with_host_buffer);
        args.buffer
    }
}

impl Drop for TestClient {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.bytes_in_use(), 0, "memory of a device is left");
            call(&mut abi::ClientDestroyArgs { client: self.client, ..arguments() }).unwrap();
        }
    }
}

fn integer(name: &'static str, value: i64) -> abi::NamedValue {
    abi::NamedValue {
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: abi::named_value_type::INT64,
        value: abi::NamedValueValue { int64_value: value },
        value_size: 1,
        ..arguments()
    }
}

/// Waits for an event and destroys it; how it has ended.
fn end_event(event: *mut abi::Event) -> Option<Error> {
    let outcome = call(&mut abi::EventAwaitArgs { event, ..arguments() });
    call(&mut abi::EventDestroyArgs { event, ..arguments() }).unwrap();
    outcome.err()
}

fn destroy(buffer: *mut abi::Buffer) {
    call(&mut abi::BufferDestroyArgs { buffer, ..arguments() }).unwrap();
}

/// The elements of an array, which are `f32`.
fn values(buffer: *mut abi::Buffer, count: usize) -> Result<Vec<f32>, Error> {
    let mut values = vec![0.0_f32; count];
    let mut args = abi::BufferToHostBufferArgs {
        src: buffer,
        dst: values.as_mut_ptr().cast(),
        dst_size: size_of_val(&values[..]),
        ..arguments()
    };
    call(&mut args)?;
    end_event(args.event).map_or(Ok(values), Err)
}

fn ready(buffer: *mut abi::Buffer) -> Option<Error> {
    let mut args = abi::BufferReadyEventArgs { buffer, ..arguments() };
    call(&mut args).unwrap();
    end_event(args.event)
}

fn is_deleted(buffer: *mut abi::Buffer) -> bool {
    let mut args = abi::BufferIsDeletedArgs { buffer, ..arguments() };
    call(&mut args).unwrap();
    args.is_deleted != 0
}

const F32: c_int = abi::buffer_type::F32;
