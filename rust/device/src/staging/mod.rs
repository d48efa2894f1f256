//! Bytes on their way between devices and a transport, through host memory that is lent piece by piece.
//!
//! A [`StagingPool`] is a block of host memory cut into leases of one size. A [`StagingCopier`] reads device memory into leases,
//! several at a time, and tells of them in order. A [`StagingSink`] takes pieces in any order and completes when device memory
//! has them all. How many bytes are on their way is what the pool has: who is slow to give leases back slows the others down,
//! and nothing else.
//!
//! A lease goes back when it is dropped, on every path: told, refused, failed, cancelled, panicked.

mod copier;
mod pool;
mod ranges;
mod reads;
mod sink;

pub use copier::{StagedPiece, StagingCopier};
pub use pool::{StagingLease, StagingOptions, StagingPool};
pub use sink::StagingSink;
