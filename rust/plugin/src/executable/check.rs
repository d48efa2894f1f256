//! The mode `check`: a program runs on Purlin and on the plugin that compiles, and the results are compared.
//!
//! Purlin's run copies what is donated, because the other run needs it. Both are waited for. Integers must be equal bit
//! for bit; floating-point numbers may differ as much as sums in another order do.

use purlin_array::DType;
use purlin_base::{Error, StatusOr};
use purlin_device::Buffer;

/// What two numbers of a type may differ by, as a part of the larger of them and of the array's largest.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => 1e-10,
        DType::F32 | DType::C64 => 2e-5,
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        _ => 0.0,
    }
}

/// Whether `ours` and `theirs` are the same array.
///
/// # Errors
/// `Internal`, naming `what` and the element: they differ. Their own, if both have failed it is no difference.
pub(super) fn same(what: &str, ours: &Buffer, theirs: &Buffer) -> Result<(), Error> {
    let (own, other) = (ours.ready_event().wait(), theirs.ready_event().wait());
    match (own, other) {
        (Ok(()), Ok(())) => (),
        (Err(_), Err(_)) => return Ok(()),
        (own, other) => {
            let told = |outcome: Result<(), Error>| outcome.err().map_or("ready".to_owned(), |error| error.to_string());
            return Err(Error::internal(format!("{what}: Purlin's is {}, the compiler's {}", told(own), told(other))));
        }
    }
    let (own, other) = (bytes(ours)?, bytes(theirs)?);
    if own == other {
        return Ok(());
    }
    let dtype = ours.dtype();
    let (own, other) = (numbers(dtype, &own), numbers(dtype, &other));
    let largest = own
        .iter()
        .chain(&other)
        .filter(|number| number.is_finite())
        .fold(0.0_f64, |most, number| most.max(number.abs()));
    let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance(dtype) * largest;
    match own.iter().zip(&other).position(|(&a, &b)| !close(a, b)) {
        None => Ok(()),
        Some(at) => Err(Error::internal(format!(
            "{what} differs at number {at} of {}: Purlin has {:e}, the compiler {:e}",
            ours.shape(),
            own[at],
            other[at]
        ))),
    }
}

/// The elements in row-major order.
fn bytes(array: &Buffer) -> StatusOr<Vec<u8>> {
    let mut bytes = vec![0_u8; array.shape().host_size_bytes()];
    // SAFETY: the vector is as long as the array, and stays here until the wait.
    unsafe { array.copy_to_host(bytes.as_mut_ptr(), bytes.len()) }.wait_uninterruptible()?;
    Ok(bytes)
}

/// The elements as numbers; of a complex one, both parts. Of types without a tolerance, their bytes.
fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.chunks_exact(N).map(|chunk| number(chunk.try_into().expect("as long"))).collect()
    }
    match dtype {
        DType::F64 | DType::C128 => each(bytes, f64::from_le_bytes),
        DType::F32 | DType::C64 => each(bytes, |bytes| f32::from_le_bytes(bytes).into()),
        DType::F16 => each(bytes, |bytes| half::f16::from_le_bytes(bytes).into()),
        DType::BF16 => each(bytes, |bytes| half::bf16::from_le_bytes(bytes).into()),
        _ => bytes.iter().map(|&byte| byte.into()).collect(),
    }
}
