//! DLPack: arrays in the memory of this process, passed between libraries as pointers that know how to end themselves.
//!
//! Spoken is the versioned struct of DLPack 1 (`abi.rs`), for memory that the host reaches, and for that of NVIDIA's
//! GPUs (`gpu.rs`). A struct has one owner, which calls its deleter once, from any thread. `export.rs` makes one that
//! holds an external reference to a buffer: the memory stays and is not donated until the deleter. `import.rs` makes a
//! buffer of a foreign struct.
//!
//! An array that is passed on does not change any more: ours are marked as read-only, and a foreign one must stay as it
//! is until its deleter is called. Elements narrower than a byte are packed, unless the struct says that they are
//! padded.

#![allow(unsafe_code, reason = "the arrays are pointers")]

pub mod abi;
mod export;
mod gpu;
pub(crate) mod import;
#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
pub(crate) mod tests;

use purlin_array::DType;

use self::abi::{DLDataType, code};
pub use self::export::DlpackTensor;
pub use self::gpu::DlpackStream;
pub use self::import::{import_dlpack, import_dlpack_behind};

/// The code of each type of elements; its bits are the type's, its lanes 1.
const CODES: [(DType, u8); 28] = [
    (DType::Pred, code::BOOL),
    (DType::S2, code::INT),
    (DType::S4, code::INT),
    (DType::S8, code::INT),
    (DType::S16, code::INT),
    (DType::S32, code::INT),
    (DType::S64, code::INT),
    (DType::U2, code::UINT),
    (DType::U4, code::UINT),
    (DType::U8, code::UINT),
    (DType::U16, code::UINT),
    (DType::U32, code::UINT),
    (DType::U64, code::UINT),
    (DType::F16, code::FLOAT),
    (DType::F32, code::FLOAT),
    (DType::F64, code::FLOAT),
    (DType::BF16, code::BFLOAT),
    (DType::C64, code::COMPLEX),
    (DType::C128, code::COMPLEX),
    (DType::F8E3M4, code::FLOAT8_E3M4),
    (DType::F8E4M3, code::FLOAT8_E4M3),
    (DType::F8E4M3B11FNUZ, code::FLOAT8_E4M3B11FNUZ),
    (DType::F8E4M3FN, code::FLOAT8_E4M3FN),
    (DType::F8E4M3FNUZ, code::FLOAT8_E4M3FNUZ),
    (DType::F8E5M2, code::FLOAT8_E5M2),
    (DType::F8E5M2FNUZ, code::FLOAT8_E5M2FNUZ),
    (DType::F8E8M0FNU, code::FLOAT8_E8M0FNU),
    (DType::F4E2M1FN, code::FLOAT4_E2M1FN),
];

/// DLPack's description of elements; `None`: a token.
fn described(dtype: DType) -> Option<DLDataType> {
    let row = CODES.iter().find(|(known, _)| *known == dtype)?;
    Some(DLDataType { code: row.1, bits: dtype.bits() as u8, lanes: 1 })
}

/// The elements of that description; `None`: no buffer holds such.
fn dtype(described: DLDataType) -> Option<DType> {
    let fits = |&&(dtype, code): &&(DType, u8)| code == described.code && dtype.bits() == usize::from(described.bits);
    CODES.iter().find(fits).map(|(dtype, _)| *dtype).filter(|_| described.lanes == 1)
}
