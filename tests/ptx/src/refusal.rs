//! Why a text is not a module.

use std::fmt;

/// The longest name that is repeated, in characters.
const LONGEST_NAME: usize = 120;

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
        let mut what: String = what.chars().take(LONGEST_NAME + 1).collect();
        if what.chars().count() > LONGEST_NAME {
            what.pop();
            what.push_str("...");
        }
        Self { line, what, why: why.into() }
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
