//! XLA's protobuf messages, declared by field number: no protoc, no generated code.
//!
//! | module | what it is |
//! |---|---|
//! | [`damage`] | bytes that are no protobuf message, with the offset |
//! | [`wire`] | the pass over the wire format that precedes decoding: unknown fields, depth, memory |
//! | `message` | bytes to and from a checked message |
//! | [`kernels`] | the messages of kernels: compute capabilities, packing specs, loader specs |
//! | `testing`, `fuzz` | for the tests of crates that declare messages; feature `testing` |
//!
//! The bytes are untrusted. Each message is declared with `prost`, beside a table of the fields that it may have
//! ([`wire::Message`]). A decoder calls [`wire::check`] first.

#![deny(unsafe_code)]

pub mod damage;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod kernels;
mod message;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod wire;
