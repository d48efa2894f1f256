//! The text as tokens, one ahead.
//!
//! A word is what an identifier, an opcode with its modifiers, a directive or a register's name is made of: letters,
//! digits, `_`, `$`, `%`, dots within, and `::`. A number begins with a digit. Everything else is one sign.

use crate::Refusal;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    Number(&'a str),
    /// Without its quotes.
    Quoted(&'a str),
    Sign(char),
    End,
}

impl Token<'_> {
    fn text(&self) -> String {
        match self {
            Self::Word(text) | Self::Number(text) => (*text).to_owned(),
            Self::Quoted(text) => format!("\"{text}\""),
            Self::Sign(sign) => sign.to_string(),
            Self::End => "the end of the text".to_owned(),
        }
    }
}

/// A text, and how far it was read.
pub(crate) struct Text<'a> {
    rest: &'a str,
    line: usize,
    /// The next token, and the line on which it stands.
    ahead: Token<'a>,
    line_ahead: usize,
    /// What is being read, for refusals that say no more than that.
    subject: &'a str,
    subject_line: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, Refusal> {
        // A text from C ends where its zero is.
        let text = text.split('\0').next().unwrap_or_default();
        if let Some(at) = text.find(|c: char| !c.is_ascii()) {
            let line = 1 + text[..at].matches('\n').count();
            return Err(Refusal::new(line, "text", "PTX is ASCII, in comments, too"));
        }
        let mut text = Self { rest: text, line: 1, ahead: Token::End, line_ahead: 1, subject: "text", subject_line: 1 };
        text.advance()?;
        Ok(text)
    }

    /// From here on, refusals name this instruction or directive.
    pub(crate) fn begin(&mut self, subject: &'a str, line: usize) {
        (self.subject, self.subject_line) = (subject, line);
    }

    /// The line of the next token.
    pub(crate) fn next_line(&self) -> usize {
        self.line_ahead
    }

    pub(crate) fn subject_line(&self) -> usize {
        self.subject_line
    }

    /// The refusal of what is being read.
    pub(crate) fn refuse(&self, why: impl Into<String>) -> Refusal {
        Refusal::new(self.subject_line, self.subject, why)
    }

    /// The refusal of the next token, where something else was expected.
    pub(crate) fn unexpected(&self, expected: &str) -> Refusal {
        let found: String = self.ahead.text().chars().take(80).collect();
        Refusal::new(self.line_ahead, self.subject, format!("{expected} was expected, not '{found}'"))
    }

    pub(crate) fn peek(&self) -> Token<'a> {
        self.ahead
    }

    pub(crate) fn next(&mut self) -> Result<Token<'a>, Refusal> {
        let token = self.ahead;
        self.advance()?;
        Ok(token)
    }

    /// Takes the sign, if it is next.
    pub(crate) fn take(&mut self, sign: char) -> Result<bool, Refusal> {
        let found = self.ahead == Token::Sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes the word, if it is next.
    pub(crate) fn take_word(&mut self, word: &str) -> Result<bool, Refusal> {
        let found = self.ahead == Token::Word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(crate) fn expect(&mut self, sign: char) -> Result<(), Refusal> {
        if self.take(sign)? { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    /// A word, of which `what` says what it is.
    pub(crate) fn word(&mut self, what: &str) -> Result<&'a str, Refusal> {
        let Token::Word(word) = self.ahead else { return Err(self.unexpected(what)) };
        self.advance()?;
        Ok(word)
    }

    /// A name that is declared here: without dots.
    pub(crate) fn new_name(&mut self, what: &str) -> Result<&'a str, Refusal> {
        let name = self.word(what)?;
        if name.contains(['.', ':']) { Err(self.refuse(format!("{name} cannot be a name"))) } else { Ok(name) }
    }

    /// A number without a sign and without a fraction.
    pub(crate) fn natural(&mut self, what: &str) -> Result<u64, Refusal> {
        let Token::Number(digits) = self.ahead else { return Err(self.unexpected(what)) };
        let Some(number) = natural(digits) else { return Err(self.unexpected(what)) };
        self.advance()?;
        Ok(number)
    }

    /// The words of the list whose bracket is next, at most so many, but `_`; nothing is taken.
    pub(super) fn words_ahead(&self, most: usize) -> Vec<&'a str> {
        let list = self.rest.split(['}', ';']).next().unwrap_or_default();
        list.split(',').take(most).map(str::trim).filter(|word| *word != "_").collect()
    }

    fn advance(&mut self) -> Result<(), Refusal> {
        self.skip_blanks()?;
        self.line_ahead = self.line;
        let mut characters = self.rest.chars();
        self.ahead = match characters.next() {
            None => Token::End,
            Some('"') => {
                let inside = &self.rest[1..];
                let Some(length) = inside.find(['"', '\n']).filter(|&at| inside[at..].starts_with('"')) else {
                    return Err(Refusal::new(self.line, "\"", "a string without an end"));
                };
                self.rest = &inside[length + 1..];
                Token::Quoted(&inside[..length])
            }
            Some(first) if first.is_ascii_digit() => {
                let mut length = end_of(self.rest, |c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
                // A fraction with an exponent, whose sign belongs to it.
                let is_decimal = self.rest[..length].contains('.') && self.rest[..length].ends_with(['e', 'E']);
                if is_decimal && self.rest[length..].starts_with(['+', '-']) {
                    length += 1 + end_of(&self.rest[length + 1..], |c| c.is_ascii_digit());
                }
                Token::Number(self.split(length))
            }
            Some(first) if is_of_word(first) || first == '.' => {
                let mut length = 0;
                loop {
                    length += end_of(&self.rest[length..], |c| is_of_word(c) || c == '.');
                    if !self.rest[length..].starts_with("::") {
                        break;
                    }
                    length += 2;
                }
                Token::Word(self.split(length))
            }
            Some(sign) => {
                self.split(sign.len_utf8());
                Token::Sign(sign)
            }
        };
        Ok(())
    }

    fn split(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        token
    }

    fn skip_blanks(&mut self) -> Result<(), Refusal> {
        loop {
            let blanks = end_of(self.rest, |c| matches!(c, ' ' | '\t' | '\r' | '\n'));
            self.line += self.split(blanks).matches('\n').count();
            if self.rest.starts_with("//") {
                let length = self.rest.find('\n').unwrap_or(self.rest.len());
                self.split(length);
            } else if let Some(inside) = self.rest.strip_prefix("/*") {
                let Some(length) = inside.find("*/") else {
                    return Err(Refusal::new(self.line, "/*", "a comment without an end"));
                };
                self.line += self.split(length + 4).matches('\n').count();
            } else {
                return Ok(());
            }
        }
    }
}

/// How many bytes of the beginning are such characters.
fn end_of(text: &str, is_one: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_one(c)).unwrap_or(text.len())
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// A whole number as PTX writes it: decimal, hexadecimal (0x), octal (0), binary (0b), with or without a U.
pub(crate) fn natural(digits: &str) -> Option<u64> {
    let digits = digits.strip_suffix('U').unwrap_or(digits);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // No sign: that is a token of its own.
    digits.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| u64::from_str_radix(digits, radix).ok())?
}
