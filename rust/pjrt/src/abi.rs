//! The layouts, as `purlin/adapters/pjrt_abi.h` has them, where each field is explained. Facts of XLA's headers: sizes
//! and offsets are asserted here and there, and a test compares the sizes that each side sees.
//!
//! Function pointers are `Option`s, because a foreign table may leave a slot null.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

/// A party that knows more than a first version did says how much, in the first field of each table.
pub(crate) trait Table {}

/// A field of a foreign table: `None` where the table is too small to have it.
///
/// # Safety
/// `table` points to at least as many bytes as its first field, a `usize`, says; `offset` is that of the field.
pub(crate) unsafe fn read<T: Table, F: Copy>(table: *const T, offset: usize, _type_of_field: fn(&T) -> F) -> Option<F> {
    // SAFETY: the first field is always there.
    let size = unsafe { table.cast::<usize>().read() };
    // SAFETY: the field lies within what is there; tables are aligned as their fields are.
    (size >= offset + size_of::<F>()).then(|| unsafe { table.byte_add(offset).cast::<F>().read() })
}

/// A function of a foreign table, if the table has it. Expands to an unsafe call of [`read`].
macro_rules! slot {
    ($table:expr, $type:ty, $field:ident) => {
        $crate::abi::read($table, std::mem::offset_of!($type, $field), |table: &$type| table.$field).flatten()
    };
}
pub(super) use slot;

/// An event and what to do with it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceEvent {
    pub table: *const DeviceEventTable,
    pub event: *mut c_void,
}

/// Called once.
pub(crate) type AndThen = Option<unsafe extern "C" fn(user_arg: *mut c_void)>;

/// What can be done with a [`DeviceEvent`].
#[derive(Debug)]
#[repr(C)]
pub struct DeviceEventTable {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub inc_ref: Option<unsafe extern "C" fn(event: *mut c_void)>,
    pub dec_ref: Option<unsafe extern "C" fn(event: *mut c_void)>,
    pub and_then: Option<unsafe extern "C" fn(event: *mut c_void, callback: AndThen, user_arg: *mut c_void)>,
    pub get_error_if_present: Option<
        unsafe extern "C" fn(
            event: *mut c_void,
            code: *mut c_int,
            message: *mut *const c_char,
            message_size: *mut usize,
        ) -> c_int,
    >,
    pub parent: *const DeviceEventTable,
    pub get_state: Option<unsafe extern "C" fn(event: *mut c_void) -> c_int>,
    pub get_definition_stream: Option<unsafe extern "C" fn(event: *mut c_void, sequence_number: *mut u64) -> isize>,
}

/// An array of device events, each with a reference.
#[derive(Debug)]
#[repr(C)]
pub struct EventVector {
    pub data: *mut DeviceEvent,
    pub size: usize,
    pub capacity: usize,
    pub destroy: Option<unsafe extern "C" fn(data: *mut DeviceEvent)>,
}

/// The visible part of a promise.
#[derive(Debug)]
#[repr(C)]
pub struct Promise {
    pub table: *const PromiseTable,
}

/// What can be done with a [`Promise`].
#[derive(Debug)]
#[repr(C)]
pub struct PromiseTable {
    pub struct_size: usize,
    pub instance_size: usize,
    pub extension_start: *mut c_void,
    pub inc_ref: Option<unsafe extern "C" fn(promise: *mut Promise)>,
    pub dec_ref: Option<unsafe extern "C" fn(promise: *mut Promise)>,
    pub event: Option<unsafe extern "C" fn(promise: *mut Promise) -> DeviceEvent>,
    pub set: Option<unsafe extern "C" fn(promise: *mut Promise, event: DeviceEvent)>,
    pub set_error: Option<unsafe extern "C" fn(promise: *mut Promise, error: *mut PjrtError)>,
    pub set_ready: Option<unsafe extern "C" fn(promise: *mut Promise)>,
}

/// The visible part of an error.
#[derive(Debug)]
#[repr(C)]
pub struct PjrtError {
    pub table: *const ErrorTable,
}

/// Called for each payload.
pub(crate) type PayloadVisitor = Option<
    unsafe extern "C" fn(
        key: *const c_char,
        key_size: usize,
        value: *const c_char,
        value_size: usize,
        user_arg: *mut c_void,
    ),
>;

/// What can be done with a [`PjrtError`].
#[derive(Debug)]
#[repr(C)]
pub struct ErrorTable {
    pub struct_size: usize,
    pub instance_size: usize,
    pub extension_start: *mut c_void,
    pub destroy: Option<unsafe extern "C" fn(error: *mut PjrtError)>,
    pub message: Option<unsafe extern "C" fn(error: *const PjrtError, message: *mut *const c_char, size: *mut usize)>,
    pub get_code: Option<unsafe extern "C" fn(error: *const PjrtError) -> c_int>,
    pub for_each_payload:
        Option<unsafe extern "C" fn(error: *const PjrtError, visitor: PayloadVisitor, user_arg: *mut c_void)>,
}

/// The visible part of a raw buffer.
#[derive(Debug)]
#[repr(C)]
pub struct RawBuffer {
    /// What can be done with it.
    pub table: *const RawBufferTable,
}

/// Called once with how the allocation went: an error that it owns, or null.
pub(crate) type OnAllocated = Option<unsafe extern "C" fn(error: *mut PjrtError, user_data: *mut c_void)>;

/// What can be done with a [`RawBuffer`].
#[derive(Debug)]
#[repr(C)]
pub struct RawBufferTable {
    pub struct_size: usize,
    pub instance_size: usize,
    pub extension_start: *mut c_void,
    pub inc_ref: Option<unsafe extern "C" fn(buffer: *mut RawBuffer)>,
    pub dec_ref: Option<unsafe extern "C" fn(buffer: *mut RawBuffer)>,
    pub get_on_device_size_in_bytes: Option<unsafe extern "C" fn(buffer: *const RawBuffer) -> usize>,
    pub get_memory_space: Option<unsafe extern "C" fn(buffer: *const RawBuffer) -> *mut c_void>,
    pub get_host_pointer: Option<unsafe extern "C" fn(buffer: *const RawBuffer) -> *mut c_void>,
    pub copy_raw_host_to_device_and_return_event: Option<
        unsafe extern "C" fn(
            buffer: *mut RawBuffer,
            source: *const c_void,
            offset: i64,
            size: i64,
            dependencies: *mut EventVector,
            event: *mut DeviceEvent,
        ) -> *mut PjrtError,
    >,
    pub copy_raw_device_to_host_and_return_event: Option<
        unsafe extern "C" fn(
            buffer: *mut RawBuffer,
            destination: *mut c_void,
            offset: i64,
            size: i64,
            dependencies: *mut EventVector,
            event: *mut DeviceEvent,
        ) -> *mut PjrtError,
    >,
    pub opaque_device_memory_data_pointer: Option<unsafe extern "C" fn(buffer: *const RawBuffer) -> *mut c_void>,
    pub make_allocation_ready_event:
        Option<unsafe extern "C" fn(buffer: *mut RawBuffer, event: *mut DeviceEvent) -> *mut PjrtError>,
    pub get_raw_buffer_async_value:
        Option<unsafe extern "C" fn(buffer: *mut RawBuffer, event: *mut DeviceEvent) -> *mut PjrtError>,
    /// A `bool` in C; other sides may write any byte.
    pub is_mutable: Option<unsafe extern "C" fn(buffer: *const RawBuffer) -> u8>,
    pub slice: Option<
        unsafe extern "C" fn(
            buffer: *mut RawBuffer,
            offset: i64,
            size: i64,
            slice: *mut *mut RawBuffer,
        ) -> *mut PjrtError,
    >,
    pub schedule_copy_to: Option<
        unsafe extern "C" fn(
            source: *mut RawBuffer,
            dependencies: *mut EventVector,
            destination: *mut RawBuffer,
            definition: *mut Promise,
            usage: *mut Promise,
            on_allocated: OnAllocated,
            user_data: *mut c_void,
        ),
    >,
}

/// The beginning of the arguments of every function of a plugin, and for most of those below, all of them.
#[derive(Debug)]
#[repr(C)]
pub struct Args<T> {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    /// The event or the error that it is about.
    pub subject: *mut c_void,
    /// What follows.
    pub rest: T,
}

/// `PJRT_Error_Message_Args`, behind its beginning.
#[derive(Debug)]
#[repr(C)]
pub struct Message {
    pub data: *const c_char,
    pub size: usize,
}

/// `PJRT_Error_ForEachPayload_Args`, behind its beginning.
#[derive(Debug)]
#[repr(C)]
pub struct ForEachPayload {
    pub visitor: PayloadVisitor,
    pub user_arg: *mut c_void,
}

/// `PJRT_Event_OnReady_Args`, behind its beginning.
#[derive(Debug)]
#[repr(C)]
pub struct OnReady {
    /// Owns the error, which may be null.
    pub callback: Option<unsafe extern "C" fn(error: *mut c_void, user_arg: *mut c_void)>,
    pub user_arg: *mut c_void,
}

/// A function of a plugin that can fail: an error, the caller's, or null.
pub(crate) type Fallible<T> = Option<unsafe extern "C" fn(args: *mut Args<T>) -> *mut c_void>;

/// The functions of a plugin, `PJRT_Api`, as far as they are called here.
#[derive(Debug)]
#[repr(C)]
pub struct Api {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub version: [u64; 3],
    pub error_destroy: Option<unsafe extern "C" fn(args: *mut Args<()>)>,
    pub error_message: Option<unsafe extern "C" fn(args: *mut Args<Message>)>,
    pub error_get_code: Fallible<c_int>,
    pub plugin: [usize; 2],
    pub event_destroy: Fallible<()>,
    /// Writes a `bool` of C; other sides may write any byte.
    pub event_is_ready: Fallible<u8>,
    pub event_error: Fallible<()>,
    pub event_await: Fallible<()>,
    pub event_on_ready: Fallible<OnReady>,
    pub between: [usize; 122],
    pub error_for_each_payload: Fallible<ForEachPayload>,
}

impl Table for DeviceEventTable {}
impl Table for PromiseTable {}
impl Table for ErrorTable {}
impl Table for RawBufferTable {}
impl Table for Api {}

// SAFETY: tables are never written, and their functions may be called from every thread.
unsafe impl Sync for DeviceEventTable {}
// SAFETY: as above.
unsafe impl Sync for PromiseTable {}
// SAFETY: as above.
unsafe impl Sync for ErrorTable {}
// SAFETY: as above.
unsafe impl Sync for RawBufferTable {}

/// The size, and the offset of each field, in their order.
macro_rules! layout {
    ($type:ty, $size:literal, $($field:ident: $offset:literal),+) => {
        assert!(size_of::<$type>() == $size);
        $(assert!(offset_of!($type, $field) == $offset);)+
    };
}

const _: () = {
    layout!(DeviceEvent, 16, table: 0, event: 8);
    layout!(DeviceEventTable, 72, struct_size: 0, extension_start: 8, inc_ref: 16, dec_ref: 24, and_then: 32, get_error_if_present: 40, parent: 48, get_state: 56, get_definition_stream: 64);
    layout!(EventVector, 32, data: 0, size: 8, capacity: 16, destroy: 24);
    layout!(Promise, 8, table: 0);
    layout!(PromiseTable, 72, struct_size: 0, instance_size: 8, extension_start: 16, inc_ref: 24, dec_ref: 32, event: 40, set: 48, set_error: 56, set_ready: 64);
    layout!(PjrtError, 8, table: 0);
    layout!(ErrorTable, 56, struct_size: 0, instance_size: 8, extension_start: 16, destroy: 24, message: 32, get_code: 40, for_each_payload: 48);
    layout!(RawBuffer, 8, table: 0);
    layout!(RawBufferTable, 128, struct_size: 0, instance_size: 8, extension_start: 16, inc_ref: 24, dec_ref: 32, get_on_device_size_in_bytes: 40, get_memory_space: 48, get_host_pointer: 56, copy_raw_host_to_device_and_return_event: 64, copy_raw_device_to_host_and_return_event: 72, opaque_device_memory_data_pointer: 80, make_allocation_ready_event: 88, get_raw_buffer_async_value: 96, is_mutable: 104, slice: 112, schedule_copy_to: 120);
    layout!(Args<()>, 24, struct_size: 0, extension_start: 8, subject: 16, rest: 24);
    layout!(Args<c_int>, 32, rest: 24);
    layout!(Args<u8>, 32, rest: 24);
    layout!(Args<Message>, 40, rest: 24);
    layout!(Args<ForEachPayload>, 40, rest: 24);
    layout!(Args<OnReady>, 40, rest: 24);
    layout!(Message, 16, data: 0, size: 8);
    layout!(ForEachPayload, 16, visitor: 0, user_arg: 8);
    layout!(OnReady, 16, callback: 0, user_arg: 8);
    layout!(Api, 1104, struct_size: 0, extension_start: 8, version: 16, error_destroy: 40, error_message: 48, error_get_code: 56, plugin: 64, event_destroy: 80, event_is_ready: 88, event_error: 96, event_await: 104, event_on_ready: 112, between: 120, error_for_each_payload: 1096);
};
