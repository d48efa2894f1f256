//! `purlin/safetensors.h`.

use purlin_ffi::handle::{self, give, give_handle};
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::{path_of, text_of};
use purlin_interchange::{SafetensorsFile, WriteOptions, write_safetensors};

use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::npy::{file_access, give_array};

/// What a `purlin::SafetensorsFile` points to.
pub struct SafetensorsFileRep(SafetensorsFile);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// An array in a file, borrowed from it.
    #[derive(Default)]
    struct RawEntry<'a> {
        name: &'a str,
        dtype_name: &'a str,
        dims: &'a [i64],
        offset_bytes: usize,
        size_bytes: usize,
        /// 0: none that a buffer holds.
        dtype: u8,
    }

    /// A text in a file, borrowed from it.
    #[derive(Default)]
    struct RawMetadata<'a> {
        key: &'a str,
        text: &'a str,
    }

    /// An array to be written, borrowed.
    struct RawNamedBuffer<'a> {
        name: &'a [u8],
        buffer: &'a BufferRep,
    }

    /// A text to be written, borrowed.
    struct RawTextPair<'a> {
        key: &'a [u8],
        text: &'a [u8],
    }

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
        #[namespace = "purlin::v0::internal"]
        type SafetensorsFileRep;

        /// A file, C++'s, or null and an error.
        unsafe fn safetensors_open(path: &[u8], number: u8, error: &mut *const StatusRep) -> *const SafetensorsFileRep;
        unsafe fn safetensors_retain(file: *const SafetensorsFileRep);
        unsafe fn safetensors_release(file: *const SafetensorsFileRep);
        /// How many arrays.
        fn safetensors_entry_count(file: &SafetensorsFileRep) -> usize;
        /// Array `index` of `safetensors_entry_count`.
        unsafe fn safetensors_entry_at<'a>(file: &'a SafetensorsFileRep, index: usize) -> RawEntry<'a>;
        /// How many texts.
        fn safetensors_metadata_count(file: &SafetensorsFileRep) -> usize;
        /// Text `index` of `safetensors_metadata_count`.
        unsafe fn safetensors_metadata_at<'a>(file: &'a SafetensorsFileRep, index: usize) -> RawMetadata<'a>;
        /// A buffer, C++'s, or null and an error.
        fn safetensors_read(
            file: &SafetensorsFileRep,
            name: &[u8],
            space: &MemorySpaceRep,
            is_aliased: &mut bool,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// Null, or an error, C++'s.
        fn safetensors_write(
            path: &[u8],
            buffers: &[RawNamedBuffer],
            metadata: &[RawTextPair],
            is_durable: bool,
        ) -> *const StatusRep;
    }
}

/// # Safety
/// For `number` 1, the file is as `FileAccess::mapped` asks.
unsafe fn safetensors_open(path: &[u8], number: u8, error: &mut *const ffi::StatusRep) -> *const SafetensorsFileRep {
    let opened = guard(|| SafetensorsFile::open(path_of(path), file_access(number)?));
    give_handle(opened.map(SafetensorsFileRep), error)
}

/// # Safety
/// C++ holds a reference.
unsafe fn safetensors_retain(file: *const SafetensorsFileRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(file) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn safetensors_release(file: *const SafetensorsFileRep) {
    contain("safetensors_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(file) };
    })
}

fn safetensors_entry_count(file: &SafetensorsFileRep) -> usize {
    contain("safetensors_entry_count", 0, || file.0.tensors().len())
}

fn safetensors_entry_at(file: &SafetensorsFileRep, index: usize) -> ffi::RawEntry<'_> {
    contain("safetensors_entry_at", ffi::RawEntry::default(), || {
        let tensor = &file.0.tensors()[index];
        ffi::RawEntry {
            name: tensor.name(),
            dtype_name: tensor.dtype_name(),
            dims: tensor.dims(),
            offset_bytes: tensor.range().start,
            size_bytes: tensor.range().len(),
            dtype: tensor.dtype().map_or(0, |dtype| dtype as u8),
        }
    })
}

fn safetensors_metadata_count(file: &SafetensorsFileRep) -> usize {
    contain("safetensors_metadata_count", 0, || file.0.metadata().len())
}

fn safetensors_metadata_at(file: &SafetensorsFileRep, index: usize) -> ffi::RawMetadata<'_> {
    contain("safetensors_metadata_at", ffi::RawMetadata::default(), || {
        let (key, text) = &file.0.metadata()[index];
        ffi::RawMetadata { key, text }
    })
}

fn safetensors_read(
    file: &SafetensorsFileRep,
    name: &[u8],
    space: &MemorySpaceRep,
    is_aliased: &mut bool,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    give_array(guard(|| file.0.read(text_of(name)?, &space.0)), is_aliased, error)
}

fn safetensors_write(
    path: &[u8],
    buffers: &[ffi::RawNamedBuffer<'_>],
    metadata: &[ffi::RawTextPair<'_>],
    is_durable: bool,
) -> *const ffi::StatusRep {
    let written = guard(|| {
        let borrowed: Vec<_> = buffers.iter().map(|named| named.buffer.get()).collect();
        let mut tensors = Vec::with_capacity(buffers.len());
        for (named, buffer) in buffers.iter().zip(&borrowed) {
            tensors.push((text_of(named.name)?, &**buffer));
        }
        let mut texts = Vec::with_capacity(metadata.len());
        for pair in metadata {
            texts.push((text_of(pair.key)?, text_of(pair.text)?));
        }
        write_safetensors(path_of(path), &tensors, &texts, WriteOptions { is_durable })
    });
    give(written)
}
