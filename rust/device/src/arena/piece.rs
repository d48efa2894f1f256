//! A piece of memory that is held, and its holder.

#![allow(unsafe_code, reason = "pieces know their extents, and extents their holders, without counting them")]

use std::ptr::NonNull;
use std::sync::Arc;

use crate::backend::Extent;
use purlin_base::sync::{PinnedArc, Uncounted};

/// Where its bytes are, and where to give it back. The arena keeps the extent mapped until then. The code that asked
/// for it knows its length.
pub(crate) struct Piece {
    /// The extent in which it lies, at the place where the arena has it: one word, because each block has one.
    memory: NonNull<SharedExtent>,
    /// Where it begins there.
    pub(crate) offset_bytes: usize,
    home: PackedHome,
}

/// An extent. The arena keeps it in a box, so that it stays where it is.
pub(super) type SharedExtent = Arc<dyn Extent>;

// SAFETY: extents are Send and Sync, and a piece only refers to one.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

/// A [`Home`] in one word: pieces are moved often, and what was written in parts is not read as a whole without a
/// wait.
#[derive(Clone, Copy)]
struct PackedHome(u64);

impl PackedHome {
    const SLOT: u64 = 0;
    const PART: u64 = 1;
    const OWN: u64 = 2;

    #[inline]
    const fn of(home: Home) -> Self {
        Self(match home {
            Home::Slot { class, slot, run } => {
                Self::SLOT | ((class as u64) << 8) | ((slot as u64) << 16) | ((run as u64) << 32)
            }
            Home::Part { extent } => Self::PART | ((extent as u64) << 32),
            Home::Own { extent } => Self::OWN | ((extent as u64) << 32),
        })
    }

    #[inline]
    const fn get(self) -> Home {
        let high = (self.0 >> 32) as u32;
        match self.0 & 0xff {
            Self::SLOT => Home::Slot { class: (self.0 >> 8) as u8, slot: (self.0 >> 16) as u16, run: high },
            Self::PART => Home::Part { extent: high },
            _ => Home::Own { extent: high },
        }
    }
}

/// What takes a piece back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// A slot of a run of a class.
    Slot { class: u8, slot: u16, run: u32 },
    /// A part of an extent.
    Part { extent: u32 },
    /// A whole extent, which is given back with it.
    Own { extent: u32 },
}

impl Piece {
    /// `memory` stays where it is until the piece is given back.
    pub(super) fn new(memory: &SharedExtent, offset_bytes: usize, home: Home) -> Self {
        Self { memory: NonNull::from(memory), offset_bytes, home: PackedHome::of(home) }
    }

    /// What begins at `offset_bytes` of this piece, which is a run, as a piece of its own.
    pub(super) fn part(&self, offset_bytes: usize, home: Home) -> Self {
        Self { memory: self.memory, offset_bytes: self.offset_bytes + offset_bytes, home: PackedHome::of(home) }
    }

    /// What takes it back.
    #[inline]
    pub(super) fn home(&self) -> Home {
        self.home.get()
    }

    /// The extent in which it lies.
    pub(crate) fn memory(&self) -> &dyn Extent {
        // SAFETY: the arena keeps an extent while a part of it is not given back, and the owner of the piece keeps the
        // arena: blocks refer to their client's instance.
        unsafe { &**self.memory.as_ref() }
    }
}

/// The holder of a piece, not counted: it gives the piece back in its own drop, and with it this. That its memory is
/// there until then is [`PinnedArc`]'s promise: nothing moves the holder out of it.
pub(super) struct Holder<H>(Uncounted<H>);

impl<H> Clone for Holder<H> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<H> Holder<H> {
    /// The caller, which allocates for `holder`, promises that the piece is given back in the holder's drop, or before.
    pub(super) fn of(holder: &PinnedArc<H>) -> Self {
        Self(PinnedArc::uncounted(holder))
    }

    /// A reference, if the holder is not about to go.
    ///
    /// # Safety
    /// The piece has not been given back: the lock under which that happens is held.
    pub(super) unsafe fn upgrade(&self) -> Option<PinnedArc<H>> {
        // SAFETY: the piece was not given back, so the holder's drop has not ended, and cannot while the lock is held.
        unsafe { self.0.upgrade() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_makes_the_journey_into_a_word_and_back() {
        let (class, slot, run) = (u8::MAX, u16::MAX, u32::MAX);
        for home in [
            Home::Slot { class: 0, slot: 0, run: 0 },
            Home::Slot { class, slot: 0, run: 0 },
            Home::Slot { class: 0, slot, run: 0 },
            Home::Slot { class: 0, slot: 0, run },
            Home::Part { extent: 0 },
            Home::Part { extent: run },
            Home::Own { extent: 0 },
            Home::Own { extent: run },
        ] {
            assert_eq!(PackedHome::of(home).get(), home);
        }
    }
}
