//! One thread, instruction by instruction, until it ends or waits for others.

mod memory;

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::block::Shared;
use crate::instruction::{Carry, CarryKind, Combine, Op, Set, Special};
use crate::number::integer;
use crate::program::Function;
use crate::race::Other;
use crate::spaces;
use crate::thread::{Thread, TooDeep, thread_index};
use crate::types::{mask, signed};
use crate::{Fault, Trap};

/// Why a thread does not go on by itself. Its frame's `at` is the instruction at which it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    Over,
    AtBarrier,
    InWarp,
}

/// What is wrong, without the place.
enum Problem {
    Memory { address: u64, size_bytes: usize, writes: bool, fault: Fault },
    Misaligned { address: u64, alignment: usize },
    Race { address: u64, size_bytes: usize, writes: bool, other: Other },
    Trapped,
    Stack,
    Jump { index: u64, entries: usize },
}

impl From<TooDeep> for Problem {
    fn from(_: TooDeep) -> Self {
        Self::Stack
    }
}

/// Runs the thread from where it is.
pub(crate) fn run(thread: &mut Thread, shared: &mut Shared<'_>) -> Result<Pause, Trap> {
    loop {
        // Relaxed: the flag says no more than that.
        if shared.run.stop.load(Ordering::Relaxed) {
            return Err(Trap::Stopped);
        }
        let program = &shared.run.kernel.program;
        let function = &program.functions[thread.frame.function as usize];
        match stretch(thread, function, shared) {
            Ok(None) => {}
            Ok(Some(pause)) => return Ok(pause),
            Err(problem) => return Err(trap(problem, thread, shared)),
        }
    }
}

fn trap(problem: Problem, thread: &Thread, shared: &Shared<'_>) -> Trap {
    let place = thread.place(shared.run, shared.index);
    match problem {
        Problem::Memory { address, size_bytes, writes, fault } => {
            Trap::Memory { place, address, size_bytes, writes, fault }
        }
        Problem::Misaligned { address, alignment } => Trap::Misaligned { place, address, alignment },
        Problem::Race { address, size_bytes, writes, other } => {
            let [x, y, z] = thread_index(shared.run, other.thread);
            let verb = if other.wrote { "wrote" } else { "read" };
            let other = format!("thread ({x}, {y}, {z}) {verb} it in line {}", other.line);
            Trap::Race { place, address, size_bytes, writes, other }
        }
        Problem::Trapped => Trap::Trapped(place),
        Problem::Stack => Trap::Stack(place),
        Problem::Jump { index, entries } => Trap::Jump { place, index, entries },
    }
}

/// Runs to the next jump backwards, call, return or pause; `None`: it goes on from where the frame is.
fn stretch(thread: &mut Thread, function: &Function, shared: &mut Shared<'_>) -> Result<Option<Pause>, Problem> {
    loop {
        let at = thread.frame.at;
        // Each function ends with a return.
        let instruction = &function.code[at as usize];
        thread.clock += 1;
        if let Some(guard) = instruction.guard {
            let holds = thread.registers[thread.frame.registers + guard.register as usize] != 0;
            if holds != guard.when {
                thread.frame.at += 1;
                continue;
            }
        }
        match &instruction.op {
            Op::Nothing => {}
            Op::Move { d, a } => thread.set(*d, thread.value(*a)),
            Op::Unary { d, a, f } => thread.set(*d, f(thread.value(*a))),
            Op::Binary { d, a, b, f } => thread.set(*d, f(thread.value(*a), thread.value(*b))),
            Op::Ternary { d, a, b, c, f } => {
                thread.set(*d, f(thread.value(*a), thread.value(*b), thread.value(*c)));
            }
            Op::Set(set) => compare(thread, set),
            Op::Select { d, a, b, p } => thread.set(*d, thread.value(if thread.holds(*p) { *a } else { *b })),
            Op::Carry { d, a, b, c, carry } => {
                let values = [thread.value(*a), thread.value(*b), thread.value(*c)];
                let (value, carried) = with_carry(*carry, values, thread.carry);
                thread.set(*d, value);
                if carry.sets {
                    thread.carry = carried;
                }
            }
            Op::Insert { d, a, b, at, count, bits } => {
                let (at, count) = (thread.value(*at), thread.value(*count));
                thread.set(*d, integer::insert(thread.value(*a), thread.value(*b), at, count, *bits));
            }
            Op::Special { d, special } => thread.set(*d, special_register(thread, *special, shared)),
            Op::AddressOf { d, address, window } => {
                let address = memory::address(thread, *address, shared);
                thread.set(*d, spaces::to_generic(*window, address));
            }
            Op::Pack { d, parts, bits } => {
                let whole = parts.iter().rev().fold(0, |whole, part| whole << bits | thread.value(*part));
                thread.set(*d, whole);
            }
            Op::Unpack { parts, a, bits } => {
                let mut whole = thread.value(*a);
                for part in parts {
                    thread.set(*part, whole & mask(*bits));
                    whole >>= bits;
                }
            }
            Op::Load { access, into, sign_bits } => memory::load(thread, access, into, *sign_bits, shared)?,
            Op::Store { access, from } => memory::store(thread, access, from, shared)?,
            Op::Atomic { access, d, b, c, f } => {
                let (b, c) = (thread.value(*b), thread.value(*c));
                let before = memory::atomic(thread, access, &|before| f(before, b, c), shared)?;
                thread.set(*d, before);
            }
            Op::ToGeneric { d, a, space } => thread.set(*d, spaces::to_generic(*space, thread.value(*a))),
            Op::FromGeneric { d, a, space } => thread.set(*d, spaces::from_generic(*space, thread.value(*a))),
            Op::IsSpace { d, a, space } => {
                let (found, _) = spaces::resolve(thread.value(*a));
                thread.set(*d, u64::from(found == *space));
            }
            Op::Jump(target) => {
                thread.frame.at = *target;
                if *target <= at {
                    return Ok(None);
                }
                continue;
            }
            Op::JumpTable { index, table } => {
                let (index, table) = (thread.value(*index), &function.tables[*table as usize]);
                let entry = usize::try_from(index).ok().and_then(|index| table.get(index));
                thread.frame.at = *entry.ok_or(Problem::Jump { index, entries: table.len() })?;
                return Ok(None);
            }
            Op::Call(call) => {
                thread.call(&shared.run.kernel.program, call, &mut shared.stack_bytes)?;
                return Ok(None);
            }
            Op::Return => {
                let is_over = !thread.come_back(&shared.run.kernel.program, &mut shared.stack_bytes);
                return Ok(is_over.then_some(Pause::Over));
            }
            Op::Exit => return Ok(Some(Pause::Over)),
            Op::Trap => return Err(Problem::Trapped),
            Op::Barrier(_) => return Ok(Some(Pause::AtBarrier)),
            Op::Together(_) => return Ok(Some(Pause::InWarp)),
        }
        thread.frame.at += 1;
    }
}

fn compare(thread: &mut Thread, set: &Set) {
    let found = (set.f)(thread.value(set.a), thread.value(set.b));
    let (yes, no) = match set.combine {
        None => (found, !found),
        Some((combine, predicate)) => {
            let with = thread.holds(predicate);
            let combined = |found: bool| match combine {
                Combine::And => found & with,
                Combine::Or => found | with,
                Combine::Xor => found ^ with,
            };
            (combined(found), combined(!found))
        }
    };
    thread.set(set.d, if yes { set.yes } else { 0 });
    thread.set(set.q, u64::from(no));
}

/// The result, and the carry: of a difference, whether nothing was borrowed is not asked, but whether something was.
fn with_carry(carry: Carry, [a, b, c]: [u64; 3], carried: bool) -> (u64, bool) {
    let bits = carry.bits;
    let carried = u128::from(carry.takes && carried);
    if carry.kind == CarryKind::Sub {
        let (a, b) = (u128::from(a), u128::from(b) + carried);
        return (a.wrapping_sub(b) as u64 & mask(bits), a < b);
    }
    let sum = match carry.kind {
        CarryKind::Add | CarryKind::Sub => u128::from(a) + u128::from(b) + carried,
        CarryKind::MadLow => ((u128::from(a) * u128::from(b)) & u128::from(mask(bits))) + u128::from(c) + carried,
        CarryKind::MadHigh { signed: false } => ((u128::from(a) * u128::from(b)) >> bits) + u128::from(c) + carried,
        CarryKind::MadHigh { signed: true } => {
            let product = (i128::from(signed(a, bits)) * i128::from(signed(b, bits))) >> bits;
            u128::from(product as u64 & mask(bits)) + u128::from(c) + carried
        }
    };
    (sum as u64 & mask(bits), sum >> bits != 0)
}

fn special_register(thread: &Thread, special: Special, shared: &Shared<'_>) -> u64 {
    let run = shared.run;
    let lane = thread.number % 32;
    let below = mask(lane);
    u64::from(match special {
        Special::Thread(axis) => thread.index(run)[axis as usize],
        Special::Threads(axis) => run.launch.block[axis as usize],
        Special::Block(axis) => shared.index[axis as usize],
        Special::Blocks(axis) => run.launch.grid[axis as usize],
        Special::Lane => lane,
        Special::Warp => thread.number / 32,
        Special::Warps => run.launch.block.iter().product::<u32>().div_ceil(32),
        Special::DynamicShared => run.launch.dynamic_shared_bytes,
        Special::Zero => 0,
        Special::One => 1,
        Special::LanesEqual => return 1 << lane,
        Special::LanesBelow => return below,
        Special::LanesUpTo => return below | 1 << lane,
        Special::LanesFrom => return !below & mask(32),
        Special::LanesAbove => return !(below | 1 << lane) & mask(32),
        Special::Clock => return thread.clock,
        Special::Timer => return timer(),
        Special::StaticAndDynamicShared => return run.shared_bytes as u64,
    })
}

fn timer() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).map_or(u64::MAX, |now| now + 1)
}
