//! A block of memory: handles, slices and copies in flight share it, and the last of them frees it.
//!
//! States: *there* from the beginning; or *pending*, and then, once, there or failed, as its event says. The code that
//! makes a pending block there or failed holds a promise (`waiting.rs`, `RawBufferPromise`), which fails it if it is
//! dropped. Where the bytes are is written before the event happens, and read after it. A block may stand for another
//! one that is pending itself (`alias.rs`); no chain of these returns to where it began, and however long one is, it is
//! released in a loop.
//!
//! There is one for each buffer, so it is kept small: what few blocks need stands behind a pointer.

#![allow(unsafe_code, reason = "the caller of provide states that it has the right to")]

use std::fmt;

use super::MemorySpace;
use super::alias::{Alias, Link, Outdated};
use super::foreign::Foreign;
use crate::arena::Piece;
use crate::backend::{Block, Extent};
use purlin_async::event::raw::OwedBy;
use purlin_async::event::{Event, EventPromise};
use purlin_base::clock::now_ms;
use purlin_base::label::Label;
use purlin_base::slab::SlabBox;
use purlin_base::static_text::StaticText;
use purlin_base::status::SourceLocation;
use purlin_base::sync::{PinnedArc, PinnedCounts, SetOnce};

/// The code that asked for a block, the place and the time.
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    pub(crate) label: Label,
    file: StaticText,
    line: u32,
    pub(crate) born_ms: u32,
}

impl Tag {
    pub(crate) fn new(label: Label, place: SourceLocation) -> Self {
        let (file, line) = place.into_parts();
        Self { label, file, line, born_ms: now_ms() }
    }

    pub(crate) fn place(&self) -> SourceLocation {
        SourceLocation::from_parts(self.file, self.line)
    }
}

/// See the module.
pub(crate) struct MemoryBlock {
    space: MemorySpace,
    size_bytes: usize,
    mutable: bool,
    tag: Tag,
    backing: SetOnce<Backing>,
    allocated: Event,
}

/// Where the bytes are.
pub(crate) enum Backing {
    /// In the space's arena.
    Piece(Piece),
    /// In foreign memory.
    Imported(SlabBox<dyn Foreign>),
    /// In another block, which has bytes of its own, from that offset on.
    Part(PinnedArc<MemoryBlock>, usize),
    /// In another block, of which it is not known yet where its bytes will be.
    Alias(Box<Alias>),
}

impl MemoryBlock {
    /// A block of `space` that is to be there at once: [`provide`](Self::provide) is called before any other code sees
    /// it.
    pub(crate) fn new(space: MemorySpace, size_bytes: usize, mutable: bool, tag: Tag) -> PinnedArc<Self> {
        Self::with_event(space, size_bytes, mutable, tag, Event::ready())
    }

    /// A pending block, and the promise that its provider keeps.
    pub(crate) fn pending(space: MemorySpace, size_bytes: usize, tag: Tag) -> (PinnedArc<Self>, EventPromise) {
        let promise = EventPromise::owed_by(OwedBy::Service, c"memory", tag.place());
        let block = Self::with_event(space, size_bytes, true, tag, promise.event());
        (block, promise)
    }

    /// A pending block that is there, or has failed, when `allocated` is terminal; it completes after
    /// [`provide`](Self::provide).
    pub(crate) fn with_event(
        space: MemorySpace,
        size_bytes: usize,
        mutable: bool,
        tag: Tag,
        allocated: Event,
    ) -> PinnedArc<Self> {
        PinnedArc::new_in_place(|| {
            let backing = SetOnce::new();
            Self { space, size_bytes, mutable, tag, backing, allocated }
        })
    }

    /// A block that is the `size_bytes` bytes at `offset_bytes` of `target`, which has as many.
    pub(crate) fn part(target: PinnedArc<Self>, offset_bytes: usize, size_bytes: usize) -> PinnedArc<Self> {
        let allocated = target.allocated.clone();
        let block = Self::with_event(target.space.clone(), size_bytes, target.mutable, target.tag, allocated);
        let link = Link::new(target, offset_bytes);
        let end = block.end_of(&link);
        // SAFETY: no other code knows the block, so no way leads to it.
        unsafe { block.provide(end.into_backing()) };
        block
    }

    /// Says where the bytes are; once.
    ///
    /// # Safety
    /// The caller alone has the right to: the block is new, or its promise is the caller's.
    pub(crate) unsafe fn provide(&self, backing: Backing) {
        // SAFETY: the caller's promise.
        unsafe { self.backing.set(backing) };
    }

    /// Says that the bytes are those of `target` from `offset_bytes` on, or will be; the event that these are there.
    ///
    /// # Errors
    /// The way from `target` leads back to this block, which stays as it was.
    ///
    /// # Safety
    /// As [`provide`](Self::provide).
    pub(crate) unsafe fn provide_part_of(&self, target: PinnedArc<Self>, offset_bytes: usize) -> Result<Event, ()> {
        let (link, mut outdated) = (Link::new(target, offset_bytes), Outdated::new());
        let mut links = self.space.links().lock();
        let end = links.end_of(&link, &mut outdated);
        let (leads_back, allocated) = (std::ptr::eq(&*end.target, self), end.target.allocated.clone());
        if leads_back {
            drop(links);
            return Err(());
        }
        // Before the lock is released: a search for a way back from here finds this link.
        // SAFETY: the caller's promise.
        unsafe { self.provide(end.into_backing()) };
        drop(links);
        Ok(allocated)
    }

    /// Where the way from `link` ends for now.
    fn end_of(&self, link: &Link) -> Link {
        let mut outdated = Outdated::new();
        let mut links = self.space.links().lock();
        let end = links.end_of(link, &mut outdated);
        // Before what is outdated.
        drop(links);
        end
    }

    /// The block that has these bytes, or will have them, and where they begin there; `None`: this one.
    #[inline]
    fn end(&self) -> Option<(&Self, usize)> {
        match self.backing.get()? {
            Backing::Part(target, offset_bytes) => Some((target, *offset_bytes)),
            Backing::Alias(alias) => Some(self.end_of_alias(alias)),
            Backing::Piece(_) | Backing::Imported(_) => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn end_of_alias(&self, alias: &Alias) -> (&Self, usize) {
        let mut outdated = Outdated::new();
        let end = self.space.links().lock().end_of_alias(alias, &mut outdated);
        // SAFETY: this block keeps the end of its way, whatever becomes of the links between.
        (unsafe { &*std::ptr::from_ref::<Self>(&end.target) }, end.offset_bytes)
    }

    /// Releases blocks that lie on the way to the bytes, as far as it is known now.
    pub(crate) fn shorten(&self) {
        let _ = self.end();
    }

    /// Where the bytes are, if they have been provided.
    pub(super) fn backing(&self) -> Option<&Backing> {
        self.backing.get()
    }

    /// Where it is.
    pub(crate) fn memory_space(&self) -> &MemorySpace {
        &self.space
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Whether its holders may write; imported memory may be read-only.
    pub(crate) fn is_mutable(&self) -> bool {
        self.end().map_or(self.mutable, |(target, _)| target.mutable)
    }

    pub(crate) fn tag(&self) -> &Tag {
        &self.tag
    }

    /// Happens when the bytes are there.
    pub(crate) fn allocated(&self) -> &Event {
        &self.allocated
    }

    /// The extent, and the offset there; `None` while the bytes are not there.
    pub(crate) fn place_if_there(&self) -> Option<(&dyn Extent, usize)> {
        match self.backing.get()? {
            Backing::Piece(piece) => Some((piece.memory(), piece.offset_bytes)),
            Backing::Imported(imported) => Some((imported.extent(), 0)),
            Backing::Part(..) | Backing::Alias(_) => self.place_elsewhere(),
        }
    }

    /// That of a block without bytes of its own.
    #[inline(never)]
    fn place_elsewhere(&self) -> Option<(&dyn Extent, usize)> {
        let (block, offset_bytes) = self.end()?;
        // The end has bytes of its own, unless it has become an alias just now.
        let (extent, base_bytes) = block.place_if_there()?;
        Some((extent, base_bytes + offset_bytes))
    }

    /// True if only copies in flight, and events that the memory is kept for, keep it. `known` references are the
    /// caller's own.
    pub(crate) fn is_going(this: &PinnedArc<Self>, known: usize) -> bool {
        let PinnedCounts { references, uses } = PinnedArc::counts(this);
        uses > 0 && references <= uses + known
    }
}

impl Block for MemoryBlock {
    fn place(&self) -> (&dyn Extent, usize) {
        self.place_if_there().expect("copies begin when the memory at both ends is there")
    }

    fn home(&self) -> (usize, &'static str) {
        (self.space.device_index(), self.space.kind())
    }

    fn is_foreign(&self) -> bool {
        let block = self.end().map_or(self, |(target, _)| target);
        matches!(block.backing.get(), Some(Backing::Imported(_)))
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        match self.backing.take() {
            Some(Backing::Piece(piece)) => self.space.give_back(piece, self.size_bytes),
            Some(Backing::Part(target, _)) => let_go(target),
            Some(Backing::Alias(alias)) => let_go(alias.into_target()),
            // Others may have queued behind it.
            None if !self.allocated.is_ready() => self.space.serve_waiting(),
            // Imported memory is released by its own drop.
            Some(Backing::Imported(_)) | None => {}
        }
    }
}

/// Drops a reference to a block, and what it stands for, and so on: in a loop, because the way may be long.
fn let_go(block: PinnedArc<MemoryBlock>) {
    let mut next = Some(block);
    while let Some(mut last) = next.take().and_then(PinnedArc::into_last) {
        // SAFETY: the block stays where it is; it gives up what it stands for.
        let block = unsafe { last.get_mut() };
        next = match block.backing.get() {
            Some(Backing::Part(..) | Backing::Alias(_)) => match block.backing.take() {
                Some(Backing::Part(target, _)) => Some(target),
                Some(Backing::Alias(alias)) => Some(alias.into_target()),
                _ => unreachable!("it was looked at just now"),
            },
            _ => None,
        };
        drop(last);
    }
}

impl fmt::Display for MemoryBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.space.fmt(f)
    }
}
