//! `purlin/task_options.h`. What takes tasks is a plain function.

use std::ffi::c_char;
use std::ptr;
use std::time::Instant;

use purlin_async::task::node::TaskNode;
use purlin_async::task::options::dropped_tasks;
use purlin_async::{Priority, Task, TaskOptions, Timers};
use purlin_base::StatusOr;
use purlin_base::status::StatusRep;
use purlin_ffi::handle::give_or;
use purlin_ffi::number::known;
use purlin_ffi::panic::guard;

use crate::cancel::{CancelTokenRep, label, token};
use crate::executor::take;
use crate::timer::duration;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// `purlin::DroppedTasks`.
    struct DroppedTasks {
        cancelled: u64,
        late: u64,
    }

    extern "Rust" {
        /// How many tasks were dropped at their turn.
        fn task_dropped_counts() -> DroppedTasks;
    }
}

const PRIORITIES: &[(&str, Priority)] =
    &[("kLow", Priority::Low), ("kNormal", Priority::Normal), ("kHigh", Priority::High)];

/// A `purlin::TaskOptions`.
#[repr(C)]
pub struct RawTaskOptions {
    /// Nanoseconds from now; counts if `has_deadline`.
    until_deadline_ns: i64,
    /// Null, or alive.
    cancel: *const CancelTokenRep,
    /// Static, ends with a NUL; "" keeps the task's own.
    label: *const c_char,
    /// Unchecked.
    priority: u32,
    has_deadline: bool,
    may_block: bool,
}

impl RawTaskOptions {
    /// # Errors
    /// `InvalidArgument`: a priority that does not exist.
    ///
    /// # Safety
    /// The fields are what the struct says.
    pub(crate) unsafe fn get(&self) -> StatusOr<TaskOptions> {
        // SAFETY: the caller's promise.
        let (cancel, name) = unsafe { (token(self.cancel), label(self.label)) };
        let deadline = if self.until_deadline_ns < 0 {
            Instant::now().checked_sub(duration(self.until_deadline_ns.saturating_neg())).unwrap_or_else(Instant::now)
        } else {
            Timers::shared().after(duration(self.until_deadline_ns))
        };
        Ok(TaskOptions {
            priority: known("Priority", self.priority, PRIORITIES)?,
            deadline: self.has_deadline.then_some(deadline),
            cancel,
            label: (!name.as_cstr().is_empty()).then_some(name),
            may_block: self.may_block,
        })
    }
}

/// A task, C++'s, that looks at the options before it runs `task`; or null and an error, when `task` has been dropped.
///
/// # Safety
/// `task` is null or a node that the caller owns and gives up; the options are what their struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_task_apply_options(
    task: *mut TaskNode,
    options: &RawTaskOptions,
    error: &mut *const StatusRep,
) -> *mut TaskNode {
    let applied = guard(|| {
        // SAFETY: the caller's promise. The task first: it is given up whatever the options are.
        let task = unsafe { take(task)? };
        // SAFETY: the caller's promise.
        unsafe { options.get()? }.apply(task)
    });
    give_or(applied.map(Task::into_raw), ptr::null_mut(), error)
}

fn task_dropped_counts() -> ffi::DroppedTasks {
    let dropped = dropped_tasks();
    ffi::DroppedTasks { cancelled: dropped.cancelled, late: dropped.late }
}
