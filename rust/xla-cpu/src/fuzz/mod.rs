//! Fuzzing from a seed: thousands of damaged executables and objects. The loader must not panic, every error of the
//! parser must name a byte, and every refusal for content must have a reason. No damaged code is run. Objects that the
//! linker accepts are mapped, and unmapped again; executables are only checked.
//!
//! `PURLIN_FUZZ_INPUTS` is the number of inputs (20 000), `PURLIN_FUZZ_SEED` the seed (a fixed one). A failure prints
//! the input, which should then become a test of its own. The executables are those of `sample.rs`, and, with
//! `PURLIN_XLA_CORPUS`, those that stock JAX has written to that folder.

pub(crate) mod sample;

use std::collections::HashSet;
use std::env;

use purlin_base::StatusCode;
use purlin_base::panics::caught;

use crate::fault::Reasons;
use crate::ffi::{self, Lowered, parse_attributes};
use crate::link::{Linkable, ObjectFile};
use crate::{LoadOptions, load_program};

fn from_environment(name: &str, otherwise: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")),
        Err(_) => otherwise,
    }
}

/// A random generator: SplitMix64. Every seed gives another sequence.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `0..count`.
    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Boundary values for arithmetic.
const NUMBERS: [u64; 14] =
    [0, 1, 2, 7, 63, 64, 255, 4095, 1 << 20, u32::MAX as u64, i64::MAX as u64, i64::MIN as u64, u64::MAX - 7, u64::MAX];

/// A field of a message: its tag, and the range of its value.
struct Field {
    tag: u64,
    begin: usize,
    end: usize,
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte < 0x80 {
            return Some(value);
        }
    }
}

fn put_varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The fields of `bytes`; `None` if they are no message.
fn fields(bytes: &[u8]) -> Option<Vec<Field>> {
    let (mut at, mut fields) = (0, Vec::new());
    while at < bytes.len() {
        let tag = varint(bytes, &mut at)?;
        let mut begin = at;
        match tag & 7 {
            0 => drop(varint(bytes, &mut at)?),
            1 => at += 8,
            5 => at += 4,
            2 => {
                let size = usize::try_from(varint(bytes, &mut at)?).ok()?;
                begin = at;
                at = at.checked_add(size)?;
            }
            _ => return None,
        }
        if at > bytes.len() || tag >> 3 == 0 {
            return None;
        }
        fields.push(Field { tag, begin, end: at });
    }
    Some(fields)
}

fn put_field(tag: u64, value: &[u8], bytes: &mut Vec<u8>) {
    put_varint(tag, bytes);
    if tag & 7 == 2 {
        put_varint(value.len() as u64, bytes);
    }
    bytes.extend(value);
}

/// A message with one change somewhere in it. The change is mostly in a nested message, whose enclosing lengths are
/// kept consistent.
fn mutated(bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
    let Some(fields) = fields(bytes).filter(|fields| !fields.is_empty()) else {
        return mutated_bytes(bytes, chance);
    };
    let chosen = chance.below(fields.len());
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for (number, field) in fields.iter().enumerate() {
        let value = &bytes[field.begin..field.end];
        if number != chosen {
            put_field(field.tag, value, &mut out);
            continue;
        }
        match chance.below(12) {
            0 => {}
            1 => (0..2).for_each(|_| put_field(field.tag, value, &mut out)),
            2 => put_field(field.tag ^ (8 << chance.below(6)), value, &mut out),
            3 => {
                let other = &fields[chance.below(fields.len())];
                put_field(field.tag, &bytes[other.begin..other.end], &mut out);
            }
            _ if field.tag & 7 == 2 => put_field(field.tag, &mutated(value, chance), &mut out),
            _ => {
                put_varint(field.tag, &mut out);
                match field.tag & 7 {
                    0 if chance.one_in(2) => put_varint(NUMBERS[chance.below(NUMBERS.len())], &mut out),
                    0 => put_varint(chance.below(20) as u64, &mut out),
                    _ => out.extend(mutated_bytes(value, chance)),
                }
            }
        }
    }
    out
}

fn mutated_bytes(bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = chance.below(bytes.len() + 1);
    match chance.below(6) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = chance.next() as u8,
        2 => bytes.insert(at, chance.next() as u8),
        3 => bytes.truncate(at),
        4 if at + 8 <= bytes.len() => {
            bytes[at..at + 8].copy_from_slice(&NUMBERS[chance.below(NUMBERS.len())].to_le_bytes());
        }
        _ if at + 4 <= bytes.len() => {
            bytes[at..at + 4].copy_from_slice(&(NUMBERS[chance.below(NUMBERS.len())] as u32).to_le_bytes());
        }
        _ => {}
    }
    bytes
}

/// The results of all inputs.
#[derive(Default)]
struct Outcome {
    accepted: u64,
    refused: u64,
    /// The beginnings of error messages, without numbers.
    kinds: HashSet<String>,
}

impl Outcome {
    fn refused(&mut self, what: &str) {
        assert!(!what.is_empty());
        self.refused += 1;
        self.kinds.insert(what.chars().filter(|c| c.is_ascii_lowercase()).skip(20).take(40).collect());
    }
}

/// Calls `look` with each input, which is one of `samples` with up to four changes.
fn fuzz(what: &str, samples: &[Vec<u8>], mut look: impl FnMut(&[u8], &mut Outcome)) -> Outcome {
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

#[test]
fn no_executable_breaks_the_reader() {
    let samples = sample::executables();
    for sample in &samples {
        crate::check(sample).unwrap();
    }
    let outcome = fuzz("executables", &samples, |bytes, outcome| match crate::check(bytes) {
        Ok(()) => outcome.accepted += 1,
        Err(error) => {
            let code = error.code();
            assert!(matches!(code, StatusCode::DataLoss | StatusCode::Unimplemented), "{error}");
            outcome.refused(error.message());
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused * 4 > outcome.accepted && outcome.kinds.len() >= 12);
}

#[test]
fn no_custom_call_breaks_the_loader() {
    let mut sound = sample::result(sample::objects().remove(0));
    sound.thunks = sample::custom_call("target", 4, br#"{a = 1 : i32, b = {c = "x"}}"#);
    let options =
        LoadOptions { trust_code: true, handlers: ffi::tests::handlers_of_nothing(), ..LoadOptions::default() };
    let samples = [sample::plugin(&sound)];
    load_program(&samples[0], &options).unwrap();
    let outcome = fuzz("custom calls", &samples, |bytes, outcome| match load_program(bytes, &options) {
        Ok(_) => outcome.accepted += 1,
        Err(error) => {
            let code = error.code();
            assert!(matches!(code, StatusCode::DataLoss | StatusCode::Unimplemented), "{error}");
            outcome.refused(error.message());
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused > 0 && outcome.kinds.len() >= 12);
}

#[test]
fn no_attributes_break_their_reader() {
    let samples = [
        &br#"{uplo = 76 : ui8, a = {b = "x\00\FF", "c d" = {}}, n = -1, f = 1.000000e-01 : f32, t = true}"#[..],
        br#"{a = array<i32: 1, -2>, b = dense<[[1, 2], [3, 4]]> : tensor<2x2xui64>, c = dense<7> : tensor<9xi8>}"#,
        br#"{h = 0x7FC00000 : f32, d = dense<"0x00FF"> : tensor<2xi8>, e = dense<> : tensor<0xf64>, g = 1.5 : bf16}"#,
    ];
    let samples = samples.map(<[u8]>::to_vec);
    let outcome = fuzz("attributes", &samples, |text, outcome| match parse_attributes(text) {
        Ok(attributes) => {
            outcome.accepted += 1;
            drop(Lowered::new(&attributes));
        }
        Err(why) => {
            let why = why.to_string();
            let at = why.strip_prefix("byte ").and_then(|rest| rest.split(':').next()).and_then(|at| at.parse().ok());
            assert!(at.is_some_and(|at: usize| at <= text.len()), "{why}");
            outcome.refused(&format!("XLA:CPU executable, {why}"));
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused > outcome.accepted && outcome.kinds.len() >= 12);
}

#[test]
fn no_object_breaks_the_linker() {
    let outcome = fuzz("objects", &sample::objects(), |bytes, outcome| {
        let mut reasons = Reasons::default();
        let file = match ObjectFile::read("fuzzed.o", bytes, &mut reasons) {
            Ok(file) => file,
            Err(fault) => return outcome.refused(&format!("XLA:CPU executable, byte 0: {}", fault.what)),
        };
        let linkable = Linkable::new(vec![file], &mut reasons);
        match (reasons.into_result("fuzzed"), linkable) {
            (Err(error), _) => outcome.refused(error.message()),
            // Maps the object and unmaps it: writing and protecting pages must not panic for any object that was
            // accepted.
            (Ok(()), Some(linkable)) => {
                outcome.accepted += 1;
                drop(linkable.load(false));
            }
            (Ok(()), None) => panic!("nothing was said"),
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused > 0);
}
