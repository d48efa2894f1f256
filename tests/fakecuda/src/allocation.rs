//! Device and host memory is made, freed and asked about.

use std::sync::Arc;

use purlin_fakecuda_options::Options;

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::context;
use crate::detector::report::Kind as Report;
use crate::detector::shadow::Span;
use crate::detector::{Access, Life};
use crate::memory::bytes::Bytes;
use crate::memory::{Found, Kind};
use crate::operation::{Request, Work};
use crate::state::{Refusal, State};
use crate::thread;

/// PORTABLE, DEVICEMAP, and WRITECOMBINED or IOMEMORY and READ_ONLY.
const HOST_FLAGS: u32 = 0xF;

pub(crate) fn allocate(call: &Call, size_bytes: usize) -> Answer<u64> {
    let (mut state, device) = context::enter(call)?;
    state.forbid_while_capturing()?;
    let made = state.detector.host_stamp(call.entry.name(), thread::label());
    state.memory.allocate(device, size_bytes as u64, Kind::Plain, made)
}

/// Waits for the context, and frees; null is nothing. On a broken device it frees at once.
pub(crate) fn free(call: &Call, address: u64) -> Answer {
    let (mut state, device) = context::enter_any(call)?;
    if address == 0 {
        return Ok(());
    }
    state.forbid_while_capturing()?;
    let Ok(block) = state.memory.live(address) else {
        state.report_address(call, None, Span::new(address, 1), true);
        return Err(Code::INVALID_VALUE);
    };
    if block.kind.is_host() || block.kind == Kind::Global {
        return Err(Code::INVALID_VALUE);
    }
    // The memory's own context, whichever is current.
    let of = block.device;
    let waited = context::wait_for_all(call, state, of);
    let broken = call.driver.works(of).and(call.driver.works(device));
    let mut state = waited.unwrap_or_else(|_| call.driver.state.lock());
    let freed = state.detector.host_stamp(call.entry.name(), thread::label());
    let block = state.memory.free(address, Arc::clone(&freed))?;
    if broken.is_ok() {
        state.detector.freed(block.life.span, &freed);
    }
    block.bytes.free();
    state.memory.bury(address);
    broken
}

/// From the pool, or else from the device's current one, in the order of the stream.
pub(crate) fn allocate_async(call: &Call, size_bytes: usize, pool: Option<usize>, stream: usize) -> Answer<u64> {
    let mut state = call.driver.state.lock();
    let (stream, device) = state.working_stream(call.driver, stream)?;
    needs_pools(&call.driver.options)?;
    state.forbid_capturing(stream)?;
    if size_bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let pool = pool.unwrap_or_else(|| state.current_pool(call.driver, device));
    let of = state.memory.pool(pool)?.device;
    let (_, made) = state.enqueue(call, stream, Request::new(Work::Nothing))?;
    state.memory.allocate(of, size_bytes as u64, Kind::Pooled(pool), made)
}

/// In the order of the stream; on a broken device at once.
pub(crate) fn free_async(call: &Call, address: u64, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let stream = state.stream(call.driver, stream)?;
    needs_pools(&call.driver.options)?;
    if address == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let block = state.memory.live(address).cloned();
    let block = match block {
        Ok(block) if matches!(block.kind, Kind::Pooled(_)) => block,
        Ok(_) => return Err(Code::INVALID_VALUE),
        Err(code) => {
            state.report_address(call, Some(stream), Span::new(address, 1), true);
            return Err(code);
        }
    };
    let broken = call.driver.works(state.streams[&stream].device).and(call.driver.works(block.device));
    if broken.is_err() {
        let freed = state.detector.host_stamp(call.entry.name(), thread::label());
        state.memory.free(address, freed)?;
        block.bytes.free();
        state.memory.bury(address);
        return broken;
    }
    state.forbid_capturing(stream)?;
    let (_, freed) = state.enqueue(call, stream, Request::new(Work::Free(block.bytes, address)))?;
    state.memory.free(address, Arc::clone(&freed))?;
    state.detector.freed(block.life.span, &freed);
    Ok(())
}

/// NOT_SUPPORTED where the environment says that there are none.
pub(crate) fn needs_pools(options: &Options) -> Answer {
    if options.without_pools { Err(Code::NOT_SUPPORTED) } else { Ok(()) }
}

/// Pinned memory.
pub(crate) fn allocate_host(call: &Call, size_bytes: usize, flags: u32) -> Answer<usize> {
    let (mut state, device) = context::enter(call)?;
    if size_bytes == 0 || flags & !HOST_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    state.forbid_while_capturing()?;
    let bytes = Bytes::of_new_pages(size_bytes as u64, state.detector.is_on).ok_or(Code::OUT_OF_MEMORY)?;
    let made = state.detector.host_stamp(call.entry.name(), thread::label());
    let address = state.memory.add_host(bytes, size_bytes as u64, Kind::Pinned, device, made)?;
    usize::try_from(address).map_err(|_| Code::UNKNOWN)
}

/// Memory of the program is pinned.
pub(crate) fn register(call: &Call, address: usize, size_bytes: usize, flags: u32) -> Answer {
    let (mut state, device) = context::enter(call)?;
    if address == 0 || size_bytes == 0 || flags & !HOST_FLAGS != 0 || address.checked_add(size_bytes).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    if state.memory.is_device_address(address as u64) {
        return Err(Code::INVALID_VALUE);
    }
    state.forbid_while_capturing()?;
    let bytes = Bytes::of_program(address, size_bytes as u64).ok_or(Code::INVALID_VALUE)?;
    let made = state.detector.host_stamp(call.entry.name(), thread::label());
    state.memory.add_host(bytes, size_bytes as u64, Kind::Registered, device, made).map(|_| ())
}

/// Pinned memory goes when all that the device has is over, as drivers do it. The manual does not say so: what still
/// uses it at the call is reported, though it ends before.
pub(crate) fn free_host(call: &Call, address: usize) -> Answer {
    free_host_of(call, address, Kind::Pinned, Code::INVALID_VALUE)
}

/// Memory of the program is its own again.
pub(crate) fn unregister(call: &Call, address: usize) -> Answer {
    free_host_of(call, address, Kind::Registered, Code::HOST_MEMORY_NOT_REGISTERED)
}

fn free_host_of(call: &Call, address: usize, kind: Kind, otherwise: Code) -> Answer {
    let mut state = call.driver.state.lock();
    if address == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let block = state.memory.live(address as u64).ok().filter(|block| block.kind == kind).cloned().ok_or(otherwise)?;
    state.forbid_while_capturing()?;
    let freed = state.detector.host_stamp(call.entry.name(), thread::label());
    if kind == Kind::Pinned {
        state = context::wait_unseen(call, state, block.device).unwrap_or_else(|_| call.driver.state.lock());
    }
    state.memory.free(address as u64, Arc::clone(&freed))?;
    state.detector.freed(block.life.span, &freed);
    block.bytes.free();
    state.memory.bury(address as u64);
    if kind == Kind::Registered {
        // The program may unmap it when this returns; a copy that runs right now must be over by then, and none is
        // long. What begins later finds it freed.
        let running = state.running_copies();
        while !running.iter().all(|point| state.is_over(*point)) {
            state = call.driver.changed.wait(state);
        }
    }
    call.driver.works(block.device)
}

impl State {
    /// What is wrong with a range of addresses that a call was given, said to the detector.
    pub(crate) fn report_address(&mut self, call: &Call, stream: Option<usize>, span: Span, writes: bool) {
        let does = if writes { "write" } else { "read" };
        let what = format!("{} bytes at {:#x} to {does}", span.end - span.start, span.start);
        let (kind, beside, why) = match self.memory.find(span) {
            Found::Inside(block) => {
                let Life { span, made, freed, .. } = block.life.clone();
                match freed {
                    Some(freed) => (Report::UseOfFreed, Some((freed, Some(span))), what),
                    None => (Report::WildAddress, Some((made, Some(span))), "not where a block begins".to_owned()),
                }
            }
            Found::Beyond(block) => {
                let (size, Life { span, made, .. }) = (block.size_bytes(), block.life.clone());
                let why = format!("{what}, in a block of {size} bytes at {:#x}", span.start);
                (Report::OutOfBounds, Some((made, Some(span))), why)
            }
            Found::Nothing => (Report::WildAddress, None, what),
        };
        self.report(call.entry, Refusal { kind, stream, span: Some(span), beside, why: &why });
    }

    /// The access of an operation that a call asks for; INVALID_VALUE, and a report, if there is no such memory.
    pub(crate) fn check(&mut self, call: &Call, stream: usize, access: Access) -> Answer {
        let is_there = match self.memory.find(access.span) {
            // What a stream frees is freed in its order; the detector judges.
            Found::Inside(block) => block.life.freed.is_none() || matches!(block.kind, Kind::Pooled(_)),
            Found::Beyond(_) | Found::Nothing => false,
        };
        if is_there {
            return Ok(());
        }
        self.report_address(call, Some(stream), access.span, access.writes);
        Err(Code::INVALID_VALUE)
    }
}
