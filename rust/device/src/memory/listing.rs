//! What a stall report says of a client that lives: how much memory it holds, and the largest holders by name.
//!
//! The report must not become what ends a client: it asks through a weak reference. If the last other reference is
//! dropped meanwhile, a thread of its own drops the client, which may take as long as the work that is queued there.

use std::fmt::Write as _;
use std::thread::JoinHandle;

use super::{Instance, MemoryBlock};
use purlin_async::task::STACK_SIZE_BYTES;
use purlin_async::task::census::{Occupation, Occupied};
use purlin_base::sync::{PinnedArc, PinnedWeak, keep_record, spawn};

/// Holders that a line names.
const NAMED_HOLDERS: usize = 5;

/// Listed as long as its instance lives.
pub(super) struct Listing(pub(super) PinnedWeak<Instance>);

impl Occupied for Listing {
    fn occupation(&self) -> Occupation {
        let Some(instance) = self.0.upgrade() else {
            return Occupation { text: "client: it is ending".to_owned(), ..Default::default() };
        };
        let (text, blocks) = describe(&instance);
        drop(let_go(blocks, instance));
        Occupation { text, ..Default::default() }
    }
}

/// The line, and the blocks that were looked at for it.
fn describe(instance: &Instance) -> (String, Vec<PinnedArc<MemoryBlock>>) {
    let spaces = instance.spaces();
    let bytes: u64 = spaces.iter().map(|space| space.arena.stats().bytes_in_use).sum();
    let waiting: usize = spaces.iter().map(|space| space.waiting.len()).sum();
    let mut blocks: Vec<PinnedArc<MemoryBlock>> = spaces.iter().flat_map(|space| space.arena.holders()).collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(block.size_bytes()));
    let mut text = format!(
        "client of '{}' with {} devices: {bytes} bytes in use by {} allocations, {waiting} more wait, {} mapped ranges",
        instance.backend().platform_name(),
        instance.device_count(),
        blocks.len(),
        instance.dma_mappings().count()
    );
    for (index, block) in blocks.iter().take(NAMED_HOLDERS).enumerate() {
        let (between, tag) = (if index == 0 { ": " } else { ", " }, block.tag());
        // Writing to a string does not fail.
        let _ = write!(text, "{between}{} bytes '{}' from {}", block.size_bytes(), tag.label, tag.place());
    }
    (text, blocks)
}

/// Drops the references of a report. An object whose last reference is the report's is dropped on another thread, one
/// for all such objects, which is the answer. What that object refers to stays where it is until then: a block's memory
/// is listed until the block has given it back.
fn let_go(blocks: Vec<PinnedArc<MemoryBlock>>, instance: PinnedArc<Instance>) -> Option<JoinHandle<()>> {
    let blocks: Vec<_> = blocks.into_iter().filter_map(PinnedArc::into_last).collect();
    // Each block refers to the instance: this is the last only where there is no block.
    let instance = PinnedArc::into_last(instance);
    if blocks.is_empty() && instance.is_none() {
        return None;
    }
    // Without a thread they are dropped here and now: the closure is dropped with what it holds.
    let thread = std::thread::Builder::new().name("purlin-report".to_owned()).stack_size(STACK_SIZE_BYTES);
    let started = spawn(thread, move || drop((blocks, instance))).ok()?;
    keep_record(started.thread());
    Some(started)
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::{describe, let_go};
    use crate::backend::NullBackend;
    use crate::memory::{AllocOptions, Instance, MemoryBlock, MemorySpace, open_memories};
    use purlin_async::pool::{ThreadPool, ThreadPoolOptions};
    use purlin_base::status::SourceLocation;
    use purlin_base::sync::PinnedArc;

    fn an_instance() -> PinnedArc<Instance> {
        let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, name: "listed".to_owned() }).unwrap();
        open_memories(Arc::new(NullBackend::new()), 1, None, &Default::default(), pool).unwrap()
    }

    fn blocks_of(instance: &PinnedArc<Instance>) -> Vec<PinnedArc<MemoryBlock>> {
        let space = MemorySpace::new(instance.clone(), 0);
        let allocate = |_| space.allocate(100, &AllocOptions::default(), SourceLocation::caller()).unwrap();
        (0..1000).map(allocate).collect()
    }

    #[test]
    fn what_only_a_report_still_has_goes_on_one_thread() {
        let instance = an_instance();
        let held = blocks_of(&instance);
        let (text, blocks) = describe(&instance);
        assert!(text.contains("by 1000 allocations"), "{text}");
        drop(held);
        assert_eq!(instance.spaces()[0].arena.stats().bytes_in_use, 100_000, "the report has them");
        let weak = PinnedArc::downgrade(&instance);
        let thread = let_go(blocks, instance).expect("the report had the last references");
        thread.join().unwrap();
        // The thread has dropped the blocks, and with the last of them the client, which only the timer for idle memory
        // may have for a moment.
        let long_enough = Instant::now() + Duration::from_secs(60);
        while weak.upgrade().is_some() {
            assert!(Instant::now() < long_enough, "a block or the client is left");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_others_have_too_needs_no_thread() {
        let instance = an_instance();
        let held = blocks_of(&instance);
        let (_, blocks) = describe(&instance);
        assert!(let_go(blocks, instance.clone()).is_none());
        drop(held);
        assert_eq!(instance.spaces()[0].arena.stats().bytes_in_use, 0);
    }
}
