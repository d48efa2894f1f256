//! Chains that programs with feedback make, each output the next input: any length, on a small stack, and without
//! keeping what is no longer needed.

#![allow(unsafe_code, reason = "foreign memory is taken by address")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use purlin_array::{DType, Shape};
use purlin_async::{CancelSource, Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_device::{
    AllocOptions, Buffer, ClientOptions, HostBufferSemantics, Mutability, OomPolicy, RawBuffer, RawBufferPromise,
};

use crate::fixture::{Fixture, assert_error, on_threads, pattern, read};

const CHANNELS: usize = 40_000;
const CALLBACKS: usize = 100_000;

/// What a stack overflow on 256 KiB ends, together with the process.
fn on_a_small_stack(f: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, f).expect("there is a thread");
        thread.join().expect("it does not panic");
    });
}

fn channel(fixture: &Fixture) -> (RawBuffer, RawBufferPromise) {
    RawBuffer::channel(&fixture.space(), 64, &AllocOptions::default())
}

fn fulfil(promise: RawBufferPromise, memory: &RawBuffer) {
    promise.fulfil(memory).map_err(|(error, _)| error).expect("the same size and space");
}

pub(crate) fn channels_each_fulfilled_with_the_last(fixture: &Fixture) {
    on_a_small_stack(|| {
        let bytes = pattern(64, 1);
        let mut last = fixture.filled(&bytes);
        let address = last.device_pointer().unwrap();
        for _ in 0..CHANNELS {
            let (next, promise) = channel(fixture);
            fulfil(promise, &last);
            assert!(next.is_mutable());
            last = next;
        }
        assert_eq!((read(&last), last.device_pointer().unwrap()), (bytes, address));
    });
}

pub(crate) fn pending_channels_each_fulfilled_with_the_last(fixture: &Fixture) {
    on_a_small_stack(|| {
        for is_allocated in [true, false] {
            let (first, first_promise) = channel(fixture);
            let mut chain = vec![first];
            for _ in 0..CHANNELS {
                let (next, promise) = channel(fixture);
                fulfil(promise, chain.last().expect("one at least"));
                assert!(next.host_pointer().is_none());
                chain.push(next);
            }
            let last = chain.last().cloned().expect("one at least");
            if is_allocated {
                first_promise.allocate(OomPolicy::Fail).unwrap();
                assert_eq!(last.allocation_event().wait(), Ok(()));
                assert_eq!(last.device_pointer(), chain[0].device_pointer());
            } else {
                first_promise.fail(Error::data_loss("upstream"));
                assert_eq!(last.allocation_event().wait().unwrap_err().code(), StatusCode::DataLoss);
            }
            // The oldest first, so that the last one has to release what is left.
            chain.into_iter().for_each(drop);
        }
    });
}

pub(crate) fn channels_fulfilled_from_the_end_on(fixture: &Fixture) {
    on_a_small_stack(|| {
        for is_kept in [true, false] {
            let (buffers, mut promises): (Vec<_>, Vec<_>) = (0..CHANNELS).map(|_| channel(fixture)).unzip();
            let bytes = pattern(64, 2);
            let memory = fixture.filled(&bytes);
            let first_promise = promises.remove(0);
            for (promise, before) in promises.into_iter().zip(&buffers).rev() {
                fulfil(promise, before);
            }
            let last = buffers.last().cloned().expect("there are many");
            let kept = if is_kept { buffers } else { Vec::new() };
            assert!(last.host_pointer().is_none());
            fulfil(first_promise, &memory);
            assert_eq!(last.allocation_event().wait(), Ok(()));
            assert!(kept.iter().all(|buffer| buffer.device_pointer() == memory.device_pointer()));
            assert_eq!(read(&last), bytes);
        }
    });
}

pub(crate) fn channels_make_no_circle(fixture: &Fixture) {
    let circles = AtomicUsize::new(0);
    for _ in 0..200 {
        let ((a, a_promise), (b, b_promise)) = (channel(fixture), channel(fixture));
        let (c, c_promise) = channel(fixture);
        let promises = [a_promise, b_promise, c_promise].map(|promise| std::sync::Mutex::new(Some(promise)));
        let sources = [&b, &c, &a];
        on_threads(3, |thread| {
            let promise = promises[thread].lock().unwrap().take().expect("each once");
            if let Err((error, promise)) = promise.fulfil(sources[thread]) {
                assert_error(&error, StatusCode::InvalidArgument, &["cannot become its own memory"]);
                circles.fetch_add(1, Ordering::Relaxed);
                promise.allocate(OomPolicy::Fail).unwrap();
            }
        });
        for buffer in [&a, &b, &c] {
            assert_eq!(buffer.allocation_event().wait(), Ok(()));
            assert_eq!(buffer.device_pointer(), a.device_pointer());
        }
    }
    assert_eq!(circles.into_inner(), 200, "whoever would have closed it was told");
}

/// Foreign memory, which is there for ever.
#[repr(C, align(64))]
struct Static([u8; 64]);

static MEMORY: Static = Static([7; 64]);

fn import(fixture: &Fixture, release: impl FnOnce() + Send + Sync + 'static) -> RawBuffer {
    let address = std::ptr::from_ref(&MEMORY).cast::<u8>().cast_mut();
    // SAFETY: it is there for ever, and nothing writes it.
    let imported = unsafe {
        RawBuffer::import(&fixture.host_space(), address, 64, Mutability::Immutable, Some(Box::new(release)))
    };
    imported.expect("it is aligned")
}

pub(crate) fn releases_that_let_go_of_the_next_import(fixture: &Fixture) {
    let released = Arc::new(AtomicUsize::new(0));
    on_a_small_stack(|| {
        let mut last = import(fixture, || ());
        for _ in 0..CALLBACKS {
            let (before, released) = (last, Arc::clone(&released));
            last = import(fixture, move || {
                drop(before);
                released.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(released.load(Ordering::Relaxed), 0);
        drop(last);
        assert_eq!(released.load(Ordering::Relaxed), CALLBACKS, "all before the drop returns");
    });
}

pub(crate) fn host_buffers_that_keep_the_next(fixture: &Fixture) {
    let done = Arc::new(AtomicUsize::new(0));
    on_a_small_stack(|| {
        let mut last = None::<Buffer>;
        for _ in 0..CALLBACKS / 4 {
            let (before, done) = (last.take(), Arc::clone(&done));
            let on_done = move |outcome: Result<(), Error>| {
                assert_eq!(outcome, Ok(()));
                drop(before);
                done.fetch_add(1, Ordering::Relaxed);
            };
            let (shape, semantics) = (Shape::new(DType::U8, &[64]).unwrap(), HostBufferSemantics::ImmutableZeroCopy);
            let (data, alloc) = (MEMORY.0.as_ptr(), AllocOptions::default());
            // SAFETY: the memory is there for ever, and nothing writes it.
            let made = unsafe {
                Buffer::from_host_dense(data, &shape, &fixture.host_space(), semantics, &alloc, Some(on_done))
            };
            last = Some(made.unwrap().0);
        }
        let last = last.expect("there are many");
        assert_eq!(last.ready_event().wait(), Ok(()));
        drop(last);
    });
    // Where the memory is not the host's, the copy calls it.
    let all = CALLBACKS / 4;
    while done.load(Ordering::Relaxed) < all {
        thread::yield_now();
    }
}

pub(crate) fn memory_that_is_kept_until_the_next_event(fixture: &Fixture) {
    on_a_small_stack(|| {
        let over = Arc::new(AtomicUsize::new(0));
        let first = EventPromise::new(c"first");
        let mut event = first.event();
        for _ in 0..CALLBACKS {
            let (next, over) = (EventPromise::new(c"next"), Arc::clone(&over));
            let after = next.event();
            let memory = import(fixture, move || {
                over.fetch_add(1, Ordering::Relaxed);
                next.set_ready();
            });
            memory.retain_until(&event);
            event = after;
        }
        first.set_ready();
        assert_eq!(event.wait(), Ok(()));
        assert_eq!(over.load(Ordering::Relaxed), CALLBACKS);
    });
}

pub(crate) fn cancel_callbacks_that_cancel_the_next(_fixture: &Fixture) {
    on_a_small_stack(|| {
        let told = Arc::new(AtomicUsize::new(0));
        let last = CancelSource::new(c"last");
        let (mut next, mut registrations) = (last.clone(), Vec::new());
        for _ in 0..CALLBACKS {
            let (source, told) = (CancelSource::new(c"chain"), Arc::clone(&told));
            registrations.push(source.token().on_cancel(move |reason| {
                told.fetch_add(1, Ordering::Relaxed);
                next.cancel(reason.clone());
            }));
            next = source;
        }
        assert!(next.cancel(Error::aborted("enough")));
        assert_eq!(told.load(Ordering::Relaxed), CALLBACKS, "all before the first cancel returns");
        assert_eq!(last.token().reason().unwrap().code(), StatusCode::Aborted);
    });
}

pub(crate) fn buffers_each_made_of_the_last(fixture: &Fixture) {
    on_a_small_stack(|| {
        let bytes = pattern(64, 5);
        let shape = Shape::new(DType::U8, &[64]).unwrap();
        let other = Shape::new(DType::U8, &[8, 8]).unwrap();
        let make = || Buffer::from_raw(fixture.filled(&bytes), &shape, None, &Event::ready()).unwrap();
        let mut last = make();
        let address = last.usage_hold().unwrap().memory().device_pointer().unwrap();
        for step in 0..CHANNELS {
            last = match step % 5 {
                0 => last.bitcast(&other, None).unwrap(),
                1 => last.bitcast(&shape, None).unwrap(),
                2 => last.donate_after(&Event::ready()).unwrap(),
                3 => {
                    let (next, promise) = Buffer::channel(&shape, None, &fixture.space()).unwrap();
                    promise.fulfil(&last).map_err(|(error, _)| error).unwrap();
                    next
                }
                // Of the same memory, which its event keeps.
                _ => {
                    let memory = last.usage_hold().unwrap().memory().slice(0, 64).unwrap();
                    Buffer::from_raw(memory, &shape, None, &last.ready_event()).unwrap()
                }
            };
        }
        assert_eq!(last.ready_event().wait(), Ok(()));
        let hold = last.usage_hold().unwrap();
        assert_eq!((read(hold.memory()), hold.memory().device_pointer().unwrap()), (bytes.clone(), address));
    });
}

pub(crate) fn parts_each_of_the_last(fixture: &Fixture) {
    on_a_small_stack(|| {
        let bytes = pattern(CHANNELS + 64, 6);
        let mut last = fixture.filled(&bytes);
        for step in 0..CHANNELS {
            // A buffer of a part has a block of its own.
            let size_bytes = last.size_bytes() - 1;
            let shape = Shape::new(DType::U8, &[i64::try_from(size_bytes).unwrap()]).unwrap();
            let part = last.slice(1, size_bytes).unwrap();
            let buffer = Buffer::from_raw(part, &shape, None, &Event::ready()).unwrap();
            last = buffer.usage_hold().unwrap().memory().clone();
            if step % 1000 == 0 {
                assert_eq!(read(&last.slice(0, 1).unwrap()), bytes[step + 1..step + 2]);
            }
        }
        assert_eq!(read(&last), bytes[CHANNELS..]);
    });
}

pub(crate) fn allocations_that_wait_for_the_last(fixture: &Fixture) {
    const LIMIT_BYTES: usize = 1 << 20;
    let options = ClientOptions { memory_limit_bytes: LIMIT_BYTES, ..Default::default() };
    let client = fixture.client_with(&options);
    let space = client.devices()[0].default_memory_space();
    let there = Arc::new(AtomicUsize::new(0));
    on_a_small_stack(|| {
        let first = RawBuffer::allocate(&space, LIMIT_BYTES).unwrap();
        for _ in 0..CHANNELS {
            let wait = AllocOptions { oom: OomPolicy::Wait, ..Default::default() };
            let next = RawBuffer::allocate_with(&space, LIMIT_BYTES, &wait).unwrap();
            let (event, there) = (next.allocation_event(), Arc::clone(&there));
            event.on_ready(move |outcome| {
                assert_eq!(*outcome, Ok(()));
                there.fetch_add(1, Ordering::Relaxed);
                drop(next);
            });
        }
        drop(first);
        assert_eq!(there.load(Ordering::Relaxed), CHANNELS);
    });
    assert_eq!(space.stats().bytes_in_use, 0);
}
