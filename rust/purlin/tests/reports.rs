//! Reports of the holders of memory, beside threads that allocate and free: of stalls, of allocations that fail, of
//! watchdogs. A process of its own, because it replaces the global allocator by one that writes over what is freed: a
//! thread that follows a reference to memory that has gone does not get far.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use purlin::backend::{Backend, Extent, Memory, MemoryProperties, Operation, Schedule};
use purlin::{
    AllocOptions, Client, ClientOptions, Event, EventPromise, MemoryHook, MemorySpace, NullBackend, OomPolicy,
    RawBuffer, ShutdownOptions, StatusOr, Watchdog, WatchdogOptions, dump_stalls, stalls,
};

struct Scribbling;

// SAFETY: every call is passed on to the system's allocator; what is written over is the caller's no more.
unsafe impl GlobalAlloc for Scribbling {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe {
            memory.write_bytes(0xDD, layout.size());
            System.dealloc(memory, layout);
        }
    }
}

#[global_allocator]
static GLOBAL: Scribbling = Scribbling;

/// A space whose blocks are extents of their own, as those of a user's allocator.
struct Uncached(NullBackend);

struct UncachedMemory(Box<dyn Memory>);

impl Backend for Uncached {
    fn platform_name(&self) -> &'static str {
        "uncached"
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        self.0.memory_kinds()
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        Ok(Box::new(UncachedMemory(self.0.open_memory(device, kind)?)))
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        self.0.run(operation, schedule)
    }
}

impl Memory for UncachedMemory {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties { caching: false, ..self.0.properties() }
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        self.0.map(size_bytes, alignment_bytes)
    }

    fn import(&self, address: usize, size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        self.0.import(address, size_bytes)
    }
}

fn space(backend: Arc<dyn Backend>, memory_limit_bytes: usize) -> (Arc<Client>, MemorySpace) {
    let out_of_memory: MemoryHook = Arc::new(|_report| false);
    let options = ClientOptions {
        device_count: 1,
        worker_count: 2,
        memory_limit_bytes,
        on_out_of_memory: Some(out_of_memory),
        ..Default::default()
    };
    let client = Client::new(&options, backend).expect("it opens");
    let space = client.devices()[0].default_memory_space();
    (client, space)
}

/// One of the ways in which a block is held: small, large, shared, waited for, foreign.
fn allocate_and_free(space: &MemorySpace, round: usize) {
    let size_bytes = [1, 64, 4096, 40 << 10, 1 << 20][round % 5];
    let oom = [OomPolicy::Fail, OomPolicy::Wait, OomPolicy::Retry][round % 3];
    let options = AllocOptions { oom, ..Default::default() };
    let Ok(buffer) = RawBuffer::allocate_with(space, size_bytes, &options) else { return };
    match round % 4 {
        0 => drop(buffer),
        1 => {
            let part = buffer.slice(0, 1).expect("one byte at least");
            drop(buffer);
            drop(part);
        }
        2 => {
            let used = EventPromise::new(c"use");
            buffer.retain_until(&used.event());
            drop(buffer);
            drop(space.report());
            used.set_ready();
        }
        _ => {
            let (channel, promise) = RawBuffer::channel(space, size_bytes, &AllocOptions::default());
            promise.fulfil(&buffer).expect("the same size and space");
            drop(buffer);
            drop(channel);
        }
    }
}

const ALLOCATING_THREADS: usize = 24;

fn report_beside_allocations(backend: Arc<dyn Backend>, memory_limit_bytes: usize) {
    let (client, space) = space(backend, memory_limit_bytes);
    let over = AtomicUsize::new(0);
    let reported = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reported);
    let watchdog = Watchdog::start(WatchdogOptions {
        older_than: Duration::from_millis(10),
        sink: Some(Box::new(move |_report| _ = counted.fetch_add(1, Ordering::Relaxed))),
        ..Default::default()
    })
    .expect("there is a thread for it");
    // Keeps the watchdog in news.
    let stalled = EventPromise::new(c"stalled");
    thread::scope(|scope| {
        for thread in 0..ALLOCATING_THREADS {
            let (space, over) = (&space, &over);
            scope.spawn(move || {
                for round in 0..500 {
                    allocate_and_free(space, round + thread);
                }
                over.fetch_add(1, Ordering::Release);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while over.load(Ordering::Acquire) < ALLOCATING_THREADS {
                    assert!(!stalls(Duration::ZERO).executors.is_empty(), "the client is listed");
                    assert!(!dump_stalls(Duration::ZERO).is_empty());
                }
            });
        }
    });
    stalled.set_ready();
    drop(watchdog);
    client.shutdown(ShutdownOptions::default()).expect("nothing is in flight");
    // A report may have been the last to hold a block; then a thread of its own ends it.
    let long_enough = Instant::now() + Duration::from_secs(60);
    while space.stats().bytes_in_use > 0 && Instant::now() < long_enough {
        thread::yield_now();
    }
    assert_eq!(space.stats().bytes_in_use, 0);
}

#[test]
fn reports_beside_24_threads_that_allocate_free_nothing_twice() {
    report_beside_allocations(Arc::new(NullBackend::new()), 0);
}

#[test]
fn reports_and_autopsies_beside_24_threads_that_run_out_of_memory_free_nothing_twice() {
    report_beside_allocations(Arc::new(NullBackend::new()), 3 << 20);
}

#[test]
fn reports_beside_24_threads_with_extents_of_their_own_free_nothing_twice() {
    report_beside_allocations(Arc::new(Uncached(NullBackend::new())), 3 << 20);
}
