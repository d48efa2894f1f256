//! What a watchdog may not end: copies that go on, and what waits for them.

#![allow(unsafe_code, reason = "host memory is given by address")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use purlin_array::{DType, Shape};
use purlin_async::stall::{StallReport, Watchdog, WatchdogAction, WatchdogOptions, stalls};
use purlin_async::{Event, EventPromise, ShutdownOptions};
use purlin_base::{StatusCode, StatusOr};
use purlin_device::backend::{Backend, Memory, Operation, Schedule};
use purlin_device::{
    AllocOptions, AsyncHostToDeviceTransferManager, Buffer, Client, ClientOptions, MemorySpace, RawBuffer, TransferSpec,
};
use purlin_sim::{SimBackend, SimOptions};

/// A simulation whose driver stands still until `go_on` is set: copies that were asked for stay in flight, also those
/// for which a caller waits.
struct Held {
    client: Arc<Client>,
    space: MemorySpace,
    go_on: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    driver: Option<thread::JoinHandle<()>>,
}

/// A backend whose callers never step the simulation themselves.
struct Driven(SimBackend);

impl Backend for Driven {
    fn platform_name(&self) -> &'static str {
        self.0.platform_name()
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        self.0.memory_kinds()
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        self.0.open_memory(device, kind)
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        let mut schedule = schedule.after(schedule.dependencies);
        schedule.caller_waits = false;
        self.0.run(operation, &schedule)
    }
}

fn held() -> Held {
    let (backend, driver) = SimBackend::by_hand(SimOptions::default());
    let options = ClientOptions { worker_count: 1, ..Default::default() };
    let client = Client::new(&options, Arc::new(Driven(backend))).unwrap();
    let space = client.devices()[0].default_memory_space();
    let (go_on, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (may_step, ends) = (Arc::clone(&go_on), Arc::clone(&is_over));
    let driver = thread::spawn(move || {
        while !ends.load(Ordering::Acquire) {
            if !(may_step.load(Ordering::Acquire) && driver.step()) {
                thread::yield_now();
            }
        }
    });
    Held { client, space, go_on, is_over, driver: Some(driver) }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let ended = self.driver.take().map(thread::JoinHandle::join);
        assert!(thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the driver panicked");
    }
}

fn poisoner() -> Watchdog {
    let options = WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Poison,
        sink: Some(Box::new(|_| ())),
    };
    Watchdog::start(options).unwrap()
}

fn sleeps_on(report: &StallReport, label: &str) -> bool {
    report.threads.iter().any(|thread| thread.waits_for.contains(&format!("event '{label}'")))
}

/// `wait`, on a thread of its own that sleeps on an event of that label, is not ended by a watchdog; `go_on` ends it.
fn survives(label: &str, go_on: impl FnOnce(), wait: impl FnOnce() + Send) {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            wait();
            ended.store(true, Ordering::Relaxed);
        });
        while !sleeps_on(&stalls(Duration::ZERO), label) {
            assert!(!ended.load(Ordering::Relaxed), "nothing was waited for");
            thread::yield_now();
        }
        let _watchdog = poisoner();
        for _ in 0..2 {
            let canary = EventPromise::new(c"canary");
            assert_eq!(canary.event().wait().unwrap_err().code(), StatusCode::DeadlineExceeded);
        }
        let was_ended = ended.load(Ordering::Relaxed);
        let report = stalls(Duration::ZERO);
        go_on();
        assert!(!was_ended, "'{label}' was completed while others went on");
        let seen = report.events.iter().find(|event| event.label.as_str() == label).unwrap();
        assert!(!seen.can_be_poisoned && seen.poison.starts_with("cannot be poisoned: "), "{}", seen.poison);
    });
}

#[test]
fn a_synchronous_copy_from_the_host_keeps_its_source() {
    let held = held();
    let values = vec![7_i32; 100];
    let buffer = std::sync::OnceLock::<Buffer>::new();
    survives(
        "copy",
        || held.go_on.store(true, Ordering::Release),
        || {
            buffer.set(Buffer::from_slice(&values, &[100], &held.space).unwrap()).unwrap();
        },
    );
    assert_eq!(buffer.get().unwrap().to_vec::<i32>().unwrap(), values);
}

#[test]
fn a_copy_to_the_host_is_waited_for() {
    let held = held();
    let memory = RawBuffer::allocate(&held.space, 64).unwrap();
    survives(
        "copy",
        || held.go_on.store(true, Ordering::Release),
        || {
            let mut bytes = vec![0_u8; 64];
            // SAFETY: the bytes stay until the wait.
            let copied = unsafe { memory.copy_to_host(bytes.as_mut_ptr(), 0, 64, &[]) };
            assert!(copied.wait().is_ok());
        },
    );
}

#[test]
fn a_shutdown_waits_for_what_is_in_flight() {
    let held = held();
    let memory = RawBuffer::allocate(&held.space, 64).unwrap();
    let bytes: &'static mut [u8] = vec![0_u8; 64].leak();
    // SAFETY: the bytes live for ever.
    let copied = unsafe { memory.copy_to_host(bytes.as_mut_ptr(), 0, 64, &[]) };
    survives(
        "client shutdown",
        || held.go_on.store(true, Ordering::Release),
        || {
            assert_eq!(held.client.shutdown(ShutdownOptions::default()), Ok(()));
            assert!(copied.is_ready());
        },
    );
}

#[test]
fn a_transfer_is_ready_when_its_last_piece_is_there() {
    let held = held();
    held.go_on.store(true, Ordering::Release);
    let spec = TransferSpec { shape: Shape::new(DType::S32, &[4]).unwrap(), layout: None };
    let manager = AsyncHostToDeviceTransferManager::new(&[spec], &held.space, &AllocOptions::default()).unwrap();
    let ready = manager.retrieve_buffer(0).unwrap().ready_event();
    let bytes: &'static [u8] = vec![1_u8; 16].leak();
    let last = || {
        // SAFETY: the bytes live for ever.
        unsafe { manager.transfer_raw_data_to_sub_buffer(0, bytes.as_ptr(), 0, 16, true, None) }.unwrap();
    };
    survives(&ready.label().as_str(), last, || assert_eq!(ready.wait(), Ok(())));
}

#[test]
fn memory_is_free_when_its_uses_are_over() {
    let held = held();
    held.go_on.store(true, Ordering::Release);
    let buffer = Buffer::from_slice(&[1_i32, 2], &[2], &held.space).unwrap();
    let used = EventPromise::new(c"used by a stranger");
    buffer.usage_hold().unwrap().release_after(used.event());
    let (_memory, free): (RawBuffer, Event) = buffer.release().unwrap();
    let stays = used.event();
    let label = free.label();
    let end = || _ = used.set_ready();
    survives(&label.as_str(), end, || {
        assert_eq!(free.wait(), Ok(()));
        assert_eq!(stays.error(), None, "what memory is kept until was not poisoned either");
    });
}
