//! Extents of a memory, and what their bytes are used for: parts, each a block, a run of small blocks, or a hole.
//!
//! Parts lie side by side and fill their extent; two holes are never neighbours. A block takes the smallest hole that
//! is large enough (of equal ones a warm one, whose pages are there already), so a hole of exactly the right size
//! always serves, and [`Extents::largest_hole`] bytes can always be had. One lock; the memory is called outside it.

#![allow(unsafe_code, reason = "holders are asked under the lock under which they go")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::backend::Extent;
use purlin_base::sync::{Mutex, PinnedArc};

use super::piece::{Holder, Home, Piece, SharedExtent};

/// See the module.
pub(super) struct Extents<H>(Mutex<ExtentsState<H>>);

struct ExtentsState<H> {
    extents: BTreeMap<u32, Mapped<H>>,
    next_id: u32,
    holes: BTreeSet<Hole>,
    mapped_bytes: usize,
    free_bytes: usize,
    /// Of those, the ones that are not cold.
    warm_bytes: usize,
    /// Blocks taken so far.
    taken: u64,
}

/// An extent; its parts by their offsets.
struct Mapped<H> {
    memory: Box<SharedExtent>,
    size_bytes: usize,
    parts: BTreeMap<usize, Part<H>>,
}

struct Part<H> {
    size_bytes: usize,
    usage: Usage<H>,
}

/// What a part is used for.
pub(super) enum Usage<H> {
    /// A block, by its holder.
    Block(Holder<H>),
    /// Many small blocks, which a class knows; or a hole that is being given back to the system.
    Other,
    /// Nothing, since that time.
    Hole {
        idle_since_ms: u32,
        /// Nothing was written there since the memory came from the system.
        cold: bool,
    },
}

/// In the order in which blocks take them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hole {
    size_bytes: usize,
    cold: bool,
    extent: u32,
    offset_bytes: usize,
}

impl<H> Extents<H> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(ExtentsState {
            extents: BTreeMap::new(),
            next_id: 0,
            holes: BTreeSet::new(),
            mapped_bytes: 0,
            free_bytes: 0,
            warm_bytes: 0,
            taken: 0,
        }))
    }

    /// Bytes of all extents.
    pub(super) fn mapped_bytes(&self) -> usize {
        self.0.lock().mapped_bytes
    }

    /// Bytes of all holes.
    pub(super) fn free_bytes(&self) -> usize {
        self.0.lock().free_bytes
    }

    /// Blocks taken so far; runs are none.
    pub(super) fn taken(&self) -> u64 {
        self.0.lock().taken
    }

    /// Of the holes, the ones that have been used.
    pub(super) fn warm_bytes(&self) -> usize {
        self.0.lock().warm_bytes
    }

    /// The most bytes that one block can take without a new extent.
    pub(super) fn largest_hole(&self) -> usize {
        self.0.lock().holes.last().map_or(0, |hole| hole.size_bytes)
    }

    /// Counts `size_bytes` as mapped, if that keeps the sum within `limit_bytes`.
    pub(super) fn reserve(&self, size_bytes: usize, limit_bytes: usize) -> bool {
        let mut state = self.0.lock();
        let sum = state.mapped_bytes.checked_add(size_bytes).filter(|&sum| sum <= limit_bytes);
        state.mapped_bytes = sum.unwrap_or(state.mapped_bytes);
        sum.is_some()
    }

    /// Takes [`reserve`](Self::reserve) back.
    pub(super) fn unreserve(&self, size_bytes: usize) {
        self.0.lock().mapped_bytes -= size_bytes;
    }

    /// Adds an extent of `size_bytes`, which were reserved, as one hole.
    pub(super) fn insert(&self, memory: Arc<dyn Extent>, size_bytes: usize) {
        let memory = Box::new(memory);
        let mut state = self.0.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.extents.insert(id, Mapped { memory, size_bytes, parts: BTreeMap::new() });
        state.add_hole(id, 0, size_bytes, 0, true);
    }

    /// Takes `size_bytes` (a multiple of the memory's alignment) at an address that is a multiple of `alignment_bytes`.
    /// `None`: no hole is large enough.
    pub(super) fn take(&self, size_bytes: usize, alignment_bytes: usize, usage: Usage<H>) -> Option<Piece> {
        let mut state = self.0.lock();
        let (hole, start) = state.find(size_bytes, alignment_bytes)?;
        let (idle_since_ms, cold) = state.remove_hole(hole);
        let (before, after) = (start - hole.offset_bytes, hole.size_bytes - (start - hole.offset_bytes) - size_bytes);
        if before > 0 {
            state.add_hole(hole.extent, hole.offset_bytes, before, idle_since_ms, cold);
        }
        if after > 0 {
            state.add_hole(hole.extent, start + size_bytes, after, idle_since_ms, cold);
        }
        state.taken += u64::from(matches!(usage, Usage::Block(_)));
        let extent = state.extents.get_mut(&hole.extent).expect("holes lie in extents");
        extent.parts.insert(start, Part { size_bytes, usage });
        let home = Home::Part { extent: hole.extent };
        Some(Piece::new(&extent.memory, start, home))
    }

    /// Makes a piece from [`take`](Self::take) a hole again; it grows together with its neighbours.
    pub(super) fn give_back(&self, extent: u32, offset_bytes: usize, now_ms: u32, cold: bool) {
        let mut state = self.0.lock();
        let parts = &mut state.extents.get_mut(&extent).expect("pieces lie in extents").parts;
        let part = parts.remove(&offset_bytes).expect("a piece is given back once");
        let (mut start, mut size_bytes, mut cold) = (offset_bytes, part.size_bytes, cold);
        let before = parts.range(..offset_bytes).next_back().filter(|(_, part)| part.is_hole());
        let before = before.map(|(&start, part)| (start, part.size_bytes));
        let after = parts.get(&(offset_bytes + size_bytes)).filter(|part| part.is_hole()).map(|part| part.size_bytes);
        let after = after.map(|bytes| (offset_bytes + size_bytes, bytes));
        for (neighbour, bytes) in before.into_iter().chain(after) {
            cold &= state.remove_hole_at(extent, neighbour, bytes);
            start = start.min(neighbour);
            size_bytes += bytes;
        }
        state.add_hole(extent, start, size_bytes, now_ms, cold);
    }

    /// Takes the extents out that are one hole, idle for `idle_ms` at least. Dropping them unmaps them.
    #[must_use = "dropped under no lock"]
    pub(super) fn take_empty(&self, now_ms: u32, idle_ms: u32) -> Vec<SharedExtent> {
        let mut state = self.0.lock();
        let empty = state.holes.iter().filter(|hole| {
            let extent = &state.extents[&hole.extent];
            hole.size_bytes == extent.size_bytes && extent.parts[&0].is_idle(now_ms, idle_ms)
        });
        let empty: Vec<Hole> = empty.copied().collect();
        let take = |hole: Hole| {
            state.remove_hole(hole);
            state.mapped_bytes -= hole.size_bytes;
            *state.extents.remove(&hole.extent).expect("holes lie in extents").memory
        };
        empty.into_iter().map(take).collect()
    }

    /// Takes one hole of at least `least_bytes` that is warm and idle for `idle_ms` at least, as a piece to be given
    /// back, and its size.
    pub(super) fn take_idle(&self, least_bytes: usize, now_ms: u32, idle_ms: u32) -> Option<(Piece, usize)> {
        let hole = {
            let state = self.0.lock();
            let mut large = state.holes.iter().rev().take_while(|hole| hole.size_bytes >= least_bytes);
            *large.find(|hole| {
                !hole.cold && state.extents[&hole.extent].parts[&hole.offset_bytes].is_idle(now_ms, idle_ms)
            })?
        };
        self.take_hole(hole)
    }

    fn take_hole(&self, hole: Hole) -> Option<(Piece, usize)> {
        let mut state = self.0.lock();
        if !state.holes.contains(&hole) {
            return None;
        }
        state.remove_hole(hole);
        let extent = state.extents.get_mut(&hole.extent).expect("holes lie in extents");
        extent.parts.insert(hole.offset_bytes, Part { size_bytes: hole.size_bytes, usage: Usage::Other });
        let piece = Piece::new(&extent.memory, hole.offset_bytes, Home::Part { extent: hole.extent });
        Some((piece, hole.size_bytes))
    }

    /// Removes the extent that holds one block only, because it was made for it. Dropping it unmaps it; then the caller
    /// takes back that its bytes, the second of the answer, were reserved.
    #[must_use = "dropped under no lock"]
    pub(super) fn take_own(&self, extent: u32) -> (SharedExtent, usize) {
        let mut state = self.0.lock();
        let Mapped { memory, size_bytes, .. } = state.extents.remove(&extent).expect("a piece is given back once");
        (*memory, size_bytes)
    }

    /// Adds an extent of `size_bytes`, which were reserved, that is one block.
    pub(super) fn insert_own(&self, memory: Arc<dyn Extent>, size_bytes: usize, holder: Holder<H>) -> Piece {
        let memory = Box::new(memory);
        let mut state = self.0.lock();
        let id = state.next_id;
        state.next_id += 1;
        let parts = BTreeMap::from([(0, Part { size_bytes, usage: Usage::Block(holder) })]);
        state.taken += 1;
        let extent = state.extents.entry(id).or_insert(Mapped { memory, size_bytes, parts });
        Piece::new(&extent.memory, 0, Home::Own { extent: id })
    }

    /// The holders of all blocks, but for those that are about to go.
    pub(super) fn holders(&self, out: &mut Vec<PinnedArc<H>>) {
        let state = self.0.lock();
        for part in state.extents.values().flat_map(|extent| extent.parts.values()) {
            if let Usage::Block(holder) = &part.usage {
                // SAFETY: a part is given back under this lock.
                out.extend(unsafe { holder.upgrade() });
            }
        }
    }
}

impl<H> ExtentsState<H> {
    /// The first hole, in their order, in which a block fits, and where it begins.
    fn find(&self, size_bytes: usize, alignment_bytes: usize) -> Option<(Hole, usize)> {
        let least = Hole { size_bytes, cold: false, extent: 0, offset_bytes: 0 };
        self.holes.range(least..).find_map(|&hole| {
            let base = self.extents[&hole.extent].memory.address();
            let address = base.checked_add(hole.offset_bytes)?.checked_next_multiple_of(alignment_bytes)?;
            let start = address - base;
            (start - hole.offset_bytes <= hole.size_bytes - size_bytes).then_some((hole, start))
        })
    }

    fn add_hole(&mut self, extent: u32, offset_bytes: usize, size_bytes: usize, idle_since_ms: u32, cold: bool) {
        let usage = Usage::Hole { idle_since_ms, cold };
        let parts = &mut self.extents.get_mut(&extent).expect("holes lie in extents").parts;
        parts.insert(offset_bytes, Part { size_bytes, usage });
        self.holes.insert(Hole { size_bytes, cold, extent, offset_bytes });
        self.free_bytes += size_bytes;
        self.warm_bytes += if cold { 0 } else { size_bytes };
    }

    /// Since when it was idle, and whether it was cold.
    fn remove_hole(&mut self, hole: Hole) -> (u32, bool) {
        self.holes.remove(&hole);
        self.free_bytes -= hole.size_bytes;
        self.warm_bytes -= if hole.cold { 0 } else { hole.size_bytes };
        let parts = &mut self.extents.get_mut(&hole.extent).expect("holes lie in extents").parts;
        match parts.remove(&hole.offset_bytes).expect("holes are parts").usage {
            Usage::Hole { idle_since_ms, cold } => (idle_since_ms, cold),
            Usage::Block(_) | Usage::Other => unreachable!("the set has holes only"),
        }
    }

    /// Whether it was cold.
    fn remove_hole_at(&mut self, extent: u32, offset_bytes: usize, size_bytes: usize) -> bool {
        let cold = matches!(self.extents[&extent].parts[&offset_bytes].usage, Usage::Hole { cold: true, .. });
        self.remove_hole(Hole { size_bytes, cold, extent, offset_bytes });
        cold
    }
}

impl<H> Part<H> {
    fn is_hole(&self) -> bool {
        matches!(self.usage, Usage::Hole { .. })
    }

    fn is_idle(&self, now_ms: u32, least_ms: u32) -> bool {
        matches!(self.usage, Usage::Hole { idle_since_ms, .. } if now_ms.wrapping_sub(idle_since_ms) >= least_ms)
    }
}
