//! Bytes in transfer between devices and a transport, through host memory that is lent piece by piece.
//!
//! A [`StagingPool`] is a block of host memory cut into leases of one size. A [`StagingCopier`] reads device memory
//! into leases, several at a time, and reports them in order. A [`StagingSink`] takes pieces in any order and completes
//! when device memory has them all. The pool's size bounds the bytes that are in flight: a user that is slow to give
//! leases back slows the pool's other users down, and nothing else.
//!
//! A lease is given back when it is dropped, on every path: reported, refused, failed, cancelled, panicked.

mod copier;
mod pool;
mod ranges;
mod reads;
mod sink;

pub use copier::{StagedPiece, StagingCopier};
pub use pool::{StagingLease, StagingOptions, StagingPool};
pub use sink::StagingSink;
