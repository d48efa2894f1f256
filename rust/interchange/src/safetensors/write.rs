//! Writing safetensors: the widest elements first, so that every array begins at a multiple of its element's size, and
//! the first at a multiple of 64 bytes, for which the header is padded with spaces.

use std::collections::HashSet;
use std::path::Path;

use purlin_base::{Error, StatusOr};
use purlin_device::Buffer;

use super::TYPES;
use super::header::{LENGTH_BYTES, METADATA, MOST_HEADER_BYTES};
use crate::MAX_RANK;
use crate::array_bytes::HostBytes;
use crate::file::{WriteOptions, replace};

/// What the first array begins at a multiple of.
const ALIGNMENT_BYTES: usize = 64;

/// Writes `tensors`, and strings about them, to the file at `path`; the file is there when all of it is, and what was
/// there before stays if this fails. One array at a time is in the host's memory, if it is not there anyway. Blocks
/// until all buffers are ready and the file is written.
///
/// # Errors
/// Nothing is written for those of them that are `InvalidArgument`: two equal names, or one that is `__metadata__`; two
/// equal keys; an array of a type that the format has none for, of a dynamic shape, of an odd number of 4-bit elements;
/// a header of more than 100 MB. Otherwise as [`write_npy`](crate::write_npy).
pub fn write_safetensors(
    path: &Path,
    tensors: &[(&str, &Buffer)],
    metadata: &[(&str, &str)],
    options: WriteOptions,
) -> Result<(), Error> {
    let mut ordered: Vec<(&str, &Buffer)> = tensors.to_vec();
    ordered.sort_by(|(a_name, a), (b_name, b)| b.dtype().bits().cmp(&a.dtype().bits()).then(a_name.cmp(b_name)));
    let header = header(&ordered, metadata)?;
    for (name, buffer) in &ordered {
        buffer.ready_event().wait_unlent().map_err(|error| named(name, &error))?;
    }
    replace(path, options, |file| {
        file.write(&header)?;
        for (name, buffer) in &ordered {
            let bytes = HostBytes::packed(buffer).map_err(|error| named(name, &error))?;
            file.write(bytes.as_slice())?;
        }
        Ok(())
    })
}

fn named(name: &str, error: &Error) -> Error {
    Error::new(error.code(), format!("array {name:?}: {}", error.message()))
}

/// The length and the text.
fn header(tensors: &[(&str, &Buffer)], metadata: &[(&str, &str)]) -> StatusOr<Vec<u8>> {
    let mut entries = Vec::with_capacity(tensors.len() + 1);
    if !metadata.is_empty() {
        check_unique("key of the metadata", metadata.iter().map(|(key, _)| *key))?;
        let strings: Vec<String> =
            metadata.iter().map(|(key, text)| format!("{}:{}", quoted(key), quoted(text))).collect();
        entries.push(format!("{}:{{{}}}", quoted(METADATA), strings.join(",")));
    }
    check_unique("array", tensors.iter().map(|(name, _)| *name))?;
    let mut end = 0_usize;
    for (name, buffer) in tensors {
        let (begin, dtype) = (end, check(name, buffer)?);
        end = begin.checked_add(buffer.shape().size_bytes()).ok_or_else(|| {
            Error::invalid_argument(format!("up to array {name:?}, there are more bytes than a file can have"))
        })?;
        entries.push(format!(
            r#"{}:{{"dtype":"{dtype}","shape":{},"data_offsets":[{begin},{end}]}}"#,
            quoted(name),
            serde_json::Value::from(buffer.dims())
        ));
    }
    let mut text = format!("{{{}}}", entries.join(","));
    let padded = (LENGTH_BYTES + text.len()).next_multiple_of(ALIGNMENT_BYTES) - LENGTH_BYTES;
    if padded > MOST_HEADER_BYTES {
        return Err(Error::invalid_argument(format!(
            "the header of {} arrays would be {padded} bytes long; the most is {MOST_HEADER_BYTES}",
            tensors.len()
        )));
    }
    text.extend(std::iter::repeat_n(' ', padded - text.len()));
    let mut header = (text.len() as u64).to_le_bytes().to_vec();
    header.extend(text.as_bytes());
    Ok(header)
}

/// The format's name for the elements of an array that it can have.
fn check(name: &str, buffer: &Buffer) -> StatusOr<&'static str> {
    let shape = buffer.shape();
    let dtype = TYPES.iter().find(|(_, known)| *known == shape.dtype()).map(|(dtype, _)| *dtype);
    let is_whole = (shape.element_count() as u128 * shape.dtype().bits() as u128).is_multiple_of(8);
    match dtype {
        _ if name == METADATA => Err(Error::invalid_argument(format!("no array can be called {METADATA:?}"))),
        Some(dtype) if !shape.is_dynamic() && is_whole && shape.rank() <= MAX_RANK => Ok(dtype),
        _ => Err(Error::invalid_argument(format!("array {name:?}: a safetensors file cannot hold {shape}"))),
    }
}

fn check_unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::invalid_argument(format!("a second {what} {name:?}")));
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
