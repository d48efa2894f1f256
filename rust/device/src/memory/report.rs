//! The holders of a space's memory: the autopsy of an allocation that failed, and a picture at any other time.

use std::fmt::{self, Write as _};

use super::block::MemoryBlock;
use super::space::Space;
use purlin_base::clock::touch;
use purlin_base::quoted::Quoted;
use purlin_base::sync::PinnedArc;

/// The holders that a report names.
const NAMED_HOLDERS: usize = 10;

/// The payload of an error that says that there is no memory: the report as JSON.
pub const MEMORY_REPORT_TYPE_URL: &str = "purlin.dev/memory-report";

/// The memory of one space at one time.
///
/// ```
/// use purlin::RawBuffer;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let memory = RawBuffer::allocate(&space, 1000)?;
/// let report = space.report();
/// assert_eq!((report.holder_count, report.bytes_in_use), (1, 1000));
/// assert!(report.to_string().contains("host:0/device"));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The space, such as `host:0/device`.
    pub memory_space: String,
    /// What could not be had, if this is about a failed allocation.
    pub requested_bytes: Option<u64>,
    /// Why not.
    pub reason: String,
    /// Bytes of live allocations, as asked for.
    pub bytes_in_use: u64,
    /// The most bytes that the space takes from the system; `None`: no limit.
    pub bytes_limit: Option<u64>,
    /// Bytes taken from the system.
    pub pool_bytes: u64,
    /// Of those, bytes that are free.
    pub free_bytes: u64,
    /// The largest allocation that can be had without freeing another; without a limit, and without asking the system.
    pub largest_free_block_bytes: u64,
    /// Which part of the free bytes is not in the largest free block, in percent: `0..=100`.
    pub fragmentation_percent: u8,
    /// Bytes that only copies in flight and pending events still hold: they are freed when those are over.
    pub pending_free_bytes: u64,
    /// How many allocations are live.
    pub holder_count: usize,
    /// How many allocations wait for memory.
    pub waiting_count: usize,
    /// The largest live allocations, the largest first.
    pub holders: Vec<MemoryHolder>,
}

/// A live allocation.
///
/// ```
/// use purlin::{AllocOptions, RawBuffer};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = AllocOptions { label: c"weights".into(), ..Default::default() };
/// let memory = RawBuffer::allocate_with(&space, 1000, &options)?;
/// let holder = &space.report().holders[0];
/// assert_eq!((holder.label.as_str(), holder.size_bytes, holder.is_going), ("weights", 1000, false));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryHolder {
    /// As asked for.
    pub size_bytes: u64,
    /// What it is for.
    pub label: String,
    /// Where it was asked for: `file:line`.
    pub place: String,
    /// How long ago; an upper bound, exact to the second or so.
    pub age_ms: u32,
    /// Only copies in flight and pending events still hold it.
    pub is_going: bool,
}

impl MemoryReport {
    /// What is known now of `space`, whose name is `memory_space`.
    pub(super) fn of(space: &Space, memory_space: String, requested: Option<(usize, String)>) -> Self {
        let now_ms = touch();
        let stats = space.arena.stats();
        let blocks: Vec<PinnedArc<MemoryBlock>> = space.arena.holders();
        let mut holders: Vec<MemoryHolder> = blocks.iter().map(|block| MemoryHolder::of(block, now_ms)).collect();
        drop(blocks);
        let pending_free_bytes = holders.iter().filter(|holder| holder.is_going).map(|holder| holder.size_bytes).sum();
        let holder_count = holders.len();
        // The largest first; of equal ones the oldest.
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.size_bytes), std::cmp::Reverse(holder.age_ms)));
        holders.truncate(NAMED_HOLDERS);
        let free_bytes = space.arena.free_bytes() as u64;
        let headroom_bytes = stats.bytes_limit.map_or(0, |limit| limit.saturating_sub(stats.pool_bytes));
        let (requested_bytes, reason) =
            requested.map_or((None, String::new()), |(bytes, why)| (Some(bytes as u64), why));
        Self {
            memory_space,
            requested_bytes,
            reason,
            bytes_in_use: stats.bytes_in_use,
            bytes_limit: stats.bytes_limit,
            pool_bytes: stats.pool_bytes,
            free_bytes,
            largest_free_block_bytes: stats.largest_free_block_bytes,
            fragmentation_percent: fragmentation_percent(stats.largest_free_block_bytes, free_bytes + headroom_bytes),
            pending_free_bytes,
            holder_count,
            waiting_count: space.waiting.len(),
            holders,
        }
    }

    /// The report as one JSON object, whose members are named as the fields.
    ///
    /// ```
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    /// assert!(space.report().to_json().starts_with(r#"{"memory_space":"host:0/device","#));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let number = |value: Option<u64>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        let mut out = format!(
            "{{\"memory_space\":{},\"requested_bytes\":{},\"reason\":{},\"bytes_in_use\":{},\"bytes_limit\":{},\
             \"pool_bytes\":{},\"free_bytes\":{},\"largest_free_block_bytes\":{},\"fragmentation_percent\":{},\
             \"pending_free_bytes\":{},\"holder_count\":{},\"waiting_count\":{},\"holders\":[",
            Quoted(&self.memory_space),
            number(self.requested_bytes),
            Quoted(&self.reason),
            self.bytes_in_use,
            number(self.bytes_limit),
            self.pool_bytes,
            self.free_bytes,
            self.largest_free_block_bytes,
            self.fragmentation_percent,
            self.pending_free_bytes,
            self.holder_count,
            self.waiting_count,
        );
        for (index, holder) in self.holders.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let (label, place) = (Quoted(&holder.label), Quoted(&holder.place));
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "{comma}{{\"size_bytes\":{},\"label\":{label},\"place\":{place},\"age_ms\":{},\"is_going\":{}}}",
                holder.size_bytes, holder.age_ms, holder.is_going
            );
        }
        out.push_str("]}");
        out
    }
}

/// A few lines, the first of which says what failed.
impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (space, in_use) = (&self.memory_space, self.bytes_in_use);
        match self.requested_bytes {
            Some(bytes) => {
                write!(f, "cannot allocate {bytes} bytes in {space} ({in_use} bytes in use): {}", self.reason)?;
            }
            None => write!(f, "{space}: {in_use} bytes in use")?,
        }
        match self.bytes_limit {
            Some(limit) => {
                write!(f, "\n  limit {limit} bytes, of which {} are taken from the system", self.pool_bytes)?
            }
            None => write!(f, "\n  no limit, {} bytes taken from the system", self.pool_bytes)?,
        }
        write!(
            f,
            "\n  {} bytes free, the largest free block {}: {} % fragmented\n  {} bytes go when pending work is over; {} \
             allocations wait\n  {} live allocations",
            self.free_bytes,
            self.largest_free_block_bytes,
            self.fragmentation_percent,
            self.pending_free_bytes,
            self.waiting_count,
            self.holder_count
        )?;
        if self.holder_count > self.holders.len() {
            write!(f, ", of which the largest {}", self.holders.len())?;
        }
        for holder in &self.holders {
            let MemoryHolder { size_bytes, label, place, age_ms, is_going } = holder;
            let going = if *is_going { ", pending work only" } else { "" };
            write!(f, "\n    {size_bytes} bytes '{label}' from {place}, {age_ms} ms old{going}")?;
        }
        Ok(())
    }
}

impl MemoryHolder {
    fn of(block: &PinnedArc<MemoryBlock>, now_ms: u32) -> Self {
        let tag = block.tag();
        Self {
            size_bytes: block.size_bytes() as u64,
            label: tag.label.as_str().into_owned(),
            place: tag.place().to_string(),
            age_ms: now_ms.wrapping_sub(tag.born_ms),
            is_going: MemoryBlock::is_going(block, 1),
        }
    }
}

/// 0 if nothing is free.
fn fragmentation_percent(largest_bytes: u64, free_bytes: u64) -> u8 {
    let scattered = free_bytes.saturating_sub(largest_bytes);
    let percent = u128::from(scattered) * 100 / u128::from(free_bytes.max(1));
    u8::try_from(percent).expect("a part of the whole is at most 100 percent")
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use std::sync::Arc;

    use purlin_base::clock;
    use purlin_base::label::Label;

    use crate::{AllocOptions, Client, ClientOptions, MemorySpace, NullBackend, RawBuffer};

    /// Memory that is older than what is asked for afterwards.
    fn hold(space: &MemorySpace, size_bytes: usize, label: &'static std::ffi::CStr) -> RawBuffer {
        let options = AllocOptions { label: Label::new(label), ..Default::default() };
        let memory = RawBuffer::allocate_with(space, size_bytes, &options).unwrap();
        clock::step();
        memory
    }

    #[test]
    fn of_equal_holders_the_oldest_is_named_first() {
        let client = Client::new(&ClientOptions::default(), Arc::new(NullBackend::new())).unwrap();
        let space = client.devices()[0].default_memory_space();
        for size_bytes in [100, 3 << 20] {
            // Where memory was freed, a younger block stands before or behind older ones.
            let gone = [hold(&space, size_bytes, c"gone"), hold(&space, size_bytes, c"gone")];
            let oldest = hold(&space, size_bytes, c"oldest");
            let others = gone.map(|gone| {
                drop(gone);
                hold(&space, size_bytes, c"second or third")
            });
            let youngest = hold(&space, size_bytes, c"youngest");
            let largest = hold(&space, size_bytes + 1, c"largest");
            let report = space.report();
            let labels: Vec<_> = report.holders.iter().map(|holder| holder.label.as_str()).collect();
            assert_eq!(labels, ["largest", "oldest", "second or third", "second or third", "youngest"], "{report}");
            assert!(report.holders[1..].is_sorted_by(|one, next| one.age_ms > next.age_ms), "{report}");
            drop((oldest, others, youngest, largest));
        }
    }
}
