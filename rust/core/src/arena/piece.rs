//! A piece of memory that somebody holds.

use std::sync::Arc;

use crate::backend::Extent;

/// Where its bytes are, and where to give it back. The extent stays mapped as long as the piece exists.
pub(crate) struct Piece {
    /// The extent in which it lies.
    pub(crate) memory: Arc<dyn Extent>,
    /// Where it begins there.
    pub(crate) offset_bytes: usize,
    /// How long it is: at least as long as was asked for.
    pub(crate) size_bytes: usize,
    pub(super) home: Home,
}

/// Who takes a piece back.
#[derive(Clone, Copy)]
pub(super) enum Home {
    /// A slot of a run of a class.
    Slot { class: u8, slot: u16, run: u32 },
    /// A part of an extent.
    Part { extent: u32 },
    /// A whole extent, which goes with it.
    Own { extent: u32 },
}
