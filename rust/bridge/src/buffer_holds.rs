//! `purlin/buffer_holds.h`: each is a box.
//!
//! In the safety sections, "alive" means that C++ has the object for the length of the call, and "owned" that it gives
//! it up.

use std::ffi::c_char;
use std::ptr;

use purlin_async::Event;
use purlin_async::event::abi::EventHeader;
use purlin_base::status::StatusRep;
use purlin_device::{DonationHold, ExternalReference, RawBuffer, UsageHold};
use purlin_ffi::handle::{give_box, share};
use purlin_ffi::panic::{contain, guard, guard_at};
use purlin_ffi::words::{Location, give_event};

use crate::buffer::BufferRep;
use crate::cancel::label;
use crate::raw_buffer::RawBufferRep;

/// What a `purlin::UsageHold` points to.
pub struct UsageHoldRep(UsageHold);
/// What a `purlin::ExternalReference` points to.
pub struct ExternalReferenceRep(ExternalReference);
/// What a `purlin::DonationHold` points to.
pub struct DonationHoldRep(DonationHold);

fn memory(memory: &RawBuffer) -> *const RawBufferRep {
    share(RawBufferRep(memory.clone()))
}

/// A hold, C++'s, or null and an error.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_buffer_usage_hold(
    buffer: &BufferRep,
    waits: bool,
    error: &mut *const StatusRep,
) -> *mut UsageHoldRep {
    let made = guard(|| if waits { buffer.get().usage_hold() } else { buffer.get().try_usage_hold() });
    give_box(made.map(UsageHoldRep), error)
}

/// The memory, C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_usage_hold_memory(hold: &UsageHoldRep) -> *const RawBufferRep {
    contain("purlin_usage_hold_memory", ptr::null(), || memory(hold.0.memory()))
}

/// The event, with one reference, C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_usage_hold_ready_event(hold: &UsageHoldRep) -> *mut EventHeader {
    give_event(|| Ok(hold.0.ready_event()))
}

/// Ends the hold.
///
/// # Safety
/// `hold` is owned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_usage_hold_release(hold: *mut UsageHoldRep) {
    contain("purlin_usage_hold_release", (), || {
        // SAFETY: owned.
        drop(unsafe { Box::from_raw(hold) });
    })
}

/// Ends the hold, when `event` is terminal.
///
/// # Safety
/// `hold` is owned; `event` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_usage_hold_release_after(hold: *mut UsageHoldRep, event: *mut EventHeader) {
    contain("purlin_usage_hold_release_after", (), || {
        // SAFETY: owned, and null or alive.
        let (hold, event) = unsafe { (Box::from_raw(hold), Event::from_borrowed_raw(event)) };
        hold.0.release_after(event);
    })
}

/// A reference, C++'s, or null and an error.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_buffer_external_reference(
    buffer: &BufferRep,
    error: &mut *const StatusRep,
) -> *mut ExternalReferenceRep {
    give_box(guard(|| buffer.get().external_reference()).map(ExternalReferenceRep), error)
}

/// The memory, C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_external_reference_memory(reference: &ExternalReferenceRep) -> *const RawBufferRep {
    contain("purlin_external_reference_memory", ptr::null(), || memory(reference.0.memory()))
}

/// The event, with one reference, C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_external_reference_ready_event(reference: &ExternalReferenceRep) -> *mut EventHeader {
    give_event(|| Ok(reference.0.ready_event()))
}

/// Lets the memory go.
///
/// # Safety
/// `reference` is owned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_external_reference_release(reference: *mut ExternalReferenceRep) {
    contain("purlin_external_reference_release", (), || {
        // SAFETY: owned.
        drop(unsafe { Box::from_raw(reference) });
    })
}

/// A hold, C++'s, or null and an error.
///
/// # Safety
/// `by` is static and ends with a NUL; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_donate(
    buffer: &BufferRep,
    by: *const c_char,
    waits: bool,
    location: Location,
    error: &mut *const StatusRep,
) -> *mut DonationHoldRep {
    let donate = || {
        // SAFETY: the caller's promise.
        let by = unsafe { label(by) };
        if waits { buffer.get().donate(by) } else { buffer.get().try_donate(by) }
    };
    // SAFETY: the caller's promise.
    let made = unsafe { guard_at(location, donate) };
    give_box(made.map(DonationHoldRep), error)
}

/// The memory, C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_donation_hold_memory(hold: &DonationHoldRep) -> *const RawBufferRep {
    contain("purlin_donation_hold_memory", ptr::null(), || memory(hold.0.memory()))
}

/// The event, with one reference, C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_donation_hold_ready_event(hold: &DonationHoldRep) -> *mut EventHeader {
    give_event(|| Ok(hold.0.ready_event()))
}

/// The event, with one reference, C++'s.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_donation_hold_free_event(hold: &DonationHoldRep) -> *mut EventHeader {
    give_event(|| Ok(hold.0.free_event()))
}

/// The memory, C++'s; the buffer is gone.
///
/// # Safety
/// `hold` is owned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_donation_hold_confirm(hold: *mut DonationHoldRep) -> *const RawBufferRep {
    contain("purlin_donation_hold_confirm", ptr::null(), || {
        // SAFETY: owned.
        share(RawBufferRep(unsafe { Box::from_raw(hold) }.0.confirm()))
    })
}

/// Gives the buffer back.
///
/// # Safety
/// `hold` is owned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_donation_hold_release(hold: *mut DonationHoldRep) {
    contain("purlin_donation_hold_release", (), || {
        // SAFETY: owned.
        drop(unsafe { Box::from_raw(hold) });
    })
}
