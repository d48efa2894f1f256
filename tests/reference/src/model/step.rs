//! One operation at a time, in the atomic steps that the library takes.
//!
//! [`World::step`] takes all steps of one in a row. [`World::advance`] takes one, for interleaving two threads: what an
//! operation still has to do is a [`Task`].

use super::bytes::{Content, SHAPES, TOKEN, pattern, shape_of, turned};
use super::event::Moment;
use super::run::Run;
use super::{CODES, Channel, Donation, Given, Hold, Host, Kind, Range, Reading, World, Wrong};
use crate::op::{Op, Verb};

/// What an operation still has to do.
#[derive(Clone, Debug)]
pub enum Task {
    /// All of it.
    Start(Op),
    /// What was in its slot is gone.
    Take(Op),
    /// It holds the array for use, and does its work.
    Work(Op, usize),
    /// It holds the array for use, which turns out to have no memory.
    LetGo(usize),
    /// It has the donation hold, and takes what that gives.
    Become(Op, Taken),
    /// An array that failed before it had memory is dropped.
    Vanish(Op, usize),
    /// It runs a program.
    Run(Box<Run>),
}

/// A donation hold on its way.
#[derive(Clone, Debug)]
pub struct Taken {
    pub(super) array: usize,
    pub(super) memory: usize,
    pub(super) uses: Vec<Moment>,
}

/// How far an operation got.
#[derive(Clone, Debug)]
pub enum Progress {
    /// It is over, with this answer.
    Done(String),
    /// It continues.
    More(Task),
    /// It waits for the end of another hold; nothing has changed.
    Blocked,
    /// It is not to be done here: the answer has no meaning (unwritten memory, circles), or is not determined.
    Senseless,
}

use Progress::{Blocked, Done, More, Senseless};

pub(super) fn ok() -> Progress {
    Done("ok".into())
}

pub(super) fn none() -> Progress {
    Done("none".into())
}

impl World {
    /// All of an operation, and its answer; none if it is senseless or would wait for ever.
    pub fn step(&mut self, op: Op) -> Option<String> {
        // These empty their slot, or take other holds, before they may have to wait, and are to change nothing then.
        let occupied = matches!(op.verb, Verb::TakeUsage | Verb::External | Verb::Donate)
            && (self.usages.iter().any(Option::is_some) || self.donations.iter().any(Option::is_some));
        let saved = (occupied || matches!(op.verb, Verb::Run | Verb::Execute)).then(|| self.clone());
        let mut task = Task::Start(op);
        loop {
            match self.advance(task) {
                Done(answer) => return Some(answer),
                More(next) => task = next,
                Blocked | Senseless => {
                    if let Some(saved) = saved {
                        *self = saved;
                    }
                    return None;
                }
            }
        }
    }

    /// As [`step`](Self::step) for a world that may have a wrong rule, beside the right one: only what `right` would
    /// do, too. So the library, which does as `right` does, never waits for ever before the difference is seen.
    pub fn step_beside(&mut self, right: &mut Self, op: Op) -> Option<String> {
        if self.wrong.is_none() {
            return self.step(op);
        }
        let mut next = right.clone();
        next.step(op)?;
        let answer = self.step(op)?;
        *right = next;
        Some(answer)
    }

    /// The next atomic step of an operation.
    pub fn advance(&mut self, task: Task) -> Progress {
        match task {
            Task::Start(op) => self.start(op),
            Task::Take(op) => self.take(op),
            Task::Work(op, array) => self.work(op, array),
            Task::LetGo(array) => {
                let error = self.own_error(array);
                self.let_go(array, None);
                Done(error)
            }
            Task::Become(op, given) => self.become_other(op, given),
            Task::Vanish(op, array) => {
                self.end(array);
                let ready = self.arrays[array].ready;
                let (shape, turned) = self.shape_of_new(op, array);
                let (space, content) = (self.arrays[array].space, self.arrays[array].content);
                let new = self.new_array(shape, turned, space, ready, content, None, Vec::new());
                self.buffers[usize::from(op.args[1])] = Some(new);
                ok()
            }
            Task::Run(run) => self.advance_run(run),
        }
    }

    fn promise_of(&mut self, slot: u8) -> Moment {
        match self.promises[usize::from(slot)] {
            Some(promise) => promise,
            None => self.events.ended(Ok(())),
        }
    }

    pub(super) fn own_error(&self, array: usize) -> String {
        self.events.text(self.arrays[array].ready)
    }

    #[allow(clippy::too_many_lines, reason = "a table of operations")]
    fn start(&mut self, op: Op) -> Progress {
        let [a, b, c, d, ..] = op.args;
        let (at_a, at_b) = (usize::from(a), usize::from(b));
        match op.verb {
            Verb::NewEvent => {
                self.drop_promise(at_a);
                self.promises[at_a] = Some(self.events.promise());
                ok()
            }
            Verb::SetReady | Verb::SetError => {
                let Some(promise) = self.promises[at_a] else { return none() };
                let end = if op.verb == Verb::SetReady { Ok(()) } else { Err(error_text(b, c)) };
                Done(self.events.set(promise, end).to_string())
            }
            Verb::DropPromise => self.drop_promise(at_a),
            Verb::FromHost => self.array_from_host(op),
            Verb::FromRawAfter => {
                let shape = shape_of(b);
                let size = SHAPES[shape].size_bytes();
                let there = self.events.ended(Ok(()));
                let memory = self.new_memory(size, 0, Kind::Own, there);
                let event = self.promise_of(c);
                self.kept.push((memory, event));
                let content = self.new_content(Content::Bytes(pattern(d, size).into()));
                self.buffers[at_a] = Some(self.new_array(shape, false, 0, event, content, Some(memory), Vec::new()));
                ok()
            }
            Verb::Uninitialized => {
                let shape = shape_of(b);
                let there = self.events.ended(Ok(()));
                let memory = self.new_memory(SHAPES[shape].size_bytes(), 0, Kind::Own, there);
                let content = self.new_content(Content::Unwritten);
                let turned = c == 1 && SHAPES[shape].can_turn();
                self.buffers[at_a] = Some(self.new_array(shape, turned, 0, there, content, Some(memory), Vec::new()));
                ok()
            }
            Verb::CreateError => {
                let ready = self.events.ended(Err(error_text(c, d)));
                let content = self.new_content(Content::Unwritten);
                self.buffers[at_a] = Some(self.new_array(shape_of(b), false, 0, ready, content, None, Vec::new()));
                ok()
            }
            Verb::Token => {
                let there = self.events.ended(Ok(()));
                let memory = self.new_memory(0, 0, Kind::Own, there);
                let ready = self.promise_of(b);
                let content = self.new_content(Content::Bytes([].into()));
                self.buffers[at_a] = Some(self.new_array(TOKEN, false, 0, ready, content, Some(memory), Vec::new()));
                ok()
            }
            Verb::Channel => {
                let shape = shape_of(c);
                let turned = d == 1 && SHAPES[shape].can_turn();
                let (allocated, free, ready) = (self.events.promise(), self.events.promise(), self.events.promise());
                let kind = Kind::Channel { target: None, free };
                let memory = self.new_memory(SHAPES[shape].size_bytes(), 0, kind, allocated);
                let content = self.new_content(Content::Owed);
                let array = self.new_array(shape, turned, 0, ready, content, Some(memory), vec![free]);
                self.fail_channel(at_b, None);
                self.buffers[at_a] = Some(array);
                self.channels[at_b] = Some(Channel { array, memory, content, ready });
                ok()
            }
            Verb::Fulfil => self.fulfil(op),
            Verb::Fail => self.fail_channel(at_a, Some(error_text(b, c))),
            Verb::DropChannel => self.fail_channel(at_a, None),
            Verb::TryUsage | Verb::TakeUsage => {
                if self.buffers[at_b].is_none() {
                    return none();
                }
                self.release_usage(at_a, None);
                More(Task::Take(op))
            }
            Verb::External => {
                if self.buffers[at_b].is_none() {
                    return none();
                }
                self.drop_external(at_a);
                More(Task::Take(op))
            }
            Verb::TryDonate | Verb::Donate => {
                if self.buffers[at_b].is_none() {
                    return none();
                }
                self.give_back(at_a);
                More(Task::Take(op))
            }
            Verb::ReleaseUsage => self.release_usage(at_a, None),
            Verb::ReleaseUsageAfter => {
                let event = self.promise_of(b);
                if let Some(hold) = &self.usages[at_a] {
                    self.kept.push((hold.memory, event));
                }
                self.release_usage(at_a, Some(event))
            }
            Verb::ReadHold => {
                let Some(hold) = self.usages[at_a].clone() else { return none() };
                let array = &self.arrays[hold.array];
                if matches!(self.content(array.content), Content::Unwritten) {
                    return Senseless;
                }
                let (size, content) = (SHAPES[array.shape].size_bytes(), array.content);
                let copied = self.copied(array.ready, &[hold.memory], &[]);
                self.kept.push((hold.memory, copied));
                self.reads[at_b] = Some(Reading { copied, content, range: Range::Raw { offset: 0, size } });
                self.release_usage(at_a, Some(copied))
            }
            Verb::DropExternal => self.drop_external(at_a),
            Verb::Confirm => {
                let Some(donation) = self.donations[at_a].take() else { return none() };
                let mut until = donation.uses;
                until.push(self.arrays[donation.array].ready);
                let free = self.events.after(until);
                self.end_donation(donation.array, true);
                self.given[at_b] = Some(Given { memory: donation.memory, free });
                ok()
            }
            Verb::GiveBack => self.give_back(at_a),
            Verb::DonateAfter | Verb::Bitcast => self.check_become(op),
            Verb::CopyTo | Verb::Read | Verb::ReadRaw => {
                let Some(array) = self.buffers[at_a] else { return none() };
                let unwritten = matches!(self.content(self.arrays[array].content), Content::Unwritten);
                let no_memory = self.arrays[array].first_memory.is_none();
                if unwritten && !no_memory {
                    return Senseless;
                }
                if op.verb == Verb::CopyTo && no_memory && !self.is_gone(self.arrays[array].phase) {
                    let Self { arrays, .. } = self;
                    let (shape, turned, ready, content) =
                        (arrays[array].shape, arrays[array].turned, arrays[array].ready, arrays[array].content);
                    let new = self.new_array(shape, turned, c, ready, content, None, Vec::new());
                    self.buffers[at_b] = Some(new);
                    return ok();
                }
                self.hold_for(op, array)
            }
            Verb::CopyInto => self.copy_into(op),
            Verb::Delete => {
                let Some(array) = self.buffers[at_a] else { return none() };
                self.end(array);
                ok()
            }
            Verb::Release => self.release(op),
            Verb::MakeOf => self.make_of(op),
            Verb::DropMemory => match self.given[at_a].take() {
                Some(_) => ok(),
                None => none(),
            },
            Verb::DropBuffer => match self.buffers[at_a].take() {
                Some(_) => ok(),
                None => none(),
            },
            Verb::CloneBuffer => {
                let Some(array) = self.buffers[at_a] else { return none() };
                self.buffers[at_b] = Some(array);
                ok()
            }
            Verb::IsDeleted => {
                let Some(array) = self.buffers[at_a] else { return none() };
                Done(self.is_gone(self.arrays[array].phase).to_string())
            }
            Verb::Counts => {
                let Some(array) = self.buffers[at_a].map(|array| &self.arrays[array]) else { return none() };
                Done(format!("{},{}", array.usage, array.external))
            }
            Verb::Load => self.load(op),
            Verb::Run | Verb::Execute => self.start_run(op),
            Verb::Quiesce => self.quiesce(at_a),
            Verb::DropProgram => match self.programs[at_a].take() {
                Some(_) => ok(),
                None => none(),
            },
            Verb::Look => Done(self.look()),
            Verb::End => self.drop_everything(),
        }
    }

    fn drop_everything(&mut self) -> Progress {
        self.programs.fill(None);
        self.buffers.fill(None);
        for slot in 0..self.usages.len() {
            self.release_usage(slot, None);
        }
        for slot in 0..self.externals.len() {
            self.drop_external(slot);
        }
        for slot in 0..self.donations.len() {
            self.give_back(slot);
        }
        self.given.fill(None);
        for slot in 0..self.channels.len() {
            self.fail_channel(slot, None);
        }
        for slot in 0..self.promises.len() {
            self.drop_promise(slot);
        }
        Done(self.look())
    }

    fn drop_promise(&mut self, slot: usize) -> Progress {
        let Some(promise) = self.promises[slot].take() else { return none() };
        self.events.abandon(promise);
        ok()
    }

    fn array_from_host(&mut self, op: Op) -> Progress {
        let [slot, shape, mode, seed, ..] = op.args;
        let (shape, space) = (shape_of(shape), seed % 3);
        let of = SHAPES[shape];
        let (semantics, lay, stride, misaligned) = (mode & 3, mode & 4 != 0, mode & 8 != 0, mode & 16 != 0);
        let (lay, stride) = (lay && of.can_turn(), stride && of.can_turn());
        let elements = pattern(seed, of.size_bytes());
        let bytes = if lay { turned(&elements, of.dims[0], of.dims[1], of.width) } else { elements };
        let content = self.new_content(Content::Bytes(bytes.into()));
        let ready = self.events.ended(Ok(()));
        let in_place = self.memories_are.takes_host_memory(space);
        let aliased = in_place && semantics >= 2 && lay == stride && !misaligned && of.size_bytes() > 0;
        let kind = if aliased { Kind::Imported { mutable: semantics == 3 } } else { Kind::Own };
        let memory = self.new_memory(of.size_bytes(), space, kind, ready);
        self.hosts.push(Host { memory: aliased.then_some(memory), told: !aliased });
        let array = self.new_array(shape, lay, space, ready, content, Some(memory), Vec::new());
        self.buffers[usize::from(slot)] = Some(array);
        Done(if aliased { "aliased" } else { "copied" }.into())
    }

    /// The event of a copy after `first` and `then`, between `memories`, the destination first; memory of no bytes need
    /// not be there.
    fn copied(&mut self, first: Moment, memories: &[usize], then: &[Moment]) -> Moment {
        let mut after = vec![first];
        after.extend(then);
        let needed = memories.iter().filter(|&&memory| self.memories[memory].size > 0);
        after.extend(needed.map(|&memory| self.memories[memory].allocated));
        self.events.all(after)
    }

    fn take(&mut self, op: Op) -> Progress {
        let (slot, array) = (usize::from(op.args[0]), self.buffers[usize::from(op.args[1])]);
        let Some(array) = array else { return none() };
        match op.verb {
            Verb::TryDonate | Verb::Donate => match self.donate(array) {
                Ok(given) => {
                    let Taken { array, memory, uses } = given;
                    self.donations[slot] = Some(Donation { array, memory, uses });
                    ok()
                }
                Err(Some(error)) => Done(error),
                Err(None) if op.verb == Verb::TryDonate => Done("9:busy".into()),
                Err(None) => Blocked,
            },
            _ => match self.hold(array) {
                Err(Some(error)) => Done(error),
                Err(None) if op.verb == Verb::TryUsage => Done("9:donating".into()),
                Err(None) => Blocked,
                Ok(None) => More(Task::LetGo(array)),
                Ok(Some(memory)) if op.verb == Verb::External => {
                    // The hold becomes a reference by a step of its own.
                    let _ = memory;
                    More(Task::Work(op, array))
                }
                Ok(Some(memory)) => {
                    self.usages[slot] = Some(Hold { array, memory });
                    ok()
                }
            },
        }
    }

    fn hold_for(&mut self, op: Op, array: usize) -> Progress {
        match self.hold(array) {
            Err(Some(error)) => self.answer_error(op, error),
            Err(None) => Blocked,
            Ok(None) => {
                let error = self.own_error(array);
                self.let_go(array, None);
                self.answer_error(op, error)
            }
            Ok(Some(_)) => More(Task::Work(op, array)),
        }
    }

    /// Reads answer by their event.
    fn answer_error(&mut self, op: Op, error: String) -> Progress {
        if op.verb == Verb::CopyTo {
            return Done(error);
        }
        let copied = self.events.ended(Err(error));
        self.reads[usize::from(op.args[1])] =
            Some(Reading { copied, content: 0, range: Range::Raw { offset: 0, size: 0 } });
        ok()
    }

    /// What is done while the array is held, and the end of the hold.
    fn work(&mut self, op: Op, array: usize) -> Progress {
        let [_, slot, c, d, ..] = op.args;
        let of = &self.arrays[array];
        let (shape, is_turned, ready, content) = (of.shape, of.turned, of.ready, of.content);
        let memory = of.first_memory.expect("held, so it has memory");
        match op.verb {
            Verb::External => {
                self.arrays[array].external += 1;
                self.let_go(array, None);
                self.externals[usize::from(op.args[0])] = Some(Hold { array, memory });
            }
            Verb::CopyTo => {
                let there = self.events.ended(Ok(()));
                let to = self.new_memory(SHAPES[shape].size_bytes(), c, Kind::Own, there);
                let copied = self.copied(ready, &[to, memory], &[]);
                self.kept.extend([(to, copied), (memory, copied)]);
                let new = self.new_array(shape, is_turned, c, copied, content, Some(to), Vec::new());
                self.buffers[usize::from(slot)] = Some(new);
                self.let_go(array, Some(copied));
            }
            Verb::Read => {
                let copied = self.copied(ready, &[memory], &[]);
                self.kept.push((memory, copied));
                let range = Range::Whole { shape, turned: is_turned };
                self.reads[usize::from(slot)] = Some(Reading { copied, content, range });
                self.let_go(array, Some(copied));
            }
            _ => {
                let (offset, size) = (usize::from(c), usize::from(d));
                let fits = offset + size <= SHAPES[shape].size_bytes();
                let copied = match fits {
                    true if size == 0 => ready,
                    true => self.copied(ready, &[memory], &[]),
                    false if self.is(Wrong::RangeIsNotChecked) => self.events.ended(Ok(())),
                    false => self.events.ended(Err("11:range".into())),
                };
                // A copy of no bytes keeps nothing.
                if size > 0 {
                    self.kept.push((memory, copied));
                }
                let range = Range::Raw { offset: if fits { offset } else { 0 }, size: if fits { size } else { 0 } };
                self.reads[usize::from(slot)] = Some(Reading { copied, content, range });
                self.let_go(array, Some(copied));
            }
        }
        ok()
    }

    fn make_of(&mut self, op: Op) -> Progress {
        let [from, to, shape, seed, ..] = op.args;
        let Some(Given { memory, free }) = self.given[usize::from(from)].clone() else { return none() };
        let shape = shape_of(shape);
        let size = SHAPES[shape].size_bytes();
        if self.memories[memory].size != size {
            return Done("3:misfit".into());
        }
        self.given[usize::from(from)] = None;
        let copied = match self.is_mutable(memory) {
            true => self.copied(free, &[memory], &[]),
            false => self.events.ended(Err("3:readonly".into())),
        };
        self.kept.push((memory, copied));
        let ready = self.events.all(vec![self.memories[memory].allocated, copied]);
        let content = self.new_content(Content::Bytes(pattern(seed, size).into()));
        let space = self.memories[memory].space;
        let array = self.new_array(shape, false, space, ready, content, Some(memory), Vec::new());
        self.buffers[usize::from(to)] = Some(array);
        ok()
    }

    fn check_become(&mut self, op: Op) -> Progress {
        let Some(array) = self.buffers[usize::from(op.args[0])] else { return none() };
        if op.verb == Verb::Bitcast {
            let (from, to) = (self.arrays[array].shape, shape_of(op.args[2]));
            if from == TOKEN {
                return Done("3:no-array".into());
            }
            if SHAPES[from].size_bytes() != SHAPES[to].size_bytes() {
                return Done("3:bitcast".into());
            }
        }
        if self.arrays[array].first_memory.is_none() && !self.is_gone(self.arrays[array].phase) {
            return More(Task::Vanish(op, array));
        }
        match self.donate(array) {
            Ok(given) => More(Task::Become(op, given)),
            Err(Some(error)) => Done(error),
            Err(None) => Blocked,
        }
    }

    fn ready_of_new(&mut self, op: Op, array: usize) -> Moment {
        let ready = self.arrays[array].ready;
        if op.verb == Verb::Bitcast || self.is(Wrong::DonateAfterForgetsTheEvent) {
            return ready;
        }
        let event = self.promise_of(op.args[2]);
        self.events.all(vec![ready, event])
    }

    fn shape_of_new(&self, op: Op, array: usize) -> (usize, bool) {
        if op.verb == Verb::DonateAfter {
            return (self.arrays[array].shape, self.arrays[array].turned);
        }
        let shape = shape_of(op.args[2]);
        (shape, op.args[3] == 1 && SHAPES[shape].can_turn())
    }

    fn become_other(&mut self, op: Op, given: Taken) -> Progress {
        let Taken { array, memory, uses } = given;
        let ready = self.ready_of_new(op, array);
        let (shape, turned) = self.shape_of_new(op, array);
        let leaves = op.verb == Verb::Bitcast && self.is(Wrong::BitcastLeavesItsSource);
        self.end_donation(array, !leaves);
        let (space, content) = (self.arrays[array].space, self.arrays[array].content);
        let new = self.new_array(shape, turned, space, ready, content, Some(memory), uses);
        self.buffers[usize::from(op.args[1])] = Some(new);
        ok()
    }

    fn copy_into(&mut self, op: Op) -> Progress {
        let [from, to, slot, ..] = op.args;
        let (Some(from), Some(to)) = (self.buffers[usize::from(from)], self.buffers[usize::from(to)]) else {
            return none();
        };
        if from == to {
            return Done("3:itself".into());
        }
        if (self.arrays[from].shape, self.arrays[from].turned) != (self.arrays[to].shape, self.arrays[to].turned) {
            return Done("3:unequal".into());
        }
        if matches!(self.content(self.arrays[from].content), Content::Unwritten)
            && self.arrays[from].first_memory.is_some()
        {
            return Senseless;
        }
        // Which of two errors is reported depends on addresses.
        let held = self.clone().hold(from);
        let donated = self.clone().donate(to);
        let held = held.and_then(|memory| memory.ok_or_else(|| Some(self.own_error(from))));
        let (from_memory, error) = match (held, &donated) {
            (Err(_), Err(_)) | (Ok(_), Err(None)) | (Err(None), Ok(_)) => return Senseless,
            (Err(Some(error)), Ok(_)) => (0, Some(error)),
            (Ok(memory), Err(Some(error))) => (memory, Some(error.clone())),
            (Ok(memory), Ok(_)) => (memory, None),
        };
        if let Some(error) = error {
            return Done(error);
        }
        let Ok(Taken { memory, uses, .. }) = donated else { return Senseless };
        if !self.is_mutable(memory) {
            return Done("3:readonly".into());
        }
        let mut until = uses;
        until.push(self.arrays[to].ready);
        let free = self.events.after(until);
        let copied = self.copied(self.arrays[from].ready, &[memory, from_memory], &[free]);
        self.kept.extend([(memory, copied), (from_memory, copied)]);
        if !self.is(Wrong::CopyIntoLeavesItsDestination) {
            self.end(to);
        }
        self.arrays[from].uses.push(copied);
        let of = &self.arrays[to];
        let (shape, turned, space, content) = (of.shape, of.turned, of.space, self.arrays[from].content);
        let new = self.new_array(shape, turned, space, copied, content, Some(memory), Vec::new());
        self.buffers[usize::from(slot)] = Some(new);
        ok()
    }
}

fn error_text(code: u8, seed: u8) -> String {
    format!("{}:#{seed}#", CODES[usize::from(code)])
}
