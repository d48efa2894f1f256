//! `purlin/dma.h`: host memory that the hardware reaches.

use std::ptr;

use purlin_base::Error;
use purlin_base::status::StatusRep;
use purlin_device::DmaMapping;
use purlin_ffi::handle::{give, give_box};
use purlin_ffi::panic::{contain, guard};

use crate::client::ClientRep;

/// What a `purlin::DmaMapping` points to: a box. Empty once the memory has been unmapped.
pub struct DmaMappingRep(Option<DmaMapping>);

/// A mapping, C++'s, or null and an error.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_client_dma_map(
    client: &ClientRep,
    address: *const u8,
    size_bytes: usize,
    error: &mut *const StatusRep,
) -> *mut DmaMappingRep {
    let made = guard(|| client.0.dma_map(address, size_bytes));
    give_box(made.map(|mapping| DmaMappingRep(Some(mapping))), error)
}

/// Writes address and size; null and 0 once it is unmapped.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_dma_mapping_range(mapping: &DmaMappingRep, address: &mut *const u8, size_bytes: &mut usize) {
    contain("purlin_dma_mapping_range", (), || {
        let range = mapping.0.as_ref().map(DmaMapping::range);
        (*address, *size_bytes) =
            range.map_or((ptr::null(), 0), |(address, size)| (ptr::without_provenance(address), size));
    })
}

/// Copies in flight that use it.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_dma_mapping_in_flight(mapping: &DmaMappingRep) -> usize {
    contain("purlin_dma_mapping_in_flight", 0, || mapping.0.as_ref().map_or(0, DmaMapping::in_flight))
}

/// Unmaps. Null, or an error, C++'s; then it stays mapped.
///
/// # Safety
/// `mapping` is null, or C++ has it for the length of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_dma_mapping_unmap(mapping: *mut DmaMappingRep) -> *const StatusRep {
    give(guard(|| {
        // SAFETY: the caller's promise.
        let rep = unsafe { mapping.as_mut() };
        let Some((rep, mapped)) = rep.and_then(|rep| rep.0.take().map(|mapped| (rep, mapped))) else {
            return Err(Error::failed_precondition("this mapping has been unmapped already, or moved from"));
        };
        mapped.unmap().map_err(|(error, mapped)| {
            rep.0 = Some(mapped);
            error
        })
    }))
}

/// Unmaps, when no copy uses it any more.
///
/// # Safety
/// C++ gives the mapping up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_dma_mapping_release(mapping: *mut DmaMappingRep) {
    contain("purlin_dma_mapping_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(mapping) });
    })
}
