//! Elements between strided memory of the host and the dense image of an array on a device.
//!
//! What a caller has is often not what a device wants: a slice of a larger array, a transposed one, a broadcast, one that
//! is read backwards; and `s4` elements have a byte each on the host and half of one on a device. [`HostArray`] is the
//! checked description of the host's side: an element type, dimensions, and for each dimension the bytes from one entry to
//! the next, of any sign. The other side is the bytes of that array, dense in a [`Layout`](crate::layout::Layout),
//! packed. [`StridedPlan`] knows both and moves elements: [`gather`](StridedPlan::gather) to the device's order,
//! [`scatter`](StridedPlan::scatter) from it. Neither converts anything, neither changes the order of bytes.
//!
//! **Packing** is XLA's: the first elements of the layout's order stand in the low bits of a byte (`PackIntN` in
//! `xla/util.h`), unused high bits of the last byte are 0. Reading sign-extends `s4` and `s2`, which XLA leaves to its
//! element types, and puts zeros above the others. Writing ignores all but the low bits of a host byte.
//!
//! **Threads.** Descriptions and plans never change; several threads may move different [pieces](StridedPlan::pieces) of
//! one plan at the same time. Nothing here allocates up to rank 8, waits, or fails once it is made.
//!
//! Files: `host_array.rs` the description, `plan.rs` what is moved in which boxes, `kernel.rs` the loops, `tile.rs`
//! square transpositions, `narrow.rs` and `pack.rs` elements narrower than a byte.

mod host_array;
mod kernel;
mod narrow;
mod pack;
mod plan;
#[cfg(test)]
mod tests;
mod tile;

pub use host_array::HostArray;
pub use plan::StridedPlan;
