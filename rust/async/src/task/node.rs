//! A closure on its way to a thread: called once or destroyed uncalled, never both and never neither.
//!
//! A [`Task`] is one word, the address of a [`TaskNode`]. Closures of up to 40 bytes live in the node, of 64 bytes;
//! those of up to 104 too, in a node of 128. Nodes are recycled (`purlin_base::slab`), so such tasks cost no heap
//! allocation. A node never moves, so it can hold C++ objects that know their own address.

use std::ffi::c_char;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};

use tracing::level_filters::LevelFilter;
use tracing::trace_span;

use crate::user_context::{self, UserContext, with_user_context};
use purlin_base::label::Label;
use purlin_base::panics::contained;
use purlin_base::slab::{self, Class};
use purlin_base::thread_state;

/// What [`TaskNode::invoke`] is asked to do. Either way the closure is destroyed and the node is freed. It is a number,
/// because C++ calls this, too; an unknown number destroys the closure uncalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct TaskOp(u32);

impl TaskOp {
    /// Destroy the closure uncalled.
    pub const DROP: Self = Self(0);
    /// Call the closure, then destroy it.
    pub const RUN: Self = Self(1);
}

/// Bytes in a node for a closure.
pub const INLINE_BYTES: usize = 40;
/// Bytes for a closure in a node of the wide class, whose `storage` extends that far.
pub const WIDE_BYTES: usize = INLINE_BYTES + Class::WideNode.block_bytes() - Class::Node.block_bytes();

/// The memory of a task, shared with C++ (`include/purlin/internal/abi.h`).
#[derive(Debug)]
#[repr(C, align(8))]
pub struct TaskNode {
    /// For the list that holds the node.
    pub next: *mut TaskNode,
    /// Consumes the node. Must not unwind.
    pub invoke: unsafe extern "C" fn(node: *mut TaskNode, op: TaskOp),
    /// Static, ends with a NUL, never null.
    pub label: *const c_char,
    /// The closure, or its address.
    pub storage: [MaybeUninit<u8>; INLINE_BYTES],
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<TaskNode>() == 64 && Class::Node.block_bytes() == 64 && align_of::<TaskNode>() == 8);
    assert!(offset_of!(TaskNode, next) == 0 && offset_of!(TaskNode, invoke) == 8);
    assert!(offset_of!(TaskNode, label) == 16 && offset_of!(TaskNode, storage) == 24);
};

/// This side's layout as `name=value` lines, for the test that compares both sides.
#[must_use]
pub fn layout() -> String {
    use std::mem::offset_of;
    format!(
        "TaskNode.size={}\nTaskNode.align={}\nTaskNode.next={}\nTaskNode.invoke={}\nTaskNode.label={}\n\
         TaskNode.storage={}\n",
        size_of::<TaskNode>(),
        align_of::<TaskNode>(),
        offset_of!(TaskNode, next),
        offset_of!(TaskNode, invoke),
        offset_of!(TaskNode, label),
        offset_of!(TaskNode, storage),
    )
}

/// A closure to be run once. Dropping it destroys the closure uncalled.
///
/// ```
/// use std::sync::mpsc;
///
/// use purlin::Task;
///
/// let (sender, receiver) = mpsc::channel();
/// let task = Task::new(c"send", move || sender.send("ran").unwrap());
/// assert_eq!(task.label().to_string(), "send");
/// task.run();
/// assert_eq!(receiver.try_recv(), Ok("ran"));
/// ```
#[must_use = "a task that is dropped never runs"]
pub struct Task(NonNull<TaskNode>);

// SAFETY: Task::new takes Send closures only; from_raw's callers promise the same.
unsafe impl Send for Task {}

impl Task {
    /// Wraps `closure`; `label` names it in traces and reports. A panic in it is reported and swallowed. It runs in the
    /// user context that is current now.
    pub fn new(label: impl Into<Label>, closure: impl FnOnce() + Send + 'static) -> Self {
        match UserContext::current() {
            None => Self::with_closure(label.into(), closure),
            Some(context) => Self::with_closure(label.into(), with_user_context(context, closure)),
        }
    }

    fn with_closure<F: FnOnce() + Send + 'static>(label: Label, closure: F) -> Self {
        // SAFETY: the slab gives no null.
        let node: NonNull<TaskNode> = unsafe { NonNull::new_unchecked(slab::allocate(class_of::<F>()).cast()) };
        // SAFETY: the node is new and ours, and every field is written here; its class is one whose storage fits.
        unsafe {
            (&raw mut (*node.as_ptr()).next).write(ptr::null_mut());
            (&raw mut (*node.as_ptr()).label).write(label.as_cstr().as_ptr());
            let storage = storage_of(node.as_ptr());
            if const { fits_inline::<F>() } {
                storage.cast::<F>().write(closure);
                (&raw mut (*node.as_ptr()).invoke).write(invoke_inline::<F>);
            } else {
                storage.cast::<*mut F>().write(Box::into_raw(Box::new(closure)));
                (&raw mut (*node.as_ptr()).invoke).write(invoke_boxed::<F>);
            }
        }
        Self(node)
    }

    /// What the task was named.
    #[must_use]
    pub fn label(&self) -> Label {
        // SAFETY: the node is ours; its label is a static string with a NUL.
        unsafe { Label::from_ptr(self.0.as_ref().label) }
    }

    /// Calls the closure on this thread.
    #[inline]
    pub fn run(self) {
        // It runs in the user context where it was made, not in that of the thread that runs it.
        let _cleared = user_context::cleared();
        // SAFETY: the node is ours until it is invoked.
        let label = unsafe { self.0.as_ref().label };
        thread_state::running(self.number(), label, || self.invoke(TaskOp::RUN));
    }

    /// As `run`, inside a span that says so: where no subscriber may want it, one load, not an empty span that is made
    /// and dropped.
    #[inline]
    pub(crate) fn run_in_span(self) {
        if LevelFilter::current() >= LevelFilter::TRACE { self.run_watched() } else { self.run() }
    }

    #[cold]
    fn run_watched(self) {
        let _span = trace_span!(target: "purlin", "run", label = %self.label()).entered();
        self.run();
    }

    /// Distinguishes this task from all others until it has run or was dropped: the address of its node.
    pub(crate) fn number(&self) -> usize {
        self.0.addr().get()
    }

    fn invoke(self, op: TaskOp) {
        let node = ManuallyDrop::new(self).0.as_ptr();
        // SAFETY: the node is ours and is given away here.
        unsafe { ((*node).invoke)(node, op) };
    }

    /// Gives the node away. Take it back with [`from_raw`](Self::from_raw).
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> *mut TaskNode {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Takes a node, from [`into_raw`](Self::into_raw) or filled in by C++.
    ///
    /// # Safety
    /// `node` is not null, the caller's own and complete, and its closure may be called on any thread.
    #[doc(hidden)]
    pub unsafe fn from_raw(node: *mut TaskNode) -> Self {
        // SAFETY: not null, says the caller.
        Self(unsafe { NonNull::new_unchecked(node) })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // The node is freed with this second owner, and `self` is not used after it.
        Self(self.0).invoke(TaskOp::DROP);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({:?})", self.label())
    }
}

/// Where the closure is. The pointer is good for the whole block: a wide node's storage is longer than the field.
fn storage_of(node: *mut TaskNode) -> *mut u8 {
    node.wrapping_byte_add(std::mem::offset_of!(TaskNode, storage)).cast()
}

const fn fits_inline<F>() -> bool {
    size_of::<F>() <= WIDE_BYTES && align_of::<F>() <= align_of::<TaskNode>()
}

/// The class of the node for a closure of that type.
const fn class_of<F>() -> Class {
    if size_of::<F>() <= INLINE_BYTES || !fits_inline::<F>() { Class::Node } else { Class::WideNode }
}

/// Frees the node of a closure of that type, which is gone.
///
/// # Safety
/// The node is the caller's own.
unsafe fn free<F>(node: *mut TaskNode) {
    // SAFETY: the caller's promise; with_closure() took it from that class.
    unsafe { slab::free(class_of::<F>(), node.cast()) };
}

unsafe extern "C" fn invoke_inline<F: FnOnce()>(node: *mut TaskNode, op: TaskOp) {
    // SAFETY: with_closure() wrote an F into the storage of a node that is ours now; it is read once.
    let (closure, label) = unsafe { (storage_of(node).cast::<F>().read(), label_of(node)) };
    consume(closure, label, op);
    // Not before: the address is the task's number.
    // SAFETY: the node is ours, and its closure is gone.
    unsafe { free::<F>(node) };
}

unsafe extern "C" fn invoke_boxed<F: FnOnce()>(node: *mut TaskNode, op: TaskOp) {
    // SAFETY: with_closure() wrote the address of a leaked box into the storage of a node that is ours now.
    let (closure, label) = unsafe { (Box::from_raw(storage_of(node).cast::<*mut F>().read()), label_of(node)) };
    consume(closure, label, op);
    // SAFETY: as in invoke_inline().
    unsafe { free::<F>(node) };
}

/// The label of a complete node, unread: most tasks are never asked.
///
/// # Safety
/// `node` is complete.
unsafe fn label_of(node: *mut TaskNode) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { (&raw const (*node).label).read() }
}

/// Calls or drops a closure; a panic is reported by the panic hook, with the task's name, and swallowed.
fn consume(closure: impl FnOnce(), label: *const c_char, op: TaskOp) {
    let consume = || if op == TaskOp::RUN { closure() } else { drop(closure) };
    // SAFETY: a label is a static string with a NUL.
    contained("task", || unsafe { Label::from_ptr(label) }, consume);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_task_runs_once_and_drops_its_closure() {
        let witness = Arc::new(AtomicUsize::new(0));
        let inside = Arc::clone(&witness);
        Task::new(c"t", move || _ = inside.fetch_add(1, Ordering::Relaxed)).run();
        assert_eq!((witness.load(Ordering::Relaxed), Arc::strong_count(&witness)), (1, 1));
    }

    #[test]
    fn a_dropped_task_drops_its_closure_uncalled() {
        let witness = Arc::new(AtomicUsize::new(0));
        let inside = Arc::clone(&witness);
        drop(Task::new(c"t", move || _ = inside.fetch_add(1, Ordering::Relaxed)));
        assert_eq!((witness.load(Ordering::Relaxed), Arc::strong_count(&witness)), (0, 1));
    }

    #[test]
    fn large_and_overaligned_closures_work_too() {
        #[repr(align(64))]
        struct Wide([u8; 100]);
        let wide = Wide([7; 100]);
        let sum = Arc::new(AtomicUsize::new(0));
        let out = Arc::clone(&sum);
        let run = move || {
            assert_eq!((&raw const wide).addr() % 64, 0);
            out.store(wide.0.iter().map(|&byte| usize::from(byte)).sum(), Ordering::Relaxed);
        };
        Task::new(c"wide", run).run();
        assert_eq!(sum.load(Ordering::Relaxed), 700);
    }

    #[test]
    fn a_panic_stays_inside() {
        Task::new(c"t", || panic!("expected by a test")).run();
    }

    #[test]
    fn the_label_is_kept() {
        assert_eq!(Task::new(c"gradient", || ()).label().as_str(), "gradient");
    }
}
