//! The extension FFI, and execute contexts: handlers of custom calls, and the values that they find.
//!
//! Handlers are registered with the plugin that compiles, too, so a program has them wherever it runs.

use std::any::Any;
use std::mem;
use std::ptr;
use std::sync::Arc;

use purlin_async::{Event, when_all};
use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr};
use purlin_pjrt::abi::{arguments, read as field};
use purlin_pjrt::foreign::Plugin;
use purlin_pjrt_abi::{
    self as abi, ExecuteContextCreateArgs, ExecuteContextDestroyArgs, ExtensionBase, FFIExtension,
    FFIRegisterHandlerArgs, FFITypeRegisterArgs, FFIUserData, FFIUserDataAddArgs, extension_type,
};
use purlin_xla_cpu::{FfiBundle, FfiDeleter, FfiFunction, FfiHandlers, FfiUserData, register_ffi_type};

use crate::answer::{Answer, answered};
use crate::compiler;
use crate::handle::{self, Handle, lent, take};
use crate::read;

/// The extension, and the next one in the chain.
pub(crate) fn extension(next: *mut ExtensionBase) -> FFIExtension {
    FFIExtension {
        base: ExtensionBase { struct_size: size_of::<FFIExtension>(), r#type: extension_type::FFI, next },
        type_register: Some(answered),
        user_data_add: Some(answered),
        register_handler: Some(answered),
    }
}

/// Those of the process, and how often they have changed.
static HANDLERS: Mutex<(usize, Option<FfiHandlers>)> = Mutex::new((0, None));

/// The handlers that are registered now.
pub(crate) fn handlers() -> FfiHandlers {
    HANDLERS.lock().1.clone().unwrap_or_default()
}

/// Adds a handler. It is asked for its version outside of the lock, so a thread that was overtaken begins anew.
///
/// # Errors
/// As [`FfiHandlers::register`].
///
/// # Safety
/// As there; the handler stays for the life of the process.
unsafe fn register(name: &str, execute: FfiFunction) -> Result<(), Error> {
    loop {
        let (changes, mut registered) = {
            let known = HANDLERS.lock();
            (known.0, known.1.clone().unwrap_or_default())
        };
        // SAFETY: the caller's promise.
        unsafe { registered.register(name, FfiBundle::of(execute), Arc::new(())) }?;
        let mut known = HANDLERS.lock();
        if known.0 == changes {
            let old = mem::replace(&mut *known, (changes + 1, Some(registered)));
            drop(known);
            drop(old);
            return Ok(());
        }
    }
}

/// A field of the compiler's extension.
fn of_extension<F: Copy>(extension: *const FFIExtension, offset: usize, of: fn(&FFIExtension) -> F) -> Option<F> {
    // SAFETY: the extension says what it has.
    unsafe { field(extension, offset, of) }
}

/// A function of the compiler's extension.
macro_rules! theirs {
    ($plugin:expr, $field:ident) => {{
        let extension = $plugin.extension(extension_type::FFI).map(<*const ExtensionBase>::cast);
        let offset = mem::offset_of!(FFIExtension, $field);
        extension
            .and_then(|extension| of_extension(extension, offset, |table| table.$field))
            .flatten()
            .ok_or_else(|| Error::unimplemented("the plugin that compiles has no extension FFI"))
    }};
}

impl Answer for FFITypeRegisterArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let name = read::text("the name of a type", self.type_name, self.type_name_size)?;
            // No C++ exception leaves a deleter, so both ways to call it are the same.
            let info = self.type_info.as_ref();
            let deleter = info.and_then(|info| (&raw const info.deleter).cast::<Option<FfiDeleter>>().read());
            if let Ok(plugin) = compiler::library() {
                let register = theirs!(plugin, type_register)?;
                if let Some(error) = plugin.taken(register(self)) {
                    return Err(error);
                }
            }
            self.type_id = register_ffi_type(name, self.type_id, deleter)?;
        }
        Ok(())
    }
}

impl Answer for FFIRegisterHandlerArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise: the handler stays for the life of the process.
        unsafe {
            let name = read::text("the name of a custom call", self.target_name, self.target_name_size)?;
            let platform = read::text("the platform of a custom call", self.platform_name, self.platform_name_size)?;
            let execute = (&raw const self.handler).cast::<Option<FfiFunction>>().read();
            let execute = execute.ok_or_else(|| Error::invalid_argument(format!("the handler of '{name}' is null")))?;
            if let Ok(plugin) = compiler::library() {
                let register = theirs!(plugin, register_handler)?;
                if let Some(error) = plugin.taken(register(self)) {
                    return Err(error);
                }
            }
            if !matches!(platform, "Host" | "cpu" | "CPU") {
                return Ok(());
            }
            register(name, execute)
        }
    }
}

/// What is behind a `PJRT_ExecuteContext`.
pub(crate) struct ContextObject {
    values: Mutex<Vec<FFIUserData>>,
}

// SAFETY: PJRT's contract: handlers use the values on any thread.
unsafe impl Send for ContextObject {}
// SAFETY: as above.
unsafe impl Sync for ContextObject {}

impl Handle for abi::ExecuteContext {
    type Object = ContextObject;
    const NAME: &'static str = "PJRT_ExecuteContext";
}

impl Answer for ExecuteContextCreateArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        self.context = handle::give(ContextObject { values: Mutex::new(Vec::new()) });
        Ok(())
    }
}

impl Answer for ExecuteContextDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.context) }.map(drop)
    }
}

impl Answer for FFIUserDataAddArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let context = unsafe { lent::<Self, _>(self.context) }?;
        context.values.lock().push(self.user_data);
        Ok(())
    }
}

impl ContextObject {
    /// The values, for handlers that Purlin calls.
    pub(crate) fn user_data(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        let values = self.values.lock();
        if values.is_empty() {
            return None;
        }
        let mut data = FfiUserData::default();
        for value in &*values {
            // SAFETY: PJRT's contract: the value is of that type, and the caller's until the run has completed.
            unsafe { data.insert(value.type_id, value.data, Arc::new(())) };
        }
        Some(Arc::new(data))
    }
}

/// A context of the compiler's with the same values.
pub(crate) struct Lent {
    plugin: Plugin,
    context: *mut abi::ExecuteContext,
}

// SAFETY: a plugin's objects may be used from every thread.
unsafe impl Send for Lent {}

impl Lent {
    /// # Errors
    /// What the compiler says.
    pub(crate) fn of(plugin: &Plugin, ours: Option<&ContextObject>) -> StatusOr<Self> {
        let mut lent = Self { plugin: *plugin, context: ptr::null_mut() };
        let values = ours.map(|ours| ours.values.lock().clone()).unwrap_or_default();
        if values.is_empty() {
            return Ok(lent);
        }
        let mut created: ExecuteContextCreateArgs = arguments();
        let add = theirs!(plugin, user_data_add)?;
        // SAFETY: the context is ours; the values are the caller's until the run has completed.
        unsafe {
            plugin.call(&mut created)?;
            lent.context = created.context;
            for user_data in values {
                let mut args = FFIUserDataAddArgs { context: lent.context, user_data, ..arguments() };
                if let Some(error) = plugin.taken(add(&raw mut args)) {
                    return Err(error);
                }
            }
        }
        Ok(lent)
    }

    /// Its address; null where there is none.
    pub(crate) fn address(&self) -> *mut abi::ExecuteContext {
        self.context
    }

    /// Destroys it when all events have completed or failed.
    pub(crate) fn end_after(self, done: &[Event]) {
        if !self.context.is_null() {
            when_all(done).on_ready(move |_| drop(self));
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.context.is_null() {
            // SAFETY: ours, and ends here.
            let _ =
                unsafe { self.plugin.call(&mut ExecuteContextDestroyArgs { context: self.context, ..arguments() }) };
        }
    }
}
