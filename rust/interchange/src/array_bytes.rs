//! Between bytes on the host and buffers.
//!
//! In: an array in foreign memory becomes a buffer by [`Buffer::from_host_array`], which aliases or copies; the drop of
//! a `keeper` notifies the memory's owner. Types narrower than a byte that stand packed go to the device as they are.
//!
//! Out: the bytes of a buffer that is ready, where they are if the host reaches them in row-major order, otherwise
//! copied. While they are lent, the buffer's use is an event for which a donee of the memory waits, so a donation
//! neither fails nor waits for a disk.

#![allow(unsafe_code, reason = "host memory is read by address")]

use purlin_array::{DType, HostArray, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{Aliasing, AllocOptions, Buffer, FromHostOptions, HostBufferSemantics, MemorySpace, RawBuffer};

/// A buffer of the array at `data`. `keeper` is dropped, on whatever thread, when the memory is no longer read; if this
/// fails, before it returns. With `may_alias`, that may be when the buffer's memory is released.
///
/// # Errors
/// As [`Buffer::from_host_array`].
///
/// # Safety
/// Until `keeper` is dropped, any thread may read the bytes of `array.extent()` from `data` that are elements, and
/// nothing writes them.
pub(crate) unsafe fn into_buffer<K: Send + Sync + 'static>(
    data: *const u8,
    array: &HostArray,
    memory_space: &MemorySpace,
    label: Label,
    may_alias: bool,
    keeper: K,
) -> StatusOr<(Buffer, Aliasing)> {
    let options = FromHostOptions {
        semantics: match may_alias {
            true => HostBufferSemantics::ImmutableZeroCopy,
            false => HostBufferSemantics::ImmutableUntilTransferCompletes,
        },
        alloc: AllocOptions { label, ..Default::default() },
        on_done: Some(Box::new(move |_outcome| drop(keeper))),
        ..Default::default()
    };
    // SAFETY: the caller's promise; on_done drops the keeper.
    unsafe { Buffer::from_host_array(data, array, memory_space, options) }
}

/// A buffer of the packed, row-major elements at `data`: what stands on a device. Copies them, and blocks for that.
///
/// # Errors
/// As [`RawBuffer::allocate_with`], or what the copy failed with.
///
/// # Safety
/// During the call, any thread may read `shape.size_bytes()` bytes at `data`, and nothing writes them.
pub(crate) unsafe fn packed_into_buffer(
    data: *const u8,
    shape: &Shape,
    memory_space: &MemorySpace,
    label: Label,
) -> StatusOr<(Buffer, Aliasing)> {
    let alloc = AllocOptions { label, ..Default::default() };
    let memory = RawBuffer::allocate_with(memory_space, shape.size_bytes(), &alloc)?;
    // SAFETY: the caller's promise, until the wait; the memory has no other user.
    let copied = unsafe { memory.copy_from_host(data, 0, shape.size_bytes(), &[]) };
    copied.wait_uninterruptible()?;
    Ok((Buffer::from_raw(memory, shape, None, &copied)?, Aliasing::Copied))
}

/// The elements of a buffer, in row-major order, for as long as this lives.
#[derive(Debug)]
pub(crate) enum HostBytes {
    /// Where the buffer has them.
    Lent { memory: RawBuffer, _used: Used },
    /// A copy.
    Copied(Vec<u8>),
}

/// A use of the memory, which lasts until this is dropped.
#[derive(Debug)]
pub(crate) struct Used(EventPromise);

impl Drop for Used {
    fn drop(&mut self) {
        self.0.set_ready();
    }
}

impl HostBytes {
    /// The elements as they stand on the host: narrow ones have a byte each. Blocks until the buffer is ready, and for
    /// a copy if one is needed.
    ///
    /// # Errors
    /// The buffer's own; `InvalidArgument`: it is gone, a token, or of a dynamic shape; `ResourceExhausted`: no memory
    /// for a copy.
    pub(crate) fn of(buffer: &Buffer) -> StatusOr<Self> {
        let shape = buffer.shape();
        if shape.is_dynamic() || shape.dtype() == DType::Token {
            return Err(Error::invalid_argument(format!(
                "an array of {shape} cannot be written: its elements have no fixed number, or no bytes"
            )));
        }
        // Not under a hold: a donation would wait for it.
        buffer.ready_event().wait_unlent()?;
        let is_plain = buffer.layout().is_row_major() && !shape.dtype().is_sub_byte();
        if is_plain && shape.size_bytes() > 0 {
            let hold = buffer.usage_hold()?;
            let memory = hold.memory().clone();
            if memory.host_pointer().is_some() {
                let used = EventPromise::guarding(c"read by the host");
                hold.release_after(used.event());
                return Ok(Self::Lent { memory, _used: Used(used) });
            }
        }
        let size_bytes = shape.host_size_bytes();
        let mut bytes = Vec::<u8>::new();
        bytes.try_reserve_exact(size_bytes).map_err(|_| {
            Error::resource_exhausted(format!("the host has no {size_bytes} bytes for a copy of {shape}"))
        })?;
        // SAFETY: there is room for as many bytes, and nothing else touches them until the wait.
        unsafe { buffer.copy_to_host(bytes.as_mut_ptr(), size_bytes) }.wait_uninterruptible()?;
        // SAFETY: the copy has written them all.
        unsafe { bytes.set_len(size_bytes) };
        Ok(Self::Copied(bytes))
    }

    /// As [`of`](Self::of), but narrow elements share bytes, the first in the low bits.
    pub(crate) fn packed(buffer: &Buffer) -> StatusOr<Self> {
        let bits = buffer.dtype().bits();
        match Self::of(buffer)? {
            // Where they stand: packed ones need less.
            Self::Copied(mut bytes) if buffer.dtype().is_sub_byte() => {
                let (mask, per_byte) = ((1_u8 << bits) - 1, 8 / bits);
                let packed_bytes = bytes.len().div_ceil(per_byte);
                for at in 0..packed_bytes {
                    let group = &bytes[at * per_byte..bytes.len().min((at + 1) * per_byte)];
                    bytes[at] = group.iter().rev().fold(0, |byte, element| byte << bits | element & mask);
                }
                bytes.truncate(packed_bytes);
                Ok(Self::Copied(bytes))
            }
            bytes => Ok(bytes),
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Lent { memory, .. } => match memory.host_pointer() {
                // SAFETY: the memory lives as long as self, has so many bytes, and does not change: the buffer was
                // ready, and a donee of the memory waits for the end of our use.
                Some(first) => unsafe { std::slice::from_raw_parts(first.as_ptr(), memory.size_bytes()) },
                None => unreachable!("memory that is lent has an address"),
            },
            Self::Copied(bytes) => bytes,
        }
    }
}
