//! `purlin/shape.h`.

use purlin_array::{DType, Shape};
use purlin_base::{Error, StatusOr};
use purlin_ffi::handle::{elements, give};
use purlin_ffi::panic::guard;

pub(crate) use self::ffi::RawShape;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// Number of elements, bytes on a device and bytes on the host of a shape.
    struct ShapeSizes {
        element_count: i64,
        on_device_size_bytes: usize,
        host_size_bytes: usize,
    }

    /// A `purlin::Shape`. Borrowed, and unchecked.
    #[namespace = "purlin::v0::internal"]
    struct RawShape {
        dims: *const i64,
        rank: usize,
        /// Not 0: that dimension is dynamic. None at all: none is.
        dynamic: *const u8,
        dynamic_count: usize,
        dtype: u8,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
    }

    extern "Rust" {
        /// Writes the sizes of the shape of these dimensions, flags and type. Null, or an error, C++'s: then nothing is
        /// written.
        fn shape_sizes(dims: &[i64], dynamic: &[u8], number: u8, sizes: &mut ShapeSizes) -> *const StatusRep;
    }
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
        shape(dims, dynamic, self.dtype)
    }
}

/// # Errors
/// `InvalidArgument`: no shape.
fn shape(dims: &[i64], dynamic: &[u8], number: u8) -> StatusOr<Shape> {
    let dtype = dtype(number)?;
    if dynamic.is_empty() {
        return Shape::new(dtype, dims);
    }
    let dynamic: Vec<bool> = dynamic.iter().map(|&flag| flag != 0).collect();
    Shape::with_dynamic(dtype, dims, &dynamic)
}

/// A `purlin::DType`.
///
/// # Errors
/// `InvalidArgument`: there is none of that number.
pub(crate) fn dtype(number: u8) -> StatusOr<DType> {
    DType::from_raw(number).ok_or_else(|| Error::invalid_argument(format!("{number} is no DType")))
}

fn shape_sizes(dims: &[i64], dynamic: &[u8], number: u8, sizes: &mut ffi::ShapeSizes) -> *const ffi::StatusRep {
    give(guard(|| {
        let shape = shape(dims, dynamic, number)?;
        *sizes = ffi::ShapeSizes {
            element_count: shape.element_count(),
            on_device_size_bytes: shape.on_device_size_bytes(),
            host_size_bytes: shape.host_size_bytes(),
        };
        Ok(())
    }))
}
