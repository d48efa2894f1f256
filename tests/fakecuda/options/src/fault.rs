//! A fault to inject: which call of which entry point, which code, and what it does to the device.
//!
//! As text: `ENTRY:NUMBER:CODE` with `:sticky` or `:async` behind it, such as `cuMemcpyHtoDAsync_v2:3:700:sticky`.

use std::fmt;

use crate::parse::names;

/// What a [`Fault`] does besides its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// That call answers the code and does nothing else.
    Once,
    /// So does every later call on that device.
    Sticky,
    /// The call answers 0; its operation fails when it runs, and every later call on that device answers the code.
    Async,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the symbol, such as `cuStreamCreate`.
    pub entry: String,
    /// Which call of it, from 1; 0: each.
    pub number: u64,
    /// Any number, known to CUDA or not.
    pub code: u32,
    /// See there.
    pub effect: Effect,
}

impl Fault {
    /// The fault that a text says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let (entry, number, code) =
            (words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let effect = match (words.next(), words.next()) {
            (None, _) => Effect::Once,
            (Some("sticky"), None) => Effect::Sticky,
            (Some("async"), None) => Effect::Async,
            _ => return None,
        };
        Some(Self { entry, number, code, effect })
    }

    pub(crate) fn list(text: &str) -> Option<Vec<Self>> {
        names(text).iter().map(|fault| Self::parse(fault)).collect()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.entry, self.number, self.code)?;
        f.write_str(match self.effect {
            Effect::Once => "",
            Effect::Sticky => ":sticky",
            Effect::Async => ":async",
        })
    }
}
