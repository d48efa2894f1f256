//! `purlin/npy.h`, and what it shares with the other files of arrays (`purlin/file_options.h`).

use std::ptr;

use purlin_base::StatusOr;
use purlin_device::{Aliasing, Buffer};
use purlin_ffi::handle::{Record, give, give_or};
use purlin_ffi::number::known;
use purlin_ffi::panic::guard;
use purlin_ffi::words::path_of;
use purlin_interchange::{FileAccess, NpyReadOptions, WriteOptions, read_npy, write_npy};

use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::shape::dtype;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/buffer.rs.h");
        include!("purlin-bridge/src/device.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type BufferRep = crate::buffer::BufferRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
    }

    extern "Rust" {
        /// A buffer, C++'s, or null and an error. `number` 0: the type that the file says.
        unsafe fn npy_read(
            path: &[u8],
            number: u8,
            access: u8,
            space: &MemorySpaceRep,
            is_aliased: &mut bool,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// Null, or an error, C++'s.
        fn npy_write(path: &[u8], buffer: &BufferRep, is_durable: bool) -> *const StatusRep;
    }
}

/// A `purlin::FileAccess`.
pub(crate) fn file_access(number: u8) -> StatusOr<FileAccess> {
    // SAFETY: a C++ caller that says kMapped has made the promise that stands there, which is this one.
    known("FileAccess", number, &[("kRead", FileAccess::read()), ("kMapped", unsafe { FileAccess::mapped() })])
}

/// Hands a buffer that was read to C++, whose it is, and whether it is aliased; or null and an error.
pub(crate) fn give_array<R: Record>(
    read: StatusOr<(Buffer, Aliasing)>,
    is_aliased: &mut bool,
    error: &mut *const R,
) -> *const BufferRep {
    let read = read.map(|(buffer, aliasing)| {
        *is_aliased = aliasing == Aliasing::Aliased;
        BufferRep::of(buffer)
    });
    give_or(read, ptr::null(), error)
}

/// # Safety
/// For `access` 1, the file is as [`FileAccess::mapped`] asks.
unsafe fn npy_read(
    path: &[u8],
    number: u8,
    access: u8,
    space: &MemorySpaceRep,
    is_aliased: &mut bool,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    let read = guard(|| {
        let named = if number == 0 { None } else { Some(dtype(number)?) };
        let options = NpyReadOptions { dtype: named, access: file_access(access)? };
        read_npy(path_of(path), &space.0, &options)
    });
    give_array(read, is_aliased, error)
}

fn npy_write(path: &[u8], buffer: &BufferRep, is_durable: bool) -> *const ffi::StatusRep {
    give(guard(|| write_npy(path_of(path), &buffer.get(), WriteOptions { is_durable })))
}
