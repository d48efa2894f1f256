//! Sequences for two threads: a beginning by one, then two lists side by side, then a look and the end.

use std::fmt;
use std::fmt::Write;
use std::time::Duration;

use crate::fuzz::Report;
use crate::linear::Search;
use crate::model::{World, Wrong};
use crate::op::{Arg, OP_BYTES, Op, Verb, slots};
use crate::random::Random;
use crate::subject::{Backend, Subject};

const PATIENCE: Duration = Duration::from_secs(30);
/// Before all interleavings are looked for.
const SHORT_PATIENCE: Duration = Duration::from_millis(20);
const BUDGET: u64 = 300_000;

/// Pairs of lists by a seed.
pub struct PairFuzz<'a> {
    /// What is compared.
    pub subject: &'a mut dyn Subject,
    /// Where; what has a seed gets another one for each pair.
    pub backend: Backend,
    /// Which ones.
    pub seed: u64,
    /// At least so many operations.
    pub operations: u64,
    /// A rule turned around, to see that it is noticed.
    pub wrong: Option<Wrong>,
}

impl fmt::Debug for PairFuzz<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairFuzz").finish_non_exhaustive()
    }
}

struct Play {
    beginning: Vec<Op>,
    lists: [Vec<Op>; 2],
}

impl PairFuzz<'_> {
    /// Runs them; and how many pairs had so many interleavings that nothing can be said.
    ///
    /// # Errors
    /// What no interleaving explains, as text.
    pub fn run(&mut self) -> Result<(Report, u64), String> {
        let (mut report, mut unclear, mut random) = (Report::default(), 0, Random::new(self.seed));
        while report.operations < self.operations {
            let backend = self.backend.with_another_seed(&mut random);
            let play = Play::new(&mut random);
            unclear += u64::from(!self.play(backend, &play, &mut report)?);
            report.sequences += 1;
        }
        Ok((report, unclear))
    }

    /// False if there were too many interleavings.
    fn play(&mut self, backend: Backend, play: &Play, report: &mut Report) -> Result<bool, String> {
        let (mut world, mut right) = (World::new(backend.memories(), self.wrong), World::new(backend.memories(), None));
        // Where a difference is hoped for, waiting longer proves nothing.
        let patience = if self.wrong.is_some() { SHORT_PATIENCE } else { PATIENCE };
        let mut script = Vec::new();
        for &op in &play.beginning {
            if let Some(answer) = world.step_beside(&mut right, op) {
                script.push((op, answer));
            }
        }
        self.subject.begin(backend);
        let mut story = format!("two threads on {backend}, after:\n");
        for (op, answer) in &script {
            let _ = writeln!(story, "  {op:<30} {answer}");
        }
        if let Some((index, answer)) = self.subject.script(&script, patience) {
            return Err(format!("{story}the library differs at {}: {answer}", script[index].0));
        }
        let lists = [&play.lists[0][..], &play.lists[1][..]];
        let answers = self.subject.side_by_side(lists);
        report.operations += (script.len() + lists[0].len() + lists[1].len()) as u64;
        for (thread, list) in lists.iter().enumerate() {
            let _ = writeln!(story, "thread {thread}:");
            for (op, answer) in list.iter().zip(&answers[thread]) {
                let _ = writeln!(story, "  {op:<30} {answer}   <- the library");
                report.coverage.meet(*op, "side by side", answer);
            }
        }
        let answers = [&answers[0][..], &answers[1][..]];
        let (mut worlds, _) = Search::new(lists, answers, 1, BUDGET).run(&world);
        let mut seen = self.settle(false, &mut worlds, SHORT_PATIENCE);
        if seen.is_ok() {
            seen = self.settle(true, &mut worlds, SHORT_PATIENCE);
        }
        if seen.is_ok() {
            return Ok(true);
        }
        // Another interleaving, or a slow machine.
        let (mut worlds, complete) = Search::new(lists, answers, usize::MAX, BUDGET).run(&world);
        if !complete {
            return Ok(false);
        }
        if worlds.is_empty() {
            return Err(format!("{story}no interleaving gives these answers"));
        }
        self.settle(true, &mut worlds, patience)
            .map(|()| true)
            .map_err(|seen| format!("{story}then there was seen, as after no interleaving:\n  {seen}"))
    }

    /// Leaves those of `worlds` that look like what is seen.
    fn settle(&mut self, end: bool, worlds: &mut Vec<World>, patience: Duration) -> Result<(), String> {
        if worlds.is_empty() {
            return Err("no interleaving".into());
        }
        let look = |world: &mut World| match end {
            true => world.step(Op::plain(Verb::End)).unwrap_or_default(),
            false => world.look(),
        };
        let looks: Vec<String> = worlds.iter_mut().map(look).collect();
        let index = self.subject.settle(end, &looks, patience)?;
        let mut looks = looks.iter();
        let wanted = looks.clone().nth(index).cloned();
        worlds.retain(|_| looks.next() == wanted.as_ref());
        Ok(())
    }
}

impl Play {
    fn new(random: &mut Random) -> Self {
        let mut bytes = random.bytes(24 * OP_BYTES);
        // The slots that both will see.
        for (index, one) in bytes.chunks_exact_mut(OP_BYTES).enumerate() {
            one[1] = if index % 2 == 0 { one[1] % 3 } else { one[1] };
        }
        let sensible = |op: &Op| !matches!(op.verb, Verb::Uninitialized);
        let mut beginning: Vec<Op> = Op::sequence(&bytes).into_iter().filter(sensible).collect();
        beginning.extend(let_go(0));
        let list = |thread: u8, random: &mut Random| {
            let count = 3 + random.below(8) as usize;
            let bytes = random.bytes(count * OP_BYTES);
            let of = |bytes: &[u8]| Op::of_thread(bytes.try_into().expect("chunks of that size"), thread);
            let mut list: Vec<Op> = bytes.chunks_exact(OP_BYTES).map(of).collect();
            list.extend(let_go(thread));
            list
        };
        Self { beginning, lists: [list(0, random), list(1, random)] }
    }
}

/// Ends the holds of a thread for which another could wait.
fn let_go(thread: u8) -> impl Iterator<Item = Op> {
    let of = move |arg, verb| {
        let (shared, own) = slots(arg);
        (0..own).map(move |slot| Op { verb, args: [shared + thread * own + slot, 0, 0, 0, 0, 0] })
    };
    of(Arg::Usage, Verb::ReleaseUsage).chain(of(Arg::Donation, Verb::GiveBack))
}
