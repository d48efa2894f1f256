//! Bytes that are no protobuf message.

use std::fmt::Display;

/// Bytes that violate the wire format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the violation, at most the number of bytes.
    pub offset: usize,
    /// The violation.
    pub what: String,
}

impl Damage {
    /// A violation at `offset`.
    #[must_use]
    pub fn new(offset: usize, what: impl Display) -> Self {
        Self { offset, what: what.to_string() }
    }
}
