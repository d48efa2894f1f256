//! RngGetAndUpdateState: the state of a random number generator, which each run advances.

#![allow(unsafe_code, reason = "operands are memory by address")]

use purlin_base::Error;
use purlin_base::sync::atomic::{AtomicU64, Ordering};
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::elements::write;

/// The initial state, as in XLA.
const FIRST: i128 = 0x7012395;
/// The size of the state.
const STATE_BYTES: usize = 16;

/// Writes the state, and adds `delta` to it for the next call. The state belongs to the loaded program: all its runs
/// share it, on any thread.
#[derive(Debug)]
pub(crate) struct RngState {
    delta: i64,
    /// The number of calls so far.
    uses: AtomicU64,
}

impl RngState {
    /// `size_bytes` is the size of the operand.
    pub(crate) fn new(delta: i64, size_bytes: usize) -> Result<Self, String> {
        if size_bytes != STATE_BYTES {
            return Err(format!("a random state of {size_bytes} bytes"));
        }
        Ok(Self { delta, uses: AtomicU64::new(0) })
    }
}

impl LibraryCall for RngState {
    fn name(&self) -> &str {
        "rng-get-and-update-state"
    }

    fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        // Relaxed: the count publishes no other memory.
        let before = i128::from(self.uses.fetch_add(1, Ordering::Relaxed));
        let state = FIRST.wrapping_add(before.wrapping_mul(self.delta.into()));
        // SAFETY: the command writes its one operand, which has the size that new() has checked.
        unsafe { write::<u8>(&operands[0]) }.copy_from_slice(&state.to_le_bytes());
        Ok(())
    }
}
