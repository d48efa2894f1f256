//! `PJRT_DeviceEventVector`: an array of device events, each with a reference, and the function that frees the array
//! alone. The receiver moves the events out and leaves it empty, so a vector that is received twice gives nothing
//! twice.
//!
//! Ours have their length in front of the first element, because what frees an array gets nothing but its address.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr;

use purlin_async::Event;
use purlin_base::Error;
use purlin_ffi::handle::elements;
use purlin_ffi::panic::contain;

use super::abi::{DeviceEvent, DeviceEventVector};
use super::device_event;

/// What is in front of the elements, and keeps them aligned.
const PREFIX_BYTES: usize = 16;

const _: () = assert!(PREFIX_BYTES >= size_of::<usize>() && PREFIX_BYTES.is_multiple_of(align_of::<DeviceEvent>()));

fn layout(count: usize) -> Layout {
    // Events are in memory already, 8 bytes each, so three times as much is a number; a wrong one frees nothing.
    Layout::from_size_align(PREFIX_BYTES + count * size_of::<DeviceEvent>(), PREFIX_BYTES)
        .expect("as many events as there are in memory")
}

/// A reference to each of `events`.
pub fn give(events: &[Event]) -> DeviceEventVector {
    let count = events.len();
    if count == 0 {
        return DeviceEventVector { data: ptr::null_mut(), size: 0, capacity: 0, destroy: Some(destroy) };
    }
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc(layout(count)) };
    if memory.is_null() {
        handle_alloc_error(layout(count));
    }
    // SAFETY: the memory is new and has room for the number and the elements.
    unsafe {
        memory.cast::<usize>().write(count);
        let data = memory.byte_add(PREFIX_BYTES).cast::<DeviceEvent>();
        for (index, event) in events.iter().enumerate() {
            data.add(index).write(device_event::give(event.clone()));
        }
        DeviceEventVector { data, size: count, capacity: count, destroy: Some(destroy) }
    }
}

/// How many events [`take`] gives.
///
/// # Safety
/// `vector` is null or a vector.
pub unsafe fn count(vector: *const DeviceEventVector) -> usize {
    // SAFETY: the caller's promise.
    unsafe { vector.as_ref() }.map_or(0, |vector| if vector.data.is_null() { vector.size.min(1) } else { vector.size })
}

/// Moves the events out. A vector that says that it has some and does not is one event with `InvalidArgument`.
///
/// # Safety
/// `vector` is null or a vector, whose elements the caller gives up.
pub unsafe fn take(vector: *mut DeviceEventVector) -> Vec<Event> {
    // SAFETY: the caller's promise.
    let Some(vector) = (unsafe { vector.as_mut() }) else { return Vec::new() };
    let empty = DeviceEventVector { data: ptr::null_mut(), size: 0, capacity: 0, destroy: None };
    let DeviceEventVector { data, size, destroy, .. } = std::mem::replace(vector, empty);
    if data.is_null() {
        return if size == 0 { Vec::new() } else { vec![Event::from_error(no_data(size))] };
    }
    // SAFETY: the elements are the caller's, which gives them up; then the array has no owner.
    unsafe {
        let events = elements(data, size).iter().map(|event| device_event::take(*event)).collect();
        if let Some(destroy) = destroy {
            destroy(data);
        }
        events
    }
}

fn no_data(size: usize) -> Error {
    Error::invalid_argument(format!("a PJRT_DeviceEventVector of {size} events has no data"))
}

unsafe extern "C" fn destroy(data: *mut DeviceEvent) {
    contain("PJRT destroy", (), || {
        if data.is_null() {
            return;
        }
        // SAFETY: give() made it, with its length in front.
        unsafe {
            let memory = data.byte_sub(PREFIX_BYTES).cast::<u8>();
            dealloc(memory, layout(memory.cast::<usize>().read()));
        }
    })
}
