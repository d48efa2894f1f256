//! The place of a command, as errors show it: `3.body.1` is command 1 of the body of command 3.

use std::fmt;

use smallvec::SmallVec;

/// The index of a command, and the sequence inside it that was entered.
#[derive(Clone, Copy)]
struct Step {
    index: usize,
    /// The name of that sequence and its number in the command; `None` before one is entered.
    entered: Option<(&'static str, usize)>,
}

/// The chain of commands that leads to one.
#[derive(Default)]
pub(super) struct Path(SmallVec<[Step; 8]>);

impl Path {
    /// Enters command `index` of the current sequence.
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
                // The last command is named as a whole, without a sequence.
                _ if depth + 1 == self.0.len() => {}
                Some(("branch", number)) => write!(f, ".branch{number}")?,
                Some((name, _)) => write!(f, ".{name}")?,
                None => {}
            }
        }
        Ok(())
    }
}
