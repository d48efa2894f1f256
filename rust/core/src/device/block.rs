//! A block of memory: what handles, slices and copies in flight share, and the last of them frees.
//!
//! States: *there* from the beginning; or *pending*, and then, once, there or failed, as its event tells. Whoever makes a
//! pending block there or failed holds a promise (`waiting.rs`, `RawBufferPromise`), which fails it if it is dropped. Where
//! the bytes are is written before the event happens, and read after it. A block may stand for another one that is pending
//! itself; no chain of these comes back to where it began.

use std::fmt;
use std::sync::Arc;

use super::MemorySpace;
use crate::arena::Piece;
use crate::backend::{Block, Extent};
use crate::event::{Event, EventPromise};
use crate::exec::guard::contained;
use crate::label::Label;
use crate::slab::now_ms;
use crate::status::SourceLocation;
use crate::sync::SetOnce;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Who asked for a block, where and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    pub(crate) label: Label,
    pub(crate) place: SourceLocation,
    pub(crate) born_ms: u32,
}

impl Tag {
    pub(crate) fn new(label: Label, place: SourceLocation) -> Self {
        Self { label, place, born_ms: now_ms() }
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
    Imported(Imported),
    /// In another block, from that offset on.
    Alias(Arc<MemoryBlock>, usize),
}

/// Somebody else's memory, and how to tell them that it is no longer used.
pub(crate) struct Imported {
    /// `None` after the drop has begun.
    extent: Option<Arc<dyn Extent>>,
    release: Option<Release>,
}

/// Called once, when nobody uses imported memory any more.
pub type Release = Box<dyn FnOnce() + Send + Sync>;

impl Imported {
    pub(crate) fn new(extent: Arc<dyn Extent>, release: Option<Release>) -> Self {
        Self { extent: Some(extent), release }
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // First the backend forgets the memory, then its owner may.
        self.extent = None;
        if let Some(release) = self.release.take() {
            contained("release of imported memory", Label::default, release);
        }
    }
}

impl MemoryBlock {
    /// A block of `space` that is to be there at once: [`provide`](Self::provide) comes before anybody else sees it.
    pub(crate) fn new(space: MemorySpace, size_bytes: usize, mutable: bool, tag: Tag) -> Arc<Self> {
        Self::with_event(space, size_bytes, mutable, tag, Event::ready())
    }

    /// A pending block, and the promise that whoever provides it keeps.
    pub(crate) fn pending(space: MemorySpace, size_bytes: usize, tag: Tag) -> (Arc<Self>, EventPromise) {
        let promise = EventPromise::new_at(c"memory", tag.place);
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

    /// Says where the bytes are; once.
    pub(crate) fn provide(&self, backing: Backing) {
        let first = self.backing.set(backing).is_ok();
        assert!(first, "whoever holds a block's promise provides it once");
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
            Backing::Imported(imported) => Some((imported.extent.as_deref()?, 0)),
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
