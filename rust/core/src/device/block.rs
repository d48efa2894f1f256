//! A block of memory: what handles, slices and copies in flight share, and the last of them frees.
//!
//! States: *there* from the beginning; or *pending*, and then, once, there or failed, as its event tells. Whoever makes a
//! pending block there or failed holds a promise (`waiting.rs`, `RawBufferPromise`), which fails it if it is dropped. Where
//! the bytes are is written before the event happens, and read after it. A block may stand for another one that is pending
//! itself; no chain of these comes back to where it began.
//!
//! There is one for each buffer, so it is kept small: what few blocks need stands behind a pointer.

#![allow(unsafe_code, reason = "whoever has the right to provide a block says so")]

use std::fmt;
use std::sync::Arc;

use super::MemorySpace;
use super::foreign::Foreign;
use crate::arena::Piece;
use crate::backend::{Block, Extent};
use crate::event::{Event, EventPromise};
use crate::label::Label;
use crate::slab::now_ms;
use crate::static_text::StaticText;
use crate::status::SourceLocation;
use crate::sync::SetOnce;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Who asked for a block, where and when.
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
    /// References of copies in flight and of events that the memory is kept for.
    uses: AtomicU32,
    backing: SetOnce<Backing>,
    allocated: Event,
}

/// Where the bytes are.
pub(crate) enum Backing {
    /// In the space's arena.
    Piece(Piece),
    /// In memory of somebody else's.
    Imported(Box<dyn Foreign>),
    /// In another block, from that offset on.
    Alias(Arc<MemoryBlock>, usize),
}

impl MemoryBlock {
    /// A block of `space` that is to be there at once: [`provide`](Self::provide) comes before anybody else sees it.
    pub(crate) fn new(space: MemorySpace, size_bytes: usize, mutable: bool, tag: Tag) -> Arc<Self> {
        Self::with_event(space, size_bytes, mutable, tag, Event::ready())
    }

    /// A pending block, and the promise that whoever provides it keeps.
    pub(crate) fn pending(space: MemorySpace, size_bytes: usize, tag: Tag) -> (Arc<Self>, EventPromise) {
        let promise = EventPromise::new_at(c"memory", tag.place());
        let block = Self::with_event(space, size_bytes, true, tag, promise.event());
        (block, promise)
    }

    /// A pending block that is there, or has failed, when `allocated` is terminal; that comes after [`provide`](Self::provide).
    pub(crate) fn with_event(
        space: MemorySpace,
        size_bytes: usize,
        mutable: bool,
        tag: Tag,
        allocated: Event,
    ) -> Arc<Self> {
        let (uses, backing) = (AtomicU32::new(0), SetOnce::new());
        Arc::new(Self { space, size_bytes, mutable, tag, uses, backing, allocated })
    }

    /// A block that is the `size_bytes` bytes at `offset_bytes` of `target`, which has as many.
    pub(crate) fn part(target: Arc<Self>, offset_bytes: usize, size_bytes: usize) -> Arc<Self> {
        let allocated = target.allocated.clone();
        let block = Self::with_event(target.space.clone(), size_bytes, target.mutable, target.tag, allocated);
        // SAFETY: nobody else knows the block.
        unsafe { block.provide(Backing::Alias(target, offset_bytes)) };
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

    /// Where it is.
    pub(crate) fn memory_space(&self) -> &MemorySpace {
        &self.space
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Whether its holders may write; imported memory may be read-only.
    pub(crate) fn is_mutable(&self) -> bool {
        match self.backing.get() {
            Some(Backing::Alias(target, _)) => target.is_mutable(),
            _ => self.mutable,
        }
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
            Backing::Alias(target, offset_bytes) => {
                let (extent, base) = target.place_if_there()?;
                Some((extent, base + offset_bytes))
            }
        }
    }

    /// Whether its bytes are those of `other`, or will be.
    pub(crate) fn leads_to(&self, other: &Self) -> bool {
        let mut block = self;
        loop {
            match block.backing.get() {
                _ if std::ptr::eq(block, other) => return true,
                Some(Backing::Alias(target, _)) => block = target,
                _ => return false,
            }
        }
    }

    /// True if only copies in flight and events keep it. `known` references are the caller's own.
    pub(crate) fn is_going(self: &Arc<Self>, known: usize) -> bool {
        // Relaxed: a snapshot, for reports.
        let uses = self.uses.load(Ordering::Relaxed) as usize;
        uses > 0 && Arc::strong_count(self) <= uses + known
    }
}

impl Block for MemoryBlock {
    fn place(&self) -> (&dyn Extent, usize) {
        self.place_if_there().expect("copies begin when the memory at both ends is there")
    }

    fn count_use(&self, begins: bool) {
        // Relaxed: the count publishes nothing.
        if begins {
            self.uses.fetch_add(1, Ordering::Relaxed);
        } else {
            self.uses.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        match self.backing.take() {
            Some(Backing::Piece(piece)) => self.space.give_back(piece, self.size_bytes),
            // Others may have queued behind it.
            None if !self.allocated.is_ready() => self.space.serve_waiting(),
            // Aliases and imported memory go by themselves.
            Some(Backing::Alias(..) | Backing::Imported(_)) | None => {}
        }
    }
}

impl fmt::Display for MemoryBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.space.fmt(f)
    }
}
