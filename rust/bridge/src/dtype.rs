//! `purlin/dtype.h`.

use purlin::DType;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    extern "Rust" {
        /// Bytes per element; 0 for a number that is no type.
        fn dtype_byte_width(dtype: u8) -> usize;
        /// XLA's name; "invalid" for a number that is no type.
        fn dtype_name(dtype: u8) -> &'static str;
    }
}

fn dtype_byte_width(dtype: u8) -> usize {
    DType::from_raw(dtype).map_or(0, DType::byte_width)
}

fn dtype_name(dtype: u8) -> &'static str {
    DType::from_raw(dtype).map_or("invalid", DType::name)
}
