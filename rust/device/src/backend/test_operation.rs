//! An operation for the tests of this folder.

use std::fmt;
use std::sync::Arc;

use super::{Backend, Block, ByteRange, DeviceRange, Extent, NullBackend, Operation};
use purlin_base::sync::PinnedArc;

pub(super) struct Counted {
    extent: Arc<dyn Extent>,
    is_foreign: bool,
    _alive: Arc<()>,
}

impl Block for Counted {
    fn place(&self) -> (&dyn Extent, usize) {
        (&*self.extent, 0)
    }

    fn home(&self) -> (usize, &'static str) {
        (0, "device")
    }

    fn is_foreign(&self) -> bool {
        self.is_foreign
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null:0/device")
    }
}

/// A copy between two blocks, each of which holds a reference to `alive`.
pub(super) fn operation(size_bytes: usize, alive: &Arc<()>) -> Operation {
    Operation::copy(range(size_bytes, alive), range(size_bytes, alive))
}

/// A block of its own, which holds a reference to `alive`.
pub(super) fn range(size_bytes: usize, alive: &Arc<()>) -> DeviceRange {
    range_of(size_bytes, false, alive)
}

/// A copy to memory of somebody else; both blocks hold a reference to `alive`.
pub(super) fn foreign_operation(size_bytes: usize, alive: &Arc<()>) -> Operation {
    Operation::copy(range(size_bytes, alive), range_of(size_bytes, true, alive))
}

fn range_of(size_bytes: usize, is_foreign: bool, alive: &Arc<()>) -> DeviceRange {
    let memory = NullBackend::new().open_memory(0, "device").expect("it always opens");
    let extent = memory.map(size_bytes, 64).expect("tests ask for little");
    let block = PinnedArc::new(Counted { extent, is_foreign, _alive: Arc::clone(alive) });
    DeviceRange::new(&block, ByteRange::all(size_bytes))
}
