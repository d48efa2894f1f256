//! The messages of `xla/stream_executor` for kernels: bytes to and from the types of `purlin-program`.
//!
//! Fields are encoded in the order of their numbers, and zeros are left out, so XLA encodes the same value to the same
//! bytes.

mod compute_capability;
mod loader_spec;
mod packing_spec;
#[cfg(test)]
mod tests;

pub use self::compute_capability::{compute_capability_from_proto, compute_capability_to_proto};
pub use self::loader_spec::{kernel_loader_spec_from_proto, kernel_loader_spec_to_proto};
pub use self::packing_spec::{kernel_args_packing_spec_from_proto, kernel_args_packing_spec_to_proto};
