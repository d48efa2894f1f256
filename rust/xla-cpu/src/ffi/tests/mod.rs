//! Handlers that are written in Rust, against the structs of `abi`, in programs that are built by hand.

#![allow(unsafe_code, reason = "handlers are functions of C")]

mod attributes;
mod registry;
mod runs;
mod stages;

use std::any::Any;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use purlin::program::{Executable, ExecuteOptions, LoadedExecutable, Program};
use purlin::{Buffer, Client, ClientOptions};
use purlin_base::{Error, StatusCode, StatusOr};

use super::abi::{
    self, CallFrame, ErrorCreate, ErrorDestroy, ErrorGetMessage, MetadataExtension, Stage, TypeId, Version,
};
use super::api::Api;
use super::{FfiBundle, FfiFunction, FfiHandlers};
use crate::fuzz::sample::{custom_call, objects, plugin, result};
use crate::{LoadOptions, load_program};

/// The address of the result of a handler.
type Returned = *mut c_void;

/// The frame of a call, and the table. `None`: the handler was only asked for its version, and has answered.
fn entered(frame: *mut c_void) -> Option<(&'static mut CallFrame, &'static Api)> {
    entered_with(frame, 0, 3)
}

fn entered_with(frame: *mut c_void, major: c_int, minor: c_int) -> Option<(&'static mut CallFrame, &'static Api)> {
    // SAFETY: the host calls handlers with a frame, which lives until they return. The extension is that of metadata.
    unsafe {
        let frame = &mut *frame.cast::<CallFrame>();
        assert_eq!(frame.struct_size, 168, "the size in XLA's header");
        if let Some(extension) = frame.extension_start.as_ref() {
            assert_eq!((extension.kind, extension.struct_size), (1, 32));
            let metadata = &mut *(*frame.extension_start.cast::<MetadataExtension>()).metadata;
            metadata.version = Version { struct_size: 24, extension_start: ptr::null_mut(), major, minor };
            metadata.traits = 1;
            return None;
        }
        let api = frame.api;
        Some((frame, &*api))
    }
}

/// Arguments of a function of the table, zeroed but for their size.
fn arguments<A: Copy>(struct_size: usize) -> A {
    // SAFETY: all structs of the table are numbers and addresses, which may be zero, and begin with their size.
    unsafe {
        let mut arguments: A = std::mem::zeroed();
        (&raw mut arguments).cast::<usize>().write(struct_size);
        arguments
    }
}

/// A new error of the handler's.
fn failed(api: &Api, code: c_int, message: &CStr) -> Returned {
    let mut create = arguments::<ErrorCreate>(28);
    (create.message, create.code) = (message.as_ptr(), code);
    // SAFETY: the struct is what the function takes.
    unsafe { (api.error_create)(&mut create) }
}

/// The message of an error that the table has returned, which is destroyed; `None` for no error.
fn text(api: &Api, error: Returned) -> Option<String> {
    if error.is_null() {
        return None;
    }
    let mut message = arguments::<ErrorGetMessage>(32);
    message.error = error;
    let mut destroy = arguments::<ErrorDestroy>(24);
    destroy.error = error;
    // SAFETY: the error is the handler's own, and is not used after it is destroyed.
    unsafe {
        (api.error_get_message)(&mut message);
        let text = CStr::from_ptr(message.message).to_string_lossy().into_owned();
        (api.error_destroy)(&mut destroy);
        Some(text)
    }
}

/// The elements of the first argument and of the first result, as numbers.
fn operands(frame: &CallFrame) -> (&'static [f32], &'static mut [f32]) {
    // SAFETY: the program gives f32[4] to both.
    unsafe {
        let (from, to) = (&**frame.arguments.buffers, &**frame.results.buffers);
        (std::slice::from_raw_parts(from.data.cast(), 4), std::slice::from_raw_parts_mut(to.data.cast(), 4))
    }
}

unsafe extern "C-unwind" fn nothing(frame: *mut c_void) -> Returned {
    entered(frame);
    ptr::null_mut()
}

/// The target "target", whose handler does nothing.
pub(crate) fn handlers_of_nothing() -> FfiHandlers {
    registered("target", FfiBundle::of(nothing))
}

fn registered(target: &str, bundle: FfiBundle) -> FfiHandlers {
    with_owner(target, bundle, Arc::new(()))
}

fn with_owner(target: &str, bundle: FfiBundle, owner: Arc<dyn Any + Send + Sync>) -> FfiHandlers {
    let mut handlers = FfiHandlers::default();
    // SAFETY: the functions are handlers of these tests, and have no owner.
    unsafe { handlers.register(target, bundle, owner) }.unwrap();
    handlers
}

/// A program with one custom call of `target`, from f32[4] to f32[4].
fn load(handlers: FfiHandlers, attributes: &str) -> StatusOr<Program> {
    let mut result = result(objects().remove(0));
    result.thunks = custom_call("target", 4, attributes.as_bytes());
    load_program(&plugin(&result), &LoadOptions { trust_code: true, handlers, ..Default::default() })
}

/// A loaded program, with the client that runs it.
struct Loaded {
    executable: LoadedExecutable,
    client: Arc<Client>,
}

impl Loaded {
    fn new(handlers: FfiHandlers, attributes: &str) -> Self {
        Self::of(load(handlers, attributes).unwrap())
    }

    fn of(program: Program) -> Self {
        let options = ClientOptions { worker_count: 2, device_count: 2, ..Default::default() };
        let client = Client::new(&options, Arc::new(purlin::host::HostBackend::new())).unwrap();
        let executable = LoadedExecutable::new(&Executable::new(program), &client.devices()[1..2], 1).unwrap();
        Self { executable, client }
    }

    /// The result for the argument `[1, 2, 3, 4]`.
    fn run(&self, options: &ExecuteOptions<'_>) -> StatusOr<Vec<f32>> {
        let memory = self.client.devices()[1].default_memory_space();
        let argument = Buffer::from_slice(&[1_f32, 2.0, 3.0, 4.0], &[4], &memory)?;
        let execution = self.executable.execute(&[argument], options)?;
        execution.done.wait()?;
        execution.outputs[0].to_vec()
    }
}

/// The result of one run with a handler that has one stage.
fn run(execute: FfiFunction, attributes: &str) -> StatusOr<Vec<f32>> {
    Loaded::new(registered("target", FfiBundle::of(execute)), attributes).run(&ExecuteOptions::default())
}

/// Fails with what a closure finds wrong, as an error of the handler: an assertion in a handler would be a panic, which
/// has a test of its own.
fn checked(api: &Api, check: impl FnOnce() -> Result<(), String>) -> Returned {
    match check() {
        Ok(()) => ptr::null_mut(),
        Err(why) => failed(api, StatusCode::Aborted as c_int, &CString::new(why).unwrap()),
    }
}

/// `Ok` if both are equal, else a text of both.
fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?}, and not {expected:?}")) }
}

fn message<T: std::fmt::Debug>(outcome: Result<T, Error>) -> (StatusCode, String) {
    let error = outcome.unwrap_err();
    (error.code(), error.message().to_owned())
}
