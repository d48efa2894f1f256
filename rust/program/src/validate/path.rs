//! The place of a command, as refusals name it: `3.body.1` is command 1 of the body of command 3.

use std::fmt;

use smallvec::SmallVec;

/// A command's index, and the sequence of it that was entered.
#[derive(Clone, Copy)]
struct Step {
    index: usize,
    /// Its name and its number among the sequences of the command; nothing while none was entered.
    entered: Option<(&'static str, usize)>,
}

/// The commands that lead to one.
#[derive(Default)]
pub(super) struct Path(SmallVec<[Step; 8]>);

impl Path {
    /// Enters the command `index` of the sequence where this is.
    pub(super) fn push(&mut self, index: usize) {
        self.0.push(Step { index, entered: None });
    }

    /// Enters a sequence of the last command.
    pub(super) fn enter(&mut self, name: &'static str, number: usize) {
        if let Some(last) = self.0.last_mut() {
            last.entered = Some((name, number));
        }
    }

    /// Leaves the last command.
    pub(super) fn pop(&mut self) {
        self.0.pop();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, Step { index, entered }) in self.0.iter().enumerate() {
            let dot = if depth == 0 { "" } else { "." };
            write!(f, "{dot}{index}")?;
            match entered {
                // Of the last command no sequence is meant.
                _ if depth + 1 == self.0.len() => {}
                Some(("branch", number)) => write!(f, ".branch{number}")?,
                Some((name, _)) => write!(f, ".{name}")?,
                None => {}
            }
        }
        Ok(())
    }
}
