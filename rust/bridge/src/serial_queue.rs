//! `purlin/serial_queue.h` and `purlin/inline_executor.h`.
//!
//! In the safety sections, "alive" means that C++ holds a reference for the length of the call.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use purlin_async::event::abi::EventHeader;
use purlin_async::task::node::TaskNode;
use purlin_async::{Executor, InlineExecutor, SerialQueue};
use purlin_base::status::StatusRep;
use purlin_ffi::handle::{give, release, retain, share};
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::give_event;

use crate::cancel::label;
use crate::executor::{ThreadPoolRep, shutdown_options, take};
use crate::foreign_executor::ForeignExecutor;

/// What a `purlin::SerialQueue` points to.
pub struct SerialQueueRep(SerialQueue);

/// Runs a task here. Null, or an error, C++'s.
///
/// # Safety
/// `task` is null or a node that the caller owns and gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_inline_execute(task: *mut TaskNode) -> *const StatusRep {
    // SAFETY: the caller's promise.
    give(guard(|| InlineExecutor.execute(unsafe { take(task) }?)))
}

/// A queue over an executor of C++'s, with one reference, C++'s.
///
/// # Safety
/// `name` is static and ends with a NUL; `executor` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_new(
    name: *const c_char,
    executor: ForeignExecutor,
) -> *const SerialQueueRep {
    contain("purlin_serial_queue_new", ptr::null(), || {
        // SAFETY: the caller's promise.
        share(SerialQueueRep(SerialQueue::new(unsafe { label(name) }, Arc::new(executor))))
    })
}

/// A queue over a pool, with one reference, C++'s.
///
/// # Safety
/// `name` is static and ends with a NUL; `pool` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_new_on_pool(
    name: *const c_char,
    pool: *const ThreadPoolRep,
) -> *const SerialQueueRep {
    contain("purlin_serial_queue_new_on_pool", ptr::null(), || {
        // SAFETY: alive, and the caller's promise.
        let (name, pool) = unsafe { (label(name), (*pool).0.clone()) };
        share(SerialQueueRep(SerialQueue::new(name, Arc::new(pool))))
    })
}

/// One more reference.
///
/// # Safety
/// `queue` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_retain(queue: *const SerialQueueRep) {
    // SAFETY: alive.
    unsafe { retain(queue) };
}

/// One reference less; the last closes the queue.
///
/// # Safety
/// The caller owns a reference and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_release(queue: *const SerialQueueRep) {
    contain("purlin_serial_queue_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { release(queue) };
    })
}

/// Queues a task. Null, or an error, C++'s; then the task has been dropped.
///
/// # Safety
/// `queue` is alive; `task` is null or a node that the caller owns and gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_execute(
    queue: *const SerialQueueRep,
    task: *mut TaskNode,
) -> *const StatusRep {
    // SAFETY: alive, and the caller's promise.
    give(guard(|| unsafe { (*queue).0.execute(take(task)?) }))
}

/// The event, with one reference, C++'s.
///
/// # Safety
/// `queue` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_drained(queue: *const SerialQueueRep) -> *mut EventHeader {
    give_event(|| {
        Ok({
            // SAFETY: alive.
            unsafe { (*queue).0.drained() }
        })
    })
}

/// Waits. Null, or an error, C++'s.
///
/// # Safety
/// `queue` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_drain(queue: *const SerialQueueRep) -> *const StatusRep {
    // SAFETY: alive.
    give(guard(|| unsafe { (*queue).0.drain() }))
}

/// True while there is something to do.
///
/// # Safety
/// `queue` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_has_backlog(queue: *const SerialQueueRep) -> bool {
    contain("purlin_serial_queue_has_backlog", false, || {
        // SAFETY: alive.
        unsafe { (*queue).0.has_backlog() }
    })
}

/// Refuses new tasks.
///
/// # Safety
/// `queue` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_close(queue: *const SerialQueueRep) {
    contain("purlin_serial_queue_close", (), || {
        // SAFETY: alive.
        unsafe { (*queue).0.close() };
    })
}

/// Ends the queue with the numbers of C++'s `ShutdownOptions`. Null, or an error, C++'s. Blocks.
///
/// # Safety
/// `queue` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_shutdown(
    queue: *const SerialQueueRep,
    mode: u32,
    timeout_ns: i64,
) -> *const StatusRep {
    // SAFETY: alive.
    give(guard(|| unsafe { (*queue).0.shutdown_with(shutdown_options(mode, timeout_ns)?) }))
}

/// Drops what has not started; how many.
///
/// # Safety
/// `queue` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_cancel_pending(queue: *const SerialQueueRep) -> usize {
    contain("purlin_serial_queue_cancel_pending", 0, || {
        // SAFETY: alive.
        unsafe { (*queue).0.cancel_pending() }
    })
}
