//! The allocator's policy: how the memory of one space is cut into blocks, kept warm, limited and given back.
//!
//! - Blocks of up to 32 KiB are slots of fixed sizes (`class.rs`), larger ones are cut from extents (`extents.rs`).
//!   What is known of a block is kept beside the memory, never in it, so the same policy serves memory that the host
//!   cannot reach.
//! - An extent is mapped when no hole is large enough: twice as large as the one before, from 2 to 64 MiB, or as large
//!   as the block if that is more. With a limit, the first extent is all of it, so that holes grow together.
//! - Freed memory stays, warm, for the next block. [`Arena::trim`] gives back what has been idle for a time: extents
//!   without a block are unmapped, the pages of other holes discarded.
//! - Memory whose blocks are made by a user's allocator is not cut: each block is an extent, and is given back with it.
//!
//! Nothing fails while memory that is kept for later would suffice: before [`Arena::allocate`] gives up, empty runs and
//! extents have been given back. Three kinds of locks, each a leaf but the first: growth (one thread maps at a time;
//! the backend is called under it), a class's, the extents'. Holders are known without being counted: a block gives its
//! memory back in its own drop, under the lock under which holders are listed, and stays where it is until then
//! (`PinnedArc`).

#![allow(unsafe_code, reason = "the caller of allocate promises to give the extent back")]

mod accounting;
mod class;
mod extents;
#[cfg(all(test, loom))]
mod loom_model;
mod piece;
#[cfg(all(test, not(purlin_model)))]
mod tests;

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::backend::{Extent, Memory, MemoryProperties};
use purlin_base::clock::{now_ms, touch};
use purlin_base::fault::{self, Site};
use purlin_base::status::Error;
use purlin_base::sync::{Mutex, PinnedArc};

use self::accounting::ArenaAccounting;
pub use self::accounting::MemoryStats;
use self::class::{CLASS_COUNT, Class, LARGEST_SLOT_BYTES, OpenClass, class_of, run_bytes};
use self::extents::{Extents, Usage};
pub(crate) use self::piece::Piece;
use self::piece::{Holder, Home};

/// The first extent of a space without a limit.
const LEAST_EXTENT_BYTES: usize = 2 << 20;
/// The largest extent that is not made for one block.
const LARGEST_EXTENT_BYTES: usize = 64 << 20;

/// The memory of one space. `H` is what holds a block.
pub(crate) struct Arena<H> {
    memory: Box<dyn Memory>,
    properties: MemoryProperties,
    /// `usize::MAX`: none.
    limit_bytes: usize,
    classes: Box<[Class<H>]>,
    extents: Extents<H>,
    /// The size of the next extent; locked while one is mapped.
    growth: Mutex<usize>,
    accounting: ArenaAccounting,
}

/// Why there is no memory.
#[derive(Debug)]
pub(crate) enum Shortage {
    /// It would be more than the limit.
    Limit,
    /// The backend's reason.
    Backend(Error),
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => f.write_str("no free block is large enough, and the limit allows no more"),
            Self::Backend(reason) => f.write_str(reason.message()),
        }
    }
}

impl<H> Arena<H> {
    pub(crate) fn new(memory: Box<dyn Memory>, limit_bytes: Option<usize>) -> Self {
        let properties = memory.properties();
        Self {
            properties,
            memory,
            limit_bytes: limit_bytes.map_or(usize::MAX, |bytes| bytes - bytes % properties.alignment_bytes),
            classes: (0..CLASS_COUNT).map(Class::new).collect(),
            extents: Extents::new(),
            growth: Mutex::new(LEAST_EXTENT_BYTES),
            accounting: ArenaAccounting::new(),
        }
    }

    pub(crate) fn properties(&self) -> &MemoryProperties {
        &self.properties
    }

    pub(crate) fn memory(&self) -> &dyn Memory {
        &*self.memory
    }

    /// `size_bytes` bytes (0 is allowed) at a multiple of `alignment_bytes`, a power of two, for `holder`.
    ///
    /// # Safety
    /// `holder` gives them back, at the latest in its drop.
    pub(crate) unsafe fn allocate(
        &self,
        size_bytes: usize,
        alignment_bytes: usize,
        holder: &PinnedArc<H>,
    ) -> Result<Piece, Shortage> {
        let piece = self.piece(size_bytes, alignment_bytes.max(self.properties.alignment_bytes), holder)?;
        piece.memory().handed_out(piece.offset_bytes, size_bytes);
        self.accounting.charge(size_bytes);
        Ok(piece)
    }

    /// Pieces for all of `holders`, each of so many bytes, at the space's own alignment. Consecutive pieces of one
    /// class take its lock once, and the accounting counts all pieces at once. `pieces` is empty before; after an error
    /// it has the pieces of the first holders.
    ///
    /// # Safety
    /// As [`allocate`](Self::allocate), for each piece and its holder, also after an error.
    pub(crate) unsafe fn allocate_all<'a>(
        &self,
        holders: impl Iterator<Item = (&'a PinnedArc<H>, usize)> + Clone,
        pieces: &mut SmallVec<[Piece; 32]>,
    ) -> Result<(), Shortage>
    where
        H: 'a,
    {
        let outcome = self.pieces(holders.clone(), pieces);
        let (mut sum_bytes, mut largest_bytes) = (0, 0);
        for (piece, (_, size_bytes)) in pieces.iter().zip(holders) {
            piece.memory().handed_out(piece.offset_bytes, size_bytes);
            sum_bytes += size_bytes;
            largest_bytes = largest_bytes.max(size_bytes);
        }
        self.accounting.charge_all(sum_bytes, largest_bytes);
        outcome
    }

    /// The pieces of [`allocate_all`](Self::allocate_all), not counted.
    fn pieces<'a>(
        &self,
        holders: impl Iterator<Item = (&'a PinnedArc<H>, usize)>,
        pieces: &mut SmallVec<[Piece; 32]>,
    ) -> Result<(), Shortage>
    where
        H: 'a,
    {
        let alignment_bytes = self.properties.alignment_bytes;
        let mut open: Option<OpenClass<'_, H>> = None;
        for (holder, size_bytes) in holders {
            let class = self.class_for(size_bytes, alignment_bytes);
            if open.as_ref().map(OpenClass::number) != class {
                // The one is left before the other is entered.
                drop(open.take());
                open = class.map(|class| self.classes[class].open());
            }
            if let Some(piece) = open.as_mut().and_then(|class| class.take(holder)) {
                pieces.push(piece);
                continue;
            }
            drop(open.take());
            pieces.push(self.piece(size_bytes, alignment_bytes, holder)?);
        }
        Ok(())
    }

    /// The class that has blocks of that size and alignment; `None`: they are larger than slots are, or are not cut.
    #[inline]
    fn class_for(&self, size_bytes: usize, alignment_bytes: usize) -> Option<usize> {
        let rounded_bytes = size_bytes.max(1).checked_next_multiple_of(self.properties.alignment_bytes)?;
        let is_slot =
            self.properties.caching && rounded_bytes <= LARGEST_SLOT_BYTES && alignment_bytes <= class::SLOT_STEP_BYTES;
        is_slot.then(|| class_of(rounded_bytes))
    }

    /// Takes back what [`allocate`](Self::allocate) gave for `size_bytes`; true if that made more memory idle than a
    /// slot.
    pub(crate) fn give_back(&self, piece: Piece, size_bytes: usize) -> bool {
        piece.memory().given_back(piece.offset_bytes, size_bytes);
        // First the accounting: a thread that waits for this memory and gets it must not find it counted twice.
        self.accounting.release(size_bytes);
        match piece.home() {
            Home::Slot { class, slot, run } => {
                let span = self.classes[usize::from(class)].give_back(run, slot);
                span.inspect(|span| self.give_back_span(span)).is_some()
            }
            Home::Part { .. } => {
                self.give_back_span(&piece);
                true
            }
            Home::Own { extent } => {
                // What is still on its way back counts as mapped, so that no thread that waits for it gives up too
                // early.
                let (memory, reserved_bytes) = self.extents.take_own(extent);
                drop(memory);
                self.extents.unreserve(reserved_bytes);
                false
            }
        }
    }

    /// Gives back to the system what has not been used for `idle_ms`.
    pub(crate) fn trim(&self, idle_ms: u32) {
        let now_ms = touch();
        // A thread that finds no memory meanwhile waits for this lock and looks again.
        let _growth = self.growth.lock();
        self.release_empty_runs();
        drop(self.extents.take_empty(now_ms, idle_ms));
        while let Some((hole, size_bytes)) = self.extents.take_idle(self.properties.granule_bytes, now_ms, idle_ms) {
            hole.memory().discard(hole.offset_bytes, size_bytes);
            let Home::Part { extent } = hole.home() else { unreachable!("holes are parts") };
            self.extents.give_back(extent, hole.offset_bytes, now_ms, true);
        }
    }

    /// What is in use, and was at most.
    pub(crate) fn stats(&self) -> MemoryStats {
        let mapped_bytes = self.extents.mapped_bytes();
        let limit = (self.limit_bytes != usize::MAX).then_some(self.limit_bytes as u64);
        MemoryStats {
            bytes_limit: limit,
            pool_bytes: mapped_bytes as u64,
            largest_free_block_bytes: self.largest_free_block() as u64,
            num_allocs: self.extents.taken() + self.classes.iter().map(Class::taken).sum::<u64>(),
            ..self.accounting.read()
        }
    }

    /// The most bytes that one block of the default alignment can have without freeing another, as far as is known:
    /// without a limit, what the system would still give is not.
    fn largest_free_block(&self) -> usize {
        let headroom = match self.limit_bytes {
            usize::MAX => 0,
            limit_bytes => limit_bytes - self.extents.mapped_bytes().min(limit_bytes),
        };
        self.extents.largest_hole().max(headroom)
    }

    /// Whether so much can be had when nothing else is held, as far as the limit goes.
    pub(crate) fn fits_limit(&self, size_bytes: usize) -> bool {
        let rounded_bytes = size_bytes.max(1).checked_next_multiple_of(self.properties.alignment_bytes);
        rounded_bytes.is_some_and(|bytes| bytes <= self.limit_bytes)
    }

    /// Free bytes that are mapped.
    pub(crate) fn free_bytes(&self) -> usize {
        self.extents.free_bytes() + self.classes.iter().map(Class::free_bytes).sum::<usize>()
    }

    /// Bytes of holes that are kept warm.
    pub(crate) fn warm_bytes(&self) -> usize {
        self.extents.warm_bytes()
    }

    /// The peak begins anew.
    pub(crate) fn clear_peak(&self) {
        self.accounting.clear_peak();
    }

    /// The holders of blocks. Dropped under no lock: one of these may be the last reference.
    pub(crate) fn holders(&self) -> Vec<PinnedArc<H>> {
        let mut holders = Vec::new();
        self.extents.holders(&mut holders);
        self.classes.iter().for_each(|class| class.holders(&mut holders));
        holders
    }

    fn piece(&self, size_bytes: usize, alignment_bytes: usize, holder: &PinnedArc<H>) -> Result<Piece, Shortage> {
        let step = self.properties.alignment_bytes;
        let Some(rounded_bytes) = size_bytes.max(1).checked_next_multiple_of(step) else { return Err(self.absurd()) };
        if !self.properties.caching {
            return self.own_extent(rounded_bytes, alignment_bytes, holder);
        }
        if let Some(class_number) = self.class_for(size_bytes, alignment_bytes) {
            let class = &self.classes[class_number];
            if let Some(piece) = class.take(holder) {
                return Ok(piece);
            }
            if let Ok(span) = self.part(run_bytes(class_number), alignment_bytes, || Usage::Other) {
                return Ok(class.take_of_new_run(span, holder));
            }
            // Too little for a run may be enough for one block.
        }
        self.part(rounded_bytes, alignment_bytes, || Usage::Block(Holder::of(holder)))
    }

    /// A part of an extent, of a new one if need be.
    fn part(&self, size_bytes: usize, alignment_bytes: usize, usage: impl Fn() -> Usage<H>) -> Result<Piece, Shortage> {
        let take = || self.extents.take(size_bytes, alignment_bytes, usage());
        if let Some(piece) = take() {
            return Ok(piece);
        }
        // The bytes before the first aligned address are lost in the worst case.
        let Some(least_bytes) = size_bytes.checked_add(alignment_bytes - self.properties.alignment_bytes) else {
            return Err(self.absurd());
        };
        let mut next_bytes = self.growth.lock();
        if let Some(piece) = take() {
            return Ok(piece);
        }
        if self.grow(least_bytes, &mut next_bytes).is_ok()
            && let Some(piece) = take()
        {
            return Ok(piece);
        }
        self.release_empty_runs();
        if let Some(piece) = take() {
            return Ok(piece);
        }
        drop(self.extents.take_empty(0, 0));
        self.grow(least_bytes, &mut next_bytes)?;
        loop {
            // Small blocks of other threads may take of the new extent first; then there is another.
            if let Some(piece) = take() {
                return Ok(piece);
            }
            self.map(least_bytes)?;
        }
    }

    /// Maps an extent of at least `least_bytes`; larger, if that can be had.
    fn grow(&self, least_bytes: usize, next_bytes: &mut usize) -> Result<(), Shortage> {
        let wanted_bytes = match self.limit_bytes {
            usize::MAX => (*next_bytes).max(least_bytes),
            limit_bytes => limit_bytes - self.extents.mapped_bytes().min(limit_bytes),
        };
        if wanted_bytes > least_bytes && self.map(wanted_bytes).is_ok() {
            *next_bytes = (*next_bytes * 2).min(LARGEST_EXTENT_BYTES);
            return Ok(());
        }
        self.map(least_bytes)
    }

    fn map(&self, size_bytes: usize) -> Result<(), Shortage> {
        let granule = if self.limit_bytes == usize::MAX {
            self.properties.granule_bytes
        } else {
            self.properties.alignment_bytes
        };
        let Some(size_bytes) = size_bytes.checked_next_multiple_of(granule) else { return Err(self.absurd()) };
        let memory = self.map_reserved(size_bytes, self.properties.alignment_bytes)?;
        self.extents.insert(memory, size_bytes);
        Ok(())
    }

    fn own_extent(&self, size_bytes: usize, alignment_bytes: usize, holder: &PinnedArc<H>) -> Result<Piece, Shortage> {
        let memory = self.map_reserved(size_bytes, alignment_bytes)?;
        Ok(self.extents.insert_own(memory, size_bytes, Holder::of(holder)))
    }

    fn map_reserved(&self, size_bytes: usize, alignment_bytes: usize) -> Result<Arc<dyn Extent>, Shortage> {
        if !self.extents.reserve(size_bytes, self.limit_bytes) {
            return Err(Shortage::Limit);
        }
        let mapped = fault::point(Site::Map).and_then(|()| self.memory.map(size_bytes, alignment_bytes));
        mapped.map_err(|reason| {
            self.extents.unreserve(size_bytes);
            Shortage::Backend(reason)
        })
    }

    fn release_empty_runs(&self) {
        for class in &self.classes {
            while let Some(span) = class.take_empty() {
                self.give_back_span(&span);
            }
        }
    }

    fn give_back_span(&self, span: &Piece) {
        let Home::Part { extent } = span.home() else { unreachable!("runs and large blocks are parts") };
        self.extents.give_back(extent, span.offset_bytes, now_ms(), false);
    }

    /// More than an address can count.
    fn absurd(&self) -> Shortage {
        match self.limit_bytes {
            usize::MAX => Shortage::Backend(Error::resource_exhausted("that is more than an address space holds")),
            _ => Shortage::Limit,
        }
    }
}
