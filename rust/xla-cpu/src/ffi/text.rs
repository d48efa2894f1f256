//! Reads the attributes of a custom call: the text of an MLIR dictionary, such as `{uplo = 76 : ui8, mode = "full"}`.
//!
//! The text is untrusted bytes. An error names the byte and what was expected there. Dictionaries may be nested
//! [`MOST_NESTED`] deep, and the numbers of one array take at most [`MOST_BYTES`].
//!
//! | value | text |
//! |---|---|
//! | number | `7 : i32`, `255 : ui8`, `-1` (i64), `0x1F : i64`, `true`, `1.5e+00 : f32`, `1.5` (f64), `0x7FC00000 : f32` (the bits) |
//! | array | `array<i64: 1, 2>`, `dense<[1, 2]> : tensor<2xi64>`, `dense<0> : tensor<3xf32>` (each), `dense<"0x...">` (bytes) |
//! | text | `"a\22b\0A"`: a backslash and two hexadecimal digits, or one of `\\`, `\"`, `\n`, `\t` |
//! | dictionary | `{name = value, "another name" = value}` |
//!
//! Other attributes of MLIR, such as symbols and lists of mixed types, have no form in XLA's FFI.

use std::fmt::{self, Display};

use super::attributes::{Dictionary, Value};
use super::numbers::{Type, hexadecimal, nibble};

/// How deep dictionaries may be nested. The outermost is level 1.
const MOST_NESTED: usize = 32;
/// The size of the largest array. A few bytes of text can stand for any number of equal elements.
const MOST_BYTES: usize = 16 << 20;

/// Text that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    at: usize,
    why: String,
}

/// `byte 12: expected a value`
impl Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.why)
    }
}

/// The attributes in `text`. Empty text has none.
pub(crate) fn parse(text: &[u8]) -> Result<Dictionary, Unreadable> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_blanks();
    if reader.at == text.len() {
        return Ok(Dictionary::new());
    }
    let dictionary = reader.dictionary(1)?;
    reader.skip_blanks();
    if reader.at < text.len() { Err(reader.expected("the end of the text")) } else { Ok(dictionary) }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn dictionary(&mut self, depth: usize) -> Result<Dictionary, Unreadable> {
        if depth > MOST_NESTED {
            return Err(self.error(format!("dictionaries are nested more than {MOST_NESTED} deep")));
        }
        self.expect(b'{')?;
        let mut dictionary = Dictionary::new();
        if self.eat(b'}') {
            return Ok(dictionary);
        }
        loop {
            self.skip_blanks();
            let begin = self.at;
            let name = self.name()?;
            self.expect(b'=')?;
            let value = self.value(depth)?;
            if dictionary.contains_key(&name) {
                let why = format!("attribute '{}' is there twice", name.escape_ascii());
                return Err(Unreadable { at: begin, why });
            }
            dictionary.insert(name, value);
            if self.eat(b'}') {
                return Ok(dictionary);
            }
            if !self.eat(b',') {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn name(&mut self) -> Result<Vec<u8>, Unreadable> {
        if self.peek() == Some(b'"') {
            return self.string();
        }
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.".contains(byte);
        let name = self.while_(is_part).to_vec();
        if name.is_empty() { Err(self.expected("the name of an attribute")) } else { Ok(name) }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Unreadable> {
        self.skip_blanks();
        let begin = self.at;
        match self.peek() {
            Some(b'{') => return self.dictionary(depth + 1).map(Value::Dictionary),
            Some(b'"') => return self.string().map(Value::String),
            _ => {}
        }
        match self.token() {
            b"array" => self.array(),
            b"dense" => self.dense(),
            b"true" => Ok(Value::Scalar { dtype: Type::BOOL.dtype, bytes: vec![1] }),
            b"false" => Ok(Value::Scalar { dtype: Type::BOOL.dtype, bytes: vec![0] }),
            token if token.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-') => {
                let token = token.to_vec();
                let is_float = hexadecimal(&token).is_none() && token.iter().any(|byte| b".eE".contains(byte));
                let ty = if self.eat(b':') {
                    self.ty()?
                } else if is_float {
                    Type::F64
                } else {
                    Type::I64
                };
                let bytes = ty.encode(&token).map_err(|what| Self::expected_at(begin, what))?;
                Ok(Value::Scalar { dtype: ty.dtype, bytes })
            }
            _ => Err(Self::expected_at(begin, "a number, text, an array or a dictionary")),
        }
    }

    /// `array<i64: 1, 2>`, behind its first word.
    fn array(&mut self) -> Result<Value, Unreadable> {
        self.expect(b'<')?;
        let ty = self.ty()?;
        let mut tokens = Vec::new();
        if self.eat(b':') {
            loop {
                tokens.push(self.element()?);
                if !self.eat(b',') {
                    break;
                }
            }
        }
        self.expect(b'>')?;
        encoded(ty, &tokens)
    }

    /// `dense<[1, 2]> : tensor<2xi64>`, behind its first word. Lists in lists are flattened.
    fn dense(&mut self) -> Result<Value, Unreadable> {
        self.expect(b'<')?;
        self.skip_blanks();
        let begin = self.at;
        let (mut tokens, mut raw) = (Vec::new(), None);
        let is_list = self.peek() == Some(b'[');
        match self.peek() {
            Some(b'"') => raw = Some(self.string()?),
            Some(b'[') => self.list(1, &mut tokens)?,
            Some(b'>') => {}
            _ => tokens.push(self.element()?),
        }
        self.expect(b'>')?;
        self.expect(b':')?;
        self.skip_blanks();
        if self.token() != b"tensor" {
            return Err(self.expected("'tensor'"));
        }
        self.expect(b'<')?;
        let (count, ty) = self.dimensions()?;
        self.expect(b'>')?;
        let size_bytes = count.checked_mul(ty.size_bytes()).filter(|&size_bytes| size_bytes <= MOST_BYTES);
        let Some(size_bytes) = size_bytes else {
            return Err(Unreadable { at: begin, why: format!("an array of more than {MOST_BYTES} bytes") });
        };
        if let Some(raw) = raw {
            let bytes = (ty != Type::BOOL).then(|| raw_bytes(&raw)).flatten();
            let bytes = bytes.filter(|bytes| bytes.len() == size_bytes);
            let bytes = bytes.ok_or_else(|| Self::expected_at(begin, "the hexadecimal bytes of the elements"))?;
            return Ok(Value::Array { dtype: ty.dtype, count, bytes });
        }
        match (encoded(ty, &tokens)?, is_list) {
            // One number stands for all elements.
            (Value::Array { dtype, bytes, count: 1 }, false) => {
                Ok(Value::Array { dtype, count, bytes: bytes.repeat(count) })
            }
            (array @ Value::Array { count: found, .. }, _) if found == count => Ok(array),
            _ => Err(Self::expected_at(begin, &format!("{count} elements"))),
        }
    }

    fn list(&mut self, depth: usize, tokens: &mut Vec<(usize, Vec<u8>)>) -> Result<(), Unreadable> {
        if depth > MOST_NESTED {
            return Err(self.error(format!("lists are nested more than {MOST_NESTED} deep")));
        }
        self.expect(b'[')?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            if self.peek() == Some(b'[') {
                self.list(depth + 1, tokens)?;
            } else {
                tokens.push(self.element()?);
            }
            if self.eat(b']') {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    /// `2x3xf32`: the number of elements, and their type.
    fn dimensions(&mut self) -> Result<(usize, Type), Unreadable> {
        let mut count = 1_usize;
        self.skip_blanks();
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            let begin = self.at;
            let digits = std::str::from_utf8(self.while_(u8::is_ascii_digit)).unwrap_or_default();
            let product = digits.parse::<usize>().ok().and_then(|dim| count.checked_mul(dim));
            count = product.ok_or_else(|| Self::expected_at(begin, "a dimension"))?;
            if self.peek() != Some(b'x') {
                return Err(self.expected("'x'"));
            }
            self.at += 1;
        }
        Ok((count, self.ty()?))
    }

    fn ty(&mut self) -> Result<Type, Unreadable> {
        self.skip_blanks();
        let begin = self.at;
        Type::named(self.token()).ok_or_else(|| Self::expected_at(begin, "a type: i1 to i64, ui8 to ui64, f16 to f64"))
    }

    /// One number of an array, with its place.
    fn element(&mut self) -> Result<(usize, Vec<u8>), Unreadable> {
        self.skip_blanks();
        let begin = self.at;
        let token = self.token().to_vec();
        if token.is_empty() { Err(self.expected("a number")) } else { Ok((begin, token)) }
    }

    /// Text in quotation marks.
    fn string(&mut self) -> Result<Vec<u8>, Unreadable> {
        self.expect(b'"')?;
        let mut bytes = Vec::new();
        loop {
            let byte = self.peek().ok_or_else(|| self.expected("'\"'"))?;
            self.at += 1;
            match byte {
                b'"' => return Ok(bytes),
                b'\\' => bytes.push(self.escape()?),
                other => bytes.push(other),
            }
        }
    }

    /// The byte that follows a backslash.
    fn escape(&mut self) -> Result<u8, Unreadable> {
        let byte = match (self.text.get(self.at), self.text.get(self.at + 1)) {
            (Some(b'n'), _) => b'\n',
            (Some(b't'), _) => b'\t',
            (Some(&byte @ (b'\\' | b'"')), _) => byte,
            (Some(&high), Some(&low)) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                self.at += 2;
                return Ok(nibble(high).unwrap_or(0) << 4 | nibble(low).unwrap_or(0));
            }
            _ => return Err(self.expected("an escape: \\\\, \\\", \\n, \\t or two hexadecimal digits")),
        };
        self.at += 1;
        Ok(byte)
    }

    /// The bytes of a word or a number; empty if there is none.
    fn token(&mut self) -> &[u8] {
        self.while_(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte))
    }

    fn while_(&mut self, is_part: impl Fn(&u8) -> bool) -> &[u8] {
        let left = &self.text[self.at..];
        let length = left.iter().position(|byte| !is_part(byte)).unwrap_or(left.len());
        self.at += length;
        &left[..length]
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        self.while_(u8::is_ascii_whitespace);
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8) -> Result<(), Unreadable> {
        if self.eat(byte) { Ok(()) } else { Err(self.expected(&format!("'{}'", char::from(byte)))) }
    }

    fn expected(&self, what: &str) -> Unreadable {
        Self::expected_at(self.at, what)
    }

    fn expected_at(at: usize, what: &str) -> Unreadable {
        Unreadable { at, why: format!("expected {what}") }
    }

    fn error(&self, why: String) -> Unreadable {
        Unreadable { at: self.at, why }
    }
}

/// The array of the numbers at these places.
fn encoded(ty: Type, tokens: &[(usize, Vec<u8>)]) -> Result<Value, Unreadable> {
    let mut bytes = Vec::with_capacity(tokens.len() * ty.size_bytes());
    for (at, token) in tokens {
        bytes.extend(ty.encode(token).map_err(|what| Reader::expected_at(*at, what))?);
    }
    Ok(Value::Array { dtype: ty.dtype, count: tokens.len(), bytes })
}

/// The bytes of `0x` and two digits for each of them.
fn raw_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.strip_prefix(b"0x")?.as_chunks::<2>();
    let byte = |&[high, low]: &[u8; 2]| Some(nibble(high)? << 4 | nibble(low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}
