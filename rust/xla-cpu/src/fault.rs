//! The two kinds of refusal: a [`Fault`] is damage, at an offset, and ends loading at once; [`Reasons`] collect why a
//! sound program cannot run here. A [`Contradiction`] is a fault whose offset is not known yet: decoded messages have
//! none, so it is looked up when it is needed.

use std::fmt::Display;

use purlin_base::{Error, StatusCode};
use purlin_xla_proto::damage::Damage;

/// Bytes that violate the format. `offset` is at most their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) code: StatusCode,
    pub(crate) what: String,
}

impl Fault {
    /// `DataLoss`: the bytes are no executable of XLA:CPU's, or a damaged one.
    pub(crate) fn damage(offset: usize, what: impl Display) -> Self {
        Self { offset, code: StatusCode::DataLoss, what: what.to_string() }
    }

    /// The same fault, for enclosing bytes in which these begin at `base`.
    pub(crate) fn within(self, base: usize) -> Self {
        Self { offset: base.saturating_add(self.offset), ..self }
    }
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Self {
        Self::damage(damage.offset, damage.what)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code, format!("XLA:CPU executable, byte {}: {}", fault.offset, fault.what))
    }
}

/// A field of a message: its number, and which of its values, if it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) field: u32,
    pub(crate) index: Option<usize>,
}

/// A message that contradicts itself, or another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    origin: Origin,
    what: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// From a message to one inside it, the innermost first.
    Path(Vec<Part>),
    /// From the beginning of the executable's message.
    Offset(usize),
}

impl Contradiction {
    /// In the message that is being read.
    pub(crate) fn new(what: impl Display) -> Self {
        Self { origin: Origin::Path(Vec::new()), what: what.to_string() }
    }

    /// The same, for a message in whose field `field` that message is.
    pub(crate) fn within(mut self, field: u32) -> Self {
        self.push(Part { field, index: None });
        self
    }

    /// The same, if it is value `index` of that field.
    pub(crate) fn within_each(mut self, field: u32, index: usize) -> Self {
        self.push(Part { field, index: Some(index) });
        self
    }

    fn push(&mut self, part: Part) {
        if let Origin::Path(path) = &mut self.origin {
            path.push(part);
        }
    }

    /// The fault. `offset_of` finds the offset of a message by the path to it, the outermost part first; `base` is the
    /// offset of the executable's message.
    pub(crate) fn located(self, base: usize, offset_of: impl FnOnce(&[Part]) -> usize) -> Fault {
        match self.origin {
            Origin::Offset(offset) => Fault::damage(offset, self.what).within(base),
            Origin::Path(mut path) => {
                path.reverse();
                Fault::damage(offset_of(&path), self.what)
            }
        }
    }
}

/// A fault in bytes that were looked at again.
impl From<Fault> for Contradiction {
    fn from(fault: Fault) -> Self {
        Self { origin: Origin::Offset(fault.offset), what: fault.what }
    }
}

/// The most reasons that an error lists. Further ones are only counted.
const MOST_LISTED: usize = 20;

/// The reasons why a program cannot run here, in the order in which they were found, each once.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    listed: Vec<String>,
    unlisted: usize,
}

impl Reasons {
    pub(crate) fn add(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if self.listed.contains(&reason) {
            return;
        }
        if self.listed.len() < MOST_LISTED {
            self.listed.push(reason);
        } else {
            self.unlisted += 1;
        }
    }

    /// The value of `outcome`; an error is added as a reason.
    pub(crate) fn take<T>(&mut self, outcome: Result<T, String>) -> Option<T> {
        outcome.map_err(|reason| self.add(reason)).ok()
    }

    /// `Unimplemented`, with the reasons, if there is one.
    pub(crate) fn into_result(self, program: &str) -> Result<(), Error> {
        if self.listed.is_empty() {
            return Ok(());
        }
        let more = if self.unlisted > 0 { format!("; and {} more", self.unlisted) } else { String::new() };
        Err(Error::unimplemented(format!("program '{program}' cannot run here: {}{more}", self.listed.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lists_each_reason_once_and_counts_what_is_too_much() {
        let mut reasons = Reasons::default();
        reasons.add("a");
        reasons.add("b");
        reasons.add("a");
        let error = reasons.into_result("f").unwrap_err();
        assert_eq!((error.code(), error.message()), (StatusCode::Unimplemented, "program 'f' cannot run here: a; b"));
        let mut reasons = Reasons::default();
        (0..30).for_each(|number| reasons.add(number.to_string()));
        assert!(reasons.into_result("f").unwrap_err().message().ends_with("; 19; and 10 more"));
        assert!(Reasons::default().into_result("f").is_ok());
    }
}
