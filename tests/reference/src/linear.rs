//! Whether answers of two threads are those of some interleaving.

use crate::model::{Progress, Task, World};
use crate::op::Op;
use crate::subject::may_wait;

/// The worlds in which two lists of operations, done side by side in `world`, can have ended, given their answers.
pub(crate) struct Search<'a> {
    ops: [&'a [Op]; 2],
    answers: [&'a [String]; 2],
    /// How many steps may still be taken.
    pub(crate) budget: u64,
    /// How many worlds are enough.
    enough: usize,
    found: Vec<World>,
}

/// What a thread is doing.
#[derive(Clone, Default)]
struct Thread {
    next: usize,
    task: Option<Task>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(ops: [&'a [Op]; 2], answers: [&'a [String]; 2], enough: usize, budget: u64) -> Self {
        Self { ops, answers, budget, enough, found: Vec::new() }
    }

    /// At most `enough` of them, with different looks; all of them if fewer, and the budget lasted.
    pub(crate) fn run(mut self, world: &World) -> (Vec<World>, bool) {
        self.visit(world.clone(), [Thread::default(), Thread::default()]);
        (self.found, self.budget > 0)
    }

    fn visit(&mut self, mut world: World, mut threads: [Thread; 2]) {
        // What is no business of the other thread's commutes with everything that it does.
        loop {
            let private =
                (0..2).find(|&thread| self.task(&threads, thread).is_some_and(|task| world.is_private(&task)));
            let Some(thread) = private else { break };
            match self.advance(&mut world, &mut threads, thread) {
                Some(true) => {}
                Some(false) => return,
                None => break,
            }
        }
        if self.budget == 0 || self.found.len() >= self.enough {
            return;
        }
        if (0..2).all(|thread| self.task(&threads, thread).is_none()) {
            let look = world.clone().look();
            let ended = |world: &World| world.clone().step(Op::plain(crate::op::Verb::End));
            let is_new = |old: &World| old.clone().look() != look || ended(old) != ended(&world);
            if self.found.iter().all(is_new) {
                self.found.push(world);
            }
            return;
        }
        for thread in 0..2 {
            if self.task(&threads, thread).is_none() {
                continue;
            }
            let (mut world, mut threads) = (world.clone(), threads.clone());
            if self.advance(&mut world, &mut threads, thread) == Some(true) {
                self.visit(world, threads);
            }
        }
    }

    fn task(&self, threads: &[Thread; 2], thread: usize) -> Option<Task> {
        let Thread { next, task } = &threads[thread];
        task.clone().or_else(|| self.ops[thread].get(*next).map(|&op| Task::Start(op)))
    }

    /// One step: whether its answer was the one given; `None` if it waits.
    fn advance(&mut self, world: &mut World, threads: &mut [Thread; 2], thread: usize) -> Option<bool> {
        self.budget = self.budget.saturating_sub(1);
        let task = self.task(threads, thread)?;
        let answer = match &task {
            Task::Start(op) if may_wait(*op) && world.holds_something(thread as u8) => "held".into(),
            _ => match world.advance(task) {
                Progress::Done(answer) => answer,
                Progress::More(task) => {
                    threads[thread].task = Some(task);
                    return Some(true);
                }
                Progress::Blocked => return None,
                Progress::Senseless => return Some(false),
            },
        };
        let is_right = answer == self.answers[thread][threads[thread].next];
        threads[thread] = Thread { next: threads[thread].next + 1, task: None };
        Some(is_right)
    }
}
