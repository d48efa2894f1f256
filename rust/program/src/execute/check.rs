//! Checks that arguments, and memory for results, match the program's signature.

use super::acquire::Role;
use crate::signature::ArraySpec;
use purlin_base::Error;
use purlin_device::{Buffer, MemorySpace};

/// Checks that `buffer` has the type of `spec` and is in `space`.
///
/// # Errors
/// `InvalidArgument`: shape, layout, client or memory space differ. The message names the buffer and both sides.
#[inline]
pub(super) fn check(role: Role, buffer: &Buffer, spec: &ArraySpec, space: &MemorySpace) -> Result<(), Error> {
    let is_right = buffer.shape() == spec.shape() && buffer.special_layout() == spec.layout();
    if is_right && buffer.is_in(space) {
        return Ok(());
    }
    Err(refusal(role, buffer, spec, space))
}

#[cold]
fn refusal(role: Role, buffer: &Buffer, spec: &ArraySpec, space: &MemorySpace) -> Error {
    let what = role.name();
    let has = buffer.memory_space();
    Error::invalid_argument(if buffer.shape() != spec.shape() {
        format!("{what} is {}, and the program takes {}", buffer.shape(), spec.shape())
    } else if buffer.special_layout() != spec.layout() {
        let takes =
            spec.layout().cloned().unwrap_or_else(|| purlin_array::layout::Layout::row_major(spec.shape().rank()));
        format!("{what} is {} in layout {}, and the program takes layout {takes}", buffer.shape(), buffer.layout())
    } else if !has.same_client(space) {
        format!("{what}, {buffer:?}, is of another client than {space}, where the program takes it")
    } else {
        format!("{what} is in {has}, and the program takes it in {space}")
    })
}
