//! A block: its threads, its shared memory and its barriers.
//!
//! A warp's threads run in turn until each has ended or waits; what they wait for within the warp is done (`warp`)
//! until nothing is left to do there; then the next warp runs. When all have stopped, the barriers to which everybody
//! has come let go. If none does, and a thread is left, it waits for ever: that is a trap.
//!
//! A barrier without a count is for all threads of the block. GPUs since Volta let those that have ended count as if
//! they had come; here that is a trap, because PTX does not promise it.

use crate::execute::{self, Pause};
use crate::instruction::{Barrier, Op, Reduction};
use crate::kernel::Run;
use crate::race::Watch;
use crate::spaces::UNWRITTEN;
use crate::thread::{State, Thread};
use crate::{Trap, warp};

/// Threads of a warp.
pub(crate) const WARP: usize = 32;
/// Barriers of a block.
const BARRIERS: usize = 16;

/// One of the barriers.
#[derive(Clone, Default)]
struct Meeting {
    /// Threads that wait.
    waiting: Vec<u32>,
    /// How many have come, waiting or not. The last thread of a warp that is not full counts for those that are not.
    came: u32,
    /// How many must come; 0: nobody has said.
    wanted: u32,
}

/// What threads see of their block.
pub(crate) struct Shared<'a> {
    pub(crate) run: &'a Run<'a>,
    /// `%ctaid`.
    pub(crate) index: [u32; 3],
    pub(crate) bytes: Vec<u8>,
    pub(crate) watch: Watch,
    /// Bytes of all threads' stacks.
    pub(crate) stack_bytes: usize,
}

/// See the module.
pub(crate) struct Block<'a> {
    shared: Shared<'a>,
    /// All; if none ever waits for another, one that is each in turn.
    threads: Vec<Thread>,
    count: u32,
    meetings: Vec<Meeting>,
}

impl<'a> Block<'a> {
    pub(crate) fn new(run: &'a Run<'a>) -> Self {
        let count: u32 = run.launch.block.iter().product();
        let threads = if run.kernel.linked.waits { count } else { 1 };
        Self {
            shared: Shared {
                run,
                index: [0; 3],
                bytes: Vec::new(),
                watch: Watch::new(run.shared_bytes, count),
                stack_bytes: 0,
            },
            threads: (0..threads).map(|_| Thread::new()).collect(),
            count,
            meetings: vec![Meeting::default(); BARRIERS],
        }
    }

    /// Runs the block of that index.
    pub(crate) fn run(&mut self, index: [u32; 3]) -> Result<(), Trap> {
        self.shared.index = index;
        self.shared.bytes.clear();
        self.shared.bytes.resize(self.shared.run.shared_bytes, UNWRITTEN);
        self.shared.watch.barrier();
        self.meetings.fill(Meeting::default());
        if self.shared.run.kernel.linked.waits { self.run_together() } else { self.run_alone() }
    }

    fn run_alone(&mut self) -> Result<(), Trap> {
        let thread = &mut self.threads[0];
        for number in 0..self.count {
            begin(thread, &mut self.shared, number)?;
            // There is nothing in its code that it could wait at.
            execute::run(thread, &mut self.shared)?;
            thread.end(&mut self.shared.stack_bytes);
        }
        Ok(())
    }

    fn run_together(&mut self) -> Result<(), Trap> {
        for number in 0..self.count {
            begin(&mut self.threads[number as usize], &mut self.shared, number)?;
        }
        loop {
            for first in (0..self.threads.len()).step_by(WARP) {
                self.run_warp(first)?;
            }
            if self.threads.iter().all(|thread| thread.state == State::Over) {
                return Ok(());
            }
            let mut went_on = false;
            for id in 0..BARRIERS {
                went_on |= self.let_go(id)?;
            }
            if !went_on {
                return Err(self.stuck());
            }
        }
    }

    /// Until each of its threads has ended, or waits for another warp.
    fn run_warp(&mut self, first: usize) -> Result<(), Trap> {
        let end = self.threads.len().min(first + WARP);
        loop {
            for number in first..end {
                while self.threads[number].state == State::Runs {
                    self.run_thread(number)?;
                }
            }
            if !warp::meet(&mut self.threads[first..end], &mut self.shared)? {
                return Ok(());
            }
        }
    }

    fn run_thread(&mut self, number: usize) -> Result<(), Trap> {
        let thread = &mut self.threads[number];
        match execute::run(thread, &mut self.shared)? {
            Pause::Over => thread.end(&mut self.shared.stack_bytes),
            Pause::InWarp => thread.state = State::InWarp,
            Pause::AtBarrier => self.arrive(number)?,
        }
        Ok(())
    }

    /// A thread has come to a barrier.
    fn arrive(&mut self, number: usize) -> Result<(), Trap> {
        let whole = self.count.next_multiple_of(WARP as u32);
        let thread = &self.threads[number];
        let Some(barrier) = barrier_of(&self.shared, thread) else { return Ok(()) };
        let trap = |why| Err(Trap::Barrier { place: thread.place(self.shared.run, self.shared.index), why });
        let id = thread.value(barrier.id);
        let wanted = barrier.count.map_or(u64::from(whole), |count| thread.value(count));
        let Some(meeting) = self.meetings.get_mut(id as usize) else {
            return trap(format!("there is no barrier {id}"));
        };
        if wanted == 0 || wanted % WARP as u64 != 0 || wanted > u64::from(whole) {
            return trap(format!("a barrier of {wanted} threads, in a block of {}", self.count));
        }
        let wanted = wanted as u32;
        if meeting.wanted != 0 && meeting.wanted != wanted {
            return trap(format!("a barrier of {wanted} threads, where others came to one of {}", meeting.wanted));
        }
        meeting.wanted = wanted;
        meeting.came += if number as u32 == self.count - 1 { whole - self.count + 1 } else { 1 };
        if barrier.arrives {
            self.threads[number].frame.at += 1;
        } else {
            meeting.waiting.push(number as u32);
            self.threads[number].state = State::AtBarrier(id as u32);
        }
        Ok(())
    }

    /// Whether everybody has come; then all go on.
    fn let_go(&mut self, id: usize) -> Result<bool, Trap> {
        if self.meetings[id].wanted == 0 || self.meetings[id].came < self.meetings[id].wanted {
            return Ok(false);
        }
        let meeting = std::mem::take(&mut self.meetings[id]);
        self.shared.watch.barrier();
        self.check_aligned(&meeting)?;
        let holds = |block: &Self, &number: &u32| {
            let thread = &block.threads[number as usize];
            barrier_of(&block.shared, thread).is_some_and(|barrier| thread.holds(barrier.predicate))
        };
        let count = meeting.waiting.iter().filter(|number| holds(self, number)).count() as u64;
        for &number in &meeting.waiting {
            let thread = &mut self.threads[number as usize];
            if let Some(barrier) = barrier_of(&self.shared, thread) {
                let result = match barrier.reduction {
                    Reduction::None => None,
                    Reduction::Count => Some(count),
                    Reduction::All => Some(u64::from(count == meeting.waiting.len() as u64)),
                    Reduction::Any => Some(u64::from(count > 0)),
                };
                if let Some(result) = result {
                    thread.set(barrier.d, result);
                }
            }
            thread.frame.at += 1;
            thread.state = State::Runs;
        }
        Ok(true)
    }

    /// The threads of a warp come to an aligned barrier all, by the same instruction.
    fn check_aligned(&self, meeting: &Meeting) -> Result<(), Trap> {
        let mut here = vec![None; self.threads.len()];
        for &number in &meeting.waiting {
            let frame = self.threads[number as usize].frame;
            here[number as usize] = Some((frame.function, frame.at));
        }
        for &number in &meeting.waiting {
            let (number, thread) = (number as usize, &self.threads[number as usize]);
            let first = number / WARP * WARP;
            let warp = &here[first..here.len().min(first + WARP)];
            let is_aligned = barrier_of(&self.shared, thread).is_some_and(|barrier| barrier.aligned);
            if is_aligned && let Some(other) = warp.iter().position(|at| *at != here[number]) {
                let why = format!("its warp comes apart: {}", self.whereabouts(first + other));
                return Err(Trap::Barrier { place: thread.place(self.shared.run, self.shared.index), why });
            }
        }
        Ok(())
    }

    /// The trap of a block in which nobody can go on.
    fn stuck(&self) -> Trap {
        let place = |thread: &Thread| thread.place(self.shared.run, self.shared.index);
        if let Some(thread) = self.threads.iter().find(|thread| thread.state == State::InWarp) {
            let first = thread.number as usize / WARP * WARP;
            let lanes = warp::lanes_of(thread, &self.shared);
            let missing = (first..self.threads.len().min(first + WARP))
                .find(|&other| lanes >> (other - first) & 1 == 1 && self.threads[other].state != State::InWarp);
            let why = missing.map_or_else(
                || "it waits for lanes that wait for others".to_owned(),
                |other| format!("it waits for a lane that does not come: {}", self.whereabouts(other)),
            );
            return Trap::Warp { place: place(thread), why };
        }
        let waits = |thread: &&Thread| matches!(thread.state, State::AtBarrier(_));
        // There is one: not all are over, and nobody runs.
        let Some(thread) = self.threads.iter().find(waits) else {
            return Trap::Stopped;
        };
        let State::AtBarrier(id) = thread.state else { return Trap::Trapped(place(thread)) };
        let Meeting { waiting, came, wanted } = &self.meetings[id as usize];
        let other = self.threads.iter().position(|other| other.state != thread.state);
        let other = other.map_or_else(String::new, |other| format!("; {}", self.whereabouts(other)));
        let (waiting, missing) = (waiting.len(), wanted.saturating_sub(*came));
        let why = format!("barrier {id} is waited at by {waiting} threads, and {missing} do not come{other}");
        Trap::Barrier { place: place(thread), why }
    }

    fn whereabouts(&self, number: usize) -> String {
        let thread = &self.threads[number];
        let [x, y, z] = thread.index(self.shared.run);
        let line = thread.place(self.shared.run, self.shared.index).line;
        let what = match thread.state {
            State::Over => "left",
            State::AtBarrier(_) => "is at a barrier",
            State::InWarp => "waits for its warp",
            State::Runs => "runs",
        };
        format!("thread ({x}, {y}, {z}) {what}, line {line}")
    }
}

fn begin(thread: &mut Thread, shared: &mut Shared<'_>, number: u32) -> Result<(), Trap> {
    let begun = thread.begin(shared.run, number, &mut shared.stack_bytes);
    begun.map_err(|_| Trap::Stack(thread.place(shared.run, shared.index)))
}

/// The barrier at which a thread is.
fn barrier_of<'r>(shared: &Shared<'r>, thread: &Thread) -> Option<&'r Barrier> {
    let program = &shared.run.kernel.program;
    match &program.functions[thread.frame.function as usize].code[thread.frame.at as usize].op {
        Op::Barrier(barrier) => Some(barrier),
        _ => None,
    }
}
