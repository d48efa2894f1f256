//! The header of `.npy`: `\x93NUMPY`, two bytes of version, the length of the text (two bytes, from version 2.0 on
//! four), the text.
//!
//! The text is a Python dictionary of three entries, in any order:
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }` and white space to its end. It is read as just that,
//! not as Python: one pass, no recursion, nothing allocated but the dimensions, of which there are at most
//! [`MAX_RANK`]. Its first bytes alone say how long it is ([`size_bytes`]).

use purlin_array::Shape;
use purlin_base::{Error, StatusOr};

use super::descr::{Descr, Refusal};
use crate::MAX_RANK;
use crate::fault::{Fault, shown};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// As many bytes of a file as say how long its header is.
pub(crate) const PREFIX_BYTES: usize = 12;
/// The longest text: hundreds of times what any array of plain elements needs, and short enough to read when a foreign
/// number says so.
const MOST_TEXT_BYTES: usize = 1 << 20;
/// What elements begin at a multiple of, in files that are written: a cache line, as NumPy does.
const ALIGNMENT_BYTES: usize = 64;

/// What a header says. Offsets are from the file's beginning.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) descr: Descr,
    pub(crate) descr_offset: usize,
    pub(crate) fortran_order: bool,
    pub(crate) dims: Vec<i64>,
    pub(crate) shape_offset: usize,
    /// Where the elements begin.
    pub(crate) size_bytes: usize,
}

impl Header {
    /// `bytes` are a header, of which [`size_bytes`] has seen the beginning and the length.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let (major, begin) = if bytes[6] == 1 { (1, 10) } else { (bytes[6], 12) };
        if major == 3 {
            std::str::from_utf8(&bytes[begin..])
                .map_err(|error| Fault::damage(begin + error.valid_up_to(), "the header is not UTF-8"))?;
        }
        Text { bytes, at: begin }.dictionary()
    }
}

/// How many bytes the header has, of a file of `file_bytes` bytes that begins with `front`: [`PREFIX_BYTES`] of them,
/// or all.
pub(crate) fn size_bytes(front: &[u8], file_bytes: usize) -> Result<usize, Fault> {
    let matching = front.iter().zip(MAGIC).take_while(|(a, b)| a == b).count();
    if matching < MAGIC.len() {
        let found = shown(&front[matching..front.len().min(MAGIC.len())]);
        let why = format!("no .npy file: it goes on with {found} instead of \"\\x93NUMPY\"");
        return Err(Fault::damage(matching, why));
    }
    let missing = || Fault::damage(front.len(), "the file ends inside its header");
    let [major, minor] = *front.get(6..8).and_then(|version| version.first_chunk()).ok_or_else(missing)?;
    let (length, begin) = match (major, minor) {
        (1, 0) => {
            let length = front.get(8..10).and_then(|length| length.first_chunk()).ok_or_else(missing)?;
            (usize::from(u16::from_le_bytes(*length)), 10)
        }
        (2 | 3, 0) => {
            let length = front.get(8..12).and_then(|length| length.first_chunk()).ok_or_else(missing)?;
            (u32::from_le_bytes(*length) as usize, 12)
        }
        _ => return Err(Fault::unsupported(6, format!("version {major}.{minor}; they are 1.0, 2.0 and 3.0"))),
    };
    let there = file_bytes - begin;
    if length > there {
        let why = format!("the header is said to be {length} bytes long, but the file ends after {there}");
        return Err(Fault::damage(8, why));
    }
    if length > MOST_TEXT_BYTES {
        let why = format!("the header is said to be {length} bytes long; the most is {MOST_TEXT_BYTES}");
        return Err(Fault::damage(8, why));
    }
    Ok(begin + length)
}

/// The text of a header, from `at` on.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    fn dictionary(mut self) -> Result<Header, Fault> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "a dictionary")?;
        while !self.takes(b'}') {
            let key_offset = self.at;
            let key = self.string()?;
            self.expect(b':', "a colon")?;
            self.skip_space();
            let offset = self.at;
            let is_new = match key {
                b"descr" => descr.replace((self.descr()?, offset)).is_none(),
                b"fortran_order" => fortran_order.replace(self.boolean()?).is_none(),
                b"shape" => shape.replace((self.tuple()?, offset)).is_none(),
                _ => return Err(Fault::damage(key_offset, format!("{} is no entry of a header", shown(key)))),
            };
            if !is_new {
                return Err(Fault::damage(key_offset, format!("a second entry {}", shown(key))));
            }
            if !self.takes(b',') {
                self.expect(b'}', "a comma or the end of the dictionary")?;
                break;
            }
        }
        let dictionary_end = self.at;
        self.skip_space();
        if self.at < self.bytes.len() {
            return Err(self.instead_of("the end of the header"));
        }
        let (Some((descr, descr_offset)), Some(fortran_order), Some((dims, shape_offset))) =
            (descr, fortran_order, shape)
        else {
            return Err(Fault::damage(dictionary_end, "the header lacks one of descr, fortran_order and shape"));
        };
        let size_bytes = self.bytes.len();
        Ok(Header { descr, descr_offset, fortran_order, dims, shape_offset, size_bytes })
    }

    fn descr(&mut self) -> Result<Descr, Fault> {
        let offset = self.at;
        if matches!(self.peek(), Some(b'[' | b'(')) {
            return Err(Fault::unsupported(offset, "no buffer holds elements of a structured type"));
        }
        let text = self.string()?;
        Descr::parse(text).map_err(|refusal| match refusal {
            Refusal::Nonsense => Fault::damage(offset, format!("{} is no type of elements", shown(text))),
            Refusal::Unsupported(what) => {
                Fault::unsupported(offset, format!("no buffer holds {what}, {}", shown(text)))
            }
        })
    }

    fn boolean(&mut self) -> Result<bool, Fault> {
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.bytes[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.instead_of("True or False"))
    }

    /// `(2, 3)`, `(2, 3,)`, `(2,)`, `()`: what Python takes for a tuple, so not `(2)`.
    fn tuple(&mut self) -> Result<Vec<i64>, Fault> {
        let mut dims = Vec::new();
        let mut has_comma = false;
        self.expect(b'(', "a tuple")?;
        loop {
            self.skip_space();
            if self.peek() == Some(b')') && (has_comma || dims.is_empty()) {
                break;
            }
            if dims.len() == MAX_RANK {
                return Err(Fault::unsupported(self.at, format!("more than {MAX_RANK} dimensions")));
            }
            dims.push(self.number()?);
            if !self.takes(b',') {
                if dims.len() == 1 && !has_comma {
                    return Err(self.instead_of("a comma: one number in parentheses is no tuple"));
                }
                break;
            }
            has_comma = true;
        }
        self.expect(b')', "a comma or the end of the tuple")?;
        Ok(dims)
    }

    /// Decimal digits; Python 2 wrote an L behind.
    fn number(&mut self) -> Result<i64, Fault> {
        let offset = self.at;
        let digits = self.bytes[offset..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.instead_of("a dimension"));
        }
        self.at += digits;
        let text = &self.bytes[offset..self.at];
        let value = text.iter().try_fold(0_i64, |value, digit| {
            value.checked_mul(10).and_then(|value| value.checked_add(i64::from(digit - b'0')))
        });
        if self.peek() == Some(b'L') {
            self.at += 1;
        }
        value.ok_or_else(|| Fault::damage(offset, format!("a dimension of {} is more than any memory", shown(text))))
    }

    /// Between single or double quotes, without escapes, which no type has.
    fn string(&mut self) -> Result<&'a [u8], Fault> {
        self.skip_space();
        let offset = self.at;
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.instead_of("a string")),
        };
        let rest = &self.bytes[offset + 1..];
        let ends = |byte: &u8| *byte == quote || *byte == b'\\' || byte.is_ascii_control();
        match rest.iter().position(ends) {
            Some(length) if rest[length] == quote => {
                self.at = offset + length + 2;
                Ok(&rest[..length])
            }
            Some(length) => Err(Fault::damage(offset + 1 + length, "an escape or control character in a string")),
            None => Err(Fault::damage(offset, "a string without an end")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')) {
            self.at += 1;
        }
    }

    /// Whether `byte` is next, after white space; then it is consumed.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Fault> {
        if self.takes(byte) { Ok(()) } else { Err(self.instead_of(what)) }
    }

    fn instead_of(&self, what: &str) -> Fault {
        match self.bytes.get(self.at..) {
            Some(rest @ [_, ..]) => Fault::damage(self.at, format!("{} instead of {what}", shown(rest))),
            _ => Fault::damage(self.at, format!("the header ends instead of {what}")),
        }
    }
}

/// The whole header of a file with an array of that shape, row-major: version 1.0, which every reader knows.
///
/// # Errors
/// `InvalidArgument`: a token, or more dimensions than are read back.
pub(crate) fn written(shape: &Shape) -> StatusOr<Vec<u8>> {
    let Some(descr) = Descr::of(shape.dtype()).filter(|_| shape.rank() <= MAX_RANK) else {
        return Err(Error::invalid_argument(format!(
            "a .npy file cannot hold {shape}: at most {MAX_RANK} dimensions, of elements that have bytes"
        )));
    };
    let dims: String = match shape.dims() {
        [only] => format!("{only},"),
        dims => dims.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}", descr.name());
    // MAX_RANK numbers are less than the 64 KiB of version 1.0.
    let prefix_bytes = MAGIC.len() + 4;
    let padding = (prefix_bytes + text.len() + 1).next_multiple_of(ALIGNMENT_BYTES) - (prefix_bytes + text.len() + 1);
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    Ok(header)
}
