//! `purlin/safetensors.h`.

use std::ptr;

use purlin_base::status::StatusRep;
use purlin_ffi::handle::{elements, give, release, retain, share};
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::Bytes;
use purlin_interchange::{SafetensorsFile, WriteOptions, write_safetensors};

use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::npy::{file_access, give_array};

/// What a `purlin::SafetensorsFile` points to.
pub struct SafetensorsFileRep(SafetensorsFile);

/// An array in a file, borrowed from it.
#[repr(C)]
pub struct RawEntry {
    name: Bytes,
    dtype_name: Bytes,
    dims: *const i64,
    rank: usize,
    offset_bytes: usize,
    size_bytes: usize,
    /// 0: none that a buffer holds.
    dtype: u8,
}

/// An array to be written, borrowed.
#[repr(C)]
pub struct RawNamedBuffer {
    name: Bytes,
    buffer: *const BufferRep,
}

/// A key and its text, borrowed.
#[repr(C)]
pub struct RawTextPair {
    key: Bytes,
    text: Bytes,
}

/// A file, C++'s, or null and an error.
///
/// # Safety
/// `path` is what its struct says; for `number` 1, the file is as `FileAccess::mapped` asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_safetensors_open(
    path: Bytes,
    number: u8,
    error: &mut *const StatusRep,
) -> *const SafetensorsFileRep {
    // SAFETY: the caller's promise.
    match guard(|| SafetensorsFile::open(unsafe { path.path() }, file_access(number)?)) {
        Ok(file) => share(SafetensorsFileRep(file)),
        Err(why) => {
            *error = why.into_raw();
            ptr::null()
        }
    }
}

/// One more reference.
///
/// # Safety
/// `file` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_safetensors_retain(file: *const SafetensorsFileRep) {
    // SAFETY: the caller's promise.
    unsafe { retain(file) };
}

/// One reference less.
///
/// # Safety
/// `file` is alive, and the caller gives a reference up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_safetensors_release(file: *const SafetensorsFileRep) {
    contain("purlin_safetensors_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { release(file) };
    })
}

/// Whether there is an array of that index; then it is written to `entry`.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_safetensors_entry(file: &SafetensorsFileRep, index: usize, entry: &mut RawEntry) -> bool {
    contain("purlin_safetensors_entry", false, || {
        let Some(tensor) = file.0.tensors().get(index) else { return false };
        *entry = RawEntry {
            name: Bytes::of(tensor.name().as_bytes()),
            dtype_name: Bytes::of(tensor.dtype_name().as_bytes()),
            dims: tensor.dims().as_ptr(),
            rank: tensor.dims().len(),
            offset_bytes: tensor.range().start,
            size_bytes: tensor.range().len(),
            dtype: tensor.dtype().map_or(0, |dtype| dtype as u8),
        };
        true
    })
}

/// Whether there is a text of that index; then it is written to `pair`.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_safetensors_metadata(file: &SafetensorsFileRep, index: usize, pair: &mut RawTextPair) -> bool {
    contain("purlin_safetensors_metadata", false, || {
        let Some((key, text)) = file.0.metadata().get(index) else { return false };
        *pair = RawTextPair { key: Bytes::of(key.as_bytes()), text: Bytes::of(text.as_bytes()) };
        true
    })
}

/// A buffer, C++'s, or null and an error.
///
/// # Safety
/// `name` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_safetensors_read(
    file: &SafetensorsFileRep,
    name: Bytes,
    space: &MemorySpaceRep,
    is_aliased: &mut bool,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    let read = guard(|| file.0.read(unsafe { name.text()? }, &space.0));
    give_array(read, is_aliased, error)
}

/// Null, or an error, C++'s.
///
/// # Safety
/// `path` is what its struct says; `buffers` and `metadata` point to as many structs, which are what they say, with
/// buffers that are alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_safetensors_write(
    path: Bytes,
    buffers: *const RawNamedBuffer,
    buffer_count: usize,
    metadata: *const RawTextPair,
    pair_count: usize,
    is_durable: bool,
) -> *const StatusRep {
    let written = guard(|| {
        // SAFETY: the caller's promises.
        let (path, buffers, metadata) =
            unsafe { (path.path(), elements(buffers, buffer_count), elements(metadata, pair_count)) };
        // SAFETY: the caller's promises.
        let borrowed: Vec<_> = buffers.iter().map(|named| unsafe { (*named.buffer).get() }).collect();
        let mut tensors = Vec::with_capacity(buffers.len());
        for (named, buffer) in buffers.iter().zip(&borrowed) {
            // SAFETY: the caller's promises.
            tensors.push((unsafe { named.name.text()? }, &**buffer));
        }
        let mut texts = Vec::with_capacity(metadata.len());
        for pair in metadata {
            // SAFETY: the caller's promises.
            texts.push(unsafe { (pair.key.text()?, pair.text.text()?) });
        }
        write_safetensors(path, &tensors, &texts, WriteOptions { is_durable })
    });
    give(written)
}
