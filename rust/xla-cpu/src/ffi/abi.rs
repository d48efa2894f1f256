//! The C structs of XLA's FFI, version 0.3, as its header `xla/ffi/api/c_api.h` declares them for x86-64.
//!
//! A struct begins with its size as its writer knows it. So a reader must look at the size before it reads a field, and
//! `MINIMUM` is the size that every version of the header has. XLA's header counts up to the end of the last field, so
//! that some sizes are no multiple of the alignment. Offsets and sizes are checked when this is compiled.

use std::ffi::{c_char, c_int, c_void};

/// Declares structs of C, with the size, the least `struct_size` of writers, and the offset of each field.
macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident: $size:literal, $minimum:literal { $($field:ident: $type:ty = $offset:literal,)* })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        impl $name {
            /// The least `struct_size` that a writer of this struct can give.
            #[allow(dead_code, reason = "the size of structs that only this side writes is not checked here")]
            pub(crate) const MINIMUM: usize = $minimum;
        }

        const _: () = {
            assert!(size_of::<$name>() == $size && $minimum <= $size);
            $(assert!(std::mem::offset_of!($name, $field) == $offset);)*
        };
    )*};
}

/// A handler: code of the user's. It takes a [`CallFrame`] and returns an error, or null.
pub(crate) type Handler = unsafe extern "C-unwind" fn(frame: *mut CallFrame) -> *mut c_void;
/// A task that a handler schedules.
pub(crate) type TaskFunction = unsafe extern "C-unwind" fn(data: *mut c_void);
/// Deletes an object of a registered type.
pub(crate) type Deleter = unsafe extern "C-unwind" fn(object: *mut c_void);

/// The stages of a handler, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Instantiate = 0,
    Prepare = 1,
    Initialize = 2,
    Execute = 3,
}

impl Stage {
    /// The name in errors.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Instantiate => "instantiate",
            Self::Prepare => "prepare",
            Self::Initialize => "initialize",
            Self::Execute => "execute",
        }
    }
}

/// The version of these structs.
pub(crate) const VERSION: (c_int, c_int) = (0, 3);

/// The kind of every argument and of every result.
pub(crate) const BUFFER: c_int = 1;

/// Kinds of attributes.
pub(crate) const ARRAY: c_int = 1;
pub(crate) const DICTIONARY: c_int = 2;
pub(crate) const SCALAR: c_int = 3;
pub(crate) const STRING: c_int = 4;

/// XLA's element type of a token.
pub(crate) const TOKEN: c_int = 17;

/// The extension by which a handler is asked about itself.
pub(crate) const METADATA: c_int = 1;

structs! {
    /// The beginning of every extension.
    ExtensionBase: 24, 24 { struct_size: usize = 0, kind: c_int = 8, next: *mut ExtensionBase = 16, }

    Version: 24, 24 {
        struct_size: usize = 0, extension_start: *mut ExtensionBase = 8, major: c_int = 16, minor: c_int = 20,
    }

    ByteSpan: 16, 16 { begin: *const c_char = 0, size_bytes: usize = 8, }

    Scalar: 16, 16 { dtype: c_int = 0, value: *mut c_void = 8, }

    Array: 24, 24 { dtype: c_int = 0, count: usize = 8, data: *mut c_void = 16, }

    TypeId: 8, 8 { number: i64 = 0, }

    TypeInfo: 24, 24 {
        struct_size: usize = 0, extension_start: *mut ExtensionBase = 8, deleter: Option<Deleter> = 16,
    }

    Buffer: 48, 48 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        dtype: c_int = 16,
        data: *mut c_void = 24,
        rank: i64 = 32,
        dims: *mut i64 = 40,
    }

    /// The arguments, or the results: as many kinds and buffers as `count` says.
    Operands: 40, 40 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        count: i64 = 16,
        kinds: *mut c_int = 24,
        buffers: *mut *mut Buffer = 32,
    }

    /// Attributes, sorted by name.
    Attributes: 48, 48 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        count: i64 = 16,
        kinds: *mut c_int = 24,
        names: *mut *mut ByteSpan = 32,
        values: *mut *mut c_void = 40,
    }

    /// What a handler is called with.
    CallFrame: 176, 168 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        api: *const super::api::Api = 16,
        context: *mut c_void = 24,
        stage: c_int = 32,
        arguments: Operands = 40,
        results: Operands = 80,
        attributes: Attributes = 120,
        future: *mut c_void = 168,
    }

    Metadata: 48, 36 { struct_size: usize = 0, version: Version = 8, traits: u32 = 32, state_type: TypeId = 40, }

    MetadataExtension: 32, 32 { base: ExtensionBase = 0, metadata: *mut Metadata = 24, }

    ErrorCreate: 32, 28 {
        struct_size: usize = 0, extension_start: *mut ExtensionBase = 8, message: *const c_char = 16, code: c_int = 24,
    }

    ErrorGetMessage: 32, 32 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        error: *mut c_void = 16,
        message: *const c_char = 24,
    }

    ErrorDestroy: 24, 24 {
        struct_size: usize = 0, extension_start: *mut ExtensionBase = 8, error: *mut c_void = 16,
    }

    /// Its size does not count `future`.
    FutureCreate: 24, 16 {
        struct_size: usize = 0, extension_start: *mut ExtensionBase = 8, future: *mut c_void = 16,
    }

    FutureSetAvailable: 24, 24 {
        struct_size: usize = 0, extension_start: *mut ExtensionBase = 8, future: *mut c_void = 16,
    }

    FutureSetError: 32, 32 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        future: *mut c_void = 16,
        error: *mut c_void = 24,
    }

    Bundle: 32, 32 {
        instantiate: Option<Handler> = 0,
        prepare: Option<Handler> = 8,
        initialize: Option<Handler> = 16,
        execute: Option<Handler> = 24,
    }

    HandlerRegister: 88, 84 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        name: ByteSpan = 16,
        platform: ByteSpan = 32,
        bundle: Bundle = 48,
        traits: u32 = 80,
    }

    /// Its size does not count `info`.
    TypeRegister: 48, 40 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        name: ByteSpan = 16,
        id: *mut TypeId = 32,
        info: *const TypeInfo = 40,
    }

    ContextGet: 40, 40 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        id: *const TypeId = 24,
        data: *mut c_void = 32,
    }

    /// Sets or gets a state. Version 0.2 has no `stage`: see [`StateOfTwo`].
    State: 48, 48 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        stage: c_int = 24,
        id: *const TypeId = 32,
        state: *mut c_void = 40,
    }

    /// [`State`] as version 0.2 has it: the state is that of the stage `instantiate`.
    StateOfTwo: 40, 40 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        id: *const TypeId = 24,
        state: *mut c_void = 32,
    }

    StreamGet: 32, 32 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        stream: *mut c_void = 24,
    }

    MemoryAllocate: 48, 48 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        size_bytes: usize = 24,
        alignment: usize = 32,
        data: *mut c_void = 40,
    }

    MemoryFree: 40, 40 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        size_bytes: usize = 24,
        data: *mut c_void = 32,
    }

    PoolSchedule: 40, 40 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        task: Option<TaskFunction> = 24,
        data: *mut c_void = 32,
    }

    PoolThreads: 32, 32 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        count: *mut i64 = 24,
    }

    RunIdGet: 32, 32 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        run_id: i64 = 24,
    }

    DeviceOrdinalGet: 32, 28 {
        struct_size: usize = 0,
        extension_start: *mut ExtensionBase = 8,
        context: *mut c_void = 16,
        ordinal: i32 = 24,
    }
}
