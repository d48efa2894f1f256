//! How memory is asked for: after an event, when others are freed, with help, or not at all; and what is said of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin_async::EventPromise;
use purlin_base::{Error, Label, StatusCode};
use purlin_device::memory::MEMORY_REPORT_TYPE_URL;
use purlin_device::{AllocOptions, ClientOptions, MemoryReport, MemorySpace, OomPolicy, RawBuffer};

use crate::fixture::{Fixture, LARGE_BYTES, assert_cycle, assert_error};
use crate::host_copy::HostCopy;

const LIMIT_BYTES: usize = 1 << 20;

/// A space of 1 MiB, of a client of its own.
fn limited(fixture: &Fixture) -> MemorySpace {
    let options = ClientOptions { memory_limit_bytes: LIMIT_BYTES, ..Default::default() };
    fixture.client_with(&options).devices()[0].default_memory_space()
}

fn options(oom: OomPolicy) -> AllocOptions {
    AllocOptions { oom, ..Default::default() }
}

pub(crate) fn a_space_with_a_limit_lends_that_much(fixture: &Fixture) {
    let space = limited(fixture);
    assert_eq!(space.stats().bytes_limit, Some(LIMIT_BYTES as u64));
    let all = RawBuffer::allocate(&space, LIMIT_BYTES).unwrap();
    assert_eq!(RawBuffer::allocate(&space, 1).unwrap_err().code(), StatusCode::ResourceExhausted);
    drop(all);
    RawBuffer::allocate(&space, LIMIT_BYTES).unwrap();
    assert_eq!(RawBuffer::allocate(&space, LIMIT_BYTES + 1).unwrap_err().code(), StatusCode::ResourceExhausted);
}

pub(crate) fn alignment_is_what_was_asked_for(fixture: &Fixture) {
    for space in fixture.spaces() {
        assert!(space.alignment_bytes().is_power_of_two() && space.alignment_bytes() >= 64);
        for alignment_bytes in [0, 1, 64, 256, 4096, 1 << 21] {
            let options = AllocOptions { alignment_bytes, ..Default::default() };
            let buffer = RawBuffer::allocate_with(&space, 100, &options).unwrap();
            let address = buffer.device_pointer().unwrap();
            assert_eq!(address % alignment_bytes.max(space.alignment_bytes()), 0, "{alignment_bytes} in {space}");
        }
    }
    for alignment_bytes in [3, 65, (1 << 30) + 1, 1 << 31, usize::MAX] {
        let options = AllocOptions { alignment_bytes, ..Default::default() };
        let error = RawBuffer::allocate_with(&fixture.space(), 1, &options).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &[&alignment_bytes.to_string(), "power of two"]);
    }
}

pub(crate) fn the_error_says_who_holds_the_memory(fixture: &Fixture) {
    let space = limited(fixture);
    let small = AllocOptions { label: Label::new(c"small one"), ..Default::default() };
    let large = AllocOptions { label: Label::new(c"large one"), ..Default::default() };
    let _small = RawBuffer::allocate_with(&space, 100, &small).unwrap();
    let _large = RawBuffer::allocate_with(&space, 600_000, &large).unwrap();
    let line = line!() - 1;
    let error = RawBuffer::allocate(&space, 700_000).unwrap_err();
    assert_error(
        &error,
        StatusCode::ResourceExhausted,
        &[
            "cannot allocate 700000 bytes",
            "600100 bytes in use",
            "limit 1048576 bytes",
            "2 live allocations",
            "600000 bytes 'large one'",
            &format!("allocation.rs:{line}"),
            "100 bytes 'small one'",
        ],
    );
    let json = std::str::from_utf8(error.payload(MEMORY_REPORT_TYPE_URL).unwrap()).unwrap();
    assert!(json.starts_with('{') && json.ends_with("]}"), "{json}");
    for part in ["\"requested_bytes\":700000", "\"bytes_limit\":1048576", "\"label\":\"large one\""] {
        assert!(json.contains(part), "'{part}' is missing in {json}");
    }
    let largest = space.stats().largest_free_block_bytes;
    assert!(json.contains(&format!("\"largest_free_block_bytes\":{largest}")), "{json}");
    RawBuffer::allocate(&space, largest.try_into().unwrap()).expect("the largest free block can be had");
    RawBuffer::allocate(&space, 100_000).expect("the client goes on");
}

pub(crate) fn a_report_tells_what_pending_work_holds(fixture: &Fixture) {
    let space = limited(fixture);
    let gate = EventPromise::new(c"gate");
    let (going, held) = (RawBuffer::allocate(&space, 5000).unwrap(), RawBuffer::allocate(&space, 300).unwrap());
    going.retain_until(&gate.event());
    drop(going);
    let MemoryReport { bytes_in_use, pending_free_bytes, holder_count, holders, .. } = space.report();
    assert_eq!((bytes_in_use, pending_free_bytes, holder_count), (5300, 5000, 2));
    assert_eq!(
        holders.iter().map(|holder| (holder.size_bytes, holder.is_going)).collect::<Vec<_>>(),
        [(5000, true), (300, false)]
    );
    gate.set_ready();
    assert_eq!((space.report().pending_free_bytes, space.stats().bytes_in_use), (0, 300));
    drop(held);
}

pub(crate) fn memory_after_an_event_comes_with_it(fixture: &Fixture) {
    let space = limited(fixture);
    let gate = EventPromise::new(c"gate");
    let options = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let buffer = RawBuffer::allocate_with(&space, LIMIT_BYTES, &options).unwrap();
    assert_eq!((buffer.size_bytes(), space.stats().bytes_in_use), (LIMIT_BYTES, 0));
    assert!(!buffer.allocation_event().is_ready());
    assert_error(&buffer.device_pointer().unwrap_err(), StatusCode::FailedPrecondition, &["not there yet"]);
    assert!(buffer.host_pointer().is_none());
    // The memory that was held until now is enough then.
    let held = RawBuffer::allocate(&space, LIMIT_BYTES).unwrap();
    drop(held);
    gate.set_ready();
    assert_eq!(buffer.allocation_event().wait(), Ok(()));
    assert!(buffer.device_pointer().is_ok());
    assert_eq!(space.stats().bytes_in_use, LIMIT_BYTES as u64);
}

pub(crate) fn memory_after_an_event_that_waits_for_it_fails(fixture: &Fixture) {
    let gate = EventPromise::new(c"gate");
    let after = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let buffer = RawBuffer::allocate_with(&fixture.space(), 8, &after).unwrap();
    gate.forward(&buffer.allocation_event());
    let error = buffer.allocation_event().error().unwrap();
    assert_cycle(&error);
    assert_eq!(after.after.unwrap().error(), Some(error));
}

pub(crate) fn memory_after_a_failed_event_never_comes(fixture: &Fixture) {
    let space = limited(fixture);
    let failed = purlin_async::Event::from_error(Error::aborted("upstream"));
    let options = AllocOptions { after: Some(failed), ..Default::default() };
    assert_eq!(RawBuffer::allocate_with(&space, 8, &options).unwrap_err().message(), "upstream");

    let gate = EventPromise::new(c"gate");
    let options = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let (buffer, other) = (
        RawBuffer::allocate_with(&space, 8, &options).unwrap(),
        RawBuffer::allocate_with(&space, 8, &options).unwrap(),
    );
    let copied = HostCopy::to_device(&buffer, 0, vec![1; 8], &[]);
    drop(gate);
    for event in [buffer.allocation_event(), copied.event().clone(), other.allocation_event()] {
        assert_error(&event.wait().unwrap_err(), StatusCode::Internal, &["gate"]);
    }
    assert_eq!(buffer.device_pointer().unwrap_err().code(), StatusCode::Internal);
    assert_eq!(space.stats().num_allocs, 0);
}

pub(crate) fn memory_after_an_event_may_still_be_short(fixture: &Fixture) {
    let space = limited(fixture);
    let gate = EventPromise::new(c"gate");
    let options = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let buffer = RawBuffer::allocate_with(&space, 1000, &options).unwrap();
    let _held = RawBuffer::allocate(&space, LIMIT_BYTES).unwrap();
    gate.set_ready();
    let error = buffer.allocation_event().wait().unwrap_err();
    assert_error(&error, StatusCode::ResourceExhausted, &["cannot allocate 1000 bytes"]);
}

pub(crate) fn an_allocation_waits_for_what_is_freed(fixture: &Fixture) {
    let space = limited(fixture);
    let held = RawBuffer::allocate(&space, LIMIT_BYTES).unwrap();
    let waiting = RawBuffer::allocate_with(&space, LIMIT_BYTES / 2, &options(OomPolicy::Wait)).unwrap();
    let second = RawBuffer::allocate_with(&space, LIMIT_BYTES / 2, &options(OomPolicy::Wait)).unwrap();
    assert!(!waiting.allocation_event().is_ready());
    assert_eq!(space.report().waiting_count, 2);
    let copied = HostCopy::to_device(&waiting, 0, vec![7; 100], &[]);
    assert!(!copied.event().is_ready());
    drop(held);
    for event in [waiting.allocation_event(), second.allocation_event(), copied.event().clone()] {
        assert_eq!(event.wait(), Ok(()));
    }
    assert_eq!((space.report().waiting_count, space.stats().bytes_in_use), (0, LIMIT_BYTES as u64));
}

pub(crate) fn the_first_to_wait_is_served_first(fixture: &Fixture) {
    let space = limited(fixture);
    let (a, b) =
        (RawBuffer::allocate(&space, LIMIT_BYTES / 2).unwrap(), RawBuffer::allocate(&space, LIMIT_BYTES / 2).unwrap());
    let large = RawBuffer::allocate_with(&space, LIMIT_BYTES, &options(OomPolicy::Wait)).unwrap();
    let small = RawBuffer::allocate_with(&space, 64, &options(OomPolicy::Wait)).unwrap();
    drop(a);
    assert!(!small.allocation_event().is_ready(), "the large one came first");
    let late = RawBuffer::allocate_with(&space, 64, &options(OomPolicy::Wait)).unwrap();
    assert!(!late.allocation_event().is_ready(), "others wait already, though there is room for it");
    let at_once = RawBuffer::allocate(&space, 64).unwrap();
    assert!(at_once.allocation_event().is_ready(), "what does not wait takes what it finds");
    drop((at_once, b));
    assert!(large.allocation_event().is_ready() && !small.allocation_event().is_ready());
    drop(large);
    assert_eq!(small.allocation_event().wait(), Ok(()));
    assert_eq!(late.allocation_event().wait(), Ok(()));
}

pub(crate) fn who_gives_up_waiting_lets_others_pass(fixture: &Fixture) {
    let space = limited(fixture);
    let held =
        [RawBuffer::allocate(&space, LIMIT_BYTES / 2).unwrap(), RawBuffer::allocate(&space, LIMIT_BYTES / 2).unwrap()];
    let large = RawBuffer::allocate_with(&space, LIMIT_BYTES, &options(OomPolicy::Wait)).unwrap();
    let small = RawBuffer::allocate_with(&space, 64, &options(OomPolicy::Wait)).unwrap();
    let event = large.allocation_event();
    let [a, b] = held;
    drop(a);
    drop(large);
    assert_eq!(small.allocation_event().wait(), Ok(()));
    assert_eq!(event.wait().unwrap_err().code(), StatusCode::Cancelled);
    drop(b);
}

pub(crate) fn waiting_for_what_can_never_come_fails_at_once(fixture: &Fixture) {
    let space = limited(fixture);
    let wait = options(OomPolicy::Wait);
    let nothing_held = RawBuffer::allocate_with(&space, LIMIT_BYTES + 1, &wait).unwrap_err();
    assert_eq!(nothing_held.code(), StatusCode::ResourceExhausted);
    let _held = RawBuffer::allocate(&space, 1).unwrap();
    assert!(RawBuffer::allocate_with(&space, LIMIT_BYTES + 1, &wait).is_err());
}

pub(crate) fn many_threads_wait_for_one_another(fixture: &Fixture) {
    let space = limited(fixture);
    crate::fixture::on_threads(4, |thread| {
        for round in 0..200 {
            let size_bytes = LIMIT_BYTES / 2 + 64 * ((thread * 31 + round) % 100);
            let buffer = RawBuffer::allocate_with(&space, size_bytes, &options(OomPolicy::Wait)).unwrap();
            assert_eq!(buffer.allocation_event().wait(), Ok(()));
        }
    });
    assert_eq!((space.stats().bytes_in_use, space.report().waiting_count), (0, 0));
}

pub(crate) fn the_hook_is_asked_to_free_something(fixture: &Fixture) {
    let cache: Arc<std::sync::Mutex<Vec<RawBuffer>>> = Arc::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let hook = {
        let (cache, asked) = (Arc::clone(&cache), Arc::clone(&asked));
        move |report: &MemoryReport| {
            asked.fetch_add(1, Ordering::Relaxed);
            assert_eq!(report.requested_bytes, Some(LIMIT_BYTES as u64));
            let freed = cache.lock().unwrap().pop();
            freed.is_some()
        }
    };
    let options_of_client =
        ClientOptions { memory_limit_bytes: LIMIT_BYTES, on_out_of_memory: Some(Arc::new(hook)), ..Default::default() };
    let space = fixture.client_with(&options_of_client).devices()[0].default_memory_space();
    let fill = || cache.lock().unwrap().extend((0..3).map(|_| RawBuffer::allocate(&space, 1000).unwrap()));
    fill();
    RawBuffer::allocate_with(&space, LIMIT_BYTES, &options(OomPolicy::Retry)).expect("the hook frees all three");
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    let _held = RawBuffer::allocate(&space, 1).unwrap();
    fill();
    let error = RawBuffer::allocate_with(&space, LIMIT_BYTES, &options(OomPolicy::Retry)).unwrap_err();
    assert_eq!((error.code(), asked.load(Ordering::Relaxed)), (StatusCode::ResourceExhausted, 7));
    assert!(RawBuffer::allocate(&space, LIMIT_BYTES).is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 7, "it was not asked to help");
}

/// A space of 1 MiB whose hook says that it has freed something, and how often it was asked. In the end it says no, so
/// that a fault is no hang.
fn with_a_hook_that_always_says_yes(fixture: &Fixture) -> (MemorySpace, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let hook = move |_report: &MemoryReport| counted.fetch_add(1, Ordering::Relaxed) < 5000;
    let options =
        ClientOptions { memory_limit_bytes: LIMIT_BYTES, on_out_of_memory: Some(Arc::new(hook)), ..Default::default() };
    (fixture.client_with(&options).devices()[0].default_memory_space(), asked)
}

pub(crate) fn a_hook_that_always_says_yes_is_asked_a_thousand_times(fixture: &Fixture) {
    let (space, asked) = with_a_hook_that_always_says_yes(fixture);
    let held = RawBuffer::allocate(&space, LIMIT_BYTES).unwrap();
    let error = RawBuffer::allocate_with(&space, 1, &options(OomPolicy::Retry)).unwrap_err();
    assert_eq!((error.code(), asked.load(Ordering::Relaxed)), (StatusCode::ResourceExhausted, 1000));
    let (_buffer, promise) = RawBuffer::channel(&space, 1, &AllocOptions::default());
    assert_eq!(promise.allocate(OomPolicy::Retry).unwrap_err().code(), StatusCode::ResourceExhausted);
    assert_eq!(asked.load(Ordering::Relaxed), 2000);
    drop(held);
    RawBuffer::allocate_with(&space, 1, &options(OomPolicy::Retry)).unwrap();
}

pub(crate) fn the_hook_is_not_asked_for_what_can_never_fit(fixture: &Fixture) {
    let (space, asked) = with_a_hook_that_always_says_yes(fixture);
    for size_bytes in [LIMIT_BYTES + 1, 1 << 40, isize::MAX as usize, usize::MAX] {
        let error = RawBuffer::allocate_with(&space, size_bytes, &options(OomPolicy::Retry)).unwrap_err();
        assert_error(&error, StatusCode::ResourceExhausted, &[&size_bytes.to_string()]);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

pub(crate) fn trimming_gives_memory_back(fixture: &Fixture) {
    let space = fixture.space();
    drop(fixture.allocate(LARGE_BYTES));
    drop(fixture.allocate(10));
    assert!(space.stats().pool_bytes >= LARGE_BYTES as u64);
    space.trim();
    assert_eq!(space.stats().pool_bytes, 0);
}
