//! Options that grow: each begins with its own size, as the caller's compiler knew it.

use std::ops::RangeInclusive;

use purlin_base::Error;

/// No version will be larger; a larger number is a wild pointer or an uninitialised struct.
const LARGEST_BYTES: usize = 4096;

/// # Errors
/// `InvalidArgument`: a size that no version of `name`, the first of which had `smallest_bytes`, has.
pub fn check(name: &str, struct_size: usize, smallest_bytes: usize) -> Result<(), Error> {
    let known: RangeInclusive<usize> = smallest_bytes..=LARGEST_BYTES;
    if known.contains(&struct_size) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{name}::struct_size is {struct_size}; it must be sizeof({name}), as its constructor sets it ({known:?} are \
         accepted)"
    )))
}
