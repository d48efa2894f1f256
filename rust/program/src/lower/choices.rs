//! Loops and branches that bytes of the device decide: choices between steps, each of which is a list of commands.

use purlin_base::{Error, StatusOr};
use purlin_device::backend::{Choice, FlowStep, Place};

use super::{Lowering, list_of};
use crate::allocation::Slice;
use crate::command::{Branch, Sequence};

impl Lowering<'_> {
    /// The commands so far become a step, if there are any. The number of the next step.
    pub(super) fn end_list(&mut self) -> StatusOr<usize> {
        if !self.commands.is_empty() {
            self.steps.push(FlowStep::Commands(list_of(std::mem::take(&mut self.commands))?));
        }
        Ok(self.steps.len())
    }

    /// A choice, whose targets are not yet known. The number of its step.
    fn push_choice(&mut self, by: Choice, count: usize) -> StatusOr<usize> {
        let at = self.end_list()?;
        self.count += 1;
        self.steps.push(FlowStep::Choose { by, targets: vec![0; count] });
        Ok(at)
    }

    /// That choice's target of that number is the next step.
    fn aim(&mut self, choice: usize, number: usize) -> Result<(), Error> {
        let next = self.end_list()?;
        if let FlowStep::Choose { targets, .. } = &mut self.steps[choice] {
            targets[number] = next;
        }
        Ok(())
    }

    pub(super) fn repeat_while(
        &mut self,
        condition: &Sequence,
        predicate: &Slice,
        body: &Sequence,
    ) -> Result<(), Error> {
        let by = Choice::Flag(self.place_of_choice(predicate));
        let first = self.end_list()?;
        self.inner(condition)?;
        let choice = self.push_choice(by, 2)?;
        self.aim(choice, 0)?;
        self.inner(body)?;
        self.end_list()?;
        self.steps.push(FlowStep::GoTo(first));
        self.aim(choice, 1)
    }

    pub(super) fn choose(&mut self, branch: Branch, branches: &[Sequence]) -> Result<(), Error> {
        let by = match branch {
            Branch::Predicate(slice) => Choice::Flag(self.place_of_choice(&slice)),
            Branch::Index(slice) => Choice::Index(self.place_of_choice(&slice)),
        };
        let choice = self.push_choice(by, branches.len())?;
        let mut ends = Vec::new();
        for (number, branch) in branches.iter().enumerate() {
            self.aim(choice, number)?;
            self.inner(branch)?;
            ends.push(self.end_list()?);
            self.steps.push(FlowStep::GoTo(0));
        }
        // That of the last branch goes on by itself.
        self.steps.pop();
        let behind = self.steps.len();
        for end in ends {
            if let Some(FlowStep::GoTo(target)) = self.steps.get_mut(end) {
                *target = behind;
            }
        }
        Ok(())
    }

    fn place_of_choice(&self, slice: &Slice) -> Place {
        self.place(slice).unwrap_or_else(|| unreachable!("validation has seen that it has one byte or four"))
    }
}
