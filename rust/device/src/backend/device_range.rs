//! Device memory that an operation touches.

#![allow(unsafe_code, reason = "a counted reference changes its type")]

use std::fmt;
use std::ptr::NonNull;

use super::{ByteRange, Extent};
use purlin_base::sync::{PinnedArc, PinnedInner, PinnedUse};

/// Memory as the rooms above keep it: a piece of an extent together with its accounting. Written as the name of its
/// memory space, such as `host:0/device`.
pub(crate) trait Block: Send + Sync + fmt::Display {
    /// The extent in which it lies, and where it begins there. Only once the memory is there.
    fn place(&self) -> (&dyn Extent, usize);

    /// The number of its device, and the kind of its memory. Also before the memory is there.
    fn home(&self) -> (usize, &'static str);

    /// Whether somebody else owns the memory, who is told when nothing uses it any more.
    fn is_foreign(&self) -> bool;
}

/// `block`, of whatever type it is.
pub(crate) fn erased<B: Block + 'static>(block: PinnedArc<B>) -> PinnedArc<dyn Block> {
    let raw: NonNull<PinnedInner<dyn Block>> = PinnedArc::<B>::into_raw(block);
    // SAFETY: the reference that was put aside in the line before.
    unsafe { PinnedArc::from_raw(raw) }
}

/// A use of `block`, of whatever type it is.
#[inline]
fn erased_use<B: Block + 'static>(block: &PinnedArc<B>) -> PinnedUse<dyn Block> {
    let raw: NonNull<PinnedInner<dyn Block>> = PinnedUse::<B>::into_raw(PinnedUse::of(block));
    // SAFETY: the use that was put aside in the line before.
    unsafe { PinnedUse::from_raw(raw) }
}

/// What an operation does with a range. One that does both touches it twice.
///
/// ```
/// use purlin::backend::Access;
///
/// assert!(Access::Write.conflicts_with(Access::Read) && !Access::Read.conflicts_with(Access::Read));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Others may read it at the same time.
    Read,
    /// Nothing else may touch it.
    Write,
}

impl Access {
    /// Whether two operations that touch the same bytes so need an order.
    #[must_use]
    pub const fn conflicts_with(self, other: Self) -> bool {
        matches!((self, other), (Self::Write, _) | (_, Self::Write))
    }
}

/// A range inside a block, which it keeps alive.
///
/// See the example of [`Backend`](super::Backend).
pub struct DeviceRange {
    block: PinnedUse<dyn Block>,
    range: ByteRange,
}

impl fmt::Debug for DeviceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.range, *self.block)
    }
}

impl DeviceRange {
    /// `range` lies inside `block`.
    #[inline]
    pub(crate) fn new<B: Block + 'static>(block: &PinnedArc<B>, range: ByteRange) -> Self {
        Self { block: erased_use(block), range }
    }

    /// The extent in which the bytes lie, of a type of its own (see [`Extent`]'s `Any`), and where they begin there.
    /// Only after the operation's dependencies: before, the memory may not be there yet.
    #[must_use]
    pub fn place(&self) -> (&dyn Extent, usize) {
        let (extent, offset_bytes) = self.block.place();
        (extent, offset_bytes + self.range.offset_bytes())
    }

    /// The number of the device whose memory it is. Known before the memory is there.
    #[must_use]
    pub fn device(&self) -> usize {
        self.block.home().0
    }

    /// The kind of memory, one of [`Backend::memory_kinds`](super::Backend::memory_kinds). Known before the memory is
    /// there.
    #[must_use]
    pub fn memory_kind(&self) -> &'static str {
        self.block.home().1
    }

    /// How many bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.range.size_bytes()
    }

    /// Whether it is the same bytes of the same block.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.range == other.range && PinnedArc::ptr_eq(&self.block, &other.block)
    }

    /// Whether somebody else owns the memory. Only after the operation's dependencies.
    pub(super) fn is_foreign(&self) -> bool {
        self.block.is_foreign()
    }

    pub(super) fn block(&self) -> &PinnedArc<dyn Block> {
        &self.block
    }
}

impl fmt::Display for DeviceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.block.fmt(f)
    }
}
