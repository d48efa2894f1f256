//! Where blocks wait between threads, and where they are made.

use std::alloc::{Layout, alloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use super::{BATCH, Class, LIMIT, forked, large, link, mark_free, thread_state};
use crate::clock::touch;
use crate::sync::Mutex;
use crate::thread_state::CLASSES;

/// Bytes of a chunk; also its alignment to 64.
const CHUNK_BYTES: usize = 64 * 1024;
const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES, 128) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// Free blocks, linked.
#[derive(Clone, Copy)]
struct List {
    head: *mut u8,
    count: u32,
}

struct Depot {
    batches: Vec<List>,
    /// Single blocks of threads that are ending.
    loose: List,
}

// SAFETY: a depot owns its blocks, which are bare memory.
unsafe impl Send for Depot {}

static DEPOTS: [Mutex<Depot>; CLASSES] =
    [const { Mutex::new(Depot { batches: Vec::new(), loose: List::EMPTY }) }; CLASSES];

/// Chunks of cells, for `for_each_cell`, and of nodes, so that leak checkers see that they are known.
static CHUNKS: Mutex<Vec<(Class, usize)>> = Mutex::new(Vec::new());

thread_local! {
    /// Its end is the thread's: free blocks go back to the depot. Blocks that are freed later go there one by one.
    static GUARD: Guard = const { Guard(Cell::new(())) };
}

struct Guard(Cell<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: our own thread's state.
        let state = unsafe { &*thread_state() };
        for class in Class::ALL {
            let list = &state.lists[class as usize];
            list.limit.set(0);
            let batch = List { head: list.head.replace(ptr::null_mut()), count: list.count.replace(0) };
            if batch.count > 0 {
                depot(class).lock().batches.push(batch);
            }
        }
    }
}

fn depot(class: Class) -> &'static Mutex<Depot> {
    &DEPOTS[class as usize]
}

impl List {
    const EMPTY: Self = Self { head: ptr::null_mut(), count: 0 };

    fn push(&mut self, block: *mut u8) {
        // SAFETY: the block is free and the caller's.
        unsafe { link(block) }.store(self.head, Relaxed);
        *self = Self { head: block, count: self.count + 1 };
    }

    fn pop(&mut self) -> *mut u8 {
        let block = self.head;
        // SAFETY: callers pop from lists that are not empty; a block of a list holds its link.
        *self = Self { head: unsafe { link(block) }.load(Relaxed), count: self.count - 1 };
        block
    }
}

/// A block when the thread has none left: takes a batch for it.
#[cold]
pub fn allocate_slowly(class: Class) -> *mut u8 {
    let ending = GUARD.try_with(|guard| guard.0.get()).is_err();
    touch();
    let mut batch = take(class);
    let block = batch.pop();
    if ending {
        let mut depot = depot(class).lock();
        if batch.count > 0 {
            depot.batches.push(batch);
        }
        return block;
    }
    // SAFETY: our own thread's state.
    let list = unsafe { &(*thread_state()).lists[class as usize] };
    list.limit.set(LIMIT);
    list.head.set(batch.head);
    list.count.set(batch.count);
    block
}

/// Takes a block that the thread has no room for: moves a batch to the depot first.
///
/// # Safety
/// `block` is the caller's, of this class, and free.
#[cold]
pub unsafe fn free_slowly(class: Class, block: *mut u8) {
    if GUARD.try_with(|guard| guard.0.get()).is_err() {
        let mut depot = depot(class).lock();
        depot.loose.push(block);
        if depot.loose.count == BATCH {
            let batch = std::mem::replace(&mut depot.loose, List::EMPTY);
            depot.batches.push(batch);
        }
        return;
    }
    // SAFETY: our own thread's state.
    let list = unsafe { &(*thread_state()).lists[class as usize] };
    let mut kept = List { head: list.head.get(), count: list.count.get() };
    if kept.count >= BATCH {
        let mut batch = List::EMPTY;
        while batch.count < BATCH {
            batch.push(kept.pop());
        }
        depot(class).lock().batches.push(batch);
    }
    kept.push(block);
    list.limit.set(LIMIT);
    list.head.set(kept.head);
    list.count.set(kept.count);
}

/// A batch that is not empty.
fn take(class: Class) -> List {
    let mut depot = depot(class).lock();
    if let Some(batch) = depot.batches.pop() {
        return batch;
    }
    if depot.loose.count > 0 {
        return std::mem::replace(&mut depot.loose, List::EMPTY);
    }
    let chunk = new_chunk(class);
    let blocks = CHUNK_BYTES / class.block_bytes();
    let mut batch = List::EMPTY;
    // From the end, so that a batch is used from its lowest address up.
    for index in (0..blocks).rev() {
        // SAFETY: inside the chunk, which no other thread knows yet.
        batch.push(unsafe { chunk.add(index * class.block_bytes()) });
        if batch.count == BATCH && index > 0 {
            depot.batches.push(std::mem::replace(&mut batch, List::EMPTY));
        }
    }
    batch
}

fn new_chunk(class: Class) -> *mut u8 {
    // SAFETY: the layout is not empty.
    let chunk = unsafe { alloc(CHUNK_LAYOUT) };
    if chunk.is_null() {
        handle_alloc_error(CHUNK_LAYOUT);
    }
    if class.is_cell() {
        forked::watch();
        for offset in (0..CHUNK_BYTES).step_by(class.block_bytes()) {
            // SAFETY: inside the chunk, aligned, and without another user yet.
            unsafe { mark_free(chunk.add(offset)) };
        }
    }
    CHUNKS.lock().push((class, chunk.expose_provenance()));
    chunk
}

/// Calls `visit` with every cell of the process, free or in use. Cells in use change meanwhile: read atomics only.
pub fn for_each_cell(mut visit: impl FnMut(*const u8)) {
    let chunks = CHUNKS.lock().clone();
    for (class, chunk) in chunks.into_iter().filter(|(class, _)| class.is_cell()) {
        for offset in (0..CHUNK_BYTES).step_by(class.block_bytes()) {
            visit(ptr::with_exposed_provenance(chunk + offset));
        }
    }
    large::for_each(visit);
}

/// Calls `look` with the cell at `address`, which was one once; a cell that is `far` may be gone, and then there is
/// nothing to look at. It may have become another one: read atomics only.
pub fn with_cell<R>(address: usize, is_far: bool, look: impl FnOnce(*const u8) -> R) -> Option<R> {
    if is_far { large::with(address, look) } else { Some(look(ptr::with_exposed_provenance(address))) }
}
