//! Registers unwind tables, so that a backtrace from inside a kernel is complete.
//!
//! The unwinders of GCC and of LLVM accept a table of frames by `__register_frame`. From then on the unwinder reads the
//! table at every unwinding in the process, until the table is deregistered. So only tables whose entries end exactly
//! where the section does are registered.

#![allow(unsafe_code, reason = "the unwinder is given the address of a table")]

use std::ffi::c_void;

unsafe extern "C" {
    fn __register_frame(table: *const c_void);
    fn __deregister_frame(table: *const c_void);
}

/// A table that is registered as long as this lives. Its memory must live longer.
#[derive(Debug)]
pub(crate) struct Registered {
    address: usize,
}

impl Registered {
    /// Registers the table at `address`, which was linked from `bytes`. `None`: the bytes are no table, or have no
    /// frames.
    pub(crate) fn new(address: usize, bytes: &[u8]) -> Option<Self> {
        if !is_table(bytes) {
            return None;
        }
        // SAFETY: the linker has written the entries there, followed by four zero bytes, for which `object.rs` reserves
        // space.
        unsafe { __register_frame(std::ptr::with_exposed_provenance(address)) };
        Some(Self { address })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: new() has registered the table, and its memory is still mapped: `Code` drops its tables before its
        // pages.
        unsafe { __deregister_frame(std::ptr::with_exposed_provenance(self.address)) };
    }
}

/// Whether `bytes` are a sequence of entries, each with its length, that ends exactly at the end of `bytes` and has at
/// least one frame.
fn is_table(bytes: &[u8]) -> bool {
    let (mut at, mut frames) = (0_usize, 0);
    while let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let [a, b, c, d, id @ ..] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length < 4 || length == u32::MAX as usize {
            return false;
        }
        // An entry of number 0 has what frames share, and is no frame itself.
        frames += usize::from(u32::from_le_bytes(id) != 0);
        at += 4 + length;
    }
    at == bytes.len() && frames > 0
}

#[cfg(test)]
mod tests {
    use super::is_table;

    #[test]
    fn only_whole_tables_with_frames_are_registered() {
        let entry = |length: u32, id: u32| [length.to_le_bytes(), id.to_le_bytes()].concat();
        assert!(is_table(&[entry(4, 0), entry(4, 12)].concat()));
        assert!(!is_table(&entry(4, 0)), "no frame");
        assert!(!is_table(&[]), "nothing");
        assert!(!is_table(&[entry(4, 0), entry(8, 12)].concat()), "an entry ends behind the section");
        assert!(!is_table(&[entry(4, 0), entry(0, 12)].concat()), "a length of zero ends a table");
        assert!(!is_table(&entry(4, 0)[..7]), "less than an entry");
    }
}
