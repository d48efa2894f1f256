//! The handlers that a load is given: by name, with their code's owner.

#![allow(unsafe_code, reason = "handlers are the user's functions")]

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use purlin_base::{Error, StatusOr, panics};

use super::abi::{
    Attributes, CallFrame, Deleter, ExtensionBase, METADATA, Metadata, MetadataExtension, Operands, Stage, TypeId,
    VERSION, Version,
};
use super::api::API;
use super::{errors, state};

/// A function that is a handler of XLA's FFI: `XLA_FFI_Error* (*)(XLA_FFI_CallFrame*)`.
pub type FfiFunction = unsafe extern "C-unwind" fn(call_frame: *mut c_void) -> *mut c_void;

/// Deletes an object of a registered type: `void (*)(void*)`.
pub type FfiDeleter = Deleter;

/// The functions of one handler, by stage: `XLA_FFI_Handler_Bundle`. Only `execute` must be there.
///
/// ```
/// use purlin_xla_cpu::FfiBundle;
///
/// unsafe extern "C-unwind" fn nothing(_call_frame: *mut std::ffi::c_void) -> *mut std::ffi::c_void {
///     std::ptr::null_mut()
/// }
/// assert!(FfiBundle::of(nothing).prepare.is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FfiBundle {
    /// Called once for each custom call of a program, when the program is loaded. It may set a state, which lives as
    /// long as the program.
    pub instantiate: Option<FfiFunction>,
    /// Called in each run, before `initialize`. It may set a state, which lives until `execute` is over.
    pub prepare: Option<FfiFunction>,
    /// Called in each run, before `execute`. It may set a state, which lives until `execute` is over.
    pub initialize: Option<FfiFunction>,
    /// Does the work.
    pub execute: FfiFunction,
}

impl FfiBundle {
    /// A handler of one stage.
    #[must_use]
    pub const fn of(execute: FfiFunction) -> Self {
        Self { instantiate: None, prepare: None, initialize: None, execute }
    }

    pub(crate) fn stages(&self) -> impl Iterator<Item = (Stage, FfiFunction)> {
        let optional = [
            (Stage::Instantiate, self.instantiate),
            (Stage::Prepare, self.prepare),
            (Stage::Initialize, self.initialize),
            (Stage::Execute, Some(self.execute)),
        ];
        optional.into_iter().filter_map(|(stage, function)| Some((stage, function?)))
    }
}

/// Handlers of XLA's FFI by the names of their custom call targets, for
/// [`LoadOptions::handlers`](crate::LoadOptions::handlers). A loaded program keeps the owners of the handlers that it
/// names.
///
/// ```
/// use purlin_xla_cpu::FfiHandlers;
///
/// assert_eq!(FfiHandlers::default().names().count(), 0, "no handler is built in");
/// ```
#[derive(Clone, Default)]
pub struct FfiHandlers(BTreeMap<String, Arc<Registered>>);

/// A handler, and the owner of its code.
pub(crate) struct Registered {
    pub(crate) bundle: FfiBundle,
    /// What the handler says about itself (`XLA_FFI_Handler_Traits`).
    traits: u32,
    _owner: Arc<dyn Any + Send + Sync>,
}

impl FfiHandlers {
    /// Adds a handler under the name of its custom call target. Each of its functions is asked for its version and its
    /// traits, on this thread.
    ///
    /// `owner` keeps the code: such as a library that was opened by `dlopen`. It is dropped after the last program that
    /// names the handler, and its states, are gone.
    ///
    /// # Errors
    /// `AlreadyExists`: the name has a handler. `Unimplemented`: a function was compiled for another major version of
    /// XLA's FFI, or for a later minor one, whose functions the table here does not have. `InvalidArgument`: a function
    /// does not answer the question for its version. Any other code: the error of a function that was asked, such as
    /// `FailedPrecondition` if the type of its state [is not registered](register_ffi_type).
    ///
    /// # Safety
    /// The functions are handlers as XLA's header `xla/ffi/api/c_api.h` defines them, for the platform `cpu`. Any
    /// thread may call them, several at once, as long as `owner` lives. They access only what their call frames give
    /// them, until they return, or until they complete the future that they return. They complete each future once.
    /// They throw no C++ exception. A Rust function may panic: its call then fails.
    ///
    /// A function that blocks until a task that it has scheduled has run, instead of returning a future, needs a second
    /// thread of the client's pool.
    pub unsafe fn register(
        &mut self,
        name: &str,
        bundle: FfiBundle,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Result<(), Error> {
        if self.0.contains_key(name) {
            return Err(Error::already_exists(format!("custom call target '{name}' has a handler already")));
        }
        let mut traits = 0;
        for (stage, function) in bundle.stages() {
            let refused = |error: &Error| {
                let stage = stage.name();
                let text = error.message();
                Error::new(error.code(), format!("custom call target '{name}', stage '{stage}': {text}"))
            };
            // SAFETY: the caller's promise.
            let metadata = unsafe { ask(stage, function) }.map_err(|error| refused(&error))?;
            check_version(&metadata.version).map_err(|error| refused(&error))?;
            traits |= metadata.traits;
        }
        self.0.insert(name.to_owned(), Arc::new(Registered { bundle, traits, _owner: owner }));
        Ok(())
    }

    /// The names of the targets that have a handler, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Registered>> {
        self.0.get(name)
    }
}

impl fmt::Debug for FfiHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("bundle", &self.bundle).field("traits", &self.traits).finish_non_exhaustive()
    }
}

/// Asks a handler for its metadata.
///
/// # Safety
/// As [`FfiHandlers::register`].
unsafe fn ask(stage: Stage, function: FfiFunction) -> StatusOr<Metadata> {
    let no_version = Version { struct_size: 0, extension_start: ptr::null_mut(), major: 0, minor: 0 };
    let mut metadata =
        Metadata { struct_size: Metadata::MINIMUM, version: no_version, traits: 0, state_type: TypeId { number: 0 } };
    let mut extension = MetadataExtension {
        base: ExtensionBase { struct_size: size_of::<MetadataExtension>(), kind: METADATA, next: ptr::null_mut() },
        metadata: &raw mut metadata,
    };
    let mut frame = empty_frame(stage);
    frame.extension_start = (&raw mut extension).cast();
    // SAFETY: the frame and its extension live until the handler returns. The caller promises the rest.
    unsafe { call(function, &mut frame) }?;
    Ok(metadata)
}

fn check_version(version: &Version) -> Result<(), Error> {
    let Version { struct_size, major, minor, .. } = *version;
    if struct_size == 0 && (major, minor) == (0, 0) {
        return Err(Error::invalid_argument("the function does not say which version of XLA's FFI it has"));
    }
    if major == VERSION.0 && minor <= VERSION.1 {
        return Ok(());
    }
    let (ours, ours_minor) = VERSION;
    Err(Error::unimplemented(format!("it has version {major}.{minor} of XLA's FFI, and Purlin {ours}.{ours_minor}")))
}

/// A frame without operands and attributes.
pub(crate) fn empty_frame(stage: Stage) -> CallFrame {
    let none = Operands {
        struct_size: size_of::<Operands>(),
        extension_start: ptr::null_mut(),
        count: 0,
        kinds: ptr::null_mut(),
        buffers: ptr::null_mut(),
    };
    let attributes = Attributes {
        struct_size: size_of::<Attributes>(),
        extension_start: ptr::null_mut(),
        count: 0,
        kinds: ptr::null_mut(),
        names: ptr::null_mut(),
        values: ptr::null_mut(),
    };
    CallFrame {
        // Handlers compare it with the size of their header, which does not count the future.
        struct_size: CallFrame::MINIMUM,
        extension_start: ptr::null_mut(),
        api: &raw const API,
        context: ptr::null_mut(),
        stage: stage as i32,
        arguments: none,
        results: none,
        attributes,
        future: ptr::null_mut(),
    }
}

/// Calls a handler, and waits for its future if it returns one.
///
/// # Errors
/// That of the handler. `Internal`: it panicked.
///
/// # Safety
/// As [`FfiHandlers::register`]. What the frame points to is valid until this returns.
pub(crate) unsafe fn call(function: FfiFunction, frame: &mut CallFrame) -> Result<(), Error> {
    let address = ptr::from_mut(frame);
    // SAFETY: the caller's promise. The handler gives its error and its future to this call.
    unsafe {
        let returned = panics::answered(|| "the handler", || errors::take(function(address.cast())));
        let future = (*address).future;
        // The handler uses memory of the frame until the future is complete, also if it failed.
        let completed = if future.is_null() { Ok(()) } else { errors::await_future(future) };
        returned.and(completed)
    }
}

/// Registers a type of the user's under a name, with the function that deletes its objects, and returns its id: `id`
/// itself, or a new one if `id` is 0. A name that is registered already keeps its id. Types belong to the process.
///
/// Handlers need it for the types of their states, whose ids their libraries hold in static variables. With XLA's
/// header, `XLA_FFI_REGISTER_TYPE` does the same with the table of [`ffi_api`].
///
/// # Errors
/// `InvalidArgument`: the id is negative, or the name has another id. `AlreadyExists`: the id is that of another type,
/// or the name has another deleter.
///
/// # Safety
/// `deleter` may be called on any thread with any object that a handler sets as a state of this type, as long as the
/// process runs.
pub unsafe fn register_ffi_type(name: &str, id: i64, deleter: Option<FfiDeleter>) -> StatusOr<i64> {
    state::register_type(name.as_bytes(), id, deleter)
}

/// The table of functions that handlers are given, `const XLA_FFI_Api*` of version 0.3: for code that registers types
/// before it is called. It lives as long as the process.
#[must_use]
pub fn ffi_api() -> *const c_void {
    (&raw const API).cast()
}

/// Values that a run gives to handlers, by the ids of their types: `ffi::UserData<T>` of XLA's header. It is the
/// [context](purlin_program::ExecuteOptions::context) of the run.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::program::ExecuteOptions;
/// use purlin_xla_cpu::FfiUserData;
///
/// let number = Arc::new(7);
/// let mut data = FfiUserData::default();
/// // SAFETY: the owner of the value is given, too, and no handler has this id.
/// unsafe { data.insert(1 << 50, Arc::as_ptr(&number).cast_mut().cast(), number) };
/// let options = ExecuteOptions { context: Some(Arc::new(data)), ..Default::default() };
/// assert!(options.context.is_some());
/// ```
#[derive(Clone, Default)]
pub struct FfiUserData(BTreeMap<i64, UserValue>);

#[derive(Clone)]
struct UserValue {
    data: *mut c_void,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the caller of insert() promises that any thread may use the value.
unsafe impl Send for UserValue {}
// SAFETY: as above.
unsafe impl Sync for UserValue {}

impl FfiUserData {
    /// Gives `data` to handlers that ask for a value of type `id`. An earlier value of that type is replaced.
    ///
    /// # Safety
    /// `data` is what handlers expect of that type, and any thread may use it as long as `owner` lives.
    pub unsafe fn insert(&mut self, id: i64, data: *mut c_void, owner: Arc<dyn Any + Send + Sync>) {
        self.0.insert(id, UserValue { data, _owner: owner });
    }

    pub(crate) fn get(&self, id: i64) -> Option<*mut c_void> {
        self.0.get(&id).map(|value| value.data)
    }
}

impl fmt::Debug for FfiUserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
