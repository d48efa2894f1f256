//! `fork` copies a process with one thread: in the child, pools have no threads, and a lock may be held for ever by a
//! thread that is not there. The child learns that it is one, so that its calls fail instead of waiting.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::status::Status;

// Of std and not of crate::sync: this crosses processes, not threads.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

unsafe extern "C" fn in_child() {
    IS_CHILD.store(true, Relaxed);
}

/// From now on, children of this process know what they are.
pub(super) fn watch() {
    static WATCHED: Once = Once::new();
    // SAFETY: the handler is a function of this library that only stores a flag. An error means that memory is short;
    // then children are not warned.
    WATCHED.call_once(|| _ = unsafe { pthread_atfork(None, None, Some(in_child)) });
}

/// True in a child, made by `fork` after [`watch`].
#[inline]
pub(super) fn is_child() -> bool {
    IS_CHILD.load(Relaxed)
}

/// What a child is answered.
#[cold]
pub(super) fn refusal(pool: &str) -> Status {
    Status::failed_precondition(format!(
        "this process was made by fork(), which copies no threads: pool '{pool}' cannot be used here; start it after \
         fork(), or exec()"
    ))
}
