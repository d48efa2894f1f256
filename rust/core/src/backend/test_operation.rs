//! An operation for the tests of this folder.

use std::fmt;
use std::sync::Arc;

use super::{Allocation, Backend, Block, ByteRange, CopyEnds, CopyOperation, DeviceRange, NullBackend};

struct Counted {
    allocation: Box<dyn Allocation>,
    _alive: Arc<()>,
}

impl Block for Counted {
    fn allocation(&self) -> &dyn Allocation {
        &*self.allocation
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null:0/device")
    }
}

/// A copy between two blocks, each of which holds a reference to `alive`.
pub(super) fn operation(size_bytes: usize, alive: &Arc<()>) -> CopyOperation {
    let memory = NullBackend::new().open_memory(0, "device").expect("it always opens");
    let end = || {
        let allocation = memory.allocate(size_bytes).expect("tests ask for little");
        let block = Arc::new(Counted { allocation, _alive: Arc::clone(alive) });
        DeviceRange::new(block, ByteRange::all(size_bytes))
    };
    CopyOperation::new(CopyEnds::Between(end(), end()))
}
