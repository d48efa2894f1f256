//! Reports beside allocations: a thread that lists the holders of blocks against one that lets the last reference go.
//! The arena is the real one; `sync/pinned_arc/grave_model.rs` notices a holder that is listed although its memory has
//! gone.

#![allow(unsafe_code, reason = "the model allocates, and gives back")]

use std::ptr::NonNull;

use loom::sync::Arc;
use loom::thread;

use super::*;
use purlin_base::sync::explore;

struct Block {
    arena: Arc<Arena<Block>>,
    size_bytes: usize,
    /// There from before any other thread can drop the block.
    piece: Mutex<Option<Piece>>,
}

impl Drop for Block {
    fn drop(&mut self) {
        let piece = self.piece.lock().take();
        if let Some(piece) = piece {
            self.arena.give_back(piece, self.size_bytes);
        }
    }
}

struct Addresses {
    caching: bool,
}

struct Address;

impl Memory for Addresses {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties { caching: self.caching, ..MemoryProperties::default() }
    }

    fn map(&self, _size_bytes: usize, _alignment_bytes: usize) -> purlin_base::StatusOr<std::sync::Arc<dyn Extent>> {
        Ok(std::sync::Arc::new(Address))
    }
}

impl Extent for Address {
    fn address(&self) -> usize {
        1 << 30
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        None
    }
}

fn allocated(arena: &Arc<Arena<Block>>, size_bytes: usize) -> PinnedArc<Block> {
    let block = PinnedArc::new(Block { arena: arena.clone(), size_bytes, piece: Mutex::new(None) });
    // SAFETY: the block gives it back in its drop.
    let piece = unsafe { arena.allocate(size_bytes, 1, &block) }.unwrap();
    *block.piece.lock() = Some(piece);
    block
}

/// One thread releases a block of `size_bytes` while two others list the holders of memory; the last of them ends the
/// block.
fn report_against_the_last_reference(name: &str, size_bytes: usize, caching: bool) {
    explore(name, 2, move || {
        let arena = Arc::new(Arena::new(Box::new(Addresses { caching }), None));
        let block = allocated(&arena, size_bytes);
        let lister = |arena: Arc<Arena<Block>>| {
            move || {
                for holder in arena.holders() {
                    assert_eq!(holder.size_bytes, size_bytes);
                    // As a report does: the last reference is dropped elsewhere.
                    drop(PinnedArc::into_last(holder));
                }
            }
        };
        let reports = thread::spawn(lister(arena.clone()));
        let owner = thread::spawn(move || drop(block));
        lister(arena.clone())();
        reports.join().unwrap();
        owner.join().unwrap();
        assert!(arena.holders().is_empty());
        assert_eq!(arena.stats().bytes_in_use, 0);
    });
}

#[test]
fn a_small_block_is_listed_until_its_drop_has_given_it_back() {
    report_against_the_last_reference("report against the last reference: small", 64, true);
}

#[test]
fn a_large_block_is_listed_until_its_drop_has_given_it_back() {
    report_against_the_last_reference("report against the last reference: large", 1 << 20, true);
}

#[test]
fn a_block_of_the_users_allocator_is_listed_until_its_drop_has_given_it_back() {
    report_against_the_last_reference("report against the last reference: own extent", 64, false);
}
