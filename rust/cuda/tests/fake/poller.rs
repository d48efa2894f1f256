//! The thread of a device asks what is over, and does nothing else: it runs no code of callers, enqueues and frees
//! nothing, and sleeps while a caller that waits looks by itself.

#![allow(unsafe_code, reason = "copies are made by address")]

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use std::{fs, thread};

use purlin::{AllocOptions, Buffer, Error, Event, OomPolicy, RawBuffer, ShutdownMode, ShutdownOptions, StatusCode};
use purlin_fakecuda::{Options, process};

use crate::support::*;

const POLLER: &str = "purlin-cuda-0";
/// What asks, and what makes a context current for that.
const ASKING: [&str; 3] = ["cuCtxGetCurrent", "cuCtxSetCurrent", "cuEventQuery"];
/// As many chunks as a GPU has, of so many bytes each.
const CHUNKS: usize = 16;
const CHUNK_BYTES: usize = 4 << 20;
/// Too large for a slab, so that it goes through a chunk.
const BYTES: usize = 1 << 20;
const UP: &str = "cuMemcpyHtoDAsync_v2";
const DOWN: &str = "cuMemcpyDtoHAsync_v2";

/// The names of threads on which waiters have run.
struct Waiters {
    told: Sender<String>,
    names: Receiver<String>,
    count: usize,
}

impl Waiters {
    fn new() -> Self {
        let (told, names) = mpsc::channel();
        Self { told, names, count: 0 }
    }

    fn add(&mut self, event: &Event) {
        let told = self.told.clone();
        self.count += 1;
        event.on_ready(move |_| {
            let name = thread::current().name().unwrap_or_default().to_owned();
            told.send(name).expect("the test waits for it");
        });
    }

    /// All have run, and none on the poller.
    #[track_caller]
    fn ran_elsewhere(&self) {
        for _ in 0..self.count {
            let name = self.names.recv_timeout(LIMIT).expect("each waiter runs");
            assert_ne!(name, POLLER, "the thread of a waiter");
        }
    }
}

/// What the poller has called, which is watched since `control.watch(true)`, besides what asks.
fn done_by_poller(session: &Session) -> Vec<String> {
    session.driver.control.watch(false);
    let calls = session.driver.control.watched();
    let by_poller = calls.into_iter().filter(|call| call.thread == POLLER).map(|call| call.entry);
    by_poller.filter(|entry| !ASKING.contains(&entry.as_str())).collect()
}

/// Holds the GPU, and an upload of these bytes has all chunks: they must stay until it is over. The memory is kept,
/// too, so that no allocation that waits gets it.
fn take_all_chunks<'a>(session: &'a Session, bytes: &[u8]) -> (Held<'a>, RawBuffer, Event) {
    let block = session.block(0, "device", bytes.len());
    let held = Held::new(&session.driver);
    session.driver.control.reset_calls();
    let calls = || session.driver.control.calls(UP);
    // SAFETY: the caller's promise.
    let up = unsafe { block.copy_from_host(bytes.as_ptr(), 0, bytes.len(), &[]) };
    until(|| format!("{} chunks are filled", calls()), || calls() == CHUNKS as u64);
    (held, block, up)
}

/// The first bytes of the block, behind each other by 5: through a chunk.
fn overlap(block: &RawBuffer) -> Event {
    // SAFETY: nothing else uses the block.
    unsafe { block.copy_range_to(0, block, 5, BYTES, &[]) }
}

/// Memory that waits until others free some.
fn wait_for_memory(session: &Session, bytes: usize) -> RawBuffer {
    let space = session.client.devices()[0].memory_space("device").unwrap();
    let options = AllocOptions { oom: OomPolicy::Wait, ..AllocOptions::default() };
    RawBuffer::allocate_with(&space, bytes, &options).unwrap()
}

#[test]
fn what_waits_for_a_chunk_goes_on_elsewhere() {
    const OF_ITS_OWN: usize = 40 << 20;
    let options = Options { memory_bytes: 160 << 20, ..Options::default() };
    process::run("poller::what_waits_for_a_chunk_goes_on_elsewhere", &options, || {
        Session::with(1, |session| {
            let (read, moved) = (session.block(0, "device", OF_ITS_OWN), session.block(0, "device", OF_ITS_OWN));
            write(&read.slice(0, BYTES).unwrap(), &pattern(BYTES, 1)).unwrap();
            write(&moved.slice(0, BYTES + 5).unwrap(), &pattern(BYTES + 5, 2)).unwrap();
            let (sent, more) = (pattern(CHUNKS * CHUNK_BYTES, 3), pattern(BYTES, 4));
            let (mut found, target) = (vec![0; BYTES], session.block(0, "device", BYTES));
            let mut waiters = Waiters::new();
            let (held, filled, all) = take_all_chunks(session, &sent);
            session.driver.control.watch(true);
            // SAFETY: the bytes stay until the event, which outcome() waits for or fails the process.
            let down = unsafe { read.copy_to_host(found.as_mut_ptr(), 0, BYTES, &[]) };
            let within = overlap(&moved);
            // SAFETY: as above.
            let up = unsafe { target.copy_from_host(more.as_ptr(), 0, BYTES, &[]) };
            // The memory is free once the copies that use it are enqueued.
            drop((read, moved));
            let memory = [(); 2].map(|()| wait_for_memory(session, OF_ITS_OWN));
            for block in &memory {
                assert!(!block.allocation_event().is_ready());
                waiters.add(&block.allocation_event());
            }
            let events = [all, down, within, up];
            events.iter().for_each(|event| waiters.add(event));
            drop(held);
            events.iter().for_each(|event| outcome(event).unwrap());
            waiters.ran_elsewhere();
            drop(filled);
            assert!(found == pattern(BYTES, 1));
            assert_eq!(done_by_poller(session), [""; 0]);
        });
    });
}

#[test]
fn what_waits_for_a_copy_that_is_refused_is_told_elsewhere() {
    process::run("poller::what_waits_for_a_copy_that_is_refused_is_told_elsewhere", &Options::default(), || {
        Session::with(1, |session| {
            let (moved, other) = (session.block(0, "device", BYTES + 5), session.block(0, "device", BYTES + 5));
            let sent = pattern(CHUNKS * CHUNK_BYTES, 3);
            let mut waiters = Waiters::new();
            let (held, filled, all) = take_all_chunks(session, &sent);
            let within = overlap(&moved);
            let behind = copy(&moved, &other, std::slice::from_ref(&within));
            let last = copy(&other, &moved, std::slice::from_ref(&behind));
            session.driver.control.watch(true);
            session.driver.control.reset_calls();
            session.driver.control.set_faults(&format!("{DOWN}:1:1"));
            [&within, &behind, &last].into_iter().for_each(|event| waiters.add(event));
            drop(held);
            for event in [within, behind, last] {
                assert_eq!(outcome(&event).unwrap_err().code(), StatusCode::InvalidArgument);
            }
            outcome(&all).unwrap();
            drop(filled);
            waiters.ran_elsewhere();
            assert_eq!(done_by_poller(session), [""; 0]);
        });
    });
}

#[test]
fn nothing_that_waits_for_a_chunk_is_lost_when_the_runner_has_shut_down() {
    let name = "poller::nothing_that_waits_for_a_chunk_is_lost_when_the_runner_has_shut_down";
    process::run(name, &Options::default(), || {
        let session = Session::new(1);
        let (read, moved) = (session.block(0, "device", BYTES), session.block(0, "device", BYTES + 5));
        let target = session.block(0, "device", BYTES);
        write(&read, &pattern(BYTES, 1)).unwrap();
        write(&moved, &pattern(BYTES + 5, 2)).unwrap();
        let (sent, more, mut found) = (pattern(CHUNKS * CHUNK_BYTES, 3), pattern(BYTES, 4), vec![0; BYTES]);
        let (held, filled, all) = take_all_chunks(&session, &sent);
        // SAFETY: the bytes stay until the event, which outcome() waits for or fails the process.
        let down = unsafe { read.copy_to_host(found.as_mut_ptr(), 0, BYTES, &[]) };
        let within = overlap(&moved);
        // SAFETY: as above.
        let up = unsafe { target.copy_from_host(more.as_ptr(), 0, BYTES, &[]) };
        // The upload waits for a chunk, or is still to ask for one: the runner does all that is queued before it ends.
        let options = ShutdownOptions { mode: ShutdownMode::Drain, timeout: Some(Duration::from_millis(1)) };
        assert_eq!(session.client.shutdown(options).unwrap_err().code(), StatusCode::DeadlineExceeded);
        drop(held);
        [all, down, within, up].iter().for_each(|event| outcome(event).unwrap());
        assert!(found == pattern(BYTES, 1));
        drop((read, moved, target, filled));
        let Session { driver, client } = session;
        drop(client);
        nothing_is_left(&driver);
        driver.control.no_reports();
    });
}

#[test]
fn a_mapping_ends_elsewhere_with_its_last_copy_and_before_that_is_told() {
    let name = "poller::a_mapping_ends_elsewhere_with_its_last_copy_and_before_that_is_told";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let (plain, device) = (session.block(0, "unpinned_host", BYTES), session.block(0, "device", BYTES));
            let control = &session.driver.control;
            write(&plain, &pattern(BYTES, 1)).unwrap();
            for (from, to) in [(&plain, &device), (&device, &plain)] {
                let address = plain.host_pointer().unwrap().as_ptr().cast_const();
                let mapping = session.client.dma_map(address, BYTES).unwrap();
                let held = Held::new(&session.driver);
                control.reset_calls();
                control.watch(true);
                let copied = copy(from, to, &[]);
                drop(mapping);
                assert_eq!(control.calls("cuMemHostUnregister"), 0, "a copy uses the memory");
                let ((told, asked), control) = (mpsc::channel(), *control);
                copied.on_ready(move |_| told.send(control.calls("cuMemHostUnregister")).expect("the test asks"));
                drop(held);
                outcome(&copied).unwrap();
                assert_eq!(asked.recv_timeout(LIMIT), Ok(1), "a waiter may free the memory");
                assert_eq!([UP, DOWN].map(|name| control.calls(name)).iter().sum::<u64>(), 1, "through no chunk");
                assert_eq!(done_by_poller(session), [""; 0]);
            }
            assert_eq!(read(&plain).unwrap(), pattern(BYTES, 1));
        });
    });
}

/// Whether the poller sleeps, and how often it has begun to. `None`: it has not started.
fn sleep_of_poller() -> Option<(bool, u64)> {
    let mut tasks = fs::read_dir("/proc/self/task").unwrap().filter_map(|task| Some(task.ok()?.path()));
    let task = tasks.find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == POLLER))?;
    let status = fs::read_to_string(task.join("status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()).unwrap_or_else(|| panic!("no {name} in {status}"))
    };
    Some((field("State:") == "S", field("voluntary_ctxt_switches:").parse().unwrap()))
}

/// How often it has begun to sleep, now that it does.
fn asleep() -> u64 {
    let mut begun = 0;
    until(
        || "the poller does not sleep".to_owned(),
        || {
            sleep_of_poller().is_some_and(|(sleeps, count)| {
                begun = count;
                sleeps
            })
        },
    );
    begun
}

#[test]
fn the_poller_sleeps_through_small_copies_of_callers_that_wait() {
    const ROUNDS: u64 = 1000;
    let name = "poller::the_poller_sleeps_through_small_copies_of_callers_that_wait";
    // Everything is over at once, so no caller looks for so long that it leaves that to the poller.
    process::run(name, &Options { empty: true, ..Options::default() }, || {
        let session = Session::new(1);
        let space = session.client.devices()[0].memory_space("device").unwrap();
        let both_ways = || -> Result<(), Error> {
            let sent = Buffer::from_slice(&[7_u8; 256], &[256], &space)?;
            // Once it was woken it does not sleep, so each is counted.
            let after_upload = asleep();
            sent.to_vec::<u8>()?;
            assert!(asleep() >= after_upload);
            Ok(())
        };
        // The thread starts.
        both_ways().unwrap();
        let before = asleep();
        (0..ROUNDS).for_each(|_| both_ways().unwrap());
        let woken = asleep() - before;
        assert!(woken < ROUNDS / 100, "{woken} times for {ROUNDS} uploads and as many downloads");
    });
}

#[test]
fn of_each_stream_the_oldest_alone_is_asked_for() {
    const COPIES: usize = 100;
    const QUESTIONS: u64 = 2000;
    process::run("poller::of_each_stream_the_oldest_alone_is_asked_for", &Options::default(), || {
        Session::with(1, |session| {
            let control = &session.driver.control;
            let [up, down] = [(); 2].map(|()| (session.block(0, "pinned_host", 64), session.block(0, "device", 64)));
            write(&down.1, &pattern(64, 1)).unwrap();
            let held = Held::new(&session.driver);
            let events: Vec<Event> =
                (0..COPIES).flat_map(|_| [copy(&up.0, &up.1, &[]), copy(&down.1, &down.0, &[])]).collect();
            control.reset_calls();
            control.watch(true);
            until(|| "nobody asks".to_owned(), || control.calls("cuEventQuery") > QUESTIONS);
            control.watch(false);
            let asked = control.watched();
            let asked: BTreeSet<&str> =
                asked.iter().filter(|call| call.entry == "cuEventQuery").map(|call| call.handle.as_str()).collect();
            drop(held);
            events.iter().for_each(|event| outcome(event).unwrap());
            assert_eq!(asked.len(), 2, "of two streams: {asked:?}");
        });
    });
}

#[test]
fn each_client_has_a_thread_for_each_of_its_devices_and_takes_it_along() {
    let name = "poller::each_client_has_a_thread_for_each_of_its_devices_and_takes_it_along";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        let pollers = || {
            let mut names = threads();
            names.retain(|name| name != "purlin-cuda-mem");
            names.sort_unstable();
            names
        };
        let use_all = |session: &Session, count| {
            (0..count).for_each(|device| write(&session.block(device, "device", BYTES), &pattern(BYTES, 1)).unwrap());
        };
        let (one, other) = (Session::new(1), Session::new(2));
        use_all(&one, 1);
        use_all(&other, 2);
        until(|| format!("threads {:?}", pollers()), || pollers() == [POLLER, POLLER, "purlin-cuda-1"]);
        drop(one);
        until(|| format!("threads {:?}", pollers()), || pollers() == [POLLER, "purlin-cuda-1"]);
        use_all(&other, 2);
        drop(other);
        until(|| format!("threads {:?}", pollers()), || pollers().is_empty());
    });
}
