//! `purlin/npy.h`, and what it shares with the other files of arrays (`purlin/file_options.h`).

use std::ptr;

use purlin_base::StatusOr;
use purlin_base::status::StatusRep;
use purlin_device::{Aliasing, Buffer};
use purlin_ffi::handle::give;
use purlin_ffi::number::known;
use purlin_ffi::panic::guard;
use purlin_ffi::words::Bytes;
use purlin_interchange::{FileAccess, NpyReadOptions, WriteOptions, read_npy, write_npy};

use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::shape::dtype;

/// A `purlin::FileAccess`.
pub(crate) fn file_access(number: u8) -> StatusOr<FileAccess> {
    // SAFETY: a C++ caller that says kMapped has made the promise that stands there, which is this one.
    known("FileAccess", number, &[("kRead", FileAccess::read()), ("kMapped", unsafe { FileAccess::mapped() })])
}

/// Hands a buffer that was read to C++, whose it is, and whether it is aliased; or null and an error.
pub(crate) fn give_array(
    read: StatusOr<(Buffer, Aliasing)>,
    is_aliased: &mut bool,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    match read {
        Ok((buffer, aliasing)) => {
            *is_aliased = aliasing == Aliasing::Aliased;
            BufferRep::of(buffer)
        }
        Err(why) => {
            *error = why.into_raw();
            ptr::null()
        }
    }
}

/// A buffer, C++'s, or null and an error. `number` 0: the type that the file says.
///
/// # Safety
/// `path` is what its struct says; for `access` 1, the file is as [`FileAccess::mapped`] asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_npy_read(
    path: Bytes,
    number: u8,
    access: u8,
    space: &MemorySpaceRep,
    is_aliased: &mut bool,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    let read = guard(|| {
        let named = if number == 0 { None } else { Some(dtype(number)?) };
        let options = NpyReadOptions { dtype: named, access: file_access(access)? };
        // SAFETY: the caller's promise.
        read_npy(unsafe { path.path() }, &space.0, &options)
    });
    give_array(read, is_aliased, error)
}

/// Null, or an error, C++'s.
///
/// # Safety
/// `path` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_npy_write(path: Bytes, buffer: &BufferRep, is_durable: bool) -> *const StatusRep {
    // SAFETY: the caller's promise.
    let written = guard(|| write_npy(unsafe { path.path() }, &buffer.get(), WriteOptions { is_durable }));
    give(written)
}
