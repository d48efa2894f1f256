//! `.npy`: one array a file, as `numpy.save` writes it and `numpy.load` reads it.
//!
//! A magic, a version, a header that is a Python dictionary (`header.rs`), the elements. Versions 1.0, 2.0 and 3.0 are
//! read; 1.0 is written, with the elements at a multiple of 64 bytes, as NumPy does.
//!
//! | elements | in the file | read back by |
//! |---|---|---|
//! | `pred`, integers, `f16` to `f64`, `c64`, `c128` | NumPy's own (`\|b1`, `<i4`, `<f2`, `<c8`, ...) | every reader |
//! | `bf16`, 8-bit floats, types narrower than a byte (a byte each) | opaque (`<V2`, `\|V1`), as `ml_dtypes` writes them | a reader that knows the type: [`NpyReadOptions::dtype`] here, `.view(ml_dtypes.bfloat16)` there |
//!
//! Refused as `Unimplemented`: pickled objects, structured types, text, dates, big-endian elements, `longdouble`.
//! Elements in Fortran's order are copied into rows. Bytes behind the array are refused, because they would be lost.

#![allow(unsafe_code, reason = "host memory is read by address")]

mod descr;
pub(crate) mod header;
#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

use purlin_array::{DType, HostArray, Shape};
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{Aliasing, Buffer, MemorySpace};

use self::descr::Descr;
use self::header::Header;
use crate::array_bytes::{HostBytes, into_buffer};
use crate::fault::Fault;
use crate::file::{FileAccess, Opened, WriteOptions, replace};

/// How a `.npy` file is read.
///
/// ```
/// use purlin::interchange::{NpyReadOptions, WriteOptions, read_npy, write_npy};
/// use purlin::{Buffer, DType};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let path = std::env::temp_dir().join(format!("purlin-doc-options-{}.npy", std::process::id()));
/// write_npy(&path, &Buffer::from_slice(&[1_i32, 2], &[2], &space)?, WriteOptions::default())?;
/// let options = NpyReadOptions { dtype: Some(DType::F32), ..Default::default() };
/// let error = read_npy(&path, &space, &options).unwrap_err();
/// assert!(error.message().contains("s32, not f32"), "{error}");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NpyReadOptions {
    /// What the elements must be. For those that NumPy does not know, the file has only their width, and this gives the
    /// type.
    pub dtype: Option<DType>,
    /// How the file's bytes are brought into memory.
    pub access: FileAccess,
}

/// The array in the `.npy` file at `path`, in `memory_space`, and whether its memory is the file's mapping. Blocks. A
/// file that is refused is not read beyond its header.
///
/// # Errors
/// Name the file. `DataLoss`: it is damaged, with the byte. `Unimplemented`: no buffer can hold such elements, with the
/// byte. `InvalidArgument`: the elements are others than `options.dtype`, or opaque, and no type was given. `Aborted`:
/// the file became longer or shorter meanwhile. `NotFound`, `PermissionDenied`, `FailedPrecondition` (no regular file),
/// `Unknown`: the system's answer. Also as [`Buffer::from_host_array`].
///
/// # Examples
/// ```
/// use purlin::Buffer;
/// use purlin::interchange::{NpyReadOptions, WriteOptions, read_npy, write_npy};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let path = std::env::temp_dir().join(format!("purlin-doc-read-{}.npy", std::process::id()));
/// write_npy(&path, &Buffer::from_slice(&[1.0_f32, 2.0], &[2], &space)?, WriteOptions::default())?;
/// let (array, _aliasing) = read_npy(&path, &space, &NpyReadOptions::default())?;
/// assert_eq!((array.dims(), array.to_vec::<f32>()?), (&[2_i64][..], vec![1.0, 2.0]));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), purlin::Error>(())
/// ```
pub fn read_npy(path: &Path, memory_space: &MemorySpace, options: &NpyReadOptions) -> StatusOr<(Buffer, Aliasing)> {
    let mut file = Opened::open(path)?;
    let size_bytes = file.size_bytes();
    let header_bytes =
        header::size_bytes(file.front(header::PREFIX_BYTES)?, size_bytes).map_err(|fault| fault.of(path))?;
    let parsed = parse(file.front(header_bytes)?, size_bytes, options.dtype);
    let (array, offset) = parsed.map_err(|fault| fault.of(path))?;
    let bytes = file.whole(options.access)?;
    let data = bytes[offset..].as_ptr();
    // SAFETY: parse has seen that the array's bytes are in the file's, which the keeper is; a mapped file does not
    // change, by the promise of FileAccess::mapped.
    unsafe { into_buffer(data, &array, memory_space, Label::new(c"npy file"), bytes.is_mapped(), bytes) }
}

/// Where the array stands in a file of `size_bytes` bytes that begins with `front`, all of its header. Everything is
/// checked; the array ends where the file does.
pub(crate) fn parse(front: &[u8], size_bytes: usize, named: Option<DType>) -> Result<(HostArray, usize), Fault> {
    let header = Header::parse(front)?;
    let dtype = match (header.descr, named) {
        (Descr::Known(found), Some(named)) if found != named => {
            return Err(Fault::mismatch(header.descr_offset, format!("the elements are {found}, not {named}")));
        }
        (Descr::Known(found), _) => found,
        (Descr::Opaque { width }, Some(named)) if Descr::of(named) == Some(Descr::Opaque { width }) => named,
        (Descr::Opaque { width }, Some(named)) => {
            let why =
                format!("the elements are of {width} bytes and of a type unknown to NumPy, so they are no {named}");
            return Err(Fault::mismatch(header.descr_offset, why));
        }
        (Descr::Opaque { width }, None) => {
            let why = format!("the elements are of {width} bytes and of a type unknown to NumPy, which must be named");
            return Err(Fault::mismatch(header.descr_offset, why));
        }
    };
    let too_large = |error: Error| Fault::damage(header.shape_offset, error.message());
    let shape = Shape::new(dtype, &header.dims).map_err(too_large)?;
    let strides = header.fortran_order.then(|| column_major(&shape));
    let array = HostArray::new(&shape, strides.as_deref()).map_err(too_large)?;
    let (there, needed) = (size_bytes - header.size_bytes, shape.host_size_bytes());
    if there < needed {
        let why = format!("the file ends after {there} of the {needed} bytes of {shape}");
        return Err(Fault::damage(size_bytes, why));
    }
    if there > needed {
        let why = format!("{} bytes follow after the {needed} bytes of {shape}", there - needed);
        return Err(Fault::damage(header.size_bytes + needed, why));
    }
    Ok((array, header.size_bytes))
}

/// Byte strides of an array whose first dimension is contiguous.
fn column_major(shape: &Shape) -> Vec<i64> {
    let mut stride = shape.dtype().host_byte_width() as i64;
    let step = |&dim: &i64| {
        let this = stride;
        // Saturates only where a dimension is 0, and strides mean nothing.
        stride = stride.saturating_mul(dim.max(1));
        this
    };
    shape.dims().iter().map(step).collect()
}

/// Writes `buffer` to the file at `path`, dense and row-major; the file is there when all of it is, and what was there
/// before stays if this fails. Blocks until the buffer is ready and the file is written.
///
/// # Errors
/// The buffer's own; `InvalidArgument`: it is gone, a token, or of a dynamic shape; as [`read_npy`] for what the system
/// says, and `ResourceExhausted`: the disk is full.
///
/// # Examples
/// ```
/// use purlin::Buffer;
/// use purlin::interchange::{WriteOptions, write_npy};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let path = std::env::temp_dir().join(format!("purlin-doc-write-{}.npy", std::process::id()));
/// write_npy(&path, &Buffer::from_slice(&[1.0_f32, 2.0], &[2], &space)?, WriteOptions::default())?;
/// assert!(std::fs::read(&path).unwrap().starts_with(b"\x93NUMPY"));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), purlin::Error>(())
/// ```
pub fn write_npy(path: &Path, buffer: &Buffer, options: WriteOptions) -> Result<(), Error> {
    let bytes = HostBytes::of(buffer)?;
    let header = header::written(buffer.shape())?;
    replace(path, options, |file| {
        file.write(&header)?;
        file.write(bytes.as_slice())
    })
}
