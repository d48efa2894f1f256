//! Memory for what is made and dropped millions of times: event cells, waiters, task nodes, and small values that are
//! counted (`sync/pinned_arc/`) or handed to C, in blocks of fixed size.
//!
//! Each thread keeps a list of free blocks per [`Class`] in its [`ThreadState`], so taking and giving back is a few
//! instructions without an atomic; C++ does the same inline (`include/purlin/internal/thread_state.h`). Blocks travel
//! between threads in batches through `depot.rs`, whose lock is paid once per [`BATCH`] blocks. Blocks come from chunks
//! that are never given back to the system, so an event's address stays an event cell for ever: that is what lets
//! `for_each_cell` read all cells of the process, while they are in use, to explain a stall, and fail them in a child
//! of `fork`.
//!
//! While a block is free, its word at [`LINK_OFFSET`] is the link to the next one. The first word of a free cell is
//! [`FREE_WORD`], a terminal state, so that no reader takes it for a pending event; `event/memory.rs` keeps that rule.
//!
//! AddressSanitizer (`plain.rs`) and models (`model.rs`) take every block from the system, so that they see each of
//! them.

#![allow(unsafe_code, reason = "free blocks are raw memory, linked by hand and shared with C++")]

mod boxed;
#[cfg(not(any(purlin_model, purlin_asan)))]
mod depot;
#[cfg(purlin_model)]
#[path = "model.rs"]
mod depot;
#[cfg(all(purlin_asan, not(purlin_model)))]
#[path = "plain.rs"]
mod depot;
#[cfg(not(purlin_model))]
mod forked;
#[cfg(not(purlin_model))]
mod large;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

pub use crate::thread_state::{CLASSES, FreeList, ThreadState, with_state};

pub use boxed::SlabBox;
#[cfg(not(purlin_model))]
pub use depot::for_each_cell;
pub use depot::with_cell;
pub use depot::{allocate_slowly, free_slowly};
#[cfg(not(purlin_model))]
pub use forked::{is_child, is_inherited};
#[cfg(not(purlin_model))]
pub use large::{allocate_large, free_large};

/// What a block is for. Blocks of one class never serve another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Class {
    /// 64 bytes: a waiter, a task node or a value ([`allocate_for`]).
    Node = 0,
    /// 64 bytes: an event cell.
    Cell = 1,
    /// 128 bytes: an event cell with a payload of up to 64.
    WideCell = 2,
    /// 128 bytes: a waiter, a task node or a value ([`allocate_for`]).
    WideNode = 3,
}

/// Where a free block holds the address of the next one.
pub const LINK_OFFSET: usize = 24;
/// The first word of a cell that is free: that of a ready event.
pub const FREE_WORD: usize = 2;
/// Set in the first word of a cell that is terminal.
pub const TERMINAL_BIT: usize = 2;
/// The first word of a cell that has failed; the error is where a free cell has its link.
pub const ERROR_WORD: usize = 3;
/// Blocks that travel together.
pub const BATCH: u32 = 64;
/// The most free blocks of a class that one thread keeps.
pub const LIMIT: u32 = 2 * BATCH;

impl Class {
    const ALL: [Self; CLASSES] = [Self::Node, Self::Cell, Self::WideCell, Self::WideNode];

    /// The class of that number, which C++ knows it by.
    #[must_use]
    pub fn from_raw(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Whether its blocks are event cells.
    #[cfg(not(purlin_model))]
    const fn is_cell(self) -> bool {
        matches!(self, Self::Cell | Self::WideCell)
    }

    /// The class whose blocks hold a value of that layout. `None`: it is too large, or so small that it would waste
    /// more than half of a block.
    const fn of(layout: Layout) -> Option<Self> {
        match layout.size() {
            _ if layout.align() > 64 => None,
            32..=64 => Some(Self::Node),
            65..=128 => Some(Self::WideNode),
            _ => None,
        }
    }

    /// Bytes of a block; also its alignment, as far as 64.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Node | Self::Cell => 64,
            Self::WideCell | Self::WideNode => 128,
        }
    }
}

/// This thread's state, valid on this thread until it ends.
#[cfg(not(purlin_model))]
#[must_use]
pub fn thread_state() -> *const ThreadState {
    // A thread may make events in its own memory, for which nothing is asked for here.
    forked::watch();
    with_state(ptr::from_ref)
}

/// Memory of `class` with unspecified contents. Ends the process when the system has none, as `Box` does.
#[inline]
pub fn allocate(class: Class) -> *mut u8 {
    with_state(|state| {
        let list = &state.lists[class as usize];
        let block = list.head.get();
        if block.is_null() {
            return allocate_slowly(class);
        }
        // SAFETY: a block of the list is ours, and free: it holds its link.
        list.head.set(unsafe { link(block) }.load(Relaxed));
        list.count.set(list.count.get() - 1);
        block
    })
}

/// Gives a block back.
///
/// # Safety
/// `block` came from [`allocate`] with the same class, and it is no longer used, except `for_each_cell`'s readers.
#[inline]
pub unsafe fn free(class: Class, block: *mut u8) {
    with_state(|state| {
        let list = &state.lists[class as usize];
        if list.count.get() >= list.limit.get() {
            // SAFETY: the caller's promises.
            return unsafe { free_slowly(class, block) };
        }
        // SAFETY: the block is ours; its link is 8 of its bytes.
        unsafe { link(block) }.store(list.head.get(), Relaxed);
        list.head.set(block);
        list.count.set(list.count.get() + 1);
    });
}

/// The link of a free block. Only its owner uses it; but a thread that saw a cell pending may read the atomic that was
/// there, until it looks at the word again, and drop what it read.
///
/// # Safety
/// `block` is a block, and stays one while the reference is used.
unsafe fn link<'a>(block: *mut u8) -> &'a AtomicPtr<u8> {
    // SAFETY: blocks are larger than the offset, and aligned; whatever is read there meanwhile is read atomically.
    unsafe { AtomicPtr::from_ptr(block.add(LINK_OFFSET).cast()) }
}

/// Keeps a new cell from being taken for a pending event.
///
/// # Safety
/// `cell` is the caller's own memory, of at least a cell's size, aligned.
#[cfg(not(purlin_model))]
unsafe fn mark_free(cell: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { cell.cast::<usize>().write(FREE_WORD) };
}

/// Whether a `T` gets a block, rather than memory of the system's.
#[must_use]
pub const fn is_block<T>() -> bool {
    Class::of(Layout::new::<T>()).is_some()
}

/// Memory for a `T`, without contents: a block that fits, or else the system's. Ends the process when the system has
/// none, as `Box` does.
#[inline]
pub fn allocate_for<T>() -> NonNull<T> {
    let layout = Layout::new::<T>();
    let memory = match Class::of(layout) {
        Some(class) => allocate(class),
        None if layout.size() == 0 => return NonNull::dangling(),
        // SAFETY: the layout is not empty.
        None => unsafe { alloc(layout) },
    };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives it back.
///
/// # Safety
/// `value` came from [`allocate_for`], and may have been made unsized since. What was there is gone, and the memory is
/// no longer used.
#[inline]
pub unsafe fn free_for<T: ?Sized>(value: NonNull<T>) {
    // SAFETY: the caller's promises. The layout is the one that the memory was made with, also of an unsized value.
    unsafe {
        let layout = Layout::for_value(value.as_ref());
        match Class::of(layout) {
            Some(class) => free(class, value.as_ptr().cast()),
            None if layout.size() == 0 => {}
            None => dealloc(value.as_ptr().cast(), layout),
        }
    }
}

/// This side's layout as `name=value` lines, for the test that compares both sides.
#[must_use]
pub fn layout() -> String {
    use std::mem::offset_of;
    format!(
        "ThreadState.size={}\nThreadState.depth={}\nThreadState.deferred={}\nThreadState.context={}\n\
         ThreadState.now_ms={}\nThreadState.lists={}\nThreadState.running={}\nFreeList.size={}\nFreeList.head={}\nFreeList.count={}\n\
         FreeList.limit={}\nkLinkOffset={}\n",
        size_of::<ThreadState>(),
        offset_of!(ThreadState, depth),
        offset_of!(ThreadState, deferred),
        offset_of!(ThreadState, context),
        offset_of!(ThreadState, now_ms),
        offset_of!(ThreadState, lists),
        offset_of!(ThreadState, running),
        size_of::<FreeList>(),
        offset_of!(FreeList, head),
        offset_of!(FreeList, count),
        offset_of!(FreeList, limit),
        LINK_OFFSET,
    )
}

#[cfg(all(test, not(any(purlin_model, purlin_asan))))]
mod tests;
