//! What conformance cannot see.

use super::*;

#[test]
fn a_buffer_is_small() {
    // Bookkeeping of a live buffer: this, the block, and 8 bytes in the arena.
    assert!(size_of::<Array>() <= 224, "{}", size_of::<Array>());
    assert!(size_of::<crate::memory::MemoryBlock>() <= 136, "{}", size_of::<crate::memory::MemoryBlock>());
}
