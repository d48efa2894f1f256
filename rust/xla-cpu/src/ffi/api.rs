//! The table of functions that handlers call: `XLA_FFI_Api`, version 0.3.
//!
//! Each function looks at the size of its struct before it reads more, and catches panics: no failure here ends the
//! process. A function that fails returns an error, which the handler owns. Any thread may call the functions, as long
//! as the call whose context they get is not over.

#![allow(unsafe_code, reason = "structs of C are read and written by address")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use purlin_base::{Error, StatusCode, panics};

use super::abi::{
    ByteSpan, ContextGet, DeviceOrdinalGet, ErrorCreate, ErrorDestroy, ErrorGetMessage, ExtensionBase, FutureCreate,
    FutureSetAvailable, FutureSetError, HandlerRegister, MemoryAllocate, MemoryFree, PoolSchedule, PoolThreads,
    RunIdGet, State, StateOfTwo, StreamGet, TypeRegister, VERSION, Version,
};
use super::context::Context;
use super::{errors, state};

/// A function of the table. It returns an error, or null.
type Function<A> = unsafe extern "C" fn(args: *mut A) -> *mut c_void;

/// `XLA_FFI_Api`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Api {
    struct_size: usize,
    extension_start: *mut ExtensionBase,
    version: Version,
    internal: *const c_void,
    pub(crate) error_create: Function<ErrorCreate>,
    pub(crate) error_get_message: unsafe extern "C" fn(args: *mut ErrorGetMessage),
    pub(crate) error_destroy: unsafe extern "C" fn(args: *mut ErrorDestroy),
    pub(crate) handler_register: Function<HandlerRegister>,
    pub(crate) stream_get: Function<StreamGet>,
    pub(crate) type_register: Function<TypeRegister>,
    pub(crate) context_get: Function<ContextGet>,
    pub(crate) state_set: Function<State>,
    pub(crate) state_get: Function<State>,
    pub(crate) memory_allocate: Function<MemoryAllocate>,
    pub(crate) memory_free: Function<MemoryFree>,
    pub(crate) pool_schedule: Function<PoolSchedule>,
    pub(crate) pool_threads: Function<PoolThreads>,
    pub(crate) future_create: Function<FutureCreate>,
    pub(crate) future_set_available: Function<FutureSetAvailable>,
    pub(crate) future_set_error: Function<FutureSetError>,
    pub(crate) run_id_get: Function<RunIdGet>,
    pub(crate) device_ordinal_get: Function<DeviceOrdinalGet>,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Api>() == 192 && offset_of!(Api, version) == 16 && offset_of!(Api, internal) == 40);
    assert!(offset_of!(Api, error_create) == 48 && offset_of!(Api, state_set) == 104);
    assert!(offset_of!(Api, future_create) == 152 && offset_of!(Api, device_ordinal_get) == 184);
};

// SAFETY: the table is never written, and its functions may be called by any thread.
unsafe impl Sync for Api {}

/// The one table.
pub(crate) static API: Api = Api {
    struct_size: size_of::<Api>(),
    extension_start: ptr::null_mut(),
    version: Version {
        struct_size: size_of::<Version>(),
        extension_start: ptr::null_mut(),
        major: VERSION.0,
        minor: VERSION.1,
    },
    internal: ptr::null(),
    error_create,
    error_get_message,
    error_destroy,
    handler_register,
    stream_get,
    type_register,
    context_get,
    state_set,
    state_get,
    memory_allocate,
    memory_free,
    pool_schedule,
    pool_threads,
    future_create,
    future_set_available,
    future_set_error,
    run_id_get,
    device_ordinal_get,
};

/// Calls `body` if the struct is as large as it must be, and gives its error to the handler.
///
/// # Safety
/// `args` is null, or a struct of C that says its size.
unsafe fn answer<A>(
    args: *mut A,
    minimum: usize,
    function: &'static str,
    body: impl FnOnce(*mut A) -> Result<(), Error>,
) -> *mut c_void {
    errors::give(panics::answered(
        || function,
        || {
            // SAFETY: every struct of the table begins with its size.
            let size = if args.is_null() { 0 } else { unsafe { args.cast::<usize>().read_unaligned() } };
            if size < minimum {
                let why = format!("{function}: its arguments have {size} bytes, and not {minimum} or more");
                return Err(Error::invalid_argument(why));
            }
            body(args)
        },
    ))
}

/// The context of a call.
///
/// # Safety
/// `context` is null, or that of a call that is not over.
unsafe fn context<'a>(context: *mut c_void) -> Result<&'a Context<'a>, Error> {
    // SAFETY: the caller's promise.
    unsafe { context.cast::<Context<'a>>().as_ref() }.ok_or_else(|| Error::invalid_argument("the context is null"))
}

/// The bytes of a span.
///
/// # Safety
/// The span is empty, or valid for as long as `'a` says.
unsafe fn bytes<'a>(span: ByteSpan) -> &'a [u8] {
    if span.begin.is_null() || span.size_bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(span.begin.cast(), span.size_bytes) }
}

/// The id that a handler's library holds.
///
/// # Safety
/// `id` is null, or valid.
unsafe fn id(id: *const super::abi::TypeId) -> Result<i64, Error> {
    // SAFETY: the caller's promise.
    let id = unsafe { id.as_ref() }.ok_or_else(|| Error::invalid_argument("the type id is null"))?;
    Ok(id.number)
}

/// Declares functions of the table: the name, the struct, the least size of the struct, and the body. The body is an
/// expression of type `Result<(), Error>`.
macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident($args:ident: $struct:ident) $body:block)*) => {$(
        $(#[$meta])*
        unsafe extern "C" fn $name($args: *mut $struct) -> *mut c_void {
            // SAFETY: a handler calls this with a struct that says its size, whose pointers are null or valid, and with
            // the context of a call that is not over. answer() has checked that the fields are there.
            unsafe { answer($args, $struct::MINIMUM, concat!("XLA FFI: ", stringify!($name)), |$args| $body) }
        }
    )*};
}

unsafe extern "C" fn error_create(args: *mut ErrorCreate) -> *mut c_void {
    // SAFETY: as in the macro. An error that is asked for and one of this function are returned in the same way.
    unsafe {
        answer(args, ErrorCreate::MINIMUM, "XLA FFI: error_create", |args| {
            let message = (*args).message;
            let text = if message.is_null() { "".into() } else { CStr::from_ptr(message).to_string_lossy() };
            // An error with the code OK is still one.
            let code = match StatusCode::from_raw((*args).code) {
                StatusCode::Ok => StatusCode::Unknown,
                code => code,
            };
            Err(Error::new(code, text))
        })
    }
}

unsafe extern "C" fn error_get_message(args: *mut ErrorGetMessage) {
    // SAFETY: as in the macro. This function cannot fail, so it has nothing to do where the struct or the error is
    // missing.
    unsafe {
        if !args.is_null() && (*args).struct_size >= ErrorGetMessage::MINIMUM {
            let error = (*args).error;
            (*args).message = if error.is_null() { c"".as_ptr() } else { errors::message(error) };
        }
    }
}

unsafe extern "C" fn error_destroy(args: *mut ErrorDestroy) {
    // SAFETY: as in the macro; the handler owns the error.
    unsafe {
        if !args.is_null() && (*args).struct_size >= ErrorDestroy::MINIMUM {
            drop(errors::take((*args).error));
        }
    }
}

functions! {
    handler_register(args: HandlerRegister) {
        let name = bytes((*args).name).escape_ascii();
        Err(Error::unimplemented(format!(
            "handler '{name}' cannot be registered with the process: handlers are given to a load (FfiHandlers)"
        )))
    }

    stream_get(args: StreamGet) {
        context((*args).context)?;
        Err(Error::unimplemented("there is no stream: the handler runs on the host"))
    }

    type_register(args: TypeRegister) {
        let (name, place, info) = (bytes((*args).name), (*args).id, (*args).info);
        let deleter = info.as_ref().and_then(|info| info.deleter);
        let chosen = state::register_type(name, id(place)?, deleter)?;
        (*place).number = chosen;
        Ok(())
    }

    context_get(args: ContextGet) {
        (*args).data = context((*args).context)?.user_data(id((*args).id)?)?;
        Ok(())
    }

    memory_allocate(args: MemoryAllocate) {
        (*args).data = context((*args).context)?.allocate((*args).size_bytes, (*args).alignment)?;
        Ok(())
    }

    memory_free(args: MemoryFree) {
        context((*args).context)?.free((*args).size_bytes, (*args).data)
    }

    pool_schedule(args: PoolSchedule) {
        let task = (*args).task.ok_or_else(|| Error::invalid_argument("the task is null"))?;
        context((*args).context)?.schedule(task, (*args).data)
    }

    pool_threads(args: PoolThreads) {
        let count = context((*args).context)?.thread_count()?;
        let to = (*args).count.as_mut().ok_or_else(|| Error::invalid_argument("the place of the number is null"))?;
        *to = i64::try_from(count).unwrap_or(i64::MAX);
        Ok(())
    }

    future_create(args: FutureCreate) {
        (*args).future = errors::new_future();
        Ok(())
    }

    future_set_available(args: FutureSetAvailable) {
        complete((*args).future, Ok(()))
    }

    future_set_error(args: FutureSetError) {
        let failed = match errors::take((*args).error) {
            Ok(()) => Error::unknown("a future has failed without an error"),
            Err(error) => error,
        };
        complete((*args).future, Err(failed))
    }

    run_id_get(args: RunIdGet) {
        (*args).run_id = context((*args).context)?.run_id()?;
        Ok(())
    }

    device_ordinal_get(args: DeviceOrdinalGet) {
        (*args).ordinal = context((*args).context)?.device()?;
        Ok(())
    }
}

/// # Safety
/// As [`errors::complete`], but the future may be null.
unsafe fn complete(future: *mut c_void, outcome: Result<(), Error>) -> Result<(), Error> {
    if future.is_null() {
        return Err(Error::invalid_argument("the future is null"));
    }
    // SAFETY: the caller's promise.
    unsafe { errors::complete(future, outcome) };
    Ok(())
}

/// The fields of a state's struct: context, stage, id, and the place of the object. Version 0.2 has no stage.
///
/// # Safety
/// The struct is as large as it says.
unsafe fn state_fields(args: *mut State) -> (*mut c_void, c_int, *const super::abi::TypeId, *mut *mut c_void) {
    // SAFETY: the caller's promise. Nothing is read behind the size.
    unsafe {
        if (*args).struct_size >= State::MINIMUM {
            return ((*args).context, (*args).stage, (*args).id, &raw mut (*args).state);
        }
        let args = args.cast::<StateOfTwo>();
        ((*args).context, 0, (*args).id, &raw mut (*args).state)
    }
}

unsafe extern "C" fn state_set(args: *mut State) -> *mut c_void {
    // SAFETY: as in the macro.
    unsafe {
        answer(args, StateOfTwo::MINIMUM, "XLA FFI: state_set", |args| {
            let (of, stage, type_id, object) = state_fields(args);
            context(of)?.set_state(stage, id(type_id)?, *object)
        })
    }
}

unsafe extern "C" fn state_get(args: *mut State) -> *mut c_void {
    // SAFETY: as in the macro.
    unsafe {
        answer(args, StateOfTwo::MINIMUM, "XLA FFI: state_get", |args| {
            let (of, stage, type_id, object) = state_fields(args);
            *object = context(of)?.state(stage, id(type_id)?)?;
            Ok(())
        })
    }
}
