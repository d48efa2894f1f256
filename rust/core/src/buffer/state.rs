//! Whether a buffer still has its memory.
//!
//! States: live -> deleted, by [`BufferState::delete`], once and for all references. A read takes a reference to the
//! memory while the buffer is live; so deleting never pulls memory away from under work in flight. Holds and donation will
//! be further states of this file.
//!
//! One lock, a leaf: nothing is called under it, and the memory is let go of outside.

use crate::raw_buffer::RawBuffer;
use crate::status::{Status, StatusOr};
use crate::sync::Mutex;

/// See the module.
pub(super) struct BufferState {
    /// `None` once deleted.
    memory: Mutex<Option<RawBuffer>>,
}

impl BufferState {
    pub(super) fn live(memory: RawBuffer) -> Self {
        Self { memory: Mutex::new(Some(memory)) }
    }

    /// The memory.
    ///
    /// # Errors
    /// `InvalidArgument`, in PJRT's words, once deleted.
    pub(super) fn memory(&self) -> StatusOr<RawBuffer> {
        let memory = self.memory.lock().clone();
        memory.ok_or_else(|| Status::invalid_argument("Buffer has been deleted or donated."))
    }

    /// Lets go of the memory; nothing the second time.
    pub(super) fn delete(&self) {
        // A statement of its own: the guard goes at its end, and only then is the memory dropped.
        let memory = self.memory.lock().take();
        drop(memory);
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.memory.lock().is_none()
    }
}
