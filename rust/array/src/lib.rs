//! What arrays are made of: element types, shapes, layouts, and copies between strided host memory and a device's
//! order.
//!
//! Nothing in here runs anything or knows a device. Users of Rust see of it what the crate `purlin` re-exports.
//!
//! | module | what it is |
//! |---|---|
//! | [`dtype`] | [`DType`]: the type of an element |
//! | [`shape`] | [`Shape`]: type and dimensions |
//! | [`layout`] | [`Layout`]: the order of dimensions in memory |
//! | [`strided`] | [`HostArray`], [`StridedPlan`]: elements between strided host memory and a device's order |

#![deny(unsafe_code)]

pub mod dtype;
pub mod layout;
pub mod shape;
pub mod strided;

pub use dtype::{DType, Element};
pub use layout::Layout;
pub use shape::Shape;
pub use strided::{HostArray, Section, Sections, StridedPlan};
