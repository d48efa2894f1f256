//! `PJRT_RawBuffer`: a counted object that begins with the table of its functions.
//!
//! Ours is a [`RawBuffer`](purlin_device::RawBuffer) and whatever its user says its memory is. A slot that is given
//! dependencies moves them out and waits for them, whatever else is wrong. The destination of a copy may be foreign:
//! then its own table copies from our host memory, or from a bounce of it where the host does not reach ours.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use purlin_async::{Event, when_all};
use purlin_base::Error;
use purlin_device::RawBuffer as Bytes;
use purlin_ffi::handle::{kept, release, retain, share};
use purlin_ffi::panic::{contain, guard};

use super::abi::{
    DeviceEvent, DeviceEventPromise, DeviceEventVector, Memory, PjrtError, RawBuffer, RawBufferOnAllocated,
    RawBufferTable, slot,
};
use super::promise::Taken;
use super::{device_event, error, vector};

/// The table of every raw buffer that is given.
pub static TABLE: RawBufferTable = RawBufferTable {
    struct_size: size_of::<RawBufferTable>(),
    instance_size: size_of::<RawBuffer>(),
    extension_start: ptr::null_mut(),
    inc_ref: Some(inc_ref),
    dec_ref: Some(dec_ref),
    get_on_device_size_in_bytes: Some(get_on_device_size_in_bytes),
    get_memory_space: Some(get_memory_space),
    get_host_pointer: Some(get_host_pointer),
    copy_raw_host_to_device_and_return_event: Some(copy_from_host),
    copy_raw_device_to_host_and_return_event: Some(copy_to_host),
    opaque_device_memory_data_pointer: Some(opaque_device_memory_data_pointer),
    make_allocation_ready_event: Some(make_allocation_ready_event),
    get_raw_buffer_async_value: Some(get_raw_buffer_async_value),
    is_mutable: Some(is_mutable),
    slice: Some(slice),
    schedule_copy_to: Some(schedule_copy_to),
};

/// A raw buffer of ours, in an `Arc`; never changes.
#[repr(C)]
struct Ours {
    visible: RawBuffer,
    bytes: Bytes,
    /// What is lent by `get_raw_buffer_async_value`.
    allocated: Event,
    /// The user's `PJRT_Memory`, or null; never followed.
    memory: *mut c_void,
}

// SAFETY: the table is static, the user's pointer is only compared, and all else is.
unsafe impl Send for Ours {}
// SAFETY: as above.
unsafe impl Sync for Ours {}

/// One reference.
pub fn give(bytes: Bytes, memory: *mut c_void) -> *mut RawBuffer {
    let allocated = bytes.allocation_event();
    share(Ours { visible: RawBuffer { table: &TABLE }, bytes, allocated, memory }).cast_mut().cast()
}

/// # Safety
/// `buffer` is null or one of ours, alive.
unsafe fn ours<'a>(buffer: *const RawBuffer) -> Option<&'a Ours> {
    // SAFETY: the caller's promise.
    unsafe { buffer.cast::<Ours>().as_ref() }
}

fn null(what: &str) -> Error {
    Error::invalid_argument(format!("{what} is null"))
}

/// # Errors
/// `InvalidArgument`: it is negative.
fn number(what: &str, number: i64) -> Result<usize, Error> {
    usize::try_from(number).map_err(|_negative| Error::invalid_argument(format!("{what} is {number}")))
}

/// Calls `f`, and writes the event that it makes.
///
/// # Safety
/// `event` is null or the caller's; `f` promises what it calls.
unsafe fn answer(event: *mut DeviceEvent, f: impl FnOnce() -> Result<DeviceEvent, Error>) -> *mut PjrtError {
    if event.is_null() {
        return error::give(null("the place for a PJRT_DeviceEvent"));
    }
    let made = guard(f);
    let nothing = DeviceEvent { table: ptr::null(), event: ptr::null_mut() };
    // SAFETY: the caller's.
    unsafe { event.write(*made.as_ref().unwrap_or(&nothing)) };
    made.err().map_or(ptr::null_mut(), error::give)
}

unsafe extern "C" fn inc_ref(buffer: *mut RawBuffer) {
    if !buffer.is_null() {
        // SAFETY: alive.
        unsafe { retain(buffer.cast::<Ours>().cast_const()) };
    }
}

unsafe extern "C" fn dec_ref(buffer: *mut RawBuffer) {
    contain("PJRT dec_ref", (), || {
        if !buffer.is_null() {
            // SAFETY: the caller's reference.
            unsafe { release(buffer.cast::<Ours>().cast_const()) };
        }
    })
}

unsafe extern "C" fn get_on_device_size_in_bytes(buffer: *const RawBuffer) -> usize {
    // SAFETY: null or alive.
    unsafe { ours(buffer) }.map_or(0, |ours| ours.bytes.size_bytes())
}

unsafe extern "C" fn get_memory_space(buffer: *const RawBuffer) -> *mut Memory {
    // SAFETY: null or alive.
    unsafe { ours(buffer) }.map_or(ptr::null_mut(), |ours| ours.memory.cast())
}

unsafe extern "C" fn get_host_pointer(buffer: *const RawBuffer) -> *mut c_void {
    contain("PJRT get_host_pointer", ptr::null_mut(), || {
        // SAFETY: null or alive.
        let pointer = unsafe { ours(buffer) }.and_then(|ours| ours.bytes.host_pointer());
        pointer.map_or(ptr::null_mut(), |pointer| pointer.as_ptr().cast())
    })
}

/// What a copy of a range is about.
///
/// # Errors
/// `InvalidArgument`: there is no buffer, or a number is negative.
///
/// # Safety
/// `buffer` is null or one of ours, alive.
unsafe fn range<'a>(buffer: *const RawBuffer, offset: i64, size: i64) -> Result<(&'a Ours, usize, usize), Error> {
    // SAFETY: the caller's promise.
    let ours = unsafe { ours(buffer) }.ok_or_else(|| null("a PJRT_RawBuffer"))?;
    Ok((ours, number("the offset of a copy", offset)?, number("the size of a copy", size)?))
}

unsafe extern "C" fn copy_from_host(
    buffer: *mut RawBuffer,
    source: *const c_void,
    offset: i64,
    size: i64,
    dependencies: *mut DeviceEventVector,
    event: *mut DeviceEvent,
) -> *mut PjrtError {
    // SAFETY: null or a vector whose elements the caller gives up.
    let dependencies = unsafe { vector::take(dependencies) };
    // SAFETY: the contract of the slot: the source stays readable and unchanged until the event; the rest is null or
    // alive.
    unsafe {
        answer(event, || {
            let (ours, offset, size) = range(buffer, offset, size)?;
            Ok(device_event::give(ours.bytes.copy_from_host(source.cast(), offset, size, &dependencies)))
        })
    }
}

unsafe extern "C" fn copy_to_host(
    buffer: *mut RawBuffer,
    destination: *mut c_void,
    offset: i64,
    size: i64,
    dependencies: *mut DeviceEventVector,
    event: *mut DeviceEvent,
) -> *mut PjrtError {
    // SAFETY: as in copy_from_host().
    let dependencies = unsafe { vector::take(dependencies) };
    // SAFETY: the contract of the slot: the destination stays writable and untouched until the event; the rest is null
    // or alive.
    unsafe {
        answer(event, || {
            let (ours, offset, size) = range(buffer, offset, size)?;
            Ok(device_event::give(ours.bytes.copy_to_host(destination.cast(), offset, size, &dependencies)))
        })
    }
}

/// Null while the memory is not there; does not wait for it.
unsafe extern "C" fn opaque_device_memory_data_pointer(buffer: *const RawBuffer) -> *mut c_void {
    // SAFETY: null or alive.
    let address = unsafe { ours(buffer) }.and_then(|ours| guard(|| ours.bytes.device_pointer()).ok());
    ptr::with_exposed_provenance_mut(address.unwrap_or(0))
}

unsafe extern "C" fn make_allocation_ready_event(buffer: *mut RawBuffer, event: *mut DeviceEvent) -> *mut PjrtError {
    // SAFETY: null or alive; the output is null or the caller's.
    unsafe {
        answer(event, || {
            let ours = ours(buffer).ok_or_else(|| null("a PJRT_RawBuffer"))?;
            Ok(device_event::give(ours.allocated.clone()))
        })
    }
}

/// Lent: it lives as long as the buffer.
unsafe extern "C" fn get_raw_buffer_async_value(buffer: *mut RawBuffer, event: *mut DeviceEvent) -> *mut PjrtError {
    // SAFETY: as in make_allocation_ready_event().
    unsafe {
        answer(event, || {
            let ours = ours(buffer).ok_or_else(|| null("a PJRT_RawBuffer"))?;
            Ok(device_event::lend(&ours.allocated))
        })
    }
}

unsafe extern "C" fn is_mutable(buffer: *const RawBuffer) -> u8 {
    contain("PJRT is_mutable", 0, || {
        // SAFETY: null or alive.
        u8::from(unsafe { ours(buffer) }.is_some_and(|ours| ours.bytes.is_mutable()))
    })
}

unsafe extern "C" fn slice(
    buffer: *mut RawBuffer,
    offset: i64,
    size: i64,
    slice: *mut *mut RawBuffer,
) -> *mut PjrtError {
    if slice.is_null() {
        return error::give(null("the place for a slice"));
    }
    let made = guard(|| {
        // SAFETY: null or alive.
        let ours = unsafe { ours(buffer) }.ok_or_else(|| null("a PJRT_RawBuffer"))?;
        let (offset, size) = (number("the offset of a slice", offset)?, number("the size of a slice", size)?);
        Ok(give(ours.bytes.slice(offset, size)?, ours.memory))
    });
    // SAFETY: the caller's.
    unsafe { slice.write(*made.as_ref().unwrap_or(&ptr::null_mut())) };
    made.err().map_or(ptr::null_mut(), error::give)
}

/// Copies all of `source`, which is ours, to the beginning of `destination`, after the dependencies. `on_allocated` is
/// called before the destination is touched, because that may be what its memory waits for.
unsafe extern "C" fn schedule_copy_to(
    source: *mut RawBuffer,
    dependencies: *mut DeviceEventVector,
    destination: *mut RawBuffer,
    definition: *mut DeviceEventPromise,
    usage: *mut DeviceEventPromise,
    on_allocated: RawBufferOnAllocated,
    user_data: *mut c_void,
) {
    contain("PJRT schedule_copy_to", (), || {
        // SAFETY: the contract of the slot: the vector's elements, both promises and the callback are given up; the
        // buffers are null or alive now.
        let (dependencies, mut promises, source, destination) = unsafe {
            let promises = [Taken::new(definition).ok(), Taken::new(usage).ok()];
            // Not the caller's reference, which may go before the copy is done.
            let source = NonNull::new(source).map(|source| kept(source.as_ptr().cast::<Ours>().cast_const()));
            (vector::take(dependencies), promises, source, Destination::new(destination))
        };
        let on_allocated = CallbackOnce(on_allocated.map(|callback| (callback, user_data)));
        let after = when_all(&dependencies);
        after.on_ready(move |outcome| {
            let begun = outcome.clone().and_then(|()| {
                let source = source.ok_or_else(|| null("the source of a copy"))?;
                Ok((source, destination?))
            });
            on_allocated.tell(begun.as_ref().err().cloned());
            let done =
                begun.map_or_else(Event::from_error, |(source, destination)| destination.fill_from(&source.bytes));
            done.on_ready(move |outcome| {
                for promise in promises.iter_mut().filter_map(Option::take) {
                    promise.tell(outcome);
                }
            });
        });
    })
}

/// A callback that is called once, whatever happens.
struct CallbackOnce(Option<(unsafe extern "C" fn(error: *mut PjrtError, user_data: *mut c_void), *mut c_void)>);

// SAFETY: the contract of `schedule_copy_to`: it is called on any thread.
unsafe impl Send for CallbackOnce {}

impl CallbackOnce {
    fn tell(self, error: Option<Error>) {
        if let Some((callback, user_data)) = ManuallyDrop::new(self).0 {
            // SAFETY: the callback came with the argument that it takes, and this is consumed; it owns the error.
            unsafe { callback(error.map_or(ptr::null_mut(), error::give), user_data) };
        }
    }
}

impl Drop for CallbackOnce {
    fn drop(&mut self) {
        Self(self.0.take()).tell(Some(Error::internal("a copy was given up before it began")));
    }
}

/// The destination of a copy.
enum Destination {
    Ours(Bytes),
    Theirs(Theirs),
}

impl Destination {
    /// # Errors
    /// `InvalidArgument`: there is none, or its table lacks a function.
    ///
    /// # Safety
    /// `buffer` is null or alive.
    unsafe fn new(buffer: *mut RawBuffer) -> Result<Self, Error> {
        if buffer.is_null() {
            return Err(null("the destination of a copy"));
        }
        // SAFETY: a buffer begins with the pointer to its table; one of ours is what its table says.
        unsafe {
            if ptr::eq((*buffer).table, &TABLE) {
                return Ok(Self::Ours((*buffer.cast::<Ours>()).bytes.clone()));
            }
            Theirs::new(buffer).map(Self::Theirs)
        }
    }

    /// Copies all of `source` to the beginning.
    fn fill_from(self, source: &Bytes) -> Event {
        match self {
            // SAFETY: the contract of `schedule_copy_to`: the dependencies order this copy with all that touch the
            // bytes.
            Self::Ours(destination) => unsafe { source.copy_to(&destination, &[]) },
            Self::Theirs(destination) => {
                if let Some(bytes) = source.host_pointer() {
                    let copied = destination.copy_from(bytes.as_ptr(), 0, source.size_bytes());
                    source.retain_until(&copied);
                    copied.on_ready(move |_outcome| drop(destination));
                    return copied;
                }
                Bounce::start(source.clone(), destination)
            }
        }
    }
}

type CopyFromHost = unsafe extern "C" fn(
    *mut RawBuffer,
    *const c_void,
    i64,
    i64,
    *mut DeviceEventVector,
    *mut DeviceEvent,
) -> *mut PjrtError;

/// One reference to a foreign buffer, and what it must be able to do.
struct Theirs {
    buffer: *mut RawBuffer,
    dec_ref: unsafe extern "C" fn(buffer: *mut RawBuffer),
    copy_from_host: CopyFromHost,
}

// SAFETY: their functions may be called from every thread.
unsafe impl Send for Theirs {}

impl Theirs {
    /// # Safety
    /// `buffer` is alive.
    unsafe fn new(buffer: *mut RawBuffer) -> Result<Self, Error> {
        // SAFETY: a buffer begins with the pointer to its table, which says what it has.
        unsafe {
            let table = (*buffer).table;
            if table.is_null() {
                return Err(Error::invalid_argument("a PJRT_RawBuffer without a table"));
            }
            let inc_ref = slot!(table, RawBufferTable, inc_ref);
            let dec_ref = slot!(table, RawBufferTable, dec_ref);
            let copy = slot!(table, RawBufferTable, copy_raw_host_to_device_and_return_event);
            let (Some(inc_ref), Some(dec_ref), Some(copy_from_host)) = (inc_ref, dec_ref, copy) else {
                return Err(Error::invalid_argument(format!(
                    "the table of a PJRT_RawBuffer (struct_size {}) has no inc_ref, dec_ref or copy from the host",
                    table.cast::<usize>().read()
                )));
            };
            inc_ref(buffer);
            Ok(Self { buffer, dec_ref, copy_from_host })
        }
    }

    /// Copies from host memory, which stays readable and unchanged until the event, to `offset_bytes`.
    fn copy_from(&self, bytes: *const u8, offset_bytes: usize, size_bytes: usize) -> Event {
        let (Ok(offset), Ok(size)) = (i64::try_from(offset_bytes), i64::try_from(size_bytes)) else {
            return Event::from_error(Error::out_of_range(format!("{size_bytes} bytes are too many for a PJRT copy")));
        };
        let mut event = DeviceEvent { table: ptr::null(), event: ptr::null_mut() };
        // SAFETY: alive by our reference; null is no dependencies; what is returned is ours.
        unsafe {
            let refused =
                (self.copy_from_host)(self.buffer, bytes.cast(), offset, size, ptr::null_mut(), &raw mut event);
            error::take(refused).map_or_else(|| device_event::take(event), Event::from_error)
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: our reference, which ends here.
        unsafe { (self.dec_ref)(self.buffer) };
    }
}

/// Most bytes that pass through the host at a time.
const BOUNCE_BYTES: usize = 4 << 20;

/// A copy from memory that the host does not reach to a foreign buffer: piece by piece through one block of the host's.
struct Bounce {
    source: Bytes,
    destination: Theirs,
    block: Vec<u8>,
    promise: purlin_async::EventPromise,
}

impl Bounce {
    /// `ResourceExhausted`: the host has no memory for a piece.
    fn start(source: Bytes, destination: Theirs) -> Event {
        let (mut block, block_bytes) = (Vec::new(), source.size_bytes().min(BOUNCE_BYTES));
        if block.try_reserve_exact(block_bytes).is_err() {
            return Event::from_error(Error::resource_exhausted(format!(
                "no host memory for {block_bytes} bytes of a copy from {source:?}"
            )));
        }
        block.resize(block_bytes, 0);
        let promise = purlin_async::EventPromise::guarding(super::label());
        let done = promise.event();
        Box::new(Self { source, destination, block, promise }).go_on(0);
        done
    }

    /// Copies what follows the first `offset_bytes`, at least one piece, even if that is empty. Nested at most as deep
    /// as waiters are.
    fn go_on(mut self: Box<Self>, offset_bytes: usize) {
        let size_bytes = self.block.len().min(self.source.size_bytes() - offset_bytes);
        let block = self.block.as_mut_ptr();
        // SAFETY: the block moves into the waiter below, its bytes do not move, and nothing else uses them until the
        // event.
        let read = unsafe { self.source.copy_to_host(block, offset_bytes, size_bytes, &[]) };
        read.on_ready(move |outcome| {
            if outcome.is_err() {
                return (*self).end(outcome);
            }
            let copied = self.destination.copy_from(self.block.as_ptr(), offset_bytes, size_bytes);
            copied.on_ready(move |outcome| {
                let next = offset_bytes + size_bytes;
                if outcome.is_ok() && next < self.source.size_bytes() {
                    self.go_on(next);
                } else {
                    (*self).end(outcome);
                }
            });
        });
    }

    /// Releases everything before it notifies.
    fn end(self, outcome: &Result<(), Error>) {
        let Self { source, destination, block, promise } = self;
        drop((source, destination, block));
        promise.set(outcome.clone());
    }
}
