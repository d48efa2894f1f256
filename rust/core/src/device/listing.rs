//! What a stall report says of a client that lives: how much memory it holds, and the largest holders by name.
//!
//! The report must not become what ends a client: it asks through a weak reference, and if the last other one goes meanwhile,
//! a thread of its own lets go of the client, which may take as long as the work that is queued there.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use super::block::MemoryBlock;
use super::instance::Instance;
use crate::exec::census::{Occupation, Occupied};

/// Holders that a line names.
const NAMED_HOLDERS: usize = 5;

/// Listed as long as its instance lives.
pub(super) struct Listing(pub(super) Weak<Instance>);

impl Occupied for Listing {
    fn occupation(&self) -> Occupation {
        let Some(instance) = self.0.upgrade() else {
            return Occupation { text: "client: it is ending".to_owned(), ..Default::default() };
        };
        let text = describe(&instance);
        let_go(instance);
        Occupation { text, ..Default::default() }
    }
}

fn describe(instance: &Instance) -> String {
    let spaces = instance.spaces();
    let bytes: u64 = spaces.iter().map(|space| space.arena.stats().bytes_in_use).sum();
    let waiting: usize = spaces.iter().map(|space| space.waiting.len()).sum();
    let mut blocks: Vec<Arc<MemoryBlock>> = spaces.iter().flat_map(|space| space.arena.holders()).collect();
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
    blocks.into_iter().for_each(let_go);
    text
}

/// Lets go of a reference; if it is the last, on another thread.
fn let_go<T: Send + 'static>(shared: Arc<T>)
where
    Arc<T>: Send,
{
    if let Some(last) = Arc::into_inner(shared) {
        // Without a thread it goes here and now: the closure is dropped with what it holds.
        let _ = std::thread::Builder::new().name("purlin-report".to_owned()).spawn(move || drop(last));
    }
}
