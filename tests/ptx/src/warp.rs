//! What the threads of a warp do together: shuffles, votes, matches and reductions.
//!
//! A thread that comes to such an instruction waits. Once all lanes of its mask that have not ended wait at the same
//! operation with the same mask, it is done for all of them. Lanes that a shuffle reads although they are not there
//! give the pattern of what no one has written: GPUs give anything.

use crate::Trap;
use crate::block::{Shared, WARP};
use crate::instruction::{Op, Reduce, Shuffle, Together, WarpOp};
use crate::spaces::UNWRITTEN_WORD;
use crate::thread::{State, Thread};
use crate::types::{mask, signed};

/// Does what can be done, for the threads of one warp; whether anything was.
pub(crate) fn meet(threads: &mut [Thread], shared: &mut Shared<'_>) -> Result<bool, Trap> {
    let mut went_on = false;
    for lane in 0..threads.len() {
        if threads[lane].state != State::InWarp {
            continue;
        }
        let Some(together) = together_of(shared, &threads[lane]) else { continue };
        let Some(lanes) = together.lanes else { continue };
        let lanes = threads[lane].value(lanes) as u32;
        if lanes >> lane & 1 == 0 {
            let why = format!("lane {lane} is not in its own mask {lanes:#010x}");
            return Err(Trap::Warp { place: threads[lane].place(shared.run, shared.index), why });
        }
        let is_wanted = |other: usize| lanes >> other & 1 == 1 && threads[other].state != State::Over;
        let group: Vec<usize> = (0..threads.len()).filter(|&other| is_wanted(other)).collect();
        let is_here = |&other: &usize| {
            let thread = &threads[other];
            thread.state == State::InWarp
                && together_of(shared, thread).is_some_and(|theirs| {
                    theirs.what == together.what && theirs.lanes.map(|lanes| thread.value(lanes) as u32) == Some(lanes)
                })
        };
        if group.iter().all(is_here) {
            perform(threads, shared, together.what, &group);
            went_on = true;
        }
    }
    if went_on {
        return Ok(true);
    }
    // Nobody can go on otherwise: those at the same instruction are the active ones.
    let asks = |thread: &Thread| {
        let waits = thread.state == State::InWarp;
        waits && together_of(shared, thread).is_some_and(|together| together.what == WarpOp::ActiveMask)
    };
    let Some(first) = (0..threads.len()).find(|&lane| asks(&threads[lane])) else { return Ok(false) };
    let at = |thread: &Thread| (thread.frame.function, thread.frame.at);
    let here = at(&threads[first]);
    let group: Vec<usize> =
        (first..threads.len()).filter(|&lane| asks(&threads[lane]) && at(&threads[lane]) == here).collect();
    perform(threads, shared, WarpOp::ActiveMask, &group);
    Ok(true)
}

/// The mask of a thread that waits.
pub(crate) fn lanes_of(thread: &Thread, shared: &Shared<'_>) -> u32 {
    let lanes = together_of(shared, thread).and_then(|together| together.lanes);
    lanes.map_or(0, |lanes| thread.value(lanes) as u32)
}

fn together_of<'r>(shared: &Shared<'r>, thread: &Thread) -> Option<&'r Together> {
    let program = &shared.run.kernel.program;
    match &program.functions[thread.frame.function as usize].code[thread.frame.at as usize].op {
        Op::Together(together) => Some(together),
        _ => None,
    }
}

/// Does it for the lanes of the group, which go on.
fn perform(threads: &mut [Thread], shared: &mut Shared<'_>, what: WarpOp, group: &[usize]) {
    if what != WarpOp::ActiveMask {
        shared.watch.warp(threads[0].number);
    }
    let mut values = [None; WARP];
    for &lane in group {
        values[lane] = together_of(shared, &threads[lane]).map(|together| {
            let thread = &threads[lane];
            [thread.value(together.a), thread.value(together.b), thread.value(together.c)]
        });
    }
    for &lane in group {
        let Some(together) = together_of(shared, &threads[lane]) else { continue };
        let (d, p) = result(what, lane, &values);
        let thread = &mut threads[lane];
        if let Some(d) = d {
            thread.set(together.d, d);
        }
        thread.set(together.p, u64::from(p));
        thread.frame.at += 1;
        thread.state = State::Runs;
    }
}

/// What each lane that is there has brought.
type Values = [Option<[u64; 3]>; WARP];

/// The two results of a lane.
fn result(what: WarpOp, lane: usize, values: &Values) -> (Option<u64>, bool) {
    let there = || values.iter().enumerate().filter_map(|(lane, value)| Some((lane, (*value)?)));
    let [mine, b, c] = values[lane].unwrap_or_default();
    let votes = |wanted: bool| there().all(|(_, [a, negated, _])| ((a ^ negated) != 0) == wanted);
    let lanes = |holds: &dyn Fn([u64; 3]) -> bool| {
        there().filter(|(_, value)| holds(*value)).fold(0, |lanes, (lane, _)| lanes | 1 << lane)
    };
    match what {
        WarpOp::Meet => (None, false),
        WarpOp::ActiveMask => (Some(lanes(&|_| true)), false),
        WarpOp::Shuffle(how) => {
            let (from, within) = source_lane(how, lane, b, c);
            let value = if within { values[from].map(|[a, ..]| a) } else { Some(mine) };
            (Some(value.unwrap_or(UNWRITTEN_WORD & mask(32))), within)
        }
        WarpOp::VoteAll => (Some(u64::from(votes(true))), false),
        WarpOp::VoteAny => (Some(u64::from(!votes(false))), false),
        WarpOp::VoteUniform => (Some(u64::from(votes(true) || votes(false))), false),
        WarpOp::VoteBallot => (Some(lanes(&|[a, negated, _]| a ^ negated != 0)), false),
        WarpOp::MatchAny(bits) => (Some(lanes(&|[a, ..]| (a ^ mine) & mask(bits) == 0)), false),
        WarpOp::MatchAll(bits) => {
            let all = there().all(|(_, [a, ..])| (a ^ mine) & mask(bits) == 0);
            (Some(if all { lanes(&|_| true) } else { 0 }), all)
        }
        WarpOp::Reduce(reduce) => {
            let all = there().map(|(_, [a, ..])| a);
            (all.reduce(|a, b| reduced(reduce, a, b)), false)
        }
    }
}

/// From which lane, and whether that is one of the segment's.
fn source_lane(how: Shuffle, lane: usize, b: u64, c: u64) -> (usize, bool) {
    let (lane, by, segment, clamp) = (lane as i64, (b & 31) as i64, (c >> 8 & 31) as i64, (c & 31) as i64);
    let most = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    let (from, within) = match how {
        Shuffle::Up => (lane - by, lane - by >= most),
        Shuffle::Down => (lane + by, lane + by <= most),
        Shuffle::Butterfly => (lane ^ by, lane ^ by <= most),
        Shuffle::Index => (least | (by & !segment), (least | (by & !segment)) <= most),
    };
    (from.clamp(0, WARP as i64 - 1) as usize, within)
}

fn reduced(reduce: Reduce, a: u64, b: u64) -> u64 {
    let by_sign = |is_signed| if is_signed { signed(a, 32) < signed(b, 32) } else { a < b };
    match reduce {
        Reduce::Add => a.wrapping_add(b) & mask(32),
        Reduce::Min { signed } => {
            if by_sign(signed) {
                a
            } else {
                b
            }
        }
        Reduce::Max { signed } => {
            if by_sign(signed) {
                b
            } else {
                a
            }
        }
        Reduce::And => a & b,
        Reduce::Or => a | b,
        Reduce::Xor => a ^ b,
    }
}
