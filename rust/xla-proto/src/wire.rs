//! Protobuf's wire format: one pass over the bytes before any message is decoded.
//!
//! prost ignores unknown fields, and XLA's messages have no version: a new field may change the meaning of the others.
//! So a [`Message`] lists the fields that are read, and those that are only descriptive and may be ignored. [`check`]
//! reports all others by the message's name and number. It also bounds the cost of decoding: the depth of messages, and
//! the memory. A few bytes could otherwise take much memory, because an empty message has two bytes here, and hundreds
//! when it is decoded.

use std::collections::BTreeSet;

use crate::damage::Damage;

/// The fields that one of XLA's messages may have.
#[derive(Debug)]
pub struct Message {
    /// XLA's name of the message.
    pub name: &'static str,
    /// The size of the decoded message, without the memory that it points to.
    pub size_bytes: usize,
    /// The fields that are read and are not messages.
    pub scalars: &'static [u32],
    /// The fields that are read and are messages.
    pub nested: &'static [(u32, &'static Message)],
    /// The fields that may be ignored.
    pub passed: Passed,
}

/// The fields that may be ignored.
#[derive(Debug)]
pub enum Passed {
    /// These fields: names, source locations, estimates.
    These(&'static [u32]),
    /// All fields that are not read: the message describes a computation that is compiled already, and only some of its
    /// fields are needed.
    All,
}

/// How deep messages may be nested: prost's limit.
const MOST_NESTED: usize = 100;
/// The memory that decoding may take: this many bytes for each byte of input, and `FREE_BYTES` more. XLA's messages
/// take two or three.
const MEMORY_PER_BYTE: usize = 16;
const FREE_BYTES: usize = 64 << 10;

/// Checks that `bytes` are a `message`, and returns a text for each unknown field.
///
/// # Errors
/// The bytes violate the wire format, or decoding them would take too much memory or too deep a stack.
pub fn check(bytes: &[u8], message: &'static Message) -> Result<BTreeSet<String>, Damage> {
    let allowed = bytes.len().saturating_mul(MEMORY_PER_BYTE).saturating_add(FREE_BYTES);
    let mut walk = Walk { bytes, memory_left: allowed, unknown: BTreeSet::new() };
    walk.message(0, bytes.len(), message, 1)?;
    Ok(walk.unknown)
}

struct Walk<'a> {
    bytes: &'a [u8],
    memory_left: usize,
    unknown: BTreeSet<String>,
}

impl Walk<'_> {
    fn message(&mut self, begin: usize, end: usize, message: &'static Message, depth: usize) -> Result<(), Damage> {
        if depth > MOST_NESTED {
            return Err(Damage::new(begin, format!("messages stand more than {MOST_NESTED} deep in one another")));
        }
        let Some(left) = self.memory_left.checked_sub(message.size_bytes) else {
            let why = format!("more messages than so many bytes may hold, the last of them {}", message.name);
            return Err(Damage::new(begin, why));
        };
        self.memory_left = left;
        let mut reader = Reader { bytes: &self.bytes[..end], at: begin };
        while let Some(field) = reader.next()? {
            if let Some((_, inner)) = message.nested.iter().find(|(number, _)| *number == field.number) {
                if field.wire != Wire::Bytes {
                    let why = format!("field {} of {} is no message", field.number, message.name);
                    return Err(Damage::new(field.at, why));
                }
                self.message(field.begin, reader.at, inner, depth + 1)?;
            } else if !message.scalars.contains(&field.number) && !message.passed.contains(field.number) {
                self.unknown.insert(format!("field {} of {} is not known", field.number, message.name));
            }
        }
        Ok(())
    }
}

impl Passed {
    fn contains(&self, number: u32) -> bool {
        match self {
            Self::These(numbers) => numbers.contains(&number),
            Self::All => true,
        }
    }
}

/// How the value of a field is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// One number of 1 to 10 bytes.
    Varint,
    /// Four or eight bytes.
    Fixed,
    /// A length, followed by that many bytes.
    Bytes,
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its number in the message.
    pub number: u32,
    /// The encoding of its value.
    pub wire: Wire,
    /// The offset of its tag.
    pub at: usize,
    /// The offset of its value, which ends at the reader's position.
    pub begin: usize,
}

/// Reads the fields of a message one by one. Offsets count from the beginning of `bytes`.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The message; it may begin after the first byte.
    pub bytes: &'a [u8],
    /// The offset of the next field, at most the number of bytes.
    pub at: usize,
}

impl Reader<'_> {
    /// The next field; `None` at the end.
    ///
    /// # Errors
    /// The bytes are no field, or end inside one.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot fail and end")]
    pub fn next(&mut self) -> Result<Option<Field>, Damage> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let at = self.at;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let Some(number) = number else {
            return Err(Damage::new(at, format!("{} is the number of no field", tag >> 3)));
        };
        let mut begin = self.at;
        let wire = match tag & 7 {
            0 => {
                self.varint()?;
                Wire::Varint
            }
            1 => self.skip(8, Wire::Fixed)?,
            5 => self.skip(4, Wire::Fixed)?,
            2 => {
                let size_bytes = self.varint()?;
                begin = self.at;
                self.skip(size_bytes, Wire::Bytes)?
            }
            other => return Err(Damage::new(at, format!("{other} is no way to write a field"))),
        };
        Ok(Some(Field { number, wire, at, begin }))
    }

    /// Reads a number: seven bits in each byte, the lowest bits first.
    ///
    /// # Errors
    /// The bytes end inside the number, or it has more than 64 bits.
    pub fn varint(&mut self) -> Result<u64, Damage> {
        let begin = self.at;
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(Damage::new(self.at, "the bytes end inside a number"));
            };
            self.at += 1;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damage::new(begin, "a number has more than 64 bits"))
    }

    fn skip(&mut self, size_bytes: u64, wire: Wire) -> Result<Wire, Damage> {
        let left = self.bytes.len() - self.at;
        match usize::try_from(size_bytes).ok().filter(|&size_bytes| size_bytes <= left) {
            Some(size_bytes) => self.at += size_bytes,
            None => {
                let why = format!("a value is said to be {size_bytes} bytes long, and {left} are left");
                return Err(Damage::new(self.at, why));
            }
        }
        Ok(wire)
    }
}
