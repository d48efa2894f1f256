//! Many arrays from the host by one call, which does all of it or nothing.

#![allow(unsafe_code, reason = "host memory is read by address")]

use super::array_source::ArraySource;
use super::from_host::Done;
use super::{Buffer, HostBufferSemantics, OnDone};
use crate::memory::{AllocOptions, MemorySpace};
use crate::raw_buffer::RawBuffer;
use purlin_array::layout::Layout;
use purlin_array::strided::HostArray;
use purlin_async::event::after_all;
use purlin_base::status::{Error, SourceLocation, StatusOr};

/// One array of [`Buffer::from_host_shards`].
///
/// ```
/// use purlin::{AllocOptions, Buffer, DType, HostArray, HostBufferSemantics, HostShard, Shape};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let (values, half) = ([1_u8, 2, 3, 4], HostArray::new(&Shape::new(DType::U8, &[2])?, None)?);
/// let shard = |from: usize| HostShard { data: &values[from], array: &half, layout: None, memory_space: &space };
/// let (shards, semantics) = ([shard(0), shard(2)], HostBufferSemantics::ImmutableOnlyDuringCall);
/// // SAFETY: both halves are in `values`, which are read during the call only.
/// let buffers = unsafe { Buffer::from_host_shards(&shards, semantics, &AllocOptions::default(), None)? };
/// assert_eq!(buffers[1].to_vec::<u8>()?, [3, 4]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Debug)]
pub struct HostShard<'a> {
    /// Where its element `[0, 0, ...]` is.
    pub data: *const u8,
    /// What it is.
    pub array: &'a HostArray,
    /// In which order the elements are to stand on the device; `None`: row-major.
    pub layout: Option<&'a Layout>,
    /// Where it is copied to.
    pub memory_space: &'a MemorySpace,
}

impl Buffer {
    /// A buffer per shard, in that order. All are checked, and all memory is asked for, before the first byte is
    /// copied. Under [`HostBufferSemantics::ImmutableOnlyDuringCall`] it copies before it returns; otherwise copies run
    /// behind, and nothing is aliased. `on_done` is called exactly once, when no shard is read any more, with the first
    /// error by index.
    ///
    /// # Errors
    /// `on_done` is then called with the same error before this returns, and there are no buffers. `InvalidArgument`,
    /// naming the shard: null `data` with elements, a layout of another rank, another client's space, or another kind
    /// of memory than the first shard's. As [`RawBuffer::allocate_with`]. When it blocks, also what a copy failed with.
    ///
    /// # Safety
    /// As [`from_host_array`](Self::from_host_array), for every shard.
    #[track_caller]
    pub unsafe fn from_host_shards(
        shards: &[HostShard<'_>],
        semantics: HostBufferSemantics,
        options: &AllocOptions,
        on_done: Option<OnDone>,
    ) -> StatusOr<Vec<Self>> {
        let (place, done) = (SourceLocation::of_call(), Done::new(on_done));
        let caller_waits = semantics == HostBufferSemantics::ImmutableOnlyDuringCall;
        let sources = match prepare(shards, options, place) {
            Ok(sources) => sources,
            Err(error) => return Err(done.fail(error)),
        };
        let never = |(_, memory): &(ArraySource<'_>, RawBuffer)| memory.allocation_event().check_wait().err();
        if caller_waits && let Some(error) = sources.iter().find_map(never) {
            return Err(done.fail(error));
        }
        let copy = |(source, memory): (ArraySource<'_>, RawBuffer)| {
            // SAFETY: the caller's promise; the memory is new. If that ends with the call, we wait below.
            let copied = unsafe { source.start(&memory, caller_waits) };
            source.into_buffer(memory, copied)
        };
        let buffers: Vec<Self> = sources.into_iter().map(copy).collect();
        let events: Vec<_> = buffers.iter().map(Self::ready_event).collect();
        let all = after_all(&events);
        let outcome = move || events.iter().find_map(purlin_async::Event::error).map_or(Ok(()), Err);
        if caller_waits {
            // The events themselves are never in error: they only say that it is over.
            all.wait_uninterruptible()?;
            if let Err(error) = outcome() {
                return Err(done.fail(error));
            }
            done.tell(Ok(()));
            return Ok(buffers);
        }
        all.on_ready(move |_outcome| done.tell(outcome()));
        Ok(buffers)
    }
}

/// Everything that can be refused.
fn prepare<'a>(
    shards: &[HostShard<'a>],
    options: &AllocOptions,
    place: SourceLocation,
) -> StatusOr<Vec<(ArraySource<'a>, RawBuffer)>> {
    let mut sources = Vec::with_capacity(shards.len());
    for (index, shard) in shards.iter().enumerate() {
        let first = shards[0].memory_space;
        let source = check(shard, first).and_then(|()| ArraySource::new(shard.data, shard.array, shard.layout));
        sources.push(source.map_err(|error| of_shard(index, &error))?);
    }
    let allocate = |(index, source): (usize, ArraySource<'a>)| {
        let (space, size_bytes) = (shards[index].memory_space, shards[index].array.shape().size_bytes());
        let memory = RawBuffer::allocate_from(space, size_bytes, options, place);
        memory.map(|memory| (source, memory)).map_err(|error| of_shard(index, &error))
    };
    sources.into_iter().enumerate().map(allocate).collect()
}

fn check(shard: &HostShard<'_>, first: &MemorySpace) -> Result<(), Error> {
    let space = shard.memory_space;
    if space.same_client(first) && space.kind() == first.kind() {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("{space} is not of the same client and kind as {first}")))
}

fn of_shard(index: usize, error: &Error) -> Error {
    let mut named = Error::new(error.code(), format!("shard {index}: {}", error.message()));
    for (type_url, payload) in error.payloads() {
        named.set_payload(type_url, payload);
    }
    named
}
