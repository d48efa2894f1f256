//! `call (results), function, (inputs);`

use crate::Refusal;
use crate::instruction::{Call, Op};
use crate::program::Slot;

use super::body::{Body, Symbol};

impl Body<'_, '_> {
    /// What stands behind `call`.
    pub(crate) fn call(&mut self) -> Result<Op, Refusal> {
        let results = if self.text.take('(')? {
            let results = self.passed()?;
            self.text.expect(',')?;
            results
        } else {
            Vec::new()
        };
        let name = self.text.word("a function")?;
        let Symbol::Function(function) = self.lookup(name)? else {
            return Err(self.text.refuse(format!("{name} is no function that is known by its name")));
        };
        let inputs = if self.text.take(',')? {
            self.text.expect('(')?;
            self.passed()?
        } else {
            Vec::new()
        };
        self.builder.called(function, self.text.subject_line());
        let callee = self.builder.signature(function);
        let results = self.matched(&results, callee.results, name)?;
        let callee = self.builder.signature(function);
        let inputs = self.matched(&inputs, callee.inputs, name)?;
        Ok(Op::Call(Box::new(Call { function, inputs, results })))
    }

    /// The names in brackets, behind the opening one: offsets and sizes.
    fn passed(&mut self) -> Result<Vec<(u64, u64)>, Refusal> {
        let mut list = Vec::new();
        if self.text.take(')')? {
            return Ok(list);
        }
        loop {
            let name = self.text.word("a parameter")?;
            let Symbol::Parameter { offset, size_bytes } = self.lookup(name)? else {
                return Err(self.text.refuse(format!("{name} is not in parameter memory")));
            };
            list.push((offset, size_bytes));
            if self.text.take(')')? {
                return Ok(list);
            }
            self.text.expect(',')?;
        }
    }

    fn matched(&self, passed: &[(u64, u64)], wanted: &[Slot], name: &str) -> Result<Box<[usize]>, Refusal> {
        let sizes = |(&(_, size_bytes), slot): (&(u64, u64), &Slot)| size_bytes == slot.size_bytes as u64;
        if passed.len() != wanted.len() || !passed.iter().zip(wanted).all(sizes) {
            return Err(self.text.refuse(format!("{name} has other inputs or results")));
        }
        Ok(passed.iter().map(|&(offset, _)| offset as usize).collect())
    }
}

/// What a function takes and gives.
pub(super) struct Signature<'s> {
    pub(super) inputs: &'s [Slot],
    pub(super) results: &'s [Slot],
}
