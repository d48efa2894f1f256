//! An opcode with its modifiers, taken one after the other. What is left at the end is refused by name.

use crate::Refusal;
use crate::types::Type;

/// `ld.global.nc.f32` as `ld`, and `global`, `nc`, `f32`.
#[derive(Clone)]
pub(crate) struct Opcode<'a> {
    text: &'a str,
    line: usize,
    root: &'a str,
    /// The modifiers that were not taken yet, with a dot before each.
    rest: &'a str,
}

impl<'a> Opcode<'a> {
    pub(crate) fn new(text: &'a str, line: usize) -> Self {
        let (root, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
        Self { text, line, root, rest }
    }

    pub(crate) fn root(&self) -> &'a str {
        self.root
    }

    pub(crate) fn refuse(&self, why: impl Into<String>) -> Refusal {
        Refusal::new(self.line, self.text, why)
    }

    /// The next modifier, which is not taken.
    pub(crate) fn peek(&self) -> Option<&'a str> {
        let rest = self.rest.strip_prefix('.')?;
        Some(&rest[..rest.find('.').unwrap_or(rest.len())])
    }

    fn skip(&mut self, modifier: &str) {
        self.rest = &self.rest[1 + modifier.len()..];
    }

    /// Takes the modifier, if it is next.
    pub(crate) fn take(&mut self, modifier: &str) -> bool {
        let found = self.peek() == Some(modifier);
        if found {
            self.skip(modifier);
        }
        found
    }

    /// Takes the next modifier, if the list has it.
    pub(crate) fn one_of<T: Copy>(&mut self, list: &[(&str, T)]) -> Option<T> {
        let next = self.peek()?;
        let &(_, found) = list.iter().find(|(name, _)| *name == next)?;
        self.skip(next);
        Some(found)
    }

    /// As above, but there has to be one.
    pub(crate) fn expect<T: Copy>(&mut self, list: &[(&str, T)]) -> Result<T, Refusal> {
        self.one_of(list).ok_or_else(|| self.unknown())
    }

    /// Takes a type, if it is next.
    pub(crate) fn optional_type(&mut self) -> Option<Type> {
        let next = self.peek()?;
        let found = Type::named(next)?;
        self.skip(next);
        Some(found)
    }

    /// Takes a type.
    pub(crate) fn ty(&mut self) -> Result<Type, Refusal> {
        self.optional_type().ok_or_else(|| self.unknown())
    }

    /// The last modifier as a type: it says which instruction an `add` is.
    pub(crate) fn last_type(&self) -> Result<Type, Refusal> {
        let last = self.rest.rsplit('.').next().unwrap_or_default();
        Type::named(last).ok_or_else(|| self.refuse("it has no type that is known"))
    }

    /// The refusal of the next modifier, or of there being none.
    pub(crate) fn unknown(&self) -> Refusal {
        match self.peek() {
            Some(modifier) => {
                let modifier: String = modifier.chars().take(40).collect();
                self.refuse(format!("the modifier .{modifier} is not known here"))
            }
            None => self.refuse("a modifier is missing"),
        }
    }

    /// The refusal of a type that the instruction has not.
    pub(crate) fn wrong_type(&self) -> Refusal {
        self.refuse("this type is not known here")
    }

    /// All were taken.
    pub(crate) fn finish(&self) -> Result<(), Refusal> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.unknown()) }
    }
}
