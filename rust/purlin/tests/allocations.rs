//! What costs no heap allocation, counted. A process of its own, because it replaces the global allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin::{
    AsyncValue, Event, EventPromise, Future, Promise, ThreadPool, ThreadPoolOptions, run_when_ready, when_all,
};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

fn allocations_of(f: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    f();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// One test, so that nothing else in this process allocates meanwhile.
#[test]
fn allocations_are_as_documented() {
    small_tasks_cost_none_once_the_nodes_are_warm();
    events_cost_what_they_say();
    values_and_maps_cost_none();
}

fn small_tasks_cost_none_once_the_nodes_are_warm() {
    // With the two at the gate, a multiple of the batch in which nodes travel: each round leaves as many where it found
    // them, but for the node of the last task, which the worker may still have when the next round begins.
    const TASKS: usize = 1022;
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, name: "count".to_owned() }).unwrap();
    let gate = Arc::new(Barrier::new(2));
    let runs = Arc::new(AtomicUsize::new(0));
    // The worker waits at the gate until all tasks are queued, so that each round needs as many nodes as the last.
    let round = |tasks| {
        let inside = Arc::clone(&gate);
        pool.schedule(c"gate", move || _ = inside.wait()).unwrap();
        for _ in 0..tasks {
            let (runs, ballast) = (Arc::clone(&runs), [0_u64; 4]);
            pool.schedule(c"count", move || _ = runs.fetch_add(1 + ballast[0] as usize, Ordering::Relaxed)).unwrap();
        }
        let inside = Arc::clone(&gate);
        pool.schedule(c"end", move || _ = inside.wait()).unwrap();
        gate.wait();
        gate.wait();
    };
    // The first round makes the nodes, more than the others need; the second replaces those that the worker keeps.
    round(2 * TASKS + 2);
    (0..2).for_each(|_| round(TASKS));
    assert_eq!(allocations_of(|| round(TASKS)), 0);
    assert_eq!(runs.load(Ordering::Relaxed), 5 * TASKS + 2);
}

fn events_cost_what_they_say() {
    let ready = [Event::ready(), Event::ready()];
    assert_eq!(allocations_of(|| assert!(when_all(&ready).is_ready())), 0);
    assert_eq!(allocations_of(|| Event::ready().on_ready(|outcome| assert!(outcome.is_ok()))), 0);
    // The first cell and the first node of a thread bring their blocks.
    EventPromise::new(c"warm").event().on_ready(|_| ());
    assert_eq!(allocations_of(|| assert!(EventPromise::new(c"e").set_ready())), 0);
    let promise = EventPromise::new(c"e");
    let event = promise.event();
    assert_eq!(allocations_of(|| drop((event.clone(), event.clone()))), 0);
    assert_eq!(allocations_of(|| event.on_ready(|_| ())), 0);
    assert_eq!(allocations_of(|| run_when_ready(&ready, || ())), 0);
    let promises: [_; 8] = std::array::from_fn(|_| EventPromise::new(c"part"));
    let events = promises.each_ref().map(EventPromise::event);
    let mut all = Event::ready();
    assert_eq!(allocations_of(|| all = when_all(&events)), 1, "the block of the join");
    assert_eq!(allocations_of(|| assert!(promises.iter().all(EventPromise::set_ready) && all.is_ready())), 0);
}

/// With a value of up to 64 bytes and a closure of up to 32.
fn values_and_maps_cost_none() {
    let chain = || {
        let promise = Promise::new(c"p");
        let first = promise.future();
        let last = first
            .map(|value: &u64| [*value; 8])
            .try_map(|values| Ok(values[7]))
            .flat_map(|value| Future::ready(*value));
        promise.set(Ok(7)).unwrap();
        assert_eq!(last.get(), Some(&7));
        let value = AsyncValue::new_unconstructed(c"v");
        let indirect = AsyncValue::indirect(c"i");
        indirect.forward(&value).unwrap();
        value.and_then(|result| assert!(result.is_ok()));
        value.emplace(last.into_inner().map_or([0_u64; 4], |value| [value; 4])).unwrap();
        assert!(indirect.wait().is_ok());
    };
    chain();
    assert_eq!(allocations_of(chain), 0);
    let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() }).unwrap());
    let source = Future::ready(1_u64);
    let hop = || assert_eq!(source.map_on(&pool, |value| value + 1).wait(), Ok(&2));
    // The pool's thread takes blocks of its own, and gives them back.
    (0..500).for_each(|_| hop());
    // Nodes travel in batches, so a thread that was held up may need some more; no hop costs one by itself.
    let extra = allocations_of(|| (0..500).for_each(|_| hop()));
    assert!(extra < 250, "{extra} allocations in 500 hops");
}
