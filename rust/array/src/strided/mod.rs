//! Elements between strided memory of the host and the dense image of an array on a device.
//!
//! What a caller has is often not what a device wants: a slice of a larger array, a transposed one, a broadcast, one
//! that is read backwards; and `s4` elements have a byte each on the host and half of one on a device. [`HostArray`] is
//! the checked description of the host's side: an element type, dimensions, and for each dimension the bytes from one
//! entry to the next, of any sign. The other side is the bytes of that array, dense in a
//! [`Layout`](crate::layout::Layout), packed. [`StridedPlan`] knows both and moves elements:
//! [`gather`](StridedPlan::gather) to the device's order, [`scatter`](StridedPlan::scatter) from it. Neither converts
//! anything, neither changes the order of bytes.
//!
//! **Packing** is XLA's: the first elements of the layout's order stand in the low bits of a byte (`PackIntN` in
//! `xla/util.h`), unused high bits of the last byte are 0. Reading sign-extends `s4` and `s2`, which XLA leaves to its
//! element types, and puts zeros above the others. Writing ignores all but the low bits of a host byte.
//!
//! **Threads.** Descriptions and plans never change; several threads may move different [pieces](StridedPlan::pieces)
//! of one plan at the same time. Nothing here allocates up to rank 8, waits, or fails once it is made.
//!
//! ```
//! use purlin::{DType, HostArray, Layout, Shape, StridedPlan};
//!
//! // The first two columns of a matrix with three, to be stored by columns.
//! let matrix = [1_u16, 2, 3, 4, 5, 6];
//! let array = HostArray::new(&Shape::new(DType::U16, &[2, 2])?, Some(&[6, 2]))?;
//! assert_eq!(array.extent(), 0..10);
//! let plan = StridedPlan::new(&array, &Layout::new(&[0, 1])?)?;
//! let mut device = [0_u16; 4];
//! for piece in plan.pieces(1 << 20) {
//!     let to = device.as_mut_ptr().cast::<u8>().wrapping_add(plan.device_bytes(&piece).start);
//!     // SAFETY: the extent is in `matrix`, the array's 8 bytes are in `device`.
//!     unsafe { plan.gather(matrix.as_ptr().cast(), to, piece) };
//! }
//! assert_eq!(device, [1, 4, 2, 5]);
//! # Ok::<(), purlin::Error>(())
//! ```
//!
//! Files: `host_array.rs` the description, `plan.rs` what is moved in which boxes, `section.rs` parts that fit into
//! blocks of memory, `kernel.rs` the loops, `tile.rs` square transpositions, `narrow.rs` and `pack.rs` elements that
//! are narrower than a byte.

mod host_array;
mod kernel;
mod narrow;
mod pack;
mod plan;
mod section;
#[cfg(test)]
mod tests;
mod tile;

pub use host_array::HostArray;
pub use plan::StridedPlan;
pub use section::{Section, Sections};
