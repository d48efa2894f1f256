//! Global memory, which belongs to the caller.

use std::fmt;

/// What kernels see at global addresses. Addresses at and above 2^60 are the interpreter's own windows onto shared,
/// local and parameter memory, and never asked for.
///
/// Calls come from the thread that runs the kernel, in the order in which the kernel's threads make them. Each is one
/// access, of 1 to 16 bytes, aligned to its size.
pub trait Memory {
    /// Reads `into.len()` bytes at `address`.
    ///
    /// # Errors
    /// What is wrong with the address. The kernel ends with [`Trap::Memory`](crate::Trap::Memory).
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault>;

    /// Writes `bytes` at `address`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// Has `f` change `len` bytes at `address`, once, with no other access between reading and writing them: `atom` and
    /// `red`.
    ///
    /// # Errors
    /// As [`read`](Self::read); `f` was not called.
    fn update(&self, address: u64, len: usize, f: &mut dyn FnMut(&mut [u8])) -> Result<(), Fault>;
}

/// What a [`Memory`] refuses, in words: a wild address, freed memory, an end out of bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}
