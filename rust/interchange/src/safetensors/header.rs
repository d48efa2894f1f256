//! The header of safetensors: its length in eight bytes, then
//! `{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}`, with `__metadata__` for strings about the
//! file, and spaces behind.
//!
//! The arrays' bytes follow each other without a gap or an overlap and end where the file does; `data_offsets` count
//! from the end of the header. Whatever breaks one of these rules is refused, because two readers would see two files:
//! also equal names. Values are kept as JSON text until they are looked at, so that a fault knows its byte. Entries
//! unknown here are passed over. Its first bytes alone say how long it is, and whether it can be one ([`size_bytes`]).

use std::borrow::Cow;
use std::collections::{HashSet, TryReserveError};
use std::fmt;

use purlin_array::{DType, Shape};
use purlin_base::StatusCode;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

use super::{TYPES, Tensor};
use crate::MAX_RANK;
use crate::fault::{Fault, shown};

/// Bytes of the header's length.
pub(super) const LENGTH_BYTES: usize = 8;
/// The longest header, as the format's own implementation has it: a bound for what a length can make us read.
pub(super) const MOST_HEADER_BYTES: usize = 100_000_000;
/// As many bytes of a file as are looked at before its header is read: the length, and more of the text than a refusal
/// shows.
pub(crate) const PREFIX_BYTES: usize = LENGTH_BYTES + 64;
/// An entry for an array takes at least `"":{"dtype":"U8","shape":[],"data_offsets":[0,0]}`.
const SHORTEST_ENTRY_BYTES: usize = 48;
/// An entry of the metadata takes at least `"":""`.
const SHORTEST_TEXT_BYTES: usize = 5;
/// So many entries cost nothing, however short they are, and so are refused for what is wrong with them.
const FEW_ENTRIES: usize = 1000;
/// Said by what fails for want of memory, where an error is only text.
const NO_MEMORY: &str = "the host has no memory for so many entries";
/// The entry that is no array.
pub(super) const METADATA: &str = "__metadata__";

/// What a header says.
#[derive(Debug)]
pub(crate) struct Header {
    /// In the order of their bytes.
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) metadata: Vec<(String, String)>,
    /// Indices of `tensors`, by name.
    by_name: Vec<usize>,
}

impl Header {
    /// `front` is all of the header of a file of `size_bytes` bytes; [`size_bytes`] has seen its length.
    pub(crate) fn parse(front: &[u8], size_bytes: usize) -> Result<Self, Fault> {
        // The JSON, and spaces behind.
        let text = std::str::from_utf8(&front[LENGTH_BYTES..])
            .map_err(|error| Fault::damage(LENGTH_BYTES + error.valid_up_to(), "the header is not UTF-8"))?;
        let begin = LENGTH_BYTES + text.len();
        let entries = object::<&RawValue>(text, SHORTEST_ENTRY_BYTES).map_err(|fault| fault.within(LENGTH_BYTES))?;
        // Where a value stands in the file: all of them are parts of `text`.
        let offset_of = |value: &RawValue| LENGTH_BYTES + (value.get().as_ptr().addr() - text.as_ptr().addr());
        let (mut tensors, mut metadata) = (Vec::new(), Vec::new());
        let mut names = HashSet::new();
        names.try_reserve(entries.len()).map_err(no_memory)?;
        tensors.try_reserve_exact(entries.len()).map_err(no_memory)?;
        for (name, value) in &entries {
            let offset = offset_of(value);
            if !names.insert(name.as_ref()) {
                return Err(Fault::damage(offset, format!("a second entry {}", shown(name.as_bytes()))));
            }
            if name == METADATA {
                let strings = object::<Cow<'_, str>>(value.get(), SHORTEST_TEXT_BYTES);
                let strings = strings.map_err(|fault| fault.within(offset))?;
                let mut keys = HashSet::new();
                keys.try_reserve(strings.len()).map_err(no_memory)?;
                if let Some((key, _)) = strings.iter().find(|(key, _)| !keys.insert(key.as_ref())) {
                    return Err(Fault::damage(
                        offset,
                        format!("a second key {} of the metadata", shown(key.as_bytes())),
                    ));
                }
                metadata = strings.into_iter().map(|(key, text)| (key.into_owned(), text.into_owned())).collect();
            } else {
                tensors.push(tensor(name, value, offset, begin, size_bytes)?);
            }
        }
        // Unstable, because it needs no memory.
        tensors.sort_unstable_by_key(|tensor| (tensor.range.start, tensor.range.end, tensor.offset));
        let mut end = begin;
        for tensor in &tensors {
            if tensor.range.start != end {
                let how =
                    if tensor.range.start < end { "overlap those before" } else { "leave a gap after those before" };
                let why = format!(
                    "the bytes of {} begin at {} and {how}, which end at {}",
                    shown(tensor.name.as_bytes()),
                    tensor.range.start - begin,
                    end - begin
                );
                return Err(Fault::damage(tensor.offset, why));
            }
            end = tensor.range.end;
        }
        if end < size_bytes {
            return Err(Fault::damage(end, format!("{} bytes follow that are no array's", size_bytes - end)));
        }
        let mut by_name: Vec<usize> = (0..tensors.len()).collect();
        by_name.sort_unstable_by(|&a, &b| tensors[a].name.cmp(&tensors[b].name));
        Ok(Self { tensors, metadata, by_name })
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Tensor> {
        let found = self.by_name.binary_search_by(|&index| self.tensors[index].name.as_str().cmp(name));
        found.ok().map(|place| &self.tensors[self.by_name[place]])
    }
}

/// How many bytes the header has, with its length, of a file of `file_bytes` bytes that begins with `front`:
/// [`PREFIX_BYTES`] of them, or all.
pub(crate) fn size_bytes(front: &[u8], file_bytes: usize) -> Result<usize, Fault> {
    let Some(length) = front.first_chunk::<LENGTH_BYTES>() else {
        return Err(Fault::damage(front.len(), "the file ends inside the length of its header"));
    };
    let (length, there, text) = (u64::from_le_bytes(*length), file_bytes - LENGTH_BYTES, &front[LENGTH_BYTES..]);
    if length > MOST_HEADER_BYTES as u64 {
        let why = format!("the header is said to be {length} bytes long; the most is {MOST_HEADER_BYTES}");
        return Err(Fault::damage(0, why));
    }
    if length > there as u64 {
        let why = format!("the header is said to be {length} bytes long, but the file ends after {there}");
        return Err(Fault::damage(0, why));
    }
    let text = &text[..text.len().min(length as usize)];
    if text.first() != Some(&b'{') {
        let why = format!("{} instead of the brace that begins the header", shown(text));
        return Err(Fault::damage(LENGTH_BYTES, why));
    }
    Ok(LENGTH_BYTES + length as usize)
}

fn no_memory(_: TryReserveError) -> Fault {
    Fault { offset: 0, code: StatusCode::ResourceExhausted, what: NO_MEMORY.to_owned() }
}

/// How an array is described.
#[derive(Deserialize)]
struct Described<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The array that `value`, which stands at `offset`, describes; the arrays' bytes begin at `begin` and end at `end`.
fn tensor(name: &str, value: &RawValue, offset: usize, begin: usize, end: usize) -> Result<Tensor, Fault> {
    if !value.get().starts_with('{') {
        // Serde would take an array for it, field by field.
        return Err(Fault::damage(offset, format!("{} instead of an object", shown(value.get().as_bytes()))));
    }
    let described: Described<'_> = json(value.get()).map_err(|fault| fault.within(offset))?;
    let damage = |why: String| Fault::damage(offset, format!("{}: {why}", shown(name.as_bytes())));
    let Described { dtype, shape, data_offsets: (first, last) } = described;
    if first > last || last > (end - begin) as u64 {
        let why = format!("its bytes are said to be [{first}, {last}), and the file has {} for arrays", end - begin);
        return Err(damage(why));
    }
    let range = begin + first as usize..begin + last as usize;
    if shape.len() > MAX_RANK {
        return Err(damage(format!("{} dimensions, and the most is {MAX_RANK}", shape.len())));
    }
    let dims: Vec<i64> = shape
        .iter()
        .map(|&dim| i64::try_from(dim).map_err(|_| damage(format!("a dimension of {dim} is more than any memory"))))
        .collect::<Result<_, _>>()?;
    let known = TYPES.iter().find(|(known, _)| *known == dtype).map(|(_, dtype)| *dtype);
    let shape =
        known.map(|dtype| Shape::new(dtype, &dims).map_err(|error| damage(error.message().to_owned()))).transpose()?;
    if let Some(shape) = &shape {
        check_size(shape, range.len()).map_err(damage)?;
    }
    Ok(Tensor { name: name.to_owned(), dtype_name: dtype.into_owned(), dims, shape, range, offset })
}

fn check_size(shape: &Shape, size_bytes: usize) -> Result<(), String> {
    if shape.dtype() == DType::F4E2M1FN && shape.element_count() % 2 != 0 {
        return Err(format!("{shape} is no whole number of bytes"));
    }
    if shape.size_bytes() != size_bytes {
        return Err(format!("{shape} is {} bytes, but {size_bytes} are said to be its own", shape.size_bytes()));
    }
    Ok(())
}

/// The entries of a JSON object in its own order, with repetitions. Text of which an entry takes fewer than `shortest`
/// bytes is no sound header, and refused before it has grown to many times its size in memory.
fn object<'a, V: Deserialize<'a>>(text: &'a str, shortest: usize) -> Result<Vec<(Cow<'a, str>, V)>, Fault> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let visitor = Entries { most: text.len() / shortest + FEW_ENTRIES, values: std::marker::PhantomData };
    let entries = reader.deserialize_map(visitor).and_then(|entries| reader.end().map(|()| entries));
    entries.map_err(|error| not_json(text, &error))
}

struct Entries<V> {
    most: usize,
    values: std::marker::PhantomData<V>,
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
    type Value = Vec<(Cow<'de, str>, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((Text(key), value)) = map.next_entry()? {
            if entries.len() == self.most {
                return Err(de::Error::custom("more entries than its length can describe"));
            }
            entries.try_reserve(1).map_err(|_| de::Error::custom(NO_MEMORY))?;
            entries.push((key, value));
        }
        Ok(entries)
    }
}

/// A string, borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Borrowed).map(Text)
    }
}

/// `text` as JSON; a fault has its offset in `text`.
fn json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| not_json(text, &error))
}

fn not_json(text: &str, error: &serde_json::Error) -> Fault {
    let line_begin = match error.line() {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line - 2).map_or(0, |(at, _)| at + 1),
    };
    let whole = error.to_string();
    let what = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(what, _)| what);
    if what == NO_MEMORY {
        return Fault { offset: 0, code: StatusCode::ResourceExhausted, what: NO_MEMORY.to_owned() };
    }
    // The column is that of the last byte that was read, and counts from 1.
    let offset = (line_begin + error.column().saturating_sub(1)).min(text.len());
    Fault::damage(offset, format!("not the JSON that it should be: {what}"))
}
