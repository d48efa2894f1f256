//! Why a text is not a module.

use std::fmt;

/// The longest name that is repeated, in characters.
const LONGEST_NAME: usize = 120;
/// The longest reason, which may have names in it.
const LONGEST_REASON: usize = 240;

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Where a text is not understood, and what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    line: usize,
    what: String,
    why: String,
}

impl Refusal {
    /// `what`: the instruction, directive or name that stands at `line`.
    pub(crate) fn new(line: usize, what: &str, why: impl Into<String>) -> Self {
        Self { line, what: cut(what, LONGEST_NAME), why: cut(&why.into(), LONGEST_REASON) }
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The instruction, directive or name that was not understood.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.what, self.why)
    }
}

impl std::error::Error for Refusal {}
