//! Damaged files and structs by the thousand, from a seed: nothing panics, every refusal names a byte of the file, and
//! what is accepted lies inside it and makes the journey back.
//!
//! `PURLIN_FUZZ_INPUTS` is the number for each format (20 000), `PURLIN_FUZZ_SEED` where to begin (a fixed one). A
//! failure shows the input, which then belongs into the format's own tests.

mod dlpack;
mod npy;
mod safetensors;

use std::collections::HashSet;
use std::env;

use purlin_base::panics::caught;

use crate::fault::Fault;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")),
        Err(_) => otherwise,
    }
}

/// SplitMix64: every seed gives another sequence.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..count`.
    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Numbers at which arithmetic breaks.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "7",
    "64",
    "255",
    "4294967295",
    "4294967296",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e3",
];

/// Changes `bytes` in one place. `words` are what the format is made of.
fn mutate(bytes: &mut Vec<u8>, words: &[&str], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    let end = (at + 1 + chance.below(8)).min(bytes.len());
    match chance.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = chance.next() as u8,
        2 => bytes.insert(at, *chance.of(b"\0 \n'\"{}[](),:\\\xff0-")),
        3 if at < end => drop(bytes.drain(at..end)),
        4 => bytes.truncate(at),
        5 if at < end => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        6 => replace_number(bytes, at, chance.of::<&str>(&NUMBERS)),
        7 => drop(bytes.splice(at..at, chance.of(words).bytes())),
        8 => {
            // A word for another.
            let (old, new) = (*chance.of(words), *chance.of(words));
            let found = bytes.windows(old.len().max(1)).position(|window| window == old.as_bytes());
            if let Some(found) = found {
                bytes.splice(found..found + old.len(), new.bytes());
            }
        }
        _ => {}
    }
}

/// The first digits behind `at` become `number`.
fn replace_number(bytes: &mut Vec<u8>, at: usize, number: &str) {
    let Some(begin) = (at..bytes.len()).find(|&place| bytes[place].is_ascii_digit()) else { return };
    let end = (begin..bytes.len()).find(|&place| !bytes[place].is_ascii_digit()).unwrap_or(bytes.len());
    bytes.splice(begin..end, number.bytes());
}

/// The results of all inputs.
#[derive(Default)]
struct Outcome {
    accepted: u64,
    /// The beginnings of refusals, without numbers and what stood in the file.
    kinds: HashSet<String>,
    refused: u64,
}

impl Outcome {
    fn refused(&mut self, fault: &Fault, length: usize) {
        assert!(fault.offset <= length, "a byte of the file: {fault:?}");
        assert!(!fault.what.is_empty());
        self.kind(&fault.what);
    }

    fn kind(&mut self, what: &str) {
        self.refused += 1;
        let unquoted: String = what.split('"').step_by(2).collect();
        self.kinds.insert(unquoted.chars().filter(|c| c.is_ascii_lowercase()).take(24).collect());
    }
}

/// Shows `input` to `look`, for every input that `make` makes; at the end, that neither answer was rare.
fn fuzz<T: std::fmt::Debug>(
    format: &str,
    make: impl Fn(&mut Chance) -> T,
    mut look: impl FnMut(&T, &mut Chance, &mut Outcome),
) {
    let (count, seed) = (from_environment("PURLIN_FUZZ_INPUTS", 20_000), from_environment("PURLIN_FUZZ_SEED", 0x5eed));
    let (mut outcome, mut chance) = (Outcome::default(), Chance(seed));
    for number in 0..count {
        let input = make(&mut chance);
        let looked = caught(|| look(&input, &mut chance, &mut outcome));
        assert!(looked.is_ok(), "{format}, seed {seed}, number {number}: {input:?}");
    }
    let (accepted, refused, kinds) = (outcome.accepted, outcome.refused, outcome.kinds.len());
    println!("fuzz: {format}: {count} inputs, {accepted} accepted, {refused} refused for {kinds} reasons");
    assert_eq!(accepted + refused, count);
    assert!(accepted * 50 > count && refused * 4 > count, "mutations that are all refused, or none, find nothing");
    assert!(kinds >= 12, "{:?}", outcome.kinds);
}

/// Bytes as text, for failures.
struct Bytes(Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}
