//! The memory of values during a run.

#![allow(unsafe_code, reason = "operands are memory by address")]

use purlin_program::OperandBytes;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// The operand of the command with that number.
    Operand(usize),
    /// That many bytes behind the beginning of the scratch operand.
    Scratch(usize),
    /// That many bytes behind the beginning of the constants.
    Constant(usize),
}

/// The alignment of scratch memory and of constants.
pub(super) const ALIGNMENT: usize = 64;

/// Constants, aligned to eight bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Constants(Vec<u64>);

impl Constants {
    /// Adds a constant.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Spot {
        let at = self.0.len() * 8;
        self.0.extend(bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        }));
        Spot::Constant(at)
    }
}

/// The memory of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory<'a> {
    operands: &'a [OperandBytes],
    constants: &'a Constants,
}

// SAFETY: it is addresses. Steps that access memory through it vouch for each access.
unsafe impl Sync for Memory<'_> {}

impl<'a> Memory<'a> {
    /// `operands` are those of the command. If it has scratch memory, that is the last one.
    pub(super) fn new(operands: &'a [OperandBytes], constants: &'a Constants) -> Self {
        Self { operands, constants }
    }

    /// The address of a place. No code writes through that of a constant.
    pub(super) fn address(&self, place: Spot) -> *mut u8 {
        match place {
            Spot::Operand(number) => self.operands[number].address,
            Spot::Scratch(offset) => {
                self.operands.last().expect("scratch memory is an operand").address.wrapping_add(offset)
            }
            Spot::Constant(offset) => self.constants.0.as_ptr().cast_mut().cast::<u8>().wrapping_add(offset),
        }
    }
}

/// An address that tasks share, each for elements of its own.
#[derive(Clone, Copy)]
pub(super) struct Shared(pub(super) *mut u8);

// SAFETY: it is only an address. Code that accesses memory through it vouches for each access.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        self.0.wrapping_add(offset)
    }
}
