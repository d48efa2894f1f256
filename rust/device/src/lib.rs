//! Devices, their memory, and arrays in it.
//!
//! All checks are made here; backends trust what they are given. Users of Rust see of it what the crate `purlin`
//! re-exports. Bottom up; a module may only use those above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`backend`] | the traits of a kind of hardware, operations in flight, and the null backend |
//! | `arena` | the allocator's policy: blocks cut from extents, kept warm, limited, given back |
//! | `in_flight` | what a client has begun and not ended, and the runner of that |
//! | `dma` | host memory that was announced to a backend |
//! | `instance` | what the handles of one client share, whatever its memory spaces are |
//! | [`memory`] | [`MemorySpace`], its blocks, and reports of what holds them |
//! | [`device`] | [`Device`]: one of a client's |
//! | `foreign_work` | work of others on the hardware of a device |
//! | [`raw_buffer`] | [`RawBuffer`]: bytes in a memory space |
//! | [`buffer`] | [`Buffer`]: an array on a device |
//! | [`transfer`] | [`AsyncHostToDeviceTransferManager`]: buffers that are filled piece by piece |
//! | [`staging`] | [`StagingPool`], [`StagingCopier`], [`StagingSink`]: bytes between devices and a transport |
//! | [`client`] | [`Client`]: the root of it all |
//! | [`platform`] | backends by the names of their platforms |

#![deny(unsafe_code)]

mod arena;
pub mod backend;
pub mod buffer;
pub mod client;
pub mod device;
mod dma;
mod foreign_work;
mod in_flight;
mod instance;
pub mod memory;
pub mod platform;
pub mod raw_buffer;
pub mod staging;
pub mod transfer;

pub use backend::NullBackend;
pub use buffer::{
    Aliasing, BorrowedDonationHold, BorrowedUsageHold, Buffer, BufferPromise, DonationHold, ExternalReference,
    FromHostOptions, HostAddress, HostBufferSemantics, HostShard, OnDone, UsageHold,
};
pub use client::{Client, ClientOptions, DmaMapping};
pub use device::Device;
pub use memory::{AllocOptions, MemoryHolder, MemoryHook, MemoryReport, MemorySpace, MemoryStats, OomPolicy};
pub use raw_buffer::{LaunchOptions, Mutability, RawBuffer, RawBufferPromise};
pub use staging::{StagedPiece, StagingCopier, StagingLease, StagingOptions, StagingPool, StagingSink};
pub use transfer::{AsyncHostToDeviceTransferManager, TransferSpec};

/// Longer than any machine takes for what a test does; one that is not done by then hangs.
#[cfg(test)]
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);
