//! What tests need that interleave two threads, or count what was tried.

use super::run::RunOptions;
use super::step::Task;
use super::{FAMILIES, Phase, World};
use crate::op::{Arg, Op, Verb, slots};

impl World {
    /// Whether `thread` of two holds something for use or donation, and so does nothing that could wait.
    #[must_use]
    pub fn holds_something(&self, thread: u8) -> bool {
        let own = |arg, index: usize| {
            let (shared, own) = slots(arg);
            (shared + thread * own..shared + (thread + 1) * own).contains(&(index as u8))
        };
        let usage = |index| own(Arg::Usage, index);
        let donation = |index| own(Arg::Donation, index);
        self.usages.iter().enumerate().any(|(index, hold)| hold.is_some() && usage(index))
            || self.donations.iter().enumerate().any(|(index, hold)| hold.is_some() && donation(index))
    }

    /// Whether the next step of `thread` changes nothing that the other one's answers depend on.
    #[must_use]
    pub fn is_private(&self, task: &Task) -> bool {
        let shared = |array: usize| {
            let (shared, _) = slots(Arg::Buffer);
            self.buffers[..usize::from(shared)].contains(&Some(array))
        };
        let op = match task {
            Task::Start(op) | Task::Take(op) | Task::Work(op, _) | Task::Become(op, _) | Task::Vanish(op, _) => op,
            Task::LetGo(array) => return !shared(*array),
            Task::Run(run) => run.op(),
        };
        if matches!(op.verb, Verb::CloneBuffer | Verb::DropBuffer) {
            return true;
        }
        // Streams are everybody's.
        if op.verb == Verb::Run && RunOptions::of(*op).stream > 0 {
            return false;
        }
        op.verb.args().iter().zip(op.args).all(|(&arg, slot)| {
            let at = usize::from(slot);
            match arg {
                Arg::Buffer => self.buffers[at].is_none_or(|array| !shared(array)),
                Arg::Usage => self.usages[at].as_ref().is_none_or(|hold| !shared(hold.array)),
                Arg::External => self.externals[at].as_ref().is_none_or(|hold| !shared(hold.array)),
                Arg::Donation => self.donations[at].as_ref().is_none_or(|hold| !shared(hold.array)),
                Arg::Promise if matches!(op.verb, Verb::SetReady | Verb::SetError) => slot >= slots(arg).0,
                _ => true,
            }
        })
    }

    /// What the first buffer of an operation is, for counting what was tried.
    #[must_use]
    pub fn state_of_operand(&self, op: Op) -> String {
        let program = match op.verb {
            Verb::Run | Verb::Execute => self.programs[usize::from(op.args[0])],
            _ => None,
        };
        let program = program.map(|program| format!("{}, ", FAMILIES[program.family].name)).unwrap_or_default();
        let at = op.verb.args().iter().position(|arg| *arg == Arg::Buffer);
        let Some(array) = at.and_then(|at| self.buffers[usize::from(op.args[at])]) else { return program };
        let of = &self.arrays[array];
        let phase = match of.phase {
            Phase::Live => "live",
            Phase::Donating { deleted: false } => "donating",
            Phase::Donating { deleted: true } => "donating, deleted",
            Phase::Gone => "gone",
        };
        let ready = match self.events.end(of.ready) {
            None => "pending",
            Some(Ok(())) => "ready",
            Some(Err(_)) => "failed",
        };
        let held = |count, name| if count > 0 { name } else { "" };
        let memory = if of.first_memory.is_none() { ", no memory" } else { "" };
        format!("{program}{phase}, {ready}{}{}{memory}", held(of.usage, ", used"), held(of.external, ", referenced"))
    }
}
