//! `purlin/host_buffer.h`: many arrays from the host by one call.

use purlin_array::{HostArray, Layout};
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_device::{Buffer, HostShard};
use purlin_ffi::handle::{elements, give};
use purlin_ffi::panic::guard_at;
use purlin_ffi::words::Location;

use crate::alloc_options::RawAllocOptions;
use crate::buffer::BufferRep;
use crate::callback::{Callback, CallbackOnce};
use crate::device::MemorySpaceRep;
use crate::host_buffer::{RawHostArray, semantics};
use crate::layout::RawLayout;

/// A `purlin::HostShard`. Borrowed, but for what is owned.
#[repr(C)]
pub struct RawHostShard {
    array: RawHostArray,
    layout: RawLayout,
    has_layout: bool,
    /// Alive.
    space: *const MemorySpaceRep,
    /// Null, or owned.
    on_done: *const Callback,
}

impl RawHostShard {
    /// # Errors
    /// `InvalidArgument`: no array, or no layout.
    ///
    /// # Safety
    /// The structs are what they say, the layout's where there is one.
    unsafe fn get(&self) -> StatusOr<(HostArray, Option<Layout>)> {
        let layout = if self.has_layout { &raw const self.layout } else { std::ptr::null() };
        // SAFETY: the caller's promises.
        unsafe { Ok((self.array.get()?, RawLayout::get(layout)?)) }
    }
}

/// A buffer per shard, written to `buffers`, C++'s. Null, or an error, C++'s; then nothing is written. Takes over every
/// `on_done`; each is called once, for errors before this returns.
///
/// # Safety
/// `shards` points to `count` shards, and `buffers` to as many pointers; the structs are what they say; until a shard's
/// `on_done` is called (without it, for as long as the semantics say), its memory is what [`Buffer::from_host_shards`]
/// asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_from_host_shards(
    shards: *const RawHostShard,
    count: usize,
    number: i32,
    alloc: &RawAllocOptions,
    location: Location,
    buffers: *mut *const BufferRep,
) -> *const StatusRep {
    // SAFETY: the caller's promise.
    let shards = unsafe { elements(shards, count) };
    // SAFETY: owned, and taken over once.
    let told: Vec<_> = shards.iter().map(|shard| unsafe { CallbackOnce::take(shard.on_done) }).collect();
    let make = || {
        // SAFETY: the caller's promise.
        let alloc = unsafe { alloc.get()? };
        let semantics = semantics(number)?;
        let parsed = shards.iter().enumerate().map(|(index, shard)| {
            // SAFETY: the caller's promises.
            let parsed = unsafe { shard.get() };
            parsed.map_err(|error| Error::new(error.code(), format!("shard {index}: {}", error.message())))
        });
        let parsed = parsed.collect::<StatusOr<Vec<_>>>()?;
        let described = shards.iter().zip(&parsed).map(|(shard, (array, layout))| {
            // SAFETY: alive.
            let memory_space = unsafe { &(*shard.space).0 };
            HostShard { data: shard.array.data(), array, layout: layout.as_ref(), memory_space }
        });
        let described: Vec<_> = described.collect();
        // SAFETY: the caller's promise.
        unsafe { Buffer::from_host_shards(&described, semantics, &alloc, None) }
    };
    // SAFETY: the caller's promise.
    let made = match unsafe { guard_at(location, make) } {
        Ok(made) => made,
        Err(error) => {
            told.into_iter().flatten().for_each(|told| told.tell(Err(error.clone())));
            return give(Err(error));
        }
    };
    let ready: Vec<_> = made.iter().map(Buffer::ready_event).collect();
    for (index, buffer) in made.into_iter().enumerate() {
        // SAFETY: there is a buffer per shard, so the index is less than `count`.
        unsafe { buffers.add(index).write(BufferRep::of(buffer)) };
    }
    for (told, ready) in told.into_iter().zip(ready) {
        if let Some(told) = told {
            ready.on_ready(move |outcome| told.tell(outcome.clone()));
        }
    }
    give(Ok(()))
}
