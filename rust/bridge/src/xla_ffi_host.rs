//! `purlin/xla_ffi_host.h`. What takes code or a value is a plain function.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_ffi::handle::{elements, give, own, owned};
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::Bytes;
use purlin_xla_cpu::{FfiBundle, FfiFunction, FfiHandlers, FfiUserData, ffi_api};

use crate::callback::Callback;
use crate::executable::ExecuteContextRep;

/// What a `purlin::XlaFfiHandlers` points to: C++'s alone.
pub struct XlaFfiHandlersRep(pub(crate) FfiHandlers);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin-bridge/src/executable.rs.h");

        #[namespace = "purlin::v0::internal"]
        type ExecuteContextRep = crate::executable::ExecuteContextRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type XlaFfiHandlersRep;

        fn xla_ffi_handlers_new() -> *mut XlaFfiHandlersRep;
        unsafe fn xla_ffi_handlers_release(handlers: *mut XlaFfiHandlersRep);
        fn xla_ffi_handlers_names(handlers: &XlaFfiHandlersRep) -> Vec<String>;

        fn execute_context_new() -> *mut ExecuteContextRep;
        unsafe fn execute_context_release(context: *mut ExecuteContextRep);
    }
}

/// A `purlin::XlaFfiBundle`.
#[repr(C)]
pub struct RawXlaFfiBundle {
    instantiate: Option<FfiFunction>,
    prepare: Option<FfiFunction>,
    initialize: Option<FfiFunction>,
    execute: Option<FfiFunction>,
}

const _: () = assert!(size_of::<RawXlaFfiBundle>() == 32 && offset_of!(RawXlaFfiBundle, execute) == 24);

fn xla_ffi_handlers_new() -> *mut XlaFfiHandlersRep {
    contain("xla_ffi_handlers_new", ptr::null_mut(), || own(XlaFfiHandlersRep(FfiHandlers::default())))
}

/// # Safety
/// C++ gives its object up.
unsafe fn xla_ffi_handlers_release(handlers: *mut XlaFfiHandlersRep) {
    contain("xla_ffi_handlers_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(handlers) });
    })
}

fn xla_ffi_handlers_names(handlers: &XlaFfiHandlersRep) -> Vec<String> {
    contain("xla_ffi_handlers_names", Vec::new(), || handlers.0.names().map(str::to_owned).collect())
}

/// Adds a handler. `owner` is taken over, and destroyed uncalled when the code is not needed any more. Null, or an
/// error, C++'s.
///
/// # Safety
/// `handlers` is used by no other thread; `name` is readable; `owner` is a callback that the caller gives up; until it
/// is destroyed, the functions of `bundle` are what [`FfiHandlers::register`] asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_xla_ffi_handlers_register(
    handlers: &mut XlaFfiHandlersRep,
    name: Bytes,
    bundle: &RawXlaFfiBundle,
    owner: *const Callback,
) -> *const StatusRep {
    // SAFETY: the caller gives it up, so this is the only one.
    let owner = unsafe { owner.read() };
    give(guard(move || {
        // SAFETY: the caller's promise.
        let name = unsafe { utf8(name) }?;
        let RawXlaFfiBundle { instantiate, prepare, initialize, .. } = *bundle;
        let Some(execute) = bundle.execute else {
            return Err(Error::invalid_argument(format!("custom call target '{name}': the bundle has no 'execute'")));
        };
        let bundle = FfiBundle { instantiate, prepare, initialize, execute };
        // SAFETY: the caller's promise.
        unsafe { handlers.0.register(name, bundle, Arc::new(owner)) }
    }))
}

/// # Safety
/// `name` stays readable for `'a`.
unsafe fn utf8<'a>(name: Bytes) -> StatusOr<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { elements(name.data.cast::<u8>(), name.size_bytes) };
    str::from_utf8(bytes).map_err(|_error| {
        Error::invalid_argument(format!("the name of a custom call target is not UTF-8: '{}'", bytes.escape_ascii()))
    })
}

/// The table of functions for handlers. It lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_xla_ffi_host_api() -> *const c_void {
    contain("purlin_xla_ffi_host_api", ptr::null(), ffi_api)
}

fn execute_context_new() -> *mut ExecuteContextRep {
    contain("execute_context_new", ptr::null_mut(), || own(ExecuteContextRep(Arc::new(FfiUserData::default()))))
}

/// # Safety
/// C++ gives its object up.
unsafe fn execute_context_release(context: *mut ExecuteContextRep) {
    contain("execute_context_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(context) });
    })
}

/// Adds a value. `owner` is taken over, and destroyed uncalled when no run needs the value any more. Null, or an error,
/// C++'s.
///
/// # Safety
/// `context` is used by no other thread; `owner` is a callback that the caller gives up; until it is destroyed, `data`
/// is what [`FfiUserData::insert`] asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_execute_context_insert(
    context: &mut ExecuteContextRep,
    type_id: i64,
    data: *mut c_void,
    owner: *const Callback,
) -> *const StatusRep {
    // SAFETY: the caller gives it up, so this is the only one.
    let owner = unsafe { owner.read() };
    give(guard(move || {
        if type_id <= 0 || data.is_null() {
            let what = if data.is_null() { "the value is null" } else { "ids of types are positive" };
            return Err(Error::invalid_argument(format!("user data of type {type_id}: {what}")));
        }
        // Runs in flight keep what they have.
        let mut all = context.0.downcast_ref::<FfiUserData>().cloned().unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { all.insert(type_id, data, Arc::new(owner)) };
        context.0 = Arc::new(all);
        Ok(())
    }))
}
