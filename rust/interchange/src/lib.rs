//! Arrays of other programs as buffers, and buffers as theirs: `.npy`, safetensors, DLPack.
//!
//! | module | what it is |
//! |---|---|
//! | `file` | files as bytes, mapped or read; files that appear whole or not at all |
//! | `fault` | why a file is refused, and at which byte |
//! | `array_bytes` | between bytes on the host and buffers |
//! | `npy` | [`read_npy`], [`write_npy`]: one array a file, NumPy's format |
//! | `safetensors` | [`SafetensorsFile`], [`write_safetensors`]: many named arrays a file |
//! | `dlpack` | [`DlpackTensor`], [`import_dlpack`]: arrays in the memory of this process |
//!
//! A file is foreign: nothing in it is believed before it is checked, no number of it is a length to allocate, and a
//! file that is refused costs no more than its header. `DataLoss`: it is not what the format says. `Unimplemented`: it
//! is, but no [`Buffer`](purlin_device::Buffer) can hold it. Both name the file, the byte, and what stands there.
//!
//! ```
//! # use std::sync::Arc;
//! # use purlin::{Buffer, Client, ClientOptions, Error};
//! # use purlin_interchange::{FileAccess, SafetensorsFile, WriteOptions, write_safetensors};
//! # let client = Client::new(&ClientOptions::default(), Arc::new(purlin_host::HostBackend::new()))?;
//! # let path = std::env::temp_dir().join(format!("purlin-doc-{}.safetensors", std::process::id()));
//! let space = client.devices()[0].default_memory_space();
//! let weights = Buffer::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2], &space)?;
//! write_safetensors(&path, &[("layer.weights", &weights)], &[("format", "pt")], WriteOptions::default())?;
//!
//! // SAFETY: nothing writes or truncates the file while it is mapped.
//! let file = SafetensorsFile::open(&path, unsafe { FileAccess::mapped() })?;
//! let (read, _aliasing) = file.read("layer.weights", &space)?;
//! assert_eq!(read.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! Everything that touches a file blocks. Any thread may call anything; nothing here keeps a thread, or state beside
//! files.

#![deny(unsafe_code)]

mod array_bytes;
pub mod dlpack;
mod fault;
mod file;
#[cfg(test)]
mod fuzz;
mod npy;
mod safetensors;
#[cfg(test)]
mod testing;

pub use dlpack::{DlpackStream, DlpackTensor, import_dlpack, import_dlpack_behind};
pub use file::{FileAccess, WriteOptions};
pub use npy::{NpyReadOptions, read_npy, write_npy};
pub use safetensors::{SafetensorsFile, Tensor, write_safetensors};

// All three formats are little-endian here, and bytes are taken as they are.
const _: () = assert!(cfg!(target_endian = "little"), "arrays are exchanged by machines that are little-endian");

/// The most dimensions that an array from outside may have: NumPy's limit, and more than programs use. A bound is
/// needed, because a header of a few kilobytes can claim thousands.
pub const MAX_RANK: usize = 64;
