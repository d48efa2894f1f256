//! A plugin of another library: its functions, and its errors as ours.

use std::mem::offset_of;
use std::ptr;

use purlin_base::{Error, StatusCode};
use purlin_pjrt_abi::{
    ErrorDestroyArgs, ErrorForEachPayloadArgs, ErrorGetCodeArgs, ErrorMessageArgs, ExtensionBase, ExtensionType, Slot,
};

use crate::abi::{Api, PjrtError, arguments, read, slot};
use crate::error;

/// How many extensions of a chain are looked at.
const LONGEST_CHAIN: usize = 64;

/// Fields that a later version may add to arguments, in words.
const LATER_WORDS: usize = 8;

/// Arguments, and zeros behind them for functions that do not look at the size.
#[repr(C)]
struct Padded<A> {
    args: A,
    _later: [usize; LATER_WORDS],
}

/// The functions of a plugin. It lives as long as the process, or as the promise of [`Plugin::new`] says.
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    api: *const Api,
    error_destroy: unsafe extern "C" fn(args: *mut ErrorDestroyArgs),
}

// SAFETY: a plugin's table is never written, and its functions may be called from every thread.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

impl Plugin {
    /// The plugin of that table.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no table, or it cannot destroy an error.
    ///
    /// # Safety
    /// `api` is null or a plugin's table, which lives as long as this and what is made through it.
    pub unsafe fn new(api: *const Api) -> Result<Self, Error> {
        if api.is_null() {
            return Err(Error::invalid_argument("a PJRT_Api is null"));
        }
        // SAFETY: the table says what it has.
        unsafe {
            let error_destroy = slot!(api, Api, error_destroy).ok_or_else(|| missing(api, "PJRT_Error_Destroy"))?;
            Ok(Self { api, error_destroy })
        }
    }

    /// Its table.
    #[must_use]
    pub fn api(&self) -> *const Api {
        self.api
    }

    /// Bytes of its table, and the major version that it states, -1 where it states none.
    #[must_use]
    pub fn version(&self) -> (usize, i32) {
        // SAFETY: the first field is always there; the table says what it has.
        unsafe {
            let version = read(self.api, offset_of!(Api, version), |api: &Api| api.version);
            (self.api.cast::<usize>().read(), version.map_or(-1, |version| version.major_version))
        }
    }

    /// The function that takes `A`, if the plugin has it.
    #[must_use]
    pub fn function<A: Slot>(&self) -> Option<unsafe extern "C" fn(args: *mut A) -> *mut PjrtError> {
        type Found<A> = Option<unsafe extern "C" fn(args: *mut A) -> *mut PjrtError>;
        let offset = offset_of!(Api, error_destroy) + A::SLOT * size_of::<Found<A>>();
        // SAFETY: the table says what it has, and at this offset has a function that takes such arguments, or null.
        unsafe { read(self.api, offset, |_| None::<unsafe extern "C" fn(args: *mut A) -> *mut PjrtError>) }.flatten()
    }

    /// Calls the function that takes `A`.
    ///
    /// # Errors
    /// The plugin's own. `Unimplemented`: it has no such function.
    ///
    /// # Safety
    /// The arguments are what the function wants.
    pub unsafe fn call<A: Slot>(&self, args: &mut A) -> Result<(), Error> {
        let function = self.function::<A>().ok_or_else(|| {
            // SAFETY: the plugin is there.
            let missing = unsafe { missing(self.api, A::FUNCTION) };
            Error::unimplemented(missing.message().to_owned())
        })?;
        // The size may be that of a later version, which a caller of ours has: what we do not know is not passed on.
        let mut padded = Padded { args: *args, _later: [0; LATER_WORDS] };
        let size = (&raw mut padded).cast::<usize>();
        // SAFETY: the size is the first field; the caller's promise.
        let outcome = unsafe {
            let given = size.read();
            size.write(given.min(A::STRUCT_SIZE));
            let error = function((&raw mut padded).cast());
            size.write(given);
            self.taken(error).map_or(Ok(()), Err)
        };
        *args = padded.args;
        outcome
    }

    /// Calls a function that ends an object, such as `PJRT_Buffer_Destroy`. What it is refused with has no receiver.
    ///
    /// # Safety
    /// As [`call`](Self::call).
    pub unsafe fn end<A: Slot>(&self, mut args: A) {
        // SAFETY: the caller's promise.
        let _ = unsafe { self.call(&mut args) };
    }

    /// The first extension of that type, if the plugin has one.
    #[must_use]
    pub fn extension(&self, wanted: ExtensionType) -> Option<*const ExtensionBase> {
        // SAFETY: the table says what it has; extensions begin with what all have, and end with null.
        unsafe {
            let mut next = read(self.api, offset_of!(Api, extension_start), |api: &Api| api.extension_start)?;
            for _ in 0..LONGEST_CHAIN {
                let base = next.as_ref()?;
                if base.r#type == wanted {
                    return Some(next.cast_const());
                }
                next = base.next;
            }
        }
        None
    }

    /// What an error of this plugin says; it is destroyed. `None` for null.
    #[must_use]
    pub fn taken(&self, theirs: *mut PjrtError) -> Option<Error> {
        if theirs.is_null() {
            return None;
        }
        // SAFETY: the error is ours until it is destroyed; what its functions write lives as long as it does, and so do
        // the arguments, until the calls have returned.
        unsafe {
            let mut said = ErrorMessageArgs { error: theirs, ..arguments() };
            if let Some(message) = slot!(self.api, Api, error_message) {
                message(&raw mut said);
            }
            let code = StatusCode::Unknown as i32;
            let mut number = ErrorGetCodeArgs { error: theirs, code, ..arguments() };
            if let Some(get_code) = slot!(self.api, Api, error_get_code) {
                self.ignore(get_code(&raw mut number));
            }
            let mut taken = error::from_parts("PJRT_Error", number.code, said.message, said.message_size);
            // Since 0.99; older plugins report no payloads.
            if let Some(for_each_payload) = slot!(self.api, Api, error_for_each_payload) {
                let (visitor, user_arg) = (Some(error::add_payload as _), (&raw mut taken).cast());
                self.ignore(for_each_payload(&mut ErrorForEachPayloadArgs {
                    error: theirs,
                    visitor,
                    user_arg,
                    ..arguments()
                }));
            }
            self.ignore(theirs);
            Some(taken)
        }
    }

    /// Destroys an error, or nothing.
    pub fn ignore(&self, theirs: *mut PjrtError) {
        if !theirs.is_null() {
            // SAFETY: ours, and ends here.
            unsafe { (self.error_destroy)(&mut ErrorDestroyArgs { error: theirs, ..arguments() }) };
        }
    }
}

/// # Safety
/// `api` is a plugin's table.
unsafe fn missing(api: *const Api, what: &str) -> Error {
    // SAFETY: the first field is always there.
    let size = unsafe { api.cast::<usize>().read() };
    Error::invalid_argument(format!("a PJRT_Api (struct_size {size}) has no {what}"))
}

impl PartialEq for Plugin {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.api, other.api)
    }
}
