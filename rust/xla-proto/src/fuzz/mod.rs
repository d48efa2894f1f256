//! Fuzzing from a seed, aware of the structure of messages.
//!
//! `PURLIN_FUZZ_INPUTS` is the number of inputs (20 000), `PURLIN_FUZZ_SEED` the seed (a fixed one). A failure prints
//! the input, which should then become a test of its own.

mod mutate;

use std::collections::HashSet;
use std::env;

use purlin_base::panics::caught;

pub use self::mutate::Chance;
use self::mutate::{mutated, mutated_bytes};

/// The number in the environment's variable `name`, or another one.
fn from_environment(name: &str, otherwise: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")),
        Err(_) => otherwise,
    }
}

/// The results of all inputs.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many inputs were accepted.
    pub accepted: u64,
    /// How many were refused.
    pub refused: u64,
    /// The beginnings of error messages, without numbers.
    pub kinds: HashSet<String>,
}

impl Outcome {
    /// Counts an input that was refused with this message.
    pub fn refused(&mut self, what: &str) {
        assert!(!what.is_empty());
        self.refused += 1;
        self.kinds.insert(what.chars().filter(|c| c.is_ascii_lowercase()).skip(20).take(40).collect());
    }
}

/// Calls `look` with each input, which is one of `samples` with up to four changes.
///
/// # Panics
/// A call of `look` panics, or does not count its input: the message shows the input.
pub fn fuzz(what: &str, samples: &[Vec<u8>], mut look: impl FnMut(&[u8], &mut Outcome)) -> Outcome {
    let (count, seed) = (from_environment("PURLIN_FUZZ_INPUTS", 20_000), from_environment("PURLIN_FUZZ_SEED", 0x5eed));
    let (mut outcome, mut chance) = (Outcome::default(), Chance(seed));
    for number in 0..count {
        let mut input = samples[chance.below(samples.len())].clone();
        for _ in 0..chance.below(5) {
            input = if chance.one_in(8) { mutated_bytes(&input, &mut chance) } else { mutated(&input, &mut chance) };
        }
        let looked = caught(|| look(&input, &mut outcome));
        assert!(looked.is_ok(), "{what}, seed {seed}, number {number}: b\"{}\"", input.escape_ascii());
    }
    let Outcome { accepted, refused, kinds } = &outcome;
    println!("fuzz: {what}: {count} inputs, {accepted} accepted, {refused} refused for {} reasons", kinds.len());
    assert_eq!(accepted + refused, count);
    outcome
}
