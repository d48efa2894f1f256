//! PJRT's C API, version 0.115, as data (`pjrt.abi`), and what is generated from it: the Rust declarations here,
//! `purlin/adapters/pjrt_abi.h`, `docs/pjrt-api.md`, and the list that `tests/interop` compares with XLA's header and a
//! live plugin. `cargo run -p purlin-pjrt-abi` writes the files anew; a test fails when one is not what the table says.
//!
//! | module | what it is |
//! |---|---|
//! | here | the structs, tables of functions and enumerations, with PJRT's names in Rust's spelling |
//! | [`table`], [`layout`] | the API as values, for generators and checks: roles, versions, sizes, offsets |
//! | [`files`] | the generated files; `rust.rs` is `build.rs`'s |
//!
//! Function pointers are `Option`s, because a foreign table may leave a slot null. `bool` is a byte and an enumeration
//! an integer, because the other side may write any value.

use std::ffi::{c_char, c_int, c_uint, c_void};

mod c;
pub mod files;
pub mod layout;
mod list;
mod markdown;
mod names;
mod read;
#[cfg(test)]
mod rust;
pub mod table;
#[cfg(test)]
mod tests;

/// A struct whose first field, `struct_size`, says how much of it the caller knows.
///
/// # Safety
/// `struct_size: usize` is the first field of the type, which is `repr(C)`, and all zeros are a value of it.
pub unsafe trait Versioned {
    /// As upstream has it.
    const NAME: &'static str;
    /// What callers of 0.115 write into `struct_size`: the end of the last field.
    const STRUCT_SIZE: usize;
    /// What callers of the struct's first version wrote; less is no such struct.
    const FIRST_SIZE: usize;
}

/// The arguments of a function that returns an error.
pub trait Function {
    /// The function, as upstream has it.
    const FUNCTION: &'static str;
}

/// The arguments of a function of [`Api`].
///
/// # Safety
/// The function number [`SLOT`](Self::SLOT) of the table takes a pointer to the type and returns an error.
pub unsafe trait Slot: Function + Versioned + Copy {
    /// Which of the table's functions, from 0.
    const SLOT: usize;
}

/// A table of functions whose first field, `struct_size`, says how large it is.
///
/// # Safety
/// `struct_size: usize` is the first field of the type, which is `repr(C)`.
pub unsafe trait Table {}

include!(concat!(env!("OUT_DIR"), "/declarations.rs"));
