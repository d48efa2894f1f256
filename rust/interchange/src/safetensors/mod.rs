//! safetensors: many named arrays a file, each dense and row-major, back to back.
//!
//! Eight bytes with the length of the header, the header (JSON; `header.rs` reads it, `write.rs` writes it), the bytes
//! of the arrays. A file is opened once and checked whole; its arrays are then read by name, in any order, by any
//! thread.
//!
//! Elements: all types of the format but `F6_E2M3` and `F6_E3M2`, which no buffer holds: such arrays are listed and
//! cannot be read. `F4` stands packed, two in a byte, as on a device. The format has none for `c128`, for integers of
//! less than 8 bits, and for some 8-bit floats: these cannot be written.

#![allow(unsafe_code, reason = "host memory is read by address")]

mod header;
#[cfg(test)]
pub(crate) mod tests;
mod write;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use purlin_array::{DType, HostArray, Shape};
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{Aliasing, Buffer, MemorySpace};

pub(crate) use self::header::Header;
pub use self::write::write_safetensors;
use crate::array_bytes::{into_buffer, packed_into_buffer};
use crate::fault::Fault;
use crate::file::{FileAccess, FileBytes, Opened};

/// A type of elements: the format's name, and ours.
const TYPES: [(&str, DType); 20] = [
    ("BOOL", DType::Pred),
    ("F4", DType::F4E2M1FN),
    ("U8", DType::U8),
    ("I8", DType::S8),
    ("F8_E5M2", DType::F8E5M2),
    ("F8_E4M3", DType::F8E4M3FN),
    ("F8_E8M0", DType::F8E8M0FNU),
    ("F8_E4M3FNUZ", DType::F8E4M3FNUZ),
    ("F8_E5M2FNUZ", DType::F8E5M2FNUZ),
    ("I16", DType::S16),
    ("U16", DType::U16),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("I32", DType::S32),
    ("U32", DType::U32),
    ("F32", DType::F32),
    ("C64", DType::C64),
    ("F64", DType::F64),
    ("I64", DType::S64),
    ("U64", DType::U64),
];

/// An array in a file.
///
/// ```
/// use purlin::interchange::{FileAccess, SafetensorsFile, WriteOptions, write_safetensors};
/// use purlin::{Buffer, DType};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let path = std::env::temp_dir().join(format!("purlin-doc-tensor-{}.safetensors", std::process::id()));
/// let weights = Buffer::from_slice(&[1.0_f32, 2.0], &[2, 1], &space)?;
/// write_safetensors(&path, &[("weights", &weights)], &[], WriteOptions::default())?;
/// let file = SafetensorsFile::open(&path, FileAccess::read())?;
/// let tensor = &file.tensors()[0];
/// assert_eq!((tensor.name(), tensor.dtype(), tensor.dims()), ("weights", Some(DType::F32), &[2_i64, 1][..]));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    name: String,
    dtype_name: String,
    dims: Vec<i64>,
    /// `None`: no buffer holds such elements.
    shape: Option<Shape>,
    /// Of the file's bytes.
    range: Range<usize>,
    /// Where the header describes it.
    offset: usize,
}

impl Tensor {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format's name for its elements, such as `BF16`.
    #[must_use]
    pub fn dtype_name(&self) -> &str {
        &self.dtype_name
    }

    /// Its elements; `None`: no buffer holds such, so it cannot be read.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        self.shape.as_ref().map(Shape::dtype)
    }

    /// Its dimensions, outermost first.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Where its bytes are in the file.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

/// A safetensors file, open and checked. It keeps the file's bytes; buffers made from it may outlive it.
///
/// ```
/// use purlin::interchange::{FileAccess, SafetensorsFile, WriteOptions, write_safetensors};
/// use purlin::{Buffer, StatusCode};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let path = std::env::temp_dir().join(format!("purlin-doc-file-{}.safetensors", std::process::id()));
/// let bias = Buffer::from_slice(&[0.5_f32], &[1], &space)?;
/// write_safetensors(&path, &[("bias", &bias)], &[("format", "pt")], WriteOptions::default())?;
/// let file = SafetensorsFile::open(&path, FileAccess::read())?;
/// assert_eq!(file.metadata(), [("format".to_owned(), "pt".to_owned())]);
/// assert_eq!(file.read("bias", &space)?.0.to_vec::<f32>()?, [0.5]);
/// assert_eq!(file.read("scale", &space).unwrap_err().code(), StatusCode::NotFound);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Debug)]
pub struct SafetensorsFile {
    path: PathBuf,
    bytes: Arc<FileBytes>,
    header: Header,
}

impl SafetensorsFile {
    /// Opens the file at `path` and checks all that its header says. Blocks. A file that is refused is not read beyond
    /// that.
    ///
    /// # Errors
    /// Name the file. `DataLoss`, with the byte: it is damaged. `Aborted`: it became longer or shorter meanwhile.
    /// `NotFound`, `PermissionDenied`, `FailedPrecondition` (no regular file), `ResourceExhausted` (no memory to read
    /// it into), `Unknown`: the system's answer.
    pub fn open(path: &Path, access: FileAccess) -> StatusOr<Self> {
        let mut file = Opened::open(path)?;
        let size_bytes = file.size_bytes();
        let front = file.front(header::PREFIX_BYTES)?;
        let header_bytes = header::size_bytes(front, size_bytes).map_err(|fault| fault.of(path))?;
        let parsed = Header::parse(file.front(header_bytes)?, size_bytes);
        let header = parsed.map_err(|fault| fault.of(path))?;
        let bytes = file.whole(access)?;
        Ok(Self { path: path.to_owned(), bytes: Arc::new(bytes), header })
    }

    /// All arrays, in the order of their bytes.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.header.tensors
    }

    /// What the file says about itself (`__metadata__`), in the file's order.
    #[must_use]
    pub fn metadata(&self) -> &[(String, String)] {
        &self.header.metadata
    }

    /// The array of that name, in `memory_space`, and whether its memory is the file's mapping. Blocks only for reading
    /// packed elements (`F4`).
    ///
    /// # Errors
    /// Name the file. `NotFound`: it has no such array. `Unimplemented`, with the byte: no buffer can hold such
    /// elements. Also as [`Buffer::from_host_array`].
    pub fn read(&self, name: &str, memory_space: &MemorySpace) -> StatusOr<(Buffer, Aliasing)> {
        let Some(tensor) = self.header.find(name) else {
            return Err(Error::not_found(format!("{} has no array {name:?}", self.path.display())));
        };
        let Some(shape) = &tensor.shape else {
            let why = format!("no buffer holds elements of type {:?}, as {name:?} has", tensor.dtype_name);
            return Err(Fault::unsupported(tensor.offset, why).of(&self.path));
        };
        let data = self.bytes[tensor.range.clone()].as_ptr();
        let label = Label::new(c"safetensors file");
        if shape.dtype().is_sub_byte() {
            // SAFETY: the header's check has seen that the range is as long as the packed elements; a mapped file does
            // not change, by the promise of FileAccess::mapped.
            return unsafe { packed_into_buffer(data, shape, memory_space, label) };
        }
        let array = HostArray::new(shape, None)?;
        let keeper = Arc::clone(&self.bytes);
        // SAFETY: as above; the keeper keeps the bytes.
        unsafe { into_buffer(data, &array, memory_space, label, self.bytes.is_mapped(), keeper) }
    }
}
