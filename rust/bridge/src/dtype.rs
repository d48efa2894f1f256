//! `purlin/dtype.h`. Widths stand in the header, where they are constants; a test holds them against these names.

use purlin_array::DType;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    extern "Rust" {
        /// XLA's name; "invalid" for a number that is no type.
        fn dtype_name(dtype: u8) -> &'static str;
    }
}

fn dtype_name(dtype: u8) -> &'static str {
    DType::from_raw(dtype).map_or("invalid", DType::name)
}
