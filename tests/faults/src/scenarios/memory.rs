//! Memory and raw copies.

#![allow(unsafe_code, reason = "host memory is read and written by address")]

use std::sync::{Arc, Mutex};

use purlin_async::{Event, EventPromise};
use purlin_base::{Error, Label};
use purlin_device::{AllocOptions, ClientOptions, MemoryReport, MemorySpace, Mutability, OomPolicy, RawBuffer};
use purlin_host::{HostBackend, SystemSource};

use crate::run::Run;

const LARGE: usize = 100_000;
const LIMIT_BYTES: usize = 1 << 20;

fn copy_in(run: &Run, buffer: &RawBuffer, dependencies: &[Event]) -> Event {
    let size_bytes = buffer.size_bytes();
    // SAFETY: the run keeps the bytes until its end, after all its events; copies of the same bytes are ordered.
    let copied = unsafe { buffer.copy_from_host(run.bytes(size_bytes), 0, size_bytes, dependencies) };
    run.watch("copy_from_host", &copied);
    copied
}

fn copy_out(run: &Run, buffer: &RawBuffer, dependencies: &[Event]) -> Event {
    if !run.on.has_bytes() {
        return Event::ready();
    }
    let size_bytes = buffer.size_bytes();
    // SAFETY: as in copy_in().
    let copied = unsafe { buffer.copy_to_host(run.bytes(size_bytes), 0, size_bytes, dependencies) };
    run.watch("copy_to_host", &copied);
    copied
}

fn limited(run: &Run, options: ClientOptions) -> Result<MemorySpace, Error> {
    let options = ClientOptions { memory_limit_bytes: LIMIT_BYTES, ..options };
    Ok(run.client_with(options, run.on.backend())?.devices()[0].default_memory_space())
}

pub(super) fn copies_with_dependencies(run: &Arc<Run>) -> Result<(), Error> {
    let client = run.client()?;
    let spaces: Vec<_> = client.devices().iter().map(purlin_device::Device::default_memory_space).collect();
    for size_bytes in [64, LARGE] {
        let (a, b) = (RawBuffer::allocate(&spaces[0], size_bytes)?, RawBuffer::allocate(&spaces[1], size_bytes)?);
        let gate = EventPromise::new(c"gate");
        let first = copy_in(run, &a, &[gate.event()]);
        // SAFETY: ordered by events.
        let second = unsafe { a.copy_to(&b, &[first.clone(), Event::ready()]) };
        run.watch("copy_to", &second);
        run.waiter(&second);
        copy_out(run, &b, &[second, first]);
        gate.set_ready();
    }
    Ok(())
}

pub(super) fn slices(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let buffer = RawBuffer::allocate(&space, LARGE * 2)?;
    let parts = buffer.slices(&[(0, LARGE), (LARGE, LARGE), (10, 20)])?;
    let filled: Vec<Event> = parts[..2].iter().map(|part| copy_in(run, part, &[])).collect();
    // SAFETY: ordered by events; the ranges are copied as by memmove.
    let moved = unsafe { parts[0].copy_range_to(10, &parts[1], 100, LARGE - 100, &filled) };
    run.watch("copy_range_to", &moved);
    copy_out(run, &parts[2], &[moved]);
    drop(buffer);
    Ok(())
}

pub(super) fn channels(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let options = AllocOptions { label: Label::new(c"channel"), ..Default::default() };
    let (first, provides_first) = RawBuffer::channel(&space, LARGE, &options);
    let (second, provides_second) = RawBuffer::channel(&space, LARGE, &options);
    for buffer in [&first, &second] {
        let copied = copy_in(run, buffer, &[]);
        copy_out(run, buffer, &[copied]);
        run.watch("memory", &buffer.allocation_event());
    }
    if let Err((error, promise)) = provides_second.fulfil(&first) {
        promise.fail(error);
    }
    // The event reports it, too.
    let _ = provides_first.allocate(OomPolicy::Fail);
    let memory = run.see("allocate", RawBuffer::allocate(&space, 100));
    let (third, provides_third) = RawBuffer::channel(&space, 100, &options);
    match memory {
        Some(memory) => {
            if let Err((error, promise)) = provides_third.fulfil(&memory) {
                promise.fail(error);
            }
        }
        None => provides_third.fail(Error::aborted("no memory")),
    }
    run.watch("memory", &third.allocation_event());
    Ok(())
}

pub(super) fn imported(run: &Arc<Run>) -> Result<(), Error> {
    let client = run.client()?;
    let space = client.devices()[0].memory_space("pinned_host")?;
    let (memory, token) = (run.bytes(LARGE), run.token("release"));
    let release = Box::new(move || token.called());
    // SAFETY: the run keeps the bytes until its end.
    let buffer = unsafe { RawBuffer::import(&space, memory, LARGE, Mutability::Mutable, Some(release)) };
    let Some(buffer) = run.see("import", buffer) else { return Ok(()) };
    let gate = EventPromise::new(c"gate");
    let copied = copy_in(run, &buffer, &[gate.event()]);
    copy_out(run, &buffer, &[copied]);
    drop(buffer);
    gate.set_ready();
    Ok(())
}

pub(super) fn dma(run: &Arc<Run>) -> Result<(), Error> {
    let client = run.client()?;
    let space = client.devices()[0].default_memory_space();
    let bytes = run.bytes(LARGE);
    let mapping = run.see("dma_map", client.dma_map(bytes, LARGE));
    let buffer = RawBuffer::allocate(&space, LARGE)?;
    let gate = EventPromise::new(c"gate");
    // SAFETY: the run keeps the bytes until its end, after all its events.
    let copied = unsafe { buffer.copy_from_host(bytes, 0, LARGE, &[gate.event()]) };
    run.watch("copy_from_host", &copied);
    drop(mapping);
    let again = run.see("dma_map again", client.dma_map(bytes, LARGE));
    gate.set_ready();
    run.wait("copied", &copied);
    if let Some(Err((error, _mapping))) = again.map(purlin_device::DmaMapping::unmap) {
        run.meet("unmap", error);
    }
    Ok(())
}

pub(super) fn waits_for_freed(run: &Arc<Run>) -> Result<(), Error> {
    let space = limited(run, ClientOptions::default())?;
    let held = RawBuffer::allocate(&space, LIMIT_BYTES)?;
    let options = AllocOptions { oom: OomPolicy::Wait, ..Default::default() };
    let mut waiting = Vec::new();
    for part in [2, 4] {
        let made = RawBuffer::allocate_with(&space, LIMIT_BYTES / part, &options);
        let Some(buffer) = run.see("allocate and wait", made) else { continue };
        run.watch("memory", &buffer.allocation_event());
        let copied = copy_in(run, &buffer, &[]);
        copy_out(run, &buffer, &[copied]);
        waiting.push(buffer);
    }
    drop(held);
    for buffer in &waiting {
        run.wait("memory that was waited for", &buffer.allocation_event());
    }
    Ok(())
}

pub(super) fn after_event(run: &Arc<Run>) -> Result<(), Error> {
    let space = limited(run, ClientOptions::default())?;
    let gate = EventPromise::new(c"gate");
    for oom in [OomPolicy::Fail, OomPolicy::Wait] {
        let options = AllocOptions { oom, after: Some(gate.event()), ..Default::default() };
        let made = RawBuffer::allocate_with(&space, LIMIT_BYTES / 4, &options);
        let Some(buffer) = run.see("allocate after an event", made) else { continue };
        run.watch("memory", &buffer.allocation_event());
        copy_in(run, &buffer, &[]);
    }
    gate.set_ready();
    Ok(())
}

pub(super) fn with_hook(run: &Arc<Run>) -> Result<(), Error> {
    let cache: Arc<Mutex<Vec<RawBuffer>>> = Arc::default();
    let hook = {
        let cache = Arc::clone(&cache);
        move |_: &MemoryReport| {
            let freed = cache.lock().unwrap().pop();
            freed.is_some()
        }
    };
    let space = limited(run, ClientOptions { on_out_of_memory: Some(Arc::new(hook)), ..Default::default() })?;
    let fill = || -> Result<(), Error> {
        let mut blocks = Vec::new();
        for _ in 0..2 {
            blocks.push(RawBuffer::allocate(&space, 1000)?);
        }
        cache.lock().unwrap().extend(blocks);
        Ok(())
    };
    let filled = fill();
    let options = AllocOptions { oom: OomPolicy::Retry, ..Default::default() };
    let made = run.see("allocate with the hook", RawBuffer::allocate_with(&space, LIMIT_BYTES, &options));
    // Without the hook's cache, the client would keep itself.
    cache.lock().unwrap().clear();
    drop(made);
    filled
}

pub(super) fn many_sizes(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let mut held = Vec::new();
    for size_bytes in [0, 1, 100, 5000, 40_000, LARGE, 3 << 20] {
        held.extend(run.see("allocate", RawBuffer::allocate(&space, size_bytes)));
        let options = AllocOptions { alignment_bytes: 4096, ..Default::default() };
        held.extend(run.see("allocate aligned", RawBuffer::allocate_with(&space, size_bytes, &options)));
    }
    drop(held);
    space.trim();
    RawBuffer::allocate(&space, 1000).map(drop)
}

pub(super) fn own_allocator(run: &Arc<Run>) -> Result<(), Error> {
    let backend = Arc::new(HostBackend::with_source(Arc::new(SystemSource)));
    let client = run.client_with(ClientOptions::default(), backend)?;
    let space = client.devices()[0].default_memory_space();
    let (a, b) = (RawBuffer::allocate(&space, LARGE)?, RawBuffer::allocate(&space, LARGE)?);
    let copied = copy_in(run, &a, &[]);
    // SAFETY: ordered by events.
    run.watch("copy_to", &unsafe { a.copy_to(&b, &[copied]) });
    drop(a);
    let options = AllocOptions { oom: OomPolicy::Wait, ..Default::default() };
    if let Some(waits) = run.see("allocate and wait", RawBuffer::allocate_with(&space, 100, &options)) {
        drop(b);
        run.wait("memory", &waits.allocation_event());
    }
    Ok(())
}
