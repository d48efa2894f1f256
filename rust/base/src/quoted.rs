//! Strings of JSON.

use std::fmt::{self, Write as _};

/// Writes a text as a string of JSON, quotes included. The text may hold anything.
#[derive(Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                // JSON forbids those below blank; the rest (DEL, C1, line separators) only confuse readers.
                _ if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') => {
                    write!(f, "\\u{:04x}", u32::from(character))?;
                }
                _ => f.write_char(character)?,
            }
        }
        f.write_char('"')
    }
}
