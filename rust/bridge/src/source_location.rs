//! `purlin/source_location.h`.

use cxx::{ExternType, kind, type_id};
use purlin_ffi::words::Location;

/// A `purlin::SourceLocation`: what a [`Location`] says. It crosses by reference: by value, cxx would copy it twice.
#[repr(transparent)]
pub struct Place(pub(crate) Location);

const _: () = assert!(size_of::<Place>() == 16);

// SAFETY: the class has the fields of a Location in the same order, and is trivial to copy and to destroy:
// cpp/internal/functions.h asserts what of that C++ can say.
unsafe impl ExternType for Place {
    type Id = type_id!("purlin::v0::SourceLocation");
    type Kind = kind::Trivial;
}
