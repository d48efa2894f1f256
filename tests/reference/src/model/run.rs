//! Runs of programs: checks, holds on the arguments, memory, and what of the outputs can be seen.
//!
//! A run tries its holds without waiting, in the order of the arguments. If another hold is in the way of one, it ends
//! all of its own, looks whether the call itself donates a buffer that it also uses, and then waits for each. Where the
//! library does this in several atomic steps, so does the model, for runs with one argument: those of two threads.

use super::bytes::{Content, SHAPES, TOKEN};
use super::event::Moment;
use super::step::{Progress, Progress::Blocked, Progress::Done, Progress::More, Progress::Senseless, none, ok};
use super::step::{Taken, Task};
use super::{FAMILIES, Family, Kind, Program, World, Wrong};
use crate::op::{Op, Verb};
use std::sync::Arc;

/// What the last argument of `run` and `execute` chooses.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// An execution stream; 0: none.
    pub stream: u8,
    /// The first argument is not to be donated.
    pub keeps: bool,
    /// Whether the caller only waits until the run completes.
    pub caller_waits: bool,
    /// What is in the slot of the first output is memory for it.
    pub gives: bool,
}

impl RunOptions {
    /// Those of a `run` or an `execute`.
    #[must_use]
    pub fn of(op: Op) -> Self {
        let choice = if op.verb == Verb::Run { op.args[3] } else { op.args[5] };
        Self {
            stream: choice % 3,
            keeps: choice / 3 % 2 == 1,
            caller_waits: choice / 6 % 2 == 1,
            gives: choice / 12 == 1,
        }
    }
}

/// A run on its way.
#[derive(Clone, Debug)]
pub struct Run {
    op: Op,
    program: Program,
    wanted: Vec<Wanted>,
    /// Which of them is next.
    at: usize,
    held: Vec<Held>,
    next: Next,
    waits: bool,
    conflicts: bool,
    /// The end of the run before it in its stream, and its own.
    turn: Option<(Moment, Moment)>,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    array: usize,
    donates: bool,
    is_result: bool,
}

#[derive(Clone, Debug)]
enum Held {
    Usage { array: usize, memory: usize },
    Donation(Taken),
    Failed { array: usize, donates: bool },
}

/// The next atomic step, for the hold that is next.
#[derive(Clone, Debug)]
enum Next {
    Take,
    /// It was donated, and may not be written.
    Undo,
    /// The donation was refused.
    Refused(String),
    Use,
    /// It is held for use, and has no memory.
    LetGo,
    /// No hold was to be had.
    Without(String),
    /// The same, and the buffer is not gone.
    WithoutThere(String),
}

impl Run {
    pub(super) fn op(&self) -> &Op {
        &self.op
    }

    fn family(&self) -> &'static Family {
        &FAMILIES[self.program.family]
    }

    fn then(mut self: Box<Self>, next: Next) -> Progress {
        self.next = next;
        More(Task::Run(self))
    }

    fn holds(mut self: Box<Self>, held: Held) -> Progress {
        self.held.push(held);
        self.at += 1;
        self.then(Next::Take)
    }
}

impl World {
    pub(super) fn load(&mut self, op: Op) -> Progress {
        let [slot, like, family, ..] = op.args;
        let like = self.buffers[usize::from(like)].map(|array| &self.arrays[array]);
        let (shape, turned) = like.filter(|array| array.shape != TOKEN).map_or((1, false), |a| (a.shape, a.turned));
        self.programs[usize::from(slot)] =
            Some(Program { number: self.loaded, family: usize::from(family), shape, turned });
        self.loaded += 1;
        ok()
    }

    pub(super) fn runs_in_flight(&self, program: usize) -> usize {
        self.runs.iter().filter(|(number, done)| *number == program && self.events.is_pending(*done)).count()
    }

    pub(super) fn quiesce(&self, slot: usize) -> Progress {
        match self.programs[slot] {
            None => none(),
            Some(program) if self.runs_in_flight(program.number) > 0 => Blocked,
            Some(_) => ok(),
        }
    }

    pub(super) fn start_run(&mut self, op: Op) -> Progress {
        let Some(program) = self.programs[usize::from(op.args[0])] else { return none() };
        let parameters = FAMILIES[program.family].parameters;
        let options = RunOptions::of(op);
        // `run` gives one argument, whatever the program takes; `execute` gives what it takes.
        let given = if op.verb == Verb::Run { 1 } else { parameters.len() };
        let mut wanted = Vec::new();
        for (number, slot) in op.args[1..=given].iter().enumerate() {
            let Some(array) = self.buffers[usize::from(*slot)] else { return none() };
            let of = &self.arrays[array];
            if of.first_memory.is_some() && matches!(self.content(of.content), Content::Unwritten) {
                return Senseless;
            }
            let keeps = options.keeps && number == 0 && !self.is(Wrong::KeptArgumentIsDonated);
            let donates = parameters.get(number).is_some_and(|donated| *donated) && !keeps;
            wanted.push(Wanted { array, donates, is_result: false });
        }
        if options.gives
            && let Some(array) = self.buffers[usize::from(op.args[3])]
        {
            wanted.push(Wanted { array, donates: true, is_result: true });
        }
        let turn = (options.stream > 0).then(|| {
            let over = self.events.promise();
            (std::mem::replace(&mut self.streams[usize::from(options.stream)], over), over)
        });
        let (held, next) = (Vec::new(), Next::Take);
        let run = Box::new(Run { op, program, wanted, at: 0, held, next, waits: false, conflicts: false, turn });
        if given != parameters.len() {
            return self.refuse_run(run, "3:count".into());
        }
        More(Task::Run(run))
    }

    /// Ends what it has, and answers.
    fn refuse_run(&mut self, mut run: Box<Run>, error: String) -> Progress {
        self.end_holds(&mut run);
        if let Some((before, over)) = run.turn {
            let over_before = self.events.after(vec![before]);
            self.events.follow(over, over_before);
        }
        if self.is(Wrong::RefusedRunConsumesItsArgument) {
            run.wanted.iter().filter(|wanted| wanted.donates).for_each(|wanted| self.end(wanted.array));
        }
        Done(error)
    }

    fn end_holds(&mut self, run: &mut Run) {
        for held in run.held.drain(..) {
            match held {
                Held::Usage { array, .. } => self.let_go(array, None),
                Held::Donation(taken) => self.end_donation(taken.array, false),
                Held::Failed { .. } => {}
            }
        }
    }

    pub(super) fn advance_run(&mut self, mut run: Box<Run>) -> Progress {
        let Some(&Wanted { array, donates, is_result }) = run.wanted.get(run.at) else {
            return if run.conflicts && !run.waits { self.begin_again(run) } else { self.finish_run(run) };
        };
        match run.next.clone() {
            Next::Take => {
                let Program { shape, turned, .. } = run.program;
                let of = &self.arrays[array];
                if (of.shape, of.turned, of.space) != (shape, turned, self.memories_are.space_of(run.family())) {
                    return self.refuse_run(run, "3:signature".into());
                }
                if !donates {
                    return run.then(Next::Use);
                }
                self.take_donation(run, array)
            }
            Next::Undo => {
                self.end_donation(array, false);
                run.then(if is_result { Next::Refused("3:readonly".into()) } else { Next::Use })
            }
            Next::Refused(error) => {
                let is_read_instead = !is_result && self.arrays[array].external > 0;
                run.then(if is_read_instead { Next::Use } else { Next::Without(error) })
            }
            Next::Use => match self.hold(array) {
                Ok(Some(memory)) => run.holds(Held::Usage { array, memory }),
                Ok(None) => run.then(Next::LetGo),
                Err(None) if run.waits => Blocked,
                Err(error) => run.then(Next::Without(error.unwrap_or_else(|| "9:donating".into()))),
            },
            Next::LetGo => {
                self.let_go(array, None);
                let error = self.own_error(array);
                run.then(Next::Without(error))
            }
            Next::Without(error) => {
                let (is_gone, has_memory) =
                    (self.is_gone(self.arrays[array].phase), self.arrays[array].first_memory.is_some());
                if !is_gone && has_memory && !run.waits {
                    return run.then(Next::WithoutThere(error));
                }
                if is_gone || has_memory || is_result {
                    return self.refuse_run(run, error);
                }
                run.holds(Held::Failed { array, donates })
            }
            Next::WithoutThere(error) if self.arrays[array].external > 0 => self.refuse_run(run, error),
            Next::WithoutThere(_) => {
                run.conflicts = true;
                run.at += 1;
                run.then(Next::Take)
            }
        }
    }

    fn take_donation(&mut self, run: Box<Run>, array: usize) -> Progress {
        match self.donate(array) {
            Ok(taken) if self.is_mutable(taken.memory) => run.holds(Held::Donation(taken)),
            Ok(_) => run.then(Next::Undo),
            Err(None) if run.waits => Blocked,
            Err(error) => run.then(Next::Refused(error.unwrap_or_else(|| "9:busy".into()))),
        }
    }

    /// After a conflict: without its holds, and to wait for each.
    fn begin_again(&mut self, mut run: Box<Run>) -> Progress {
        self.end_holds(&mut run);
        let mut clash = None;
        for (number, first) in run.wanted.iter().enumerate() {
            let same = run.wanted[number + 1..].iter().filter(|second| second.array == first.array);
            for second in same.filter(|second| first.donates || second.donates) {
                let error = if first.donates && second.donates { "3:donated-twice" } else { "3:used-and-donated" };
                clash = clash.or(Some(error));
            }
        }
        if let Some(error) = clash {
            return self.refuse_run(run, error.into());
        }
        run.waits = true;
        run.at = 0;
        run.then(Next::Take)
    }

    /// It has its holds.
    fn finish_run(&mut self, run: Box<Run>) -> Progress {
        let has_failed = run.held.iter().any(|held| matches!(held, Held::Failed { .. }));
        let size = SHAPES[run.program.shape].size_bytes();
        let mut results = Vec::new();
        for (number, output) in run.family().outputs.iter().enumerate() {
            let donated = output.alias.and_then(|parameter| run.held[parameter].taken());
            let given = run.held.get(run.family().parameters.len()).filter(|_| number == 0).and_then(Held::taken);
            let memory = match (donated, given) {
                (Some(_), Some(_)) => return self.refuse_run(run, "3:given-donated".into()),
                (Some(taken), None) | (None, Some(taken)) => {
                    let mut until = taken.uses.clone();
                    until.push(self.arrays[taken.array].ready);
                    Some((taken.memory, Some(self.events.after(until))))
                }
                (None, None) if has_failed => None,
                (None, None) => {
                    let there = self.events.ended(Ok(()));
                    Some((self.new_memory(size, self.memories_are.space_of(run.family()), Kind::Own, there), None))
                }
            };
            results.push(memory);
        }
        let dependencies = self.dependencies(&run, &results);
        let done = match run.held.iter().find(|held| matches!(held, Held::Failed { .. })) {
            None => self.launch(&run, &results, dependencies, size),
            Some(_) if self.is(Wrong::FailedArgumentDoesNotFailOutputs) => self.events.ended(Ok(())),
            Some(failed) => {
                let failed = self.arrays[failed.array()].ready;
                let mut ended = dependencies.iter().filter_map(|&event| self.events.end(event));
                // Another argument that has failed may not yet have done so in the library.
                if ended.find(Result::is_err) != self.events.end(failed) {
                    return Senseless;
                }
                failed
            }
        };
        self.end_run(&run, results, done, has_failed)
    }

    /// What the run begins after, the arguments first.
    fn dependencies(&mut self, run: &Run, results: &[Option<(usize, Option<Moment>)>]) -> Vec<Moment> {
        let mut events: Vec<Moment> =
            run.held[..run.family().parameters.len()].iter().map(|held| self.arrays[held.array()].ready).collect();
        if self.is(Wrong::FailedArgumentDoesNotFailOutputs) {
            events = vec![self.events.after(events)];
        }
        events.extend(results.iter().flatten().filter_map(|(_, free)| *free));
        if !self.is(Wrong::StreamIsIgnored) {
            events.extend(run.turn.map(|(before, _)| before));
        }
        events
    }

    /// The end of the commands. They keep their memory until then.
    fn launch(
        &mut self,
        run: &Run,
        results: &[Option<(usize, Option<Moment>)>],
        mut after: Vec<Moment>,
        size: usize,
    ) -> Moment {
        let read = run.held[..run.family().parameters.len()].iter().filter_map(Held::memory);
        let mut memories: Vec<usize> = read.collect();
        // Memory of no bytes need not be there.
        if size > 0 {
            after.extend(memories.iter().map(|&memory| self.memories[memory].allocated));
            let written = results.iter().flatten().map(|&(memory, _)| self.writable(memory));
            after.extend(written.collect::<Vec<_>>());
        }
        memories.extend(results.iter().flatten().map(|&(memory, _)| memory));
        if run.family().has_temporary && !self.is(Wrong::TemporariesAreNotCounted) {
            let there = self.events.ended(Ok(()));
            let space = self.memories_are.space_of(run.family());
            memories.push(self.new_memory(size.next_multiple_of(64), space, Kind::Own, there));
        }
        after.extend(run.family().fails.map(|error| self.events.ended(Err(error.into()))));
        let done = self.events.all(after);
        if !self.is(Wrong::MemoryOfARunIsNotKept) {
            self.kept.extend(memories.into_iter().map(|memory| (memory, done)));
        }
        done
    }

    /// The outputs, and the end of the holds.
    fn end_run(
        &mut self,
        run: &Run,
        results: Vec<Option<(usize, Option<Moment>)>>,
        done: Moment,
        has_failed: bool,
    ) -> Progress {
        let arguments: Vec<usize> = run.held[..run.family().parameters.len()].iter().map(Held::array).collect();
        let sources: Vec<usize> = arguments.iter().map(|&array| self.arrays[array].content).collect();
        let Program { shape, turned, .. } = run.program;
        let mut outputs = Vec::new();
        for (output, memory) in run.family().outputs.iter().zip(results) {
            // What has failed is never read.
            let content = match has_failed {
                true => Content::Bytes(vec![0; SHAPES[shape].size_bytes()].into()),
                false => Content::Computed(output.formula, sources.clone()),
            };
            let content = self.new_content(content);
            if let Some(bytes) = self.bytes(content) {
                self.contents[content] = Content::Bytes(bytes);
            }
            let uses = memory.and_then(|(_, free)| free).into_iter().collect();
            let memory = memory.map(|(memory, _)| memory);
            let space = self.memories_are.space_of(run.family());
            outputs.push(self.new_array(shape, turned, space, done, content, memory, uses));
        }
        for held in &run.held {
            match held {
                Held::Usage { array, .. } => self.let_go(*array, Some(done)),
                Held::Donation(taken) => self.end_donation(taken.array, !self.is(Wrong::RunLeavesItsDonatedArgument)),
                Held::Failed { array, donates: true } => self.end(*array),
                Held::Failed { .. } => {}
            }
        }
        self.runs.push((run.program.number, done));
        if let Some((before, over)) = run.turn {
            let over_both = self.events.after(vec![done, before]);
            self.events.follow(over, over_both);
        }
        let slots = if run.op.verb == Verb::Run { &run.op.args[2..3] } else { &run.op.args[3..5] };
        for (&slot, output) in slots.iter().zip(outputs) {
            self.buffers[usize::from(slot)] = Some(output);
        }
        ok()
    }

    /// When the memory is there; it fails if it turns out then that it may not be written.
    fn writable(&mut self, memory: usize) -> Moment {
        let event = self.events.all(vec![self.memories[memory].allocated]);
        self.writable.push((memory, event));
        event
    }

    /// After memory has come.
    pub(super) fn settle_writable(&mut self) {
        for (memory, event) in std::mem::take(&mut self.writable) {
            match self.memories[self.root(memory)].kind {
                Kind::Imported { mutable: false } => self.events.force(event, Err("3:readonly".into())),
                Kind::Channel { .. } => self.writable.push((memory, event)),
                _ => {}
            }
        }
    }

    /// The bytes of an array, once it is known which ones.
    pub(super) fn bytes(&self, content: usize) -> Option<Arc<[u8]>> {
        match self.content(content) {
            Content::Bytes(bytes) => Some(Arc::clone(bytes)),
            Content::Computed(formula, of) => {
                let of: Vec<Arc<[u8]>> = of.iter().map(|&content| self.bytes(content)).collect::<Option<_>>()?;
                let of: Vec<&[u8]> = of.iter().map(|bytes| &**bytes).collect();
                Some(formula.of(&of).into())
            }
            Content::Unwritten | Content::Owed | Content::Same(_) => None,
        }
    }
}

impl Held {
    fn array(&self) -> usize {
        match self {
            Self::Usage { array, .. } | Self::Failed { array, .. } => *array,
            Self::Donation(taken) => taken.array,
        }
    }

    fn memory(&self) -> Option<usize> {
        match self {
            Self::Usage { memory, .. } => Some(*memory),
            Self::Donation(taken) => Some(taken.memory),
            Self::Failed { .. } => None,
        }
    }

    fn taken(&self) -> Option<&Taken> {
        match self {
            Self::Donation(taken) => Some(taken),
            _ => None,
        }
    }
}
