//! What instructions compute, as functions of bits.

pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod format;
pub(crate) mod integer;
