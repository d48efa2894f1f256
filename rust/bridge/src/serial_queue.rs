//! `purlin/serial_queue.h` and `purlin/inline_executor.h`. What takes tasks, or an executor of C++'s, is a plain
//! function.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use purlin_async::task::node::TaskNode;
use purlin_async::{Executor, InlineExecutor, SerialQueue};
use purlin_base::status::StatusRep;
use purlin_ffi::handle::{self, give, share};
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::give_event;

use crate::cancel::label;
use crate::executor::{ThreadPoolRep, shutdown_options, take};
use crate::foreign_executor::ForeignExecutor;

/// What a `purlin::SerialQueue` points to.
pub struct SerialQueueRep(SerialQueue);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/executor.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type ThreadPoolRep = crate::executor::ThreadPoolRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type SerialQueueRep;

        /// A queue over a pool, with one reference, C++'s.
        unsafe fn serial_queue_new_on_pool(name: *const c_char, pool: &ThreadPoolRep) -> *const SerialQueueRep;
        unsafe fn serial_queue_retain(queue: *const SerialQueueRep);
        /// The last closes the queue.
        unsafe fn serial_queue_release(queue: *const SerialQueueRep);
        /// The event, with one reference, C++'s.
        fn serial_queue_drained(queue: &SerialQueueRep) -> *mut EventHeader;
        /// Waits. Null, or an error, C++'s.
        fn serial_queue_drain(queue: &SerialQueueRep) -> *const StatusRep;
        /// True while there is something to do.
        fn serial_queue_has_backlog(queue: &SerialQueueRep) -> bool;
        /// Refuses new tasks.
        fn serial_queue_close(queue: &SerialQueueRep);
        /// Ends the queue with the numbers of C++'s `ShutdownOptions`. Null, or an error, C++'s. Blocks.
        fn serial_queue_shutdown(queue: &SerialQueueRep, mode: u32, timeout_ns: i64) -> *const StatusRep;
        /// Drops what has not started; how many.
        fn serial_queue_cancel_pending(queue: &SerialQueueRep) -> usize;
    }
}

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

/// # Safety
/// `name` is static and ends with a NUL.
unsafe fn serial_queue_new_on_pool(name: *const c_char, pool: &ThreadPoolRep) -> *const SerialQueueRep {
    contain("serial_queue_new_on_pool", ptr::null(), || {
        // SAFETY: the caller's promise.
        share(SerialQueueRep(SerialQueue::new(unsafe { label(name) }, Arc::new(pool.0.clone()))))
    })
}

/// # Safety
/// C++ holds a reference.
unsafe fn serial_queue_retain(queue: *const SerialQueueRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(queue) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn serial_queue_release(queue: *const SerialQueueRep) {
    contain("serial_queue_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(queue) };
    })
}

/// Queues a task. Null, or an error, C++'s; then the task has been dropped.
///
/// # Safety
/// `task` is null or a node that the caller owns and gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_serial_queue_execute(queue: &SerialQueueRep, task: *mut TaskNode) -> *const StatusRep {
    // SAFETY: the caller's promise.
    give(guard(|| queue.0.execute(unsafe { take(task) }?)))
}

fn serial_queue_drained(queue: &SerialQueueRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(queue.0.drained())).cast()
}

fn serial_queue_drain(queue: &SerialQueueRep) -> *const ffi::StatusRep {
    give(guard(|| queue.0.drain()))
}

fn serial_queue_has_backlog(queue: &SerialQueueRep) -> bool {
    contain("serial_queue_has_backlog", false, || queue.0.has_backlog())
}

fn serial_queue_close(queue: &SerialQueueRep) {
    contain("serial_queue_close", (), || queue.0.close())
}

fn serial_queue_shutdown(queue: &SerialQueueRep, mode: u32, timeout_ns: i64) -> *const ffi::StatusRep {
    give(guard(|| queue.0.shutdown_with(shutdown_options(mode, timeout_ns)?)))
}

fn serial_queue_cancel_pending(queue: &SerialQueueRep) -> usize {
    contain("serial_queue_cancel_pending", 0, || queue.0.cancel_pending())
}
