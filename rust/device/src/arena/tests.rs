//! The arena over a memory that keeps account of every byte.

#![allow(unsafe_code, reason = "the caller of allocate promises to give the extent back")]

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;

use super::*;
use purlin_base::status::StatusCode;
use purlin_base::sync::atomic::{AtomicUsize, Ordering};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// What a [`Counting`] memory has seen.
#[derive(Default)]
struct Account {
    /// Live extents: their size by address.
    extents: Mutex<BTreeMap<usize, usize>>,
    next_address: AtomicUsize,
    /// Ranges that are handed out, by address.
    blocks: Mutex<BTreeMap<usize, usize>>,
    discarded_bytes: AtomicUsize,
    /// What the system lends at most.
    capacity_bytes: AtomicUsize,
}

struct Counting {
    account: Arc<Account>,
    caching: bool,
}

struct CountingExtent {
    account: Arc<Account>,
    address: usize,
}

impl Memory for Counting {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties { granule_bytes: MIB, caching: self.caching, ..MemoryProperties::default() }
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> purlin_base::StatusOr<Arc<dyn Extent>> {
        let mut extents = self.account.extents.lock();
        let capacity_bytes = self.account.capacity_bytes.load(Ordering::Relaxed);
        if extents.values().sum::<usize>().checked_add(size_bytes).is_none_or(|sum| sum > capacity_bytes) {
            return Err(Error::resource_exhausted("the test's memory is used up"));
        }
        let address = self.account.next_address.load(Ordering::Relaxed).next_multiple_of(alignment_bytes) + 64;
        let address = address.next_multiple_of(alignment_bytes);
        self.account.next_address.store(address + size_bytes, Ordering::Relaxed);
        extents.insert(address, size_bytes);
        Ok(Arc::new(CountingExtent { account: Arc::clone(&self.account), address }))
    }
}

impl Extent for CountingExtent {
    fn address(&self) -> usize {
        self.address
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        None
    }

    fn handed_out(&self, offset_bytes: usize, size_bytes: usize) {
        // What is rounded up belongs to the block.
        let (start, size_bytes) = (self.address + offset_bytes, size_bytes.max(1).next_multiple_of(64));
        assert!(start + size_bytes <= self.address + self.account.extents.lock()[&self.address], "within the extent");
        let mut blocks = self.account.blocks.lock();
        let before = blocks.range(..start + size_bytes).next_back();
        assert!(before.is_none_or(|(&other, &bytes)| other + bytes <= start), "blocks do not overlap");
        blocks.insert(start, size_bytes);
    }

    fn given_back(&self, offset_bytes: usize, size_bytes: usize) {
        let held = self.account.blocks.lock().remove(&(self.address + offset_bytes));
        assert_eq!(held, Some(size_bytes.max(1).next_multiple_of(64)));
    }

    fn discard(&self, offset_bytes: usize, size_bytes: usize) {
        let (start, end) = (self.address + offset_bytes, self.address + offset_bytes + size_bytes);
        let blocks = self.account.blocks.lock();
        assert!(blocks.range(start..end).next().is_none(), "nobody uses what is discarded");
        self.account.discarded_bytes.fetch_add(size_bytes, Ordering::Relaxed);
    }
}

impl Drop for CountingExtent {
    fn drop(&mut self) {
        assert!(self.account.extents.lock().remove(&self.address).is_some(), "an extent goes once");
    }
}

/// The holder of a block; no test here asks for it.
struct Holder;

fn arena(limit_bytes: Option<usize>) -> (Arc<Account>, Arena<Holder>) {
    let account = Arc::new(Account::default());
    account.capacity_bytes.store(1 << 30, Ordering::Relaxed);
    let memory = Counting { account: Arc::clone(&account), caching: true };
    (account, Arena::new(Box::new(memory), limit_bytes))
}

fn take(arena: &Arena<Holder>, size_bytes: usize) -> Piece {
    allocate(arena, size_bytes, 1).unwrap()
}

fn allocate(arena: &Arena<Holder>, size_bytes: usize, alignment_bytes: usize) -> Result<Piece, Shortage> {
    // SAFETY: no code asks for the holders of these.
    unsafe { arena.allocate(size_bytes, alignment_bytes, &PinnedArc::new(Holder)) }
}

impl Account {
    fn mapped_bytes(&self) -> usize {
        self.extents.lock().values().sum()
    }

    /// The longest range of an extent that no block touches, and the bytes of extents that have a block.
    fn largest_gap(&self) -> (usize, usize) {
        let (extents, blocks) = (self.extents.lock(), self.blocks.lock());
        let (mut largest, mut used_extents) = (0, 0);
        for (&start, &size_bytes) in extents.iter() {
            let mut at = start;
            for (&block, &bytes) in blocks.range(start..start + size_bytes) {
                largest = largest.max(block - at);
                at = block + bytes;
            }
            largest = largest.max(start + size_bytes - at);
            used_extents += if at == start { 0 } else { size_bytes };
        }
        (largest, used_extents)
    }
}

/// A small generator of numbers, the same at every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn freed_memory_is_warm_for_the_next_block() {
    for size_bytes in [1, 64, 4 * KIB, 32 * KIB, 33 * KIB, 5 * MIB, 80 * MIB] {
        let (_account, arena) = arena(None);
        let first = take(&arena, size_bytes);
        let (address, extent) = (first.offset_bytes, first.memory().address());
        arena.give_back(first, size_bytes);
        let again = take(&arena, size_bytes);
        assert_eq!((again.offset_bytes, again.memory().address()), (address, extent), "{size_bytes} bytes");
        arena.give_back(again, size_bytes);
    }
}

#[test]
fn a_block_longer_than_any_extent_gets_one_of_its_size() {
    let (account, arena) = arena(None);
    let block = take(&arena, 100 * MIB);
    assert_eq!(account.mapped_bytes(), 100 * MIB);
    arena.give_back(block, 100 * MIB);
}

#[test]
fn extents_grow_up_to_64_mebibytes() {
    let (account, arena) = arena(None);
    let blocks: Vec<_> = (0..200).map(|_| take(&arena, MIB)).collect();
    let sizes: Vec<usize> = account.extents.lock().values().map(|bytes| bytes / MIB).collect();
    assert_eq!(sizes, [2, 4, 8, 16, 32, 64, 64, 64]);
    blocks.into_iter().for_each(|block| _ = arena.give_back(block, MIB));
}

#[test]
fn alignment_is_kept_and_wastes_no_hole() {
    let (_account, arena) = arena(None);
    let mut blocks = Vec::new();
    for alignment_bytes in [1, 64, 128, 4096, 65536, MIB, 4 * MIB] {
        for size_bytes in [1, 100, 40_000] {
            let block = allocate(&arena, size_bytes, alignment_bytes).unwrap();
            assert_eq!((block.memory().address() + block.offset_bytes) % alignment_bytes.max(64), 0);
            blocks.push((block, size_bytes));
        }
    }
    blocks.into_iter().for_each(|(block, size_bytes)| _ = arena.give_back(block, size_bytes));
    arena.trim(0);
    assert_eq!(arena.stats().pool_bytes, 0);
}

#[test]
fn a_limit_is_one_extent_and_can_be_used_to_the_last_byte() {
    let (account, arena) = arena(Some(MIB));
    let blocks: Vec<_> = (0..16).map(|_| take(&arena, 64 * KIB)).collect();
    assert_eq!(account.mapped_bytes(), MIB);
    assert_eq!(arena.stats().largest_free_block_bytes, 0);
    assert!(matches!(allocate(&arena, 1, 1), Err(Shortage::Limit)));
    blocks.into_iter().for_each(|block| _ = arena.give_back(block, 64 * KIB));
    let all = take(&arena, MIB);
    arena.give_back(all, MIB);
}

#[test]
fn a_small_block_is_had_where_a_run_is_not() {
    let (_account, arena) = arena(Some(128));
    let blocks = [take(&arena, 1), take(&arena, 64)];
    assert!(allocate(&arena, 0, 1).is_err());
    blocks.into_iter().zip([1, 64]).for_each(|(block, size_bytes)| _ = arena.give_back(block, size_bytes));
}

#[test]
fn what_is_kept_for_later_never_makes_an_allocation_fail() {
    let (account, arena) = arena(Some(4 * MIB));
    // Runs of many classes, all empty then.
    let blocks: Vec<_> = (1..30).map(|step| (take(&arena, step * KIB), step * KIB)).collect();
    blocks.into_iter().for_each(|(block, size_bytes)| _ = arena.give_back(block, size_bytes));
    assert!(arena.stats().largest_free_block_bytes < 4 * MIB as u64);
    let all = take(&arena, 4 * MIB);
    arena.give_back(all, 4 * MIB);
    // And extents of a system that has no more.
    let (account_2, arena_2) = self::arena(None);
    account_2.capacity_bytes.store(10 * MIB, Ordering::Relaxed);
    let (a, b) = (take(&arena_2, 5 * MIB), take(&arena_2, 4 * MIB));
    arena_2.give_back(a, 5 * MIB);
    arena_2.give_back(b, 4 * MIB);
    let all = take(&arena_2, 10 * MIB);
    arena_2.give_back(all, 10 * MIB);
    assert_eq!(account.mapped_bytes(), 4 * MIB);
}

#[test]
fn a_failed_allocation_says_whose_fault_it_is_and_changes_nothing() {
    let (account, arena) = arena(None);
    account.capacity_bytes.store(MIB, Ordering::Relaxed);
    let held = take(&arena, 100);
    let before = arena.stats();
    for size_bytes in [2 * MIB, usize::MAX / 2, usize::MAX - 64, usize::MAX] {
        match allocate(&arena, size_bytes, 1) {
            Err(Shortage::Backend(error)) => assert_eq!(error.code(), StatusCode::ResourceExhausted),
            other => panic!("{size_bytes} bytes: {:?}", other.err()),
        }
    }
    assert_eq!(arena.stats(), before);
    arena.give_back(held, 100);
}

#[test]
fn many_blocks_at_once_are_as_single_ones() {
    let (account, arena) = arena(Some(MIB));
    let sizes_bytes = [100, 120, 40 * KIB, 100, 0, 100, 31 * KIB];
    let holders = sizes_bytes.map(|size_bytes| (PinnedArc::new(Holder), size_bytes));
    let all = |count: usize| {
        let mut pieces = SmallVec::new();
        let wanted = holders.iter().cycle().take(count).map(|(holder, size_bytes)| (holder, *size_bytes));
        // SAFETY: no code asks for the holders of these.
        let outcome = unsafe { arena.allocate_all(wanted, &mut pieces) };
        (pieces, outcome)
    };
    for _ in 0..3 {
        let (pieces, outcome) = all(7);
        assert!(outcome.is_ok() && pieces.len() == 7);
        let stats = arena.stats();
        assert_eq!(stats.bytes_in_use, sizes_bytes.iter().sum::<usize>() as u64);
        assert_eq!((stats.largest_alloc_size, account.blocks.lock().len()), (40 * KIB as u64, 7));
        pieces.into_iter().zip(sizes_bytes).for_each(|(piece, bytes)| _ = arena.give_back(piece, bytes));
    }
    assert_eq!((arena.stats().num_allocs, arena.stats().bytes_in_use), (7 * 3, 0));
    // The limit is reached on the way: the pieces so far are there, and counted.
    let (pieces, outcome) = all(1000);
    assert!(matches!(outcome, Err(Shortage::Limit)) && (7..1000).contains(&pieces.len()));
    let sizes = sizes_bytes.iter().cycle();
    assert_eq!(arena.stats().bytes_in_use, sizes.clone().take(pieces.len()).sum::<usize>() as u64);
    pieces.into_iter().zip(sizes).for_each(|(piece, &bytes)| _ = arena.give_back(piece, bytes));
    assert_eq!((arena.stats().bytes_in_use, account.blocks.lock().len()), (0, 0));
}

#[test]
fn trimming_gives_back_what_is_idle_and_nothing_else() {
    let (account, arena) = arena(None);
    let (small, large, gone) = (take(&arena, 10), take(&arena, MIB), take(&arena, 40 * MIB));
    let wide = take(&arena, 3 * MIB);
    arena.give_back(gone, 40 * MIB);
    arena.give_back(wide, 3 * MIB);
    assert_eq!(arena.warm_bytes(), 44 * MIB, "a hole that has grown together with a cold one counts as warm");
    let before = account.mapped_bytes();
    arena.trim(u32::MAX);
    assert_eq!(
        (account.mapped_bytes(), account.discarded_bytes.load(Ordering::Relaxed)),
        (before, 0),
        "not idle for so long"
    );
    arena.trim(0);
    assert!(account.mapped_bytes() <= before - 40 * MIB);
    assert_eq!(arena.warm_bytes(), 0);
    arena.give_back(large, MIB);
    arena.give_back(small, 10);
    arena.trim(0);
    assert_eq!(account.mapped_bytes(), 0);
}

#[test]
fn holes_beside_blocks_are_discarded_once() {
    let (account, arena) = arena(Some(16 * MIB));
    let (hole, kept) = (take(&arena, 4 * MIB), take(&arena, MIB));
    arena.give_back(hole, 4 * MIB);
    arena.trim(0);
    assert_eq!(account.discarded_bytes.load(Ordering::Relaxed), 4 * MIB, "what nobody has touched is cold already");
    arena.trim(0);
    assert_eq!(account.discarded_bytes.load(Ordering::Relaxed), 4 * MIB);
    arena.give_back(kept, MIB);
}

#[test]
fn a_users_allocator_sees_every_block() {
    let account = Arc::new(Account::default());
    account.capacity_bytes.store(MIB, Ordering::Relaxed);
    let arena: Arena<Holder> =
        Arena::new(Box::new(Counting { account: Arc::clone(&account), caching: false }), Some(1000));
    let blocks = [take(&arena, 100), take(&arena, 1), take(&arena, 500)];
    assert_eq!(account.extents.lock().values().copied().collect::<Vec<_>>(), [128, 64, 512]);
    assert!(matches!(allocate(&arena, 257, 1), Err(Shortage::Limit)), "704 + 320 > 960");
    let aligned = allocate(&arena, 256, 256).unwrap();
    assert_eq!(aligned.memory().address() % 256, 0);
    arena.give_back(aligned, 256);
    blocks.into_iter().zip([100, 1, 500]).for_each(|(block, size_bytes)| _ = arena.give_back(block, size_bytes));
    assert_eq!(account.mapped_bytes(), 0);
}

#[test]
fn holders_are_those_of_live_blocks() {
    let (_account, arena) = arena(None);
    let holders: Vec<PinnedArc<Holder>> = (0..3).map(|_| PinnedArc::new(Holder)).collect();
    let sizes = [10, 20, MIB];
    let blocks: Vec<Piece> =
        // SAFETY: the holders live until the end.
        holders.iter().zip(sizes).map(|(holder, bytes)| unsafe { arena.allocate(bytes, 1, holder) }.unwrap()).collect();
    let known = |arena: &Arena<Holder>| {
        let known = arena.holders();
        holders
            .iter()
            .map(|holder| known.iter().filter(|known| PinnedArc::ptr_eq(known, holder)).count())
            .collect::<Vec<_>>()
    };
    assert_eq!((known(&arena), arena.holders().len()), (vec![1, 1, 1], 3));
    blocks.into_iter().zip(sizes).for_each(|(block, size_bytes)| _ = arena.give_back(block, size_bytes));
    assert_eq!(arena.holders().len(), 0);
}

/// Blocks are allocated and freed at random; what the arena says is free is what the account finds free, and it fails
/// only when no free range is long enough.
fn play(seed: u64, limit_bytes: Option<usize>, sizes: impl Fn(&mut Dice) -> usize, exact: bool) {
    let (account, arena) = arena(limit_bytes);
    account.capacity_bytes.store(32 * MIB, Ordering::Relaxed);
    let most_bytes = limit_bytes.unwrap_or(32 * MIB);
    let mut dice = Dice(seed);
    let mut live: Vec<(Piece, usize)> = Vec::new();
    let mut failures = 0;
    for _ in 0..3000 {
        let size_bytes = sizes(&mut dice);
        if dice.below(100) < 45 && !live.is_empty() {
            let (block, size_bytes) = live.swap_remove(dice.below(live.len()));
            arena.give_back(block, size_bytes);
        } else {
            match allocate(&arena, size_bytes, 1) {
                Ok(block) => live.push((block, size_bytes)),
                Err(_) => {
                    failures += 1;
                    let (largest, used) = account.largest_gap();
                    let rounded = size_bytes.next_multiple_of(64);
                    assert!(largest < rounded, "{size_bytes} bytes were free");
                    let granule = if limit_bytes.is_some() { 64 } else { MIB };
                    assert!(used + rounded.next_multiple_of(granule) > most_bytes, "an unused extent was kept");
                    let (block, size_bytes) = live.swap_remove(dice.below(live.len()));
                    arena.give_back(block, size_bytes);
                }
            }
        }
        if exact {
            let headroom = limit_bytes.map_or(0, |limit| limit - account.mapped_bytes());
            let largest = account.largest_gap().0.max(headroom);
            assert_eq!(arena.stats().largest_free_block_bytes, largest as u64);
        }
        if dice.below(500) == 0 {
            arena.trim(0);
        }
        assert_eq!(arena.stats().pool_bytes, account.mapped_bytes() as u64);
        assert_eq!(arena.stats().bytes_in_use, live.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>());
    }
    assert!(failures > 10, "the play never ran out of memory");
    for (block, size_bytes) in live {
        arena.give_back(block, size_bytes);
    }
    arena.trim(0);
    assert_eq!((account.mapped_bytes(), arena.free_bytes()), (0, 0));
}

#[test]
fn the_largest_hole_is_exactly_the_largest_free_range() {
    for seed in 0..8 {
        play(seed, Some(24 * MIB + 640), |dice| 33 * KIB + dice.below(2 * MIB), true);
        play(seed, None, |dice| 33 * KIB + dice.below(2 * MIB), true);
    }
}

#[test]
fn small_and_large_blocks_share_a_limit() {
    for seed in 0..8 {
        let sizes = |dice: &mut Dice| if dice.below(3) == 0 { dice.below(300 * KIB) } else { dice.below(33 * KIB) };
        let (_account, arena) = arena(Some(2 * MIB));
        let mut dice = Dice(seed);
        let mut live: Vec<(Piece, usize)> = Vec::new();
        for _ in 0..5000 {
            let size_bytes = sizes(&mut dice);
            match allocate(&arena, size_bytes, 1) {
                Ok(block) => live.push((block, size_bytes)),
                Err(_) => {
                    assert!(arena.stats().largest_free_block_bytes < size_bytes.next_multiple_of(64) as u64);
                    for _ in 0..live.len() / 2 {
                        let (block, size_bytes) = live.swap_remove(dice.below(live.len()));
                        arena.give_back(block, size_bytes);
                    }
                }
            }
        }
        live.into_iter().for_each(|(block, size_bytes)| _ = arena.give_back(block, size_bytes));
        let all = take(&arena, 2 * MIB);
        arena.give_back(all, 2 * MIB);
    }
}

#[test]
fn many_threads_share_an_arena() {
    let (account, arena) = arena(Some(8 * MIB));
    std::thread::scope(|scope| {
        let arena = &arena;
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn(move || {
                    let mut dice = Dice(seed);
                    let mut live: Vec<(Piece, usize)> = Vec::new();
                    for round in 0..4000 {
                        let most_bytes = if dice.below(20) == 0 { MIB } else { 4 * KIB };
                        let size_bytes = 1 + dice.below(most_bytes);
                        if live.len() > 40 || (!live.is_empty() && dice.below(2) == 0) {
                            let (block, size_bytes) = live.swap_remove(dice.below(live.len()));
                            arena.give_back(block, size_bytes);
                        } else if let Ok(block) = allocate(arena, size_bytes, 1) {
                            live.push((block, size_bytes));
                        }
                        if round % 1000 == 0 {
                            arena.trim(0);
                        }
                    }
                    live.into_iter().for_each(|(block, size_bytes)| _ = arena.give_back(block, size_bytes));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    arena.trim(0);
    assert_eq!((account.mapped_bytes(), arena.stats().bytes_in_use), (0, 0));
}
