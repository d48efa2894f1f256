//! What C passes, as values of ours.

use std::ffi::{c_char, c_int};
use std::ptr;

use purlin_array::{DType, Layout, Shape};
use purlin_base::{Error, StatusOr};
use purlin_ffi::struct_size;
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi::{BufferMemoryLayout, Versioned, buffer_memory_layout_type};
use smallvec::SmallVec;

/// The elements at `data`.
///
/// # Errors
/// `InvalidArgument`, naming `what`: null with elements, or more than memory can have.
///
/// # Safety
/// `data` is null or points to `count` elements, unchanged for `'a`.
pub(crate) unsafe fn list<'a, T>(what: &str, data: *const T, count: usize) -> StatusOr<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if data.is_null() || !data.is_aligned() || !fits {
        return Err(Error::invalid_argument(format!("{what}: {count} elements at {data:p}")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// The text at `data`, of `size` bytes.
///
/// # Errors
/// `InvalidArgument`, naming `what`: as [`list`], or not UTF-8.
///
/// # Safety
/// As [`list`].
pub(crate) unsafe fn text<'a>(what: &str, data: *const c_char, size: usize) -> StatusOr<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { list(what, data.cast::<u8>(), size) }?;
    std::str::from_utf8(bytes).map_err(|_| Error::invalid_argument(format!("{what} is not UTF-8")))
}

/// A struct that another struct points to.
///
/// # Errors
/// `InvalidArgument`: null, or of no known size.
///
/// # Safety
/// `data` is null or points to as many bytes as its first field says.
pub(crate) unsafe fn nested<T: Versioned>(data: *const T) -> StatusOr<T> {
    if data.is_null() || !data.is_aligned() {
        return Err(Error::invalid_argument(format!("the {} is at {data:p}", T::NAME)));
    }
    // SAFETY: the caller's promise; no more is copied than there is, or than a value has.
    unsafe {
        let size = data.cast::<usize>().read();
        struct_size::check(T::NAME, size, T::FIRST_SIZE)?;
        let mut whole: T = arguments();
        // The size stays ours, so that what is made of it says no more than it has.
        let (first, size) = (size_of::<usize>(), size.min(T::STRUCT_SIZE));
        let (from, to) = (data.byte_add(first).cast::<u8>(), (&raw mut whole).byte_add(first).cast());
        ptr::copy_nonoverlapping(from, to, size - first);
        Ok(whole)
    }
}

/// The structs of an array, whose elements are as far apart as the caller's compiler has put them.
///
/// # Errors
/// `InvalidArgument`: null with elements, or one of no known size.
///
/// # Safety
/// `data` is null or points to `count` structs.
pub(crate) unsafe fn each<T: Versioned>(data: *const T, count: usize) -> StatusOr<Vec<T>> {
    let mut all = Vec::new();
    let mut next = data;
    for _ in 0..count {
        // SAFETY: the caller's promise; all structs of the array have the same size, rounded up to a word.
        unsafe {
            all.push(nested(next)?);
            next = next.byte_add(next.cast::<usize>().read().next_multiple_of(align_of::<T>()));
        }
    }
    Ok(all)
}

/// The element type of that number.
///
/// # Errors
/// `InvalidArgument`: there is none. `Unimplemented`: a type of one bit.
pub(crate) fn dtype(number: c_int) -> StatusOr<DType> {
    u8::try_from(number).ok().and_then(DType::from_raw).ok_or_else(|| match number {
        30 | 31 => Error::unimplemented("Purlin has no arrays of elements of one bit (PJRT_Buffer_Type_S1, U1)"),
        _ => Error::invalid_argument(format!("there is no PJRT_Buffer_Type {number}")),
    })
}

/// The shape of those dimensions.
///
/// # Errors
/// `InvalidArgument`: as [`dtype`], [`list`] and [`Shape::new`].
///
/// # Safety
/// `dims` is null or points to `count` numbers.
pub(crate) unsafe fn shape(element_type: c_int, dims: *const i64, count: usize) -> StatusOr<Shape> {
    // SAFETY: the caller's promise.
    Shape::new(dtype(element_type)?, unsafe { list("the dimensions of an array", dims, count) }?)
}

/// The layout of an array of that shape; null is `None`.
///
/// # Errors
/// `InvalidArgument`: no layout of such an array. `Unimplemented`: tiles.
///
/// # Safety
/// `layout` is null or a layout, with what it points to.
pub(crate) unsafe fn layout(layout: *const BufferMemoryLayout, shape: &Shape) -> StatusOr<Option<Layout>> {
    if layout.is_null() {
        return Ok(None);
    }
    if !layout.is_aligned() {
        return Err(Error::invalid_argument(format!("the {} is at {layout:p}", BufferMemoryLayout::NAME)));
    }
    // SAFETY: the caller's promise; `type` says which member is set. JAX and XLA leave the sizes of layouts unset, and
    // there is one version, so the sizes are not looked at.
    unsafe {
        let layout = layout.read();
        match layout.r#type {
            buffer_memory_layout_type::TILED => {
                let tiled = layout.value.tiled;
                if tiled.num_tiles != 0 {
                    return Err(Error::unimplemented(format!(
                        "a layout with {} tiles for {shape}: arrays on a CPU are dense",
                        tiled.num_tiles
                    )));
                }
                let order = list("minor_to_major", tiled.minor_to_major, tiled.minor_to_major_size)?;
                let layout = Layout::new(order)?;
                layout.check_rank(shape)?;
                Ok(Some(layout))
            }
            buffer_memory_layout_type::STRIDES => {
                let strides = layout.value.strides;
                of_strides(shape, list("byte_strides", strides.byte_strides, strides.num_byte_strides)?).map(Some)
            }
            other => Err(Error::invalid_argument(format!("there is no PJRT_Buffer_MemoryLayout_Type {other}"))),
        }
    }
}

/// The layout in which a dense array of that shape has those strides.
fn of_strides(shape: &Shape, strides: &[i64]) -> StatusOr<Layout> {
    let refused = || Error::invalid_argument(format!("no dense layout of {shape} has byte strides {strides:?}"));
    if strides.len() != shape.rank() {
        return Err(refused());
    }
    let mut order: SmallVec<[i64; 8]> = (0..strides.len() as i64).collect();
    // Dimensions of one entry stand anywhere; among equal strides, the inner dimension is the faster one.
    order.sort_by_key(|&axis| (strides[axis as usize], std::cmp::Reverse(axis)));
    let layout = Layout::new(&order)?;
    let dense = layout.byte_strides(shape)?;
    let leads = |axis: usize| shape.dims()[axis] > 1 && shape.element_count() > 0;
    if (0..strides.len()).any(|axis| leads(axis) && dense[axis] != strides[axis]) {
        return Err(refused());
    }
    Ok(layout)
}

/// How something ended, as C says it in parts.
///
/// # Safety
/// `message` is null or points to `size` bytes.
pub(crate) unsafe fn outcome(code: c_int, message: *const c_char, size: usize) -> Result<(), Error> {
    if code == purlin_base::StatusCode::Ok as c_int {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    Err(unsafe { purlin_pjrt::error::from_parts("PJRT_Error_Code", code, message, size) })
}
