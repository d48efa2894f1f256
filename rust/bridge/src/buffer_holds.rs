//! `purlin/buffer_holds.h`: each is owned by C++ alone, in a block of the slab.
//!
//! In the safety sections, "alive" means that C++ has the object for the length of the call, and "owned" that it gives
//! it up.

use std::ffi::c_char;
use std::ptr;

use purlin_async::Event;
use purlin_base::slab::{SlabBox, is_block};
use purlin_device::{DonationHold, ExternalReference, RawBuffer, UsageHold};
use purlin_ffi::handle::{give_owned, owned, share};
use purlin_ffi::panic::{contain, guard, guard_at};

use crate::buffer::BufferRep;
use crate::cancel::label;
use crate::raw_buffer::{RawBufferRep, give_event};
use crate::source_location::Place;

/// What a `purlin::UsageHold` points to.
pub struct UsageHoldRep(UsageHold);
/// What a `purlin::ExternalReference` points to.
pub struct ExternalReferenceRep(ExternalReference);
/// What a `purlin::DonationHold` points to.
pub struct DonationHoldRep(DonationHold);

const _: () =
    assert!(is_block::<UsageHoldRep>() && is_block::<ExternalReferenceRep>() && is_block::<DonationHoldRep>());

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/buffer.rs.h");
        include!("purlin-bridge/src/raw_buffer.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type BufferRep = crate::buffer::BufferRep;
        #[namespace = "purlin::v0::internal"]
        type RawBufferRep = crate::raw_buffer::RawBufferRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type UsageHoldRep;
        #[namespace = "purlin::v0::internal"]
        type ExternalReferenceRep;
        #[namespace = "purlin::v0::internal"]
        type DonationHoldRep;

        /// A hold, C++'s, or null and an error.
        fn buffer_usage_hold(buffer: &BufferRep, waits: bool, error: &mut *const StatusRep) -> *mut UsageHoldRep;
        /// The memory, C++'s.
        fn usage_hold_memory(hold: &UsageHoldRep) -> *const RawBufferRep;
        /// The event, with one reference, C++'s.
        fn usage_hold_ready_event(hold: &UsageHoldRep) -> *mut EventHeader;
        /// Ends the hold.
        unsafe fn usage_hold_release(hold: *mut UsageHoldRep);
        /// Ends the hold, when `event` is terminal.
        unsafe fn usage_hold_release_after(hold: *mut UsageHoldRep, event: *mut EventHeader);
        /// A reference, C++'s, or null and an error.
        fn buffer_external_reference(buffer: &BufferRep, error: &mut *const StatusRep) -> *mut ExternalReferenceRep;
        /// The memory, C++'s.
        fn external_reference_memory(reference: &ExternalReferenceRep) -> *const RawBufferRep;
        /// The event, with one reference, C++'s.
        fn external_reference_ready_event(reference: &ExternalReferenceRep) -> *mut EventHeader;
        /// Lets the memory go.
        unsafe fn external_reference_release(reference: *mut ExternalReferenceRep);
        /// The memory, C++'s.
        fn donation_hold_memory(hold: &DonationHoldRep) -> *const RawBufferRep;
        /// The event, with one reference, C++'s.
        fn donation_hold_ready_event(hold: &DonationHoldRep) -> *mut EventHeader;
        /// The event, with one reference, C++'s.
        fn donation_hold_free_event(hold: &DonationHoldRep) -> *mut EventHeader;
        /// The memory, C++'s; the buffer is gone.
        unsafe fn donation_hold_confirm(hold: *mut DonationHoldRep) -> *const RawBufferRep;
        /// Gives the buffer back.
        unsafe fn donation_hold_release(hold: *mut DonationHoldRep);
        /// A hold, C++'s, or null and an error.
        unsafe fn buffer_donate(
            buffer: &BufferRep,
            by: *const c_char,
            waits: bool,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *mut DonationHoldRep;
    }
}

fn memory(memory: &RawBuffer) -> *const RawBufferRep {
    share(RawBufferRep(memory.clone()))
}

fn buffer_usage_hold(buffer: &BufferRep, waits: bool, error: &mut *const ffi::StatusRep) -> *mut UsageHoldRep {
    let made = guard(|| if waits { buffer.get().usage_hold() } else { buffer.get().try_usage_hold() });
    give_owned(made.map(UsageHoldRep), error)
}

fn usage_hold_memory(hold: &UsageHoldRep) -> *const RawBufferRep {
    contain("usage_hold_memory", ptr::null(), || memory(hold.0.memory()))
}

fn usage_hold_ready_event(hold: &UsageHoldRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(hold.0.ready_event()))
}

/// # Safety
/// `hold` is owned.
unsafe fn usage_hold_release(hold: *mut UsageHoldRep) {
    contain("usage_hold_release", (), || {
        // SAFETY: owned.
        drop(unsafe { owned(hold) });
    })
}

/// # Safety
/// `hold` is owned; `event` is null or alive.
unsafe fn usage_hold_release_after(hold: *mut UsageHoldRep, event: *mut ffi::EventHeader) {
    contain("usage_hold_release_after", (), || {
        // SAFETY: owned, and null or alive.
        let (hold, event) = unsafe { (SlabBox::into_inner(owned(hold)), Event::from_borrowed_raw(event.cast())) };
        hold.0.release_after(event);
    })
}

fn buffer_external_reference(buffer: &BufferRep, error: &mut *const ffi::StatusRep) -> *mut ExternalReferenceRep {
    give_owned(guard(|| buffer.get().external_reference()).map(ExternalReferenceRep), error)
}

fn external_reference_memory(reference: &ExternalReferenceRep) -> *const RawBufferRep {
    contain("external_reference_memory", ptr::null(), || memory(reference.0.memory()))
}

fn external_reference_ready_event(reference: &ExternalReferenceRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(reference.0.ready_event()))
}

/// # Safety
/// `reference` is owned.
unsafe fn external_reference_release(reference: *mut ExternalReferenceRep) {
    contain("external_reference_release", (), || {
        // SAFETY: owned.
        drop(unsafe { owned(reference) });
    })
}

/// # Safety
/// `by` is static and ends with a NUL; `location` is what its struct says.
unsafe fn buffer_donate(
    buffer: &BufferRep,
    by: *const c_char,
    waits: bool,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *mut DonationHoldRep {
    let donate = || {
        // SAFETY: the caller's promise.
        let by = unsafe { label(by) };
        if waits { buffer.get().donate(by) } else { buffer.get().try_donate(by) }
    };
    // SAFETY: the caller's promise.
    let made = unsafe { guard_at(location.0, donate) };
    give_owned(made.map(DonationHoldRep), error)
}

fn donation_hold_memory(hold: &DonationHoldRep) -> *const RawBufferRep {
    contain("donation_hold_memory", ptr::null(), || memory(hold.0.memory()))
}

fn donation_hold_ready_event(hold: &DonationHoldRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(hold.0.ready_event()))
}

fn donation_hold_free_event(hold: &DonationHoldRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(hold.0.free_event()))
}

/// # Safety
/// `hold` is owned.
unsafe fn donation_hold_confirm(hold: *mut DonationHoldRep) -> *const RawBufferRep {
    contain("donation_hold_confirm", ptr::null(), || {
        // SAFETY: owned.
        share(RawBufferRep(SlabBox::into_inner(unsafe { owned(hold) }).0.confirm()))
    })
}

/// # Safety
/// `hold` is owned.
unsafe fn donation_hold_release(hold: *mut DonationHoldRep) {
    contain("donation_hold_release", (), || {
        // SAFETY: owned.
        drop(unsafe { owned(hold) });
    })
}
