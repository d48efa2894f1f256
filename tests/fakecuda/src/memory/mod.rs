//! All memory that the driver knows: device blocks, pinned and registered ranges, pools, and how full each device is.
//!
//! A device's addresses are a range of the process that faults when it is touched; the bytes lie elsewhere (`bytes`).
//! While the detector is on, a freed block stays in the table and its addresses are not used again, so that late uses
//! are known for what they are, until there are no others left. Otherwise the address of a freed block goes to the next
//! one of its size.

pub(crate) mod bytes;
pub(crate) mod pool;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use purlin_fakecuda_options::Options;

use crate::boundary::Answer;
use crate::code::Code;
use crate::detector::Life;
use crate::detector::shadow::Span;
use crate::detector::stamp::Stamp;
use bytes::Bytes;
use pool::Pool;

/// Blocks begin at multiples of this, and at least as many bytes lie between two.
const ALIGNMENT_BYTES: u64 = 512;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cuMemAlloc`.
    Plain,
    /// Of the pool with that handle.
    Pooled(usize),
    /// A module's global variable.
    Global,
    /// `cuMemHostAlloc`.
    Pinned,
    /// `cuMemHostRegister`.
    Registered,
}

impl Kind {
    pub(crate) const fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Registered)
    }
}

/// One block.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    /// Of host memory: that of the context that it was made in.
    pub(crate) device: usize,
    pub(crate) life: Life,
    pub(crate) bytes: Arc<Bytes>,
}

impl Block {
    pub(crate) fn size_bytes(&self) -> u64 {
        self.life.span.end - self.life.span.start
    }
}

/// What is at an address.
pub(crate) enum Found<'a> {
    /// The whole range lies in the block.
    Inside(&'a Block),
    /// It begins in the block, or in the gap behind it, and ends outside.
    Beyond(&'a Block),
    /// No block is there.
    Nothing,
}

struct Space {
    range: Span,
    next: u64,
    /// Addresses of freed blocks by size, oldest first.
    freed: HashMap<u64, VecDeque<u64>>,
    used_bytes: u64,
}

/// See the module.
pub(crate) struct Memory {
    spaces: Vec<Space>,
    pub(crate) blocks: BTreeMap<u64, Block>,
    pub(crate) pools: HashMap<usize, Pool>,
    /// By device, where the program has set one.
    pub(crate) current_pools: HashMap<usize, usize>,
    size_bytes: u64,
    /// Freed blocks stay.
    remembers: bool,
    /// The bytes of blocks that have none any more.
    nothing: Arc<Bytes>,
}

fn rounded(size_bytes: u64) -> u64 {
    size_bytes.saturating_add(ALIGNMENT_BYTES - 1) & !(ALIGNMENT_BYTES - 1)
}

impl Memory {
    pub(crate) fn new(options: &Options) -> Self {
        let space = |_| {
            // As much as there is room for, down to nothing: then there is no memory.
            let mut size_bytes = options.address_bytes.max(1 << 20);
            let start = loop {
                match bytes::reserve(size_bytes) {
                    None if size_bytes > 1 << 20 => size_bytes /= 2,
                    reserved => break reserved,
                }
            };
            let range = start.map_or(Span::new(0, 0), |start| Span::new(start as u64, size_bytes));
            // Nothing begins where the range does, so that the byte before a block is a wild address, too.
            Space { range, next: range.start + ALIGNMENT_BYTES, freed: HashMap::new(), used_bytes: 0 }
        };
        Self {
            spaces: (0..options.devices).map(space).collect(),
            blocks: BTreeMap::new(),
            pools: HashMap::new(),
            current_pools: HashMap::new(),
            size_bytes: options.memory_bytes,
            remembers: options.detector,
            nothing: Arc::new(Bytes::of_device(0)),
        }
    }

    /// Bytes of the device that nobody has.
    pub(crate) fn free_bytes(&self, device: usize) -> u64 {
        self.spaces.get(device).map_or(self.size_bytes, |space| self.size_bytes.saturating_sub(space.used_bytes))
    }

    /// Takes bytes of the device, if need be from pools that do not use what they hold.
    fn take(&mut self, device: usize, size_bytes: u64) -> Answer {
        if self.free_bytes(device) < size_bytes {
            let handles: Vec<usize> = self.pools.keys().copied().collect();
            handles.into_iter().for_each(|pool| self.trim(pool, 0));
        }
        if self.free_bytes(device) < size_bytes {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.spaces[device].used_bytes += size_bytes;
        Ok(())
    }

    fn give_back(&mut self, device: usize, size_bytes: u64) {
        let used = &mut self.spaces[device].used_bytes;
        *used = used.saturating_sub(size_bytes);
    }

    /// A new block of device memory; OUT_OF_MEMORY if it, or the addresses for it, cannot be had.
    pub(crate) fn allocate(&mut self, device: usize, size_bytes: u64, kind: Kind, made: Arc<Stamp>) -> Answer<u64> {
        if size_bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let rounded = rounded(size_bytes);
        match kind {
            Kind::Pooled(pool) => self.take_from_pool(pool, rounded)?,
            _ => self.take(device, rounded)?,
        }
        let Some(address) = self.new_address(device, rounded) else {
            match kind {
                Kind::Pooled(pool) => self.give_to_pool(pool, rounded),
                _ => self.give_back(device, rounded),
            }
            return Err(Code::OUT_OF_MEMORY);
        };
        let bytes = Arc::new(Bytes::of_device(size_bytes));
        let life = Life { span: Span::new(address, size_bytes), made, freed: None, is_followed: true };
        self.blocks.insert(address, Block { kind, device, life, bytes });
        Ok(address)
    }

    /// Addresses for so many bytes; `None` if there are none.
    fn new_address(&mut self, device: usize, rounded: u64) -> Option<u64> {
        let space = &mut self.spaces[device];
        let is_full = space.range.end.saturating_sub(space.next) < rounded + ALIGNMENT_BYTES;
        let used_before = space.freed.get_mut(&rounded).filter(|_| is_full || !self.remembers);
        if let Some(address) = used_before.and_then(VecDeque::pop_front) {
            self.blocks.remove(&address);
            return Some(address);
        }
        if is_full {
            return None;
        }
        let address = space.next;
        space.next += rounded + ALIGNMENT_BYTES;
        Some(address)
    }

    /// Memory of the host becomes known to the driver.
    pub(crate) fn add_host(
        &mut self,
        bytes: Bytes,
        size_bytes: u64,
        kind: Kind,
        device: usize,
        made: Arc<Stamp>,
    ) -> Answer<u64> {
        let address = bytes.address().ok_or(Code::INVALID_VALUE)? as u64;
        let span = Span::new(address, size_bytes);
        if self.overlaps(span) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        // Freed blocks there are history: the system gave their addresses to others.
        let old: Vec<u64> = self.blocks.range(span.start..span.end).map(|(start, _)| *start).collect();
        old.iter().for_each(|start| _ = self.blocks.remove(start));
        let life = Life { span, made, freed: None, is_followed: false };
        self.blocks.insert(address, Block { kind, device, life, bytes: Arc::new(bytes) });
        Ok(address)
    }

    fn overlaps(&self, span: Span) -> bool {
        let last = self.blocks.range(..span.end).next_back();
        last.is_some_and(|(_, block)| block.life.freed.is_none() && !block.life.span.intersection(span).is_empty())
    }

    /// The block that begins there and is not freed; INVALID_VALUE without one.
    pub(crate) fn live(&self, address: u64) -> Answer<&Block> {
        self.blocks.get(&address).filter(|block| block.life.freed.is_none()).ok_or(Code::INVALID_VALUE)
    }

    /// The block is freed as far as the books go; its bytes go when [`Bytes::free`] is called.
    pub(crate) fn free(&mut self, address: u64, freed: Arc<Stamp>) -> Answer<Block> {
        let block = self.live(address)?.clone();
        let rounded = rounded(block.size_bytes());
        match block.kind {
            Kind::Pooled(pool) => self.give_to_pool(pool, rounded),
            Kind::Plain | Kind::Global => self.give_back(block.device, rounded),
            Kind::Pinned | Kind::Registered => {}
        }
        if self.remembers {
            if let Some(block) = self.blocks.get_mut(&address) {
                block.life.freed = Some(freed);
            }
        } else {
            self.blocks.remove(&address);
            self.may_be_used_again(&block, address);
        }
        Ok(block)
    }

    /// The bytes of a freed block are gone: what the block's place in the table holds of them, too.
    pub(crate) fn bury(&mut self, address: u64) {
        if let Some(block) = self.blocks.get_mut(&address).filter(|block| block.life.freed.is_some()) {
            block.bytes = Arc::clone(&self.nothing);
            let block = block.clone();
            self.may_be_used_again(&block, address);
        }
    }

    fn may_be_used_again(&mut self, block: &Block, address: u64) {
        if !block.kind.is_host() {
            self.spaces[block.device].freed.entry(rounded(block.size_bytes())).or_default().push_back(address);
        }
    }

    /// What a range of addresses is.
    pub(crate) fn find(&self, span: Span) -> Found<'_> {
        match self.blocks.range(..=span.start).next_back() {
            Some((_, block)) if span.start < block.life.span.end && span.end <= block.life.span.end => {
                Found::Inside(block)
            }
            Some((_, block)) if span.start < block.life.span.end.saturating_add(ALIGNMENT_BYTES) => {
                Found::Beyond(block)
            }
            _ => Found::Nothing,
        }
    }

    /// Whether it is an address of a device, allocated or not.
    pub(crate) fn is_device_address(&self, address: u64) -> bool {
        self.spaces.iter().any(|space| (space.range.start..space.range.end).contains(&address))
    }

    /// Bytes of live blocks of these kinds.
    pub(crate) fn live_bytes(&self, is_counted: impl Fn(Kind) -> bool) -> u64 {
        let live = self.blocks.values().filter(|block| block.life.freed.is_none() && is_counted(block.kind));
        live.map(Block::size_bytes).sum()
    }
}
