//! The two kinds of refusal: a [`Fault`] is damage, at an offset, and ends loading at once; [`Reasons`] collect why a
//! sound program cannot run here.

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
