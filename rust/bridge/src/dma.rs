//! `purlin/dma.h`: host memory that the hardware reaches.

use std::ptr;

use purlin_base::Error;
use purlin_device::DmaMapping;
use purlin_ffi::handle::{give, give_owned, owned};
use purlin_ffi::panic::{contain, guard};

use crate::client::ClientRep;

/// What a `purlin::DmaMapping` points to: C++'s alone. Empty once the memory has been unmapped.
pub struct DmaMappingRep(Option<DmaMapping>);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/client.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type ClientRep = crate::client::ClientRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type DmaMappingRep;

        /// A mapping, C++'s, or null and an error.
        unsafe fn client_dma_map(
            client: &ClientRep,
            address: *const u8,
            size_bytes: usize,
            error: &mut *const StatusRep,
        ) -> *mut DmaMappingRep;
        /// Null once it is unmapped.
        fn dma_mapping_address(mapping: &DmaMappingRep) -> *const u8;
        /// 0 once it is unmapped.
        fn dma_mapping_size_bytes(mapping: &DmaMappingRep) -> usize;
        /// Copies in flight that use it.
        fn dma_mapping_in_flight(mapping: &DmaMappingRep) -> usize;
        /// Unmaps. Null, or an error, C++'s; then it stays mapped.
        unsafe fn dma_mapping_unmap(mapping: *mut DmaMappingRep) -> *const StatusRep;
        /// Unmaps, when no copy uses it any more.
        unsafe fn dma_mapping_release(mapping: *mut DmaMappingRep);
    }
}

/// # Safety
/// As [`purlin_device::Client::dma_map`].
unsafe fn client_dma_map(
    client: &ClientRep,
    address: *const u8,
    size_bytes: usize,
    error: &mut *const ffi::StatusRep,
) -> *mut DmaMappingRep {
    let made = guard(|| client.0.dma_map(address, size_bytes));
    give_owned(made.map(|mapping| DmaMappingRep(Some(mapping))), error)
}

fn dma_mapping_address(mapping: &DmaMappingRep) -> *const u8 {
    contain("dma_mapping_address", ptr::null(), || {
        mapping.0.as_ref().map_or(ptr::null(), |mapped| ptr::without_provenance(mapped.range().0))
    })
}

fn dma_mapping_size_bytes(mapping: &DmaMappingRep) -> usize {
    contain("dma_mapping_size_bytes", 0, || mapping.0.as_ref().map_or(0, |mapped| mapped.range().1))
}

fn dma_mapping_in_flight(mapping: &DmaMappingRep) -> usize {
    contain("dma_mapping_in_flight", 0, || mapping.0.as_ref().map_or(0, DmaMapping::in_flight))
}

/// # Safety
/// `mapping` is null, or C++ has it for the length of the call.
unsafe fn dma_mapping_unmap(mapping: *mut DmaMappingRep) -> *const ffi::StatusRep {
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

/// # Safety
/// C++ gives the mapping up.
unsafe fn dma_mapping_release(mapping: *mut DmaMappingRep) {
    contain("dma_mapping_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(mapping) });
    })
}
