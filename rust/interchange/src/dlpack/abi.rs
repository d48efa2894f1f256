//! The structs of `dlpack/dlpack.h`, version 1: their layout does not change within a major version.

use std::ffi::c_void;
use std::mem::offset_of;

/// The major version that is spoken; another has another layout behind the deleter.
pub const MAJOR: u32 = 1;
/// The minor version up to which the codes below are known.
pub const MINOR: u32 = 1;

/// Which DLPack wrote a struct.
///
/// See the example of [`import_dlpack`](super::import_dlpack).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Of the layout.
    pub major: u32,
    /// Of the codes.
    pub minor: u32,
}

/// Where memory is.
///
/// See the example of [`import_dlpack`](super::import_dlpack).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// A kind of device, see [`device`].
    pub device_type: i32,
    /// Which of that kind; the host has one, 0.
    pub device_id: i32,
}

/// What elements are.
///
/// See the example of [`import_dlpack`](super::import_dlpack).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// See [`code`].
    pub code: u8,
    /// Bits per element.
    pub bits: u8,
    /// Elements that make a vector.
    pub lanes: u16,
}

/// An array with another owner.
///
/// See the example of [`import_dlpack`](super::import_dlpack).
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// Of the memory; element `[0, 0, ...]` is `byte_offset` behind.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// What elements are.
    pub dtype: DLDataType,
    /// `ndim` dimensions, outermost first.
    pub shape: *mut i64,
    /// From one entry of each dimension to the next, in elements; null: row-major without gaps.
    pub strides: *mut i64,
    /// See `data`.
    pub byte_offset: u64,
}

/// An array and the way to end it.
///
/// See the example of [`import_dlpack`](super::import_dlpack).
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// A reader of another major version may read nothing else but `deleter`.
    pub version: DLPackVersion,
    /// The producer's.
    pub manager_ctx: *mut c_void,
    /// Ends the array and this struct; null: there is nothing to end.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// See [`flag`].
    pub flags: u64,
    /// The array.
    pub dl_tensor: DLTensor,
}

/// Kinds of devices. The host reaches the memory of all but GPUs as its own.
pub mod device {
    /// The host.
    pub const CPU: i32 = 1;
    /// A GPU of NVIDIA's, by the driver's number for it.
    pub const CUDA: i32 = 2;
    /// Pinned by CUDA.
    pub const CUDA_HOST: i32 = 3;
    /// Pinned by ROCm.
    pub const ROCM_HOST: i32 = 11;
}

/// Bits of [`DLManagedTensorVersioned::flags`].
pub mod flag {
    /// No code may write the array.
    pub const READ_ONLY: u64 = 1;
    /// The producer has made it for this.
    pub const IS_COPIED: u64 = 2;
    /// Elements narrower than a byte have a byte each.
    pub const IS_SUBBYTE_TYPE_PADDED: u64 = 4;
}

/// Kinds of elements.
#[expect(missing_docs, reason = "they are the names of the header")]
pub mod code {
    pub const INT: u8 = 0;
    pub const UINT: u8 = 1;
    pub const FLOAT: u8 = 2;
    pub const BFLOAT: u8 = 4;
    pub const COMPLEX: u8 = 5;
    pub const BOOL: u8 = 6;
    pub const FLOAT8_E3M4: u8 = 7;
    pub const FLOAT8_E4M3: u8 = 8;
    pub const FLOAT8_E4M3B11FNUZ: u8 = 9;
    pub const FLOAT8_E4M3FN: u8 = 10;
    pub const FLOAT8_E4M3FNUZ: u8 = 11;
    pub const FLOAT8_E5M2: u8 = 12;
    pub const FLOAT8_E5M2FNUZ: u8 = 13;
    pub const FLOAT8_E8M0FNU: u8 = 14;
    pub const FLOAT4_E2M1FN: u8 = 17;
}

const _: () = {
    assert!(size_of::<DLDataType>() == 4 && size_of::<DLDevice>() == 8);
    assert!(offset_of!(DLTensor, device) == 8 && offset_of!(DLTensor, ndim) == 16 && offset_of!(DLTensor, dtype) == 20);
    assert!(
        offset_of!(DLTensor, shape) == 24 && offset_of!(DLTensor, byte_offset) == 40 && size_of::<DLTensor>() == 48
    );
    type Managed = DLManagedTensorVersioned;
    assert!(offset_of!(Managed, manager_ctx) == 8 && offset_of!(Managed, deleter) == 16);
    assert!(offset_of!(Managed, flags) == 24 && offset_of!(Managed, dl_tensor) == 32 && size_of::<Managed>() == 80);
};
