//! `PJRT_DeviceEvent`: a pointer to an event and one to the table of its functions.
//!
//! Ours points to an [`EventHeader`], or to [`HAPPENED`] for the event that has always happened, because a null event
//! is none to XLA. Theirs becomes ours by its `and_then`; a reference to it is kept until that has called back.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr;

use purlin_async::event::abi::EventHeader;
use purlin_async::{DefinitionStream, Event, EventPromise, EventState};
use purlin_base::Error;
use purlin_ffi::panic::contain;

use super::abi::{DeviceEvent, DeviceEventCallback, DeviceEventTable, read, slot};
use super::{error, label};

static OURS: DeviceEventTable = DeviceEventTable {
    struct_size: size_of::<DeviceEventTable>(),
    extension_start: ptr::null_mut(),
    inc_ref: Some(inc_ref),
    dec_ref: Some(dec_ref),
    and_then: Some(and_then),
    get_error_if_present: Some(get_error_if_present),
    parent: ptr::null(),
    get_state: Some(get_state),
    get_definition_stream: Some(get_definition_stream),
};
/// A static, not a constant: its address is the type of our events.
pub static TABLE: &DeviceEventTable = &OURS;

/// Numbers of `get_state`.
const READY: c_int = EventState::Ready as c_int;
const FAILED: c_int = EventState::Error as c_int;

/// How long a chain of `parent`s is believed.
const LONGEST_CHAIN: usize = 16;

/// The address of an event that has happened; never read.
static HAPPENED: u128 = 0;

/// A device event of ours with one reference, C's.
pub fn give(event: Event) -> DeviceEvent {
    let header = event.into_raw();
    let event = if header.is_null() { (&raw const HAPPENED).cast_mut().cast() } else { header.cast() };
    DeviceEvent { table: TABLE, event }
}

/// As [`give`], without a reference: it lives as long as `event` does.
pub fn lend(event: &Event) -> DeviceEvent {
    let lent = give(event.clone());
    // SAFETY: the reference that give() has just made.
    unsafe { dec_ref(lent.event) };
    lent
}

/// The cell behind one of our device events; null for what has happened.
fn header(event: *mut c_void) -> *mut EventHeader {
    if ptr::eq(event, (&raw const HAPPENED).cast()) { ptr::null_mut() } else { event.cast() }
}

/// One more reference to the event behind one of ours.
///
/// # Safety
/// `event` is null or alive.
unsafe fn kept(event: *mut c_void) -> Event {
    // SAFETY: the caller's promise.
    unsafe { Event::from_borrowed_raw(header(event)) }
}

/// An event that follows `event`: ours as it is; what is no event at all has happened. `InvalidArgument`: the table
/// lacks a function that it takes.
///
/// # Safety
/// `event` is what the struct says, and the caller gives one reference up.
pub unsafe fn take(event: DeviceEvent) -> Event {
    if event.event.is_null() {
        return Event::ready();
    }
    let table = event.table;
    if ptr::eq(table, TABLE) {
        // SAFETY: the table says that give() made it; the reference is the caller's.
        return unsafe { Event::from_raw(header(event.event)) };
    }
    // SAFETY: alive, and its table says what it has.
    unsafe {
        let Some(theirs) = Theirs::new(event) else { return Event::from_error(unusable(table)) };
        if is_alias(table) {
            return kept(event.event);
        }
        match theirs.state() {
            Some(READY) => return Event::ready(),
            Some(FAILED) => return theirs.outcome().map_or_else(Event::from_error, |()| Event::ready()),
            _ => (),
        }
        let promise = EventPromise::guarding(label());
        let follower = promise.event();
        let and_then = theirs.and_then;
        let waiting = Box::into_raw(Box::new((theirs, promise)));
        and_then(event.event, Some(completed), waiting.cast());
        follower
    }
}

/// What a foreign event must be able to do, and one reference to it.
struct Theirs {
    event: DeviceEvent,
    dec_ref: unsafe extern "C" fn(event: *mut c_void),
    and_then: unsafe extern "C" fn(event: *mut c_void, callback: DeviceEventCallback, user_arg: *mut c_void),
}

impl Theirs {
    /// `None`, and the reference is gone where that can be said: the table lacks something.
    ///
    /// # Safety
    /// As [`take`]; the event is not null.
    unsafe fn new(event: DeviceEvent) -> Option<Self> {
        if event.table.is_null() {
            return None;
        }
        // SAFETY: the table says what it has; the reference is the caller's.
        unsafe {
            let dec_ref = slot!(event.table, DeviceEventTable, dec_ref)?;
            let Some(and_then) = slot!(event.table, DeviceEventTable, and_then) else {
                dec_ref(event.event);
                return None;
            };
            Some(Self { event, dec_ref, and_then })
        }
    }

    /// The number of its state, if it says so.
    fn state(&self) -> Option<c_int> {
        // SAFETY: alive by our reference.
        unsafe { slot!(self.event.table, DeviceEventTable, get_state).map(|get_state| get_state(self.event.event)) }
    }

    /// How a terminal event has ended.
    fn outcome(&self) -> Result<(), Error> {
        match self.error() {
            Some(error) => Err(error),
            None if self.state() == Some(FAILED) => {
                Err(Error::unknown("a PJRT_DeviceEvent has failed and does not say why"))
            }
            None => Ok(()),
        }
    }

    /// What it says about its error, if anything.
    fn error(&self) -> Option<Error> {
        let (mut code, mut text, mut size) = (0, ptr::null(), 0);
        // SAFETY: alive by our reference; the text lives as long as it.
        unsafe {
            match slot!(self.event.table, DeviceEventTable, get_error_if_present) {
                Some(get) if get(self.event.event, &raw mut code, &raw mut text, &raw mut size) != 0 => {
                    Some(error::from_parts("PJRT_DeviceEvent", code, text, size))
                }
                _ => None,
            }
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: our reference, which ends here.
        unsafe { (self.dec_ref)(self.event.event) };
    }
}

/// Their event is terminal.
unsafe extern "C" fn completed(waiting: *mut c_void) {
    contain("PJRT completed", (), || {
        // SAFETY: from take(), and called once, as `and_then` promises.
        let (theirs, promise) = *unsafe { Box::from_raw(waiting.cast::<(Theirs, EventPromise)>()) };
        let outcome = theirs.outcome();
        // Before the waiters run: they may unload the plugin that made it.
        drop(theirs);
        promise.set(outcome);
    })
}

fn unusable(table: *const DeviceEventTable) -> Error {
    if table.is_null() {
        return Error::invalid_argument("a PJRT_DeviceEvent without a table");
    }
    // SAFETY: a table begins with its size.
    let size = unsafe { table.cast::<usize>().read() };
    Error::invalid_argument(format!(
        "the table of a PJRT_DeviceEvent (struct_size {size}) has no dec_ref or no and_then, so nobody can hear of it"
    ))
}

/// Whether the pointer to the event is that of one of ours, whatever else its table says.
///
/// # Safety
/// `table` is a table, and so are its parents.
unsafe fn is_alias(table: *const DeviceEventTable) -> bool {
    let mut table = table;
    for _ in 0..LONGEST_CHAIN {
        // SAFETY: the caller's promise.
        let parent = unsafe { read(table, offset_of!(DeviceEventTable, parent), |table| table.parent) };
        match parent {
            Some(parent) if ptr::eq(parent, TABLE) => return true,
            Some(parent) if !parent.is_null() && !ptr::eq(parent, table) => table = parent,
            _ => return false,
        }
    }
    false
}

unsafe extern "C" fn inc_ref(event: *mut c_void) {
    // SAFETY: null or alive; the new reference becomes the caller's.
    let _ = unsafe { kept(event) }.into_raw();
}

unsafe extern "C" fn dec_ref(event: *mut c_void) {
    contain("PJRT dec_ref", (), || {
        // SAFETY: null or the caller's reference.
        drop(unsafe { Event::from_raw(header(event)) });
    })
}

unsafe extern "C" fn and_then(event: *mut c_void, callback: DeviceEventCallback, user_arg: *mut c_void) {
    contain("PJRT and_then", (), || {
        let Some(callback) = callback else { return };
        let call = Call { callback, user_arg };
        // SAFETY: null or alive.
        unsafe { kept(event) }.on_ready(move |_outcome| call.once());
    })
}

/// A callback that is passed to the thread that completes its event.
struct Call {
    callback: unsafe extern "C" fn(user_arg: *mut c_void),
    user_arg: *mut c_void,
}

// SAFETY: the contract of `and_then`: it is called on any thread.
unsafe impl Send for Call {}

impl Call {
    fn once(self) {
        // SAFETY: the callback came with the argument that it takes, and this is consumed.
        unsafe { (self.callback)(self.user_arg) };
    }
}

unsafe extern "C" fn get_error_if_present(
    event: *mut c_void,
    code: *mut c_int,
    message: *mut *const c_char,
    message_size: *mut usize,
) -> c_int {
    contain("PJRT get_error_if_present", 0, || {
        // SAFETY: null or alive. The text belongs to the event's error, which lives as long as it; the outputs are null
        // or the caller's.
        unsafe {
            let Some(error) = kept(event).error() else { return 0 };
            if !code.is_null() {
                code.write(error.code() as c_int);
            }
            if !message.is_null() {
                message.write(error.message().as_ptr().cast());
            }
            if !message_size.is_null() {
                message_size.write(error.message().len());
            }
        }
        1
    })
}

unsafe extern "C" fn get_state(event: *mut c_void) -> c_int {
    // SAFETY: null or alive.
    let state: EventState = unsafe { kept(event) }.state();
    state as c_int
}

unsafe extern "C" fn get_definition_stream(event: *mut c_void, sequence_number: *mut u64) -> isize {
    // SAFETY: null or alive.
    let definition = unsafe { kept(event) }.definition_stream();
    let DefinitionStream { stream, sequence_number: number } =
        definition.unwrap_or(DefinitionStream { stream: 0, sequence_number: 0 });
    if !sequence_number.is_null() {
        // SAFETY: the caller's.
        unsafe { sequence_number.write(number) };
    }
    stream.cast_signed()
}
