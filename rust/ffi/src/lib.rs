//! What the crates that C and C++ call share: handles, the guard against panics, sizes of option structs, numbers of
//! enums, bytes and locations. `docs/ffi.md` has the rules.

pub mod handle;
pub mod number;
pub mod panic;
pub mod struct_size;
pub mod words;
