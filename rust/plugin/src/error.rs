//! The functions of errors. An error begins with its table, so it may be another library's.

use std::ffi::c_int;
use std::ptr;

use purlin_base::Error;
use purlin_ffi::panic::contain;
use purlin_pjrt::abi::PjrtError;
use purlin_pjrt_abi::{ErrorDestroyArgs, ErrorForEachPayloadArgs, ErrorGetCodeArgs, ErrorMessageArgs};

use crate::answer::Answer;

/// # Safety
/// `args` is null or the function's arguments.
pub(crate) unsafe extern "C" fn destroy(args: *mut ErrorDestroyArgs) {
    contain("PJRT_Error_Destroy", (), || {
        // SAFETY: the caller's promise; an error begins with its table.
        unsafe {
            let Some(error) = args.as_ref().map(|args| args.error).filter(|error| !error.is_null()) else { return };
            if let Some(destroy) = (*error).table.as_ref().and_then(|table| table.destroy) {
                destroy(error);
            }
        }
    });
}

/// # Safety
/// As [`destroy`].
pub(crate) unsafe extern "C" fn message(args: *mut ErrorMessageArgs) {
    contain("PJRT_Error_Message", (), || {
        // SAFETY: as in destroy().
        unsafe {
            let Some(args) = args.as_mut() else { return };
            (args.message, args.message_size) = (ptr::dangling(), 0);
            if args.error.is_null() {
                return;
            }
            if let Some(message) = (*args.error).table.as_ref().and_then(|table| table.message) {
                message(args.error, &raw mut args.message, &raw mut args.message_size);
            }
        }
    });
}

/// # Errors
/// `InvalidArgument`: there is no error.
///
/// # Safety
/// `error` is null or alive.
unsafe fn table<'a>(error: *const PjrtError) -> Result<&'a purlin_pjrt::abi::ErrorTable, Error> {
    // SAFETY: the caller's promise.
    unsafe { error.as_ref().and_then(|error| error.table.as_ref()) }
        .ok_or_else(|| Error::invalid_argument("the PJRT_Error is null"))
}

impl Answer for ErrorGetCodeArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let code = unsafe { table(self.error)?.get_code.map(|code| code(self.error)) };
        self.code = code.unwrap_or(purlin_base::StatusCode::Unknown as c_int);
        Ok(())
    }
}

impl Answer for ErrorForEachPayloadArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(for_each) = table(self.error)?.for_each_payload {
                for_each(self.error, self.visitor, self.user_arg);
            }
        }
        Ok(())
    }
}
