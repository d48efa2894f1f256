//! `purlin/shape.h`.

use purlin_array::{DType, Shape};
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_ffi::handle::{elements, give};
use purlin_ffi::panic::guard;

/// A `purlin::Shape`. Borrowed, and unchecked.
#[repr(C)]
pub struct RawShape {
    dims: *const i64,
    rank: usize,
    /// Not 0: that dimension is dynamic. None at all: none is.
    dynamic: *const u8,
    dynamic_count: usize,
    dtype: u8,
}

impl RawShape {
    /// # Errors
    /// `InvalidArgument`: no shape.
    ///
    /// # Safety
    /// `dims` points to `rank` numbers, and `dynamic` to `dynamic_count` flags.
    pub(crate) unsafe fn get(&self) -> StatusOr<Shape> {
        // SAFETY: the caller's promises.
        let (dims, dynamic) = unsafe { (elements(self.dims, self.rank), elements(self.dynamic, self.dynamic_count)) };
        let dtype = dtype(self.dtype)?;
        if dynamic.is_empty() {
            return Shape::new(dtype, dims);
        }
        let dynamic: Vec<bool> = dynamic.iter().map(|&flag| flag != 0).collect();
        Shape::with_dynamic(dtype, dims, &dynamic)
    }
}

/// A `purlin::DType`.
///
/// # Errors
/// `InvalidArgument`: there is none of that number.
pub(crate) fn dtype(number: u8) -> StatusOr<DType> {
    DType::from_raw(number).ok_or_else(|| Error::invalid_argument(format!("{number} is no DType")))
}

/// Number of elements, bytes on a device and bytes on the host of a shape.
#[repr(C)]
pub struct ShapeSizes {
    element_count: i64,
    on_device_size_bytes: usize,
    host_size_bytes: usize,
}

/// Writes the sizes; null, or an error, C++'s: then nothing is written.
///
/// # Safety
/// `shape` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_shape_sizes(shape: &RawShape, sizes: &mut ShapeSizes) -> *const StatusRep {
    let checked = guard(|| {
        // SAFETY: the caller's promise.
        let shape = unsafe { shape.get()? };
        *sizes = ShapeSizes {
            element_count: shape.element_count(),
            on_device_size_bytes: shape.on_device_size_bytes(),
            host_size_bytes: shape.host_size_bytes(),
        };
        Ok(())
    });
    give(checked)
}
