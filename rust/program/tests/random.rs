//! Random programs, compared with a second interpreter of a few lines.

mod fixture;

use fixture::*;
use purlin_program::{
    Allocation, AllocationKind, Branch, Command, ExecuteOptions, Operand, Program, ProgramBuilder, Sequence, Slice,
};

/// A generator of numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }

    fn slice(&mut self, of: &[Allocation]) -> Slice {
        let allocation = self.next(of.len());
        let size = of[allocation].size_bytes;
        let offset_bytes = self.next(size);
        let size_bytes = self.next((size - offset_bytes).min(8)) + 1;
        Slice { allocation: allocation as u32, offset_bytes, size_bytes }
    }

    /// A slice that commands may write: not of the parameter that is not donated.
    fn writable(&mut self, of: &[Allocation]) -> Slice {
        let slice = self.slice(&of[1..]);
        Slice { allocation: slice.allocation + 1, ..slice }
    }

    fn sequence(&mut self, of: &[Allocation], depth: usize) -> Sequence {
        (0..self.next(5) + 1).map(|_| self.command(of, depth)).collect::<Vec<_>>().into()
    }

    fn command(&mut self, of: &[Allocation], depth: usize) -> Command {
        let kinds = if depth < 4 { 8 } else { 4 };
        let (from, to) = (self.slice(of), self.writable(of));
        // Both slices have the same size, because a write covers its whole operand.
        let least = from.size_bytes.min(to.size_bytes);
        let equal = (Slice { size_bytes: least, ..from }, Slice { size_bytes: least, ..to });
        match self.next(kinds) {
            0 => Command::Fill { pattern: vec![self.next(256) as u8], to },
            1 => Command::Copy { from: equal.0, to: equal.1 },
            2 => add_to(equal.0, equal.1, self.next(256) as u8),
            3 => kernel(add(self.next(256) as u8), vec![Operand::read_write(to)]),
            4 => Command::Call(self.sequence(of, depth + 1)),
            5 => Command::Repeat { trip_count: self.next(4) as u64, body: self.sequence(of, depth + 1) },
            6 => {
                let predicate = Slice { size_bytes: 1, ..self.writable(of) };
                // The condition halves the predicate, so that the loop ends, unless the body writes the predicate.
                let condition = kernel(halve(), vec![Operand::read_write(predicate)]);
                let body = Sequence::new(vec![add_to(equal.0, equal.1, 3)]);
                Command::While { condition: Sequence::new(vec![condition]), predicate, body }
            }
            _ => {
                let predicate = Branch::Predicate(Slice { size_bytes: 1, ..from });
                let branches = vec![self.sequence(of, depth + 1), self.sequence(of, depth + 1)];
                Command::Conditional { branch: predicate, branches }
            }
        }
    }
}

fn halve() -> purlin_program::Kernel {
    purlin_program::Kernel::from_fn("halve", |call| {
        call.writes[0].iter_mut().for_each(|byte| *byte /= 2);
        Ok(())
    })
}

/// The reference interpreter. `left` bounds loops, whose bodies may write their own predicates.
fn interpret(memory: &mut [Vec<u8>], sequence: &Sequence, left: &mut usize) {
    let at = |slice: &Slice| slice.offset_bytes..slice.offset_bytes + slice.size_bytes;
    for command in sequence.commands() {
        *left = left.saturating_sub(1);
        match command {
            Command::Fill { pattern, to } => memory[to.allocation as usize][at(to)].fill(pattern[0]),
            Command::Copy { from, to } => {
                let bytes = memory[from.allocation as usize][at(from)].to_vec();
                memory[to.allocation as usize][at(to)].copy_from_slice(&bytes);
            }
            Command::Kernel { kernel, operands, .. } => {
                let to = operands.last().unwrap().slice;
                let mut bytes = memory[to.allocation as usize][at(&to)].to_vec();
                let from = operands[0].slice;
                let read = memory[from.allocation as usize][at(&from)].to_vec();
                match (kernel.name(), operands.len()) {
                    ("halve", _) => bytes.iter_mut().for_each(|byte| *byte /= 2),
                    (by, 2) => bytes.iter_mut().zip(read).for_each(|(to, from)| *to = from.wrapping_add(number(by))),
                    (by, _) => bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(number(by))),
                }
                memory[to.allocation as usize][at(&to)].copy_from_slice(&bytes);
            }
            Command::Call(body) => interpret(memory, body, left),
            Command::Repeat { trip_count, body } => (0..*trip_count).for_each(|_| interpret(memory, body, left)),
            Command::While { condition, predicate, body } => loop {
                interpret(memory, condition, left);
                if memory[predicate.allocation as usize][predicate.offset_bytes] == 0 || *left == 0 {
                    break;
                }
                interpret(memory, body, left);
            },
            Command::Conditional { branch, branches } => {
                let slice = branch.slice();
                let is_true = memory[slice.allocation as usize][slice.offset_bytes] != 0;
                interpret(memory, &branches[usize::from(!is_true)], left);
            }
            other => unreachable!("{other} is not generated"),
        }
    }
}

fn number(name: &str) -> u8 {
    name.strip_prefix("add ").and_then(|by| by.parse().ok()).expect("kernels of add() have such names")
}

/// A program of two parameters, one of which is donated, a result and two temporaries.
fn program(random: &mut Random, parallel_from_bytes: usize) -> Option<Program> {
    let mut builder = ProgramBuilder::new("random");
    let sizes: [usize; 5] = std::array::from_fn(|_| random.next(40) + 1);
    builder.parameter(bytes(sizes[0]));
    builder.donated_parameter(bytes(sizes[1]));
    let result = builder.result(bytes(sizes[2]));
    let temporaries = [builder.temporary(sizes[3]), builder.temporary(sizes[4])];
    // Most programs begin by writing all allocations, because few would be valid otherwise.
    if random.next(8) > 0 {
        for to in [result, temporaries[0], temporaries[1]] {
            builder.push(Command::Fill { pattern: vec![random.next(256) as u8], to });
        }
    }
    let allocations: Vec<Allocation> =
        sizes.iter().map(|&size_bytes| Allocation { size_bytes, kind: AllocationKind::Temporary }).collect();
    for _ in 0..random.next(8) + 1 {
        builder.push(random.command(&allocations, 1));
    }
    builder.parallel_from_bytes(parallel_from_bytes);
    builder.build().ok()
}

/// The number of programs that are tried, unless `PURLIN_PROGRAM_TRIALS` gives another.
const TRIALS: u64 = 20_000;

#[test]
fn random_programs_do_as_the_interpreter_says() {
    check(usize::MAX);
}

/// All commands that are independent run side by side.
#[test]
fn random_programs_do_the_same_in_parallel() {
    check(0);
}

fn check(parallel_from_bytes: usize) {
    let client = host();
    let trials = std::env::var("PURLIN_PROGRAM_TRIALS").map_or(TRIALS, |trials| trials.parse().expect("a number"));
    let (mut valid, mut ran) = (0, 0);
    for seed in 0..trials {
        let mut random = Random(seed);
        let Some(program) = program(&mut random, parallel_from_bytes) else { continue };
        valid += 1;
        let allocations = program.allocations();
        let mut memory: Vec<Vec<u8>> = allocations
            .iter()
            .map(|allocation| (0..allocation.size_bytes).map(|_| random.next(256) as u8).collect())
            .collect();
        let arguments = [buffer(&client, &memory[0]), buffer(&client, &memory[1])];
        let before = memory[1].clone();
        let mut left = 10_000;
        interpret(&mut memory, program.sequence(), &mut left);
        if left == 0 {
            continue;
        }
        ran += 1;
        let kept: &[usize] = if random.next(2) == 0 { &[] } else { &[1] };
        let options = ExecuteOptions {
            non_donatable_input_indices: kept,
            caller_waits: random.next(2) == 0,
            ..Default::default()
        };
        let execution = load(&client, program).execute(&arguments, &options).unwrap();
        execution.done.wait().unwrap();
        let outputs: Vec<Vec<u8>> = execution.outputs.iter().map(|output| output.to_vec().unwrap()).collect();
        assert_eq!(outputs, memory[1..3], "seed {seed}");
        assert_eq!(arguments[0].to_vec::<u8>().unwrap(), memory[0], "seed {seed}: it is not written");
        if !kept.is_empty() {
            assert_eq!(arguments[1].to_vec::<u8>().unwrap(), before, "seed {seed}: it was copied");
        }
    }
    println!("{valid} of {trials} were valid, {ran} ran");
    assert!(valid > trials / 20 && ran > valid / 2, "{valid} of {trials} were valid, {ran} ran");
}
