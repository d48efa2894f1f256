//! What the seed decides, what the clock says, and how a simulation ends.

#![allow(unsafe_code, reason = "host memory is given by address")]

mod fixture;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use purlin_async::{Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_device::backend::Backend;
use purlin_device::{Buffer, ClientOptions, RawBuffer};
use purlin_sim::{IN_FLIGHT_BYTE, SimBackend, SimOptions};

use fixture::{Simulated, client_of, copy, read, seeded, simulated, write};

/// In which order `events` happen while the simulation runs, and at what time each.
fn order(simulated: &Simulated, events: &[Event]) -> Vec<(usize, u64)> {
    let happened = Arc::new(Mutex::new(Vec::new()));
    for (index, event) in events.iter().enumerate() {
        let (happened, backend) = (Arc::clone(&happened), Arc::clone(&simulated.backend));
        event.on_ready(move |outcome| {
            assert_eq!(*outcome, Ok(()));
            happened.lock().unwrap().push((index, backend.now_ns()));
        });
    }
    simulated.driver.run_until_idle();
    let happened = happened.lock().unwrap();
    assert_eq!(happened.len(), events.len());
    happened.clone()
}

/// Eight copies to blocks of their own.
fn unordered(simulated: &Simulated) -> Vec<Event> {
    (0..8).map(|byte| write(&simulated.allocate(100), byte, &[])).collect()
}

fn ends(seed: u64) -> Vec<(usize, u64)> {
    let simulated = seeded(seed);
    order(&simulated, &unordered(&simulated))
}

#[test]
fn a_seed_gives_the_same_order_and_times_again() {
    for seed in 0..10 {
        assert_eq!(ends(seed), ends(seed));
    }
}

#[test]
fn seeds_give_different_orders() {
    let orders: BTreeSet<Vec<usize>> =
        (0..10).map(|seed| ends(seed).into_iter().map(|(index, _)| index).collect()).collect();
    assert!(orders.len() >= 8, "only {} orders of 10 seeds", orders.len());
}

#[test]
fn either_of_two_unordered_writes_may_win() {
    let last = |seed| {
        let simulated = seeded(seed);
        let buffer = simulated.allocate(8);
        let _events = [write(&buffer, 1, &[]), write(&buffer, 2, &[])];
        simulated.read(&buffer)[0]
    };
    assert_eq!((0..20).map(last).collect::<BTreeSet<u8>>(), BTreeSet::from([1, 2]));
}

#[test]
fn events_are_kept_to_by_every_seed() {
    for seed in 0..50 {
        let simulated = seeded(seed);
        let buffers: Vec<RawBuffer> = (0..6).map(|_| simulated.allocate(8)).collect();
        let mut events = vec![write(&buffers[0], 9, &[])];
        for pair in buffers.windows(2) {
            events.push(copy(&pair[0], &pair[1], &[events[events.len() - 1].clone()]));
        }
        let happened: Vec<usize> = order(&simulated, &events).into_iter().map(|(index, _)| index).collect();
        assert_eq!(happened, [0, 1, 2, 3, 4, 5]);
        assert_eq!(simulated.read(&buffers[5]), [9; 8]);
        assert_eq!(simulated.reports(), [""; 0]);
    }
}

#[test]
fn one_stream_is_first_in_first_out() {
    for seed in 0..20 {
        let simulated = simulated(SimOptions { seed, streams_per_device: 1, ..Default::default() });
        let happened: Vec<usize> =
            order(&simulated, &unordered(&simulated)).into_iter().map(|(index, _)| index).collect();
        assert_eq!(happened, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn a_copy_that_waits_for_somebody_does_not_hold_its_stream_up() {
    let simulated = simulated(SimOptions { streams_per_device: 1, ..Default::default() });
    let gate = EventPromise::new(c"gate");
    let behind = write(&simulated.allocate(8), 1, &[gate.event()]);
    let other = write(&simulated.allocate(8), 2, &[]);
    simulated.driver.run_until_idle();
    assert!(other.is_ready() && !behind.is_ready());
    gate.set_ready();
    simulated.driver.run_until_idle();
    assert!(behind.is_ready());
}

#[test]
fn the_clock_goes_by_bytes_and_never_back() {
    let simulated = simulated(SimOptions { streams_per_device: 1, ..Default::default() });
    let sizes = [1, 1 << 20, 1, 4 << 20];
    let events: Vec<Event> = sizes.iter().map(|&size_bytes| write(&simulated.allocate(size_bytes), 1, &[])).collect();
    assert_eq!(simulated.backend.now_ns(), 0, "nothing happens by itself");
    let times: Vec<u64> = order(&simulated, &events).into_iter().map(|(_, at_ns)| at_ns).collect();
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    // 16 bytes per nanosecond at best.
    assert!(times[1] - times[0] >= 1 << 16 && times[3] - times[2] >= 4 << 16, "{times:?}");
    assert!(times[2] - times[1] < 1 << 16, "{times:?}");
}

#[test]
fn a_destination_is_spoiled_while_the_copy_is_under_way() {
    let simulated = seeded(0);
    let buffer = simulated.filled(8, 5);
    let (bytes, copied) = read(&buffer, &[]);
    let look = || {
        // SAFETY: it lives for ever; nothing writes it at this moment, on this thread.
        unsafe { bytes.as_ptr().read_volatile() }
    };
    assert!(simulated.driver.step(), "it begins");
    assert_eq!((look(), copied.is_ready()), (IN_FLIGHT_BYTE, false));
    assert!(simulated.driver.step(), "it ends");
    assert_eq!((look(), copied.is_ready()), (5, true));
    assert!(!simulated.driver.step());
}

#[test]
fn a_call_that_blocks_drives() {
    let simulated = seeded(0);
    let array = Buffer::from_slice(&[1_u8, 2, 3], &[3], &simulated.space).unwrap();
    assert_eq!(array.to_vec::<u8>().unwrap(), [1, 2, 3]);
}

/// A write whose waiter waits for another such write, and so on.
fn nested(memory: &RawBuffer, left: usize, told: &Arc<AtomicUsize>) -> Event {
    let written = write(memory, 1, &[]);
    let (memory, told) = (memory.clone(), Arc::clone(told));
    written.on_ready(move |outcome| {
        assert_eq!(*outcome, Ok(()));
        if left > 0 {
            nested(&memory, left - 1, &told).wait().unwrap();
        }
        told.fetch_add(1, Ordering::Relaxed);
    });
    written
}

#[test]
fn a_waiter_in_a_step_that_waits_takes_the_next_steps() {
    let simulated = seeded(0);
    let (memory, told) = (simulated.allocate(8), Arc::default());
    nested(&memory, 100, &told);
    simulated.driver.run_until_idle();
    assert_eq!(told.load(Ordering::Relaxed), 101);
}

#[test]
fn the_end_of_the_driver_cancels_what_is_not_over() {
    let simulated = seeded(0);
    let gate = EventPromise::new(c"gate");
    let buffers: Vec<RawBuffer> = (0..4).map(|_| simulated.allocate(8)).collect();
    let waiting = write(&buffers[0], 1, &[gate.event()]);
    let queued = write(&buffers[1], 2, &[]);
    let running = write(&buffers[2], 3, &[]);
    let behind = copy(&buffers[2], &buffers[3], std::slice::from_ref(&running));
    simulated.driver.step();
    drop(buffers);
    assert_eq!(simulated.space.stats().bytes_in_use, 32);
    let Simulated { driver, backend, space, client } = simulated;
    drop(driver);
    for event in [waiting, queued, running, behind] {
        let error = event.wait().unwrap_err();
        assert_eq!(error.code(), StatusCode::Cancelled);
        assert!(error.message().contains("the simulation has ended"), "{error}");
    }
    assert_eq!(space.stats().bytes_in_use, 0);
    gate.set_ready();
    let late = write(&RawBuffer::allocate(&space, 8).unwrap(), 1, &[]);
    assert_eq!(late.wait().unwrap_err().code(), StatusCode::Cancelled);
    let again = purlin_device::Client::new(&ClientOptions::default(), Arc::clone(&backend) as Arc<dyn Backend>);
    assert_eq!(again.err().unwrap().code(), StatusCode::FailedPrecondition);
    drop((client, backend));
}

#[test]
fn failed_dependencies_are_told_by_the_least_index() {
    for seed in 0..10 {
        let simulated = simulated(SimOptions { seed, fail_on_report: true, ..Default::default() });
        let buffer = simulated.allocate(8);
        // Ours, which fails: unwritten bytes reach the host.
        let ours = read(&buffer, &[]).1;
        let gate = EventPromise::new(c"gate");
        let first = write(&simulated.allocate(8), 1, &[ours.clone(), gate.event()]);
        let second = write(&simulated.allocate(8), 1, &[gate.event(), ours.clone()]);
        let further = write(&simulated.allocate(8), 1, std::slice::from_ref(&second));
        gate.set_error(Error::aborted("upstream"));
        assert!(!first.is_ready() && !second.is_ready(), "one of their dependencies is pending");
        simulated.driver.run_until_idle();
        let codes = [first, second, further].map(|event| event.wait().unwrap_err().code());
        assert_eq!(codes, [StatusCode::FailedPrecondition, StatusCode::Aborted, StatusCode::Aborted]);
    }
}

/// A backend with a thread.
fn threaded(seed: u64) -> Arc<SimBackend> {
    Arc::new(SimBackend::new(SimOptions { seed, ..Default::default() }))
}

#[test]
fn the_thread_runs_copies_that_nobody_waits_for() {
    let backend = threaded(1);
    let client = client_of(&backend);
    let buffer = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 8).unwrap();
    let written = write(&buffer, 1, &[]);
    while !written.is_ready() {
        std::thread::yield_now();
    }
}

#[test]
fn the_thread_sees_a_missing_wait() {
    let backend = threaded(2);
    let client = client_of(&backend);
    let buffer = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 8).unwrap();
    let gate = EventPromise::new(c"gate");
    // Behind one copy, so that neither can be over before the other may begin, however long the calling thread is held
    // up.
    let other = RawBuffer::allocate(&buffer.memory_space(), 8).unwrap();
    let before = write(&other, 3, &[gate.event()]);
    let events = [1, 2].map(|byte| write(&buffer, byte, std::slice::from_ref(&before)));
    gate.set_ready();
    for event in events {
        event.wait().unwrap();
    }
    assert_eq!(backend.reports().len(), 1);
}

#[test]
fn the_thread_fails_what_is_objected_to() {
    for seed in 0..10 {
        let backend = Arc::new(SimBackend::new(SimOptions { seed, fail_on_report: true, ..Default::default() }));
        let client = client_of(&backend);
        let space = client.devices()[0].default_memory_space();
        let buffer = RawBuffer::allocate(&space, 64).unwrap();
        let gate = EventPromise::new(c"gate");
        // Its memory is freed with the copy, on the thread.
        let before = write(&RawBuffer::allocate(&space, 64).unwrap(), 3, &[gate.event()]);
        let [first, second] = [1, 2].map(|byte| write(&buffer, byte, std::slice::from_ref(&before)));
        gate.set_ready();
        assert_eq!(first.wait(), Ok(()));
        assert_eq!(second.wait().unwrap_err().code(), StatusCode::FailedPrecondition);
    }
}

#[test]
fn shutdown_cancels_and_ends_the_thread() {
    let backend = threaded(3);
    let client = client_of(&backend);
    let buffer = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 8).unwrap();
    let gate = EventPromise::new(c"gate");
    let waiting = write(&buffer, 1, &[gate.event()]);
    backend.shutdown();
    assert_eq!(waiting.wait().unwrap_err().code(), StatusCode::Cancelled);
    assert_eq!(write(&buffer, 1, &[]).wait().unwrap_err().code(), StatusCode::Cancelled);
    backend.shutdown();
}

#[test]
fn shutdown_on_the_thread_itself_does_not_wait_for_it() {
    let backend = threaded(4);
    let client = client_of(&backend);
    let buffer = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 8).unwrap();
    let (send, ended) = mpsc::channel();
    let ends = Arc::clone(&backend);
    let gate = EventPromise::new(c"gate");
    let written = write(&buffer, 1, &[gate.event()]);
    written.on_ready(move |_| {
        ends.shutdown();
        drop(ends);
        send.send(()).unwrap();
    });
    gate.set_ready();
    ended.recv().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn the_thread_ends_with_the_backend() {
    let threads = || {
        let names = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok).filter_map(|task| {
            // A thread that has ended meanwhile has no name.
            std::fs::read_to_string(task.path().join("comm")).ok()
        });
        names.filter(|name| name.trim() == "sim-of-its-own").count()
    };
    let options = SimOptions { thread_name: "sim-of-its-own".to_owned(), ..Default::default() };
    let backend = Arc::new(SimBackend::new(options));
    assert_eq!(threads(), 0);
    let client = client_of(&backend);
    let buffer = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 8).unwrap();
    write(&buffer, 1, &[]).wait().unwrap();
    assert_eq!(threads(), 1);
    drop((buffer, backend, client));
    assert_eq!(threads(), 0);
}

/// Copies of a simulation that drives itself, whose client's runner has shut down: the first copy's waiter waits for
/// the second, or does what `in_the_waiter` does. What the waiter says.
fn after_the_runner<T: Send + 'static>(in_the_waiter: impl FnOnce(Event, Arc<SimBackend>) -> T + Send + 'static) -> T {
    let backend = Arc::new(SimBackend::new(SimOptions::default()));
    let client = client_of(&backend);
    client.runner().shutdown().unwrap();
    let space = client.devices()[0].default_memory_space();
    let (first, second) = (RawBuffer::allocate(&space, 8).unwrap(), RawBuffer::allocate(&space, 8).unwrap());
    let gate = EventPromise::new(c"both were asked for");
    let (one, other) = (write(&first, 1, &[gate.event()]), write(&second, 2, &[gate.event()]));
    let (say, said) = mpsc::channel();
    let simulation = Arc::clone(&backend);
    one.on_ready(move |_| say.send(in_the_waiter(other, simulation)).unwrap());
    gate.set_ready();
    said.recv_timeout(Duration::from_secs(60)).expect("a waiter on the simulator's thread hangs")
}

#[test]
fn a_waiter_on_the_simulators_thread_that_waits_goes_on_with_the_simulation() {
    assert_eq!(after_the_runner(|other, _simulation| other.wait()), Ok(()));
}

#[test]
fn a_waiter_on_the_simulators_thread_may_end_the_simulation() {
    let is_over = after_the_runner(|other, simulation| {
        simulation.shutdown();
        // It was done before or is cancelled: what counts is that nothing is left to wait for.
        let _ = other.wait();
        other.is_ready()
    });
    assert!(is_over);
}

#[test]
fn threads_that_wait_for_their_own_copies_step_for_each_other() {
    // On one stream: a small copy that is asked for while a step of the large one is under way stands behind it.
    let simulated = simulated(SimOptions { streams_per_device: 1, ..Default::default() });
    let (done, ended) = mpsc::channel();
    let copies_until = |size_bytes: usize, is_over: Arc<AtomicBool>, done: mpsc::Sender<()>| {
        let (space, bytes) = (simulated.space.clone(), vec![1_u8; size_bytes]);
        std::thread::spawn(move || {
            let is_large = size_bytes > 1;
            while !is_over.load(Ordering::Acquire) {
                Buffer::from_slice(&bytes, &[size_bytes as i64], &space).unwrap();
                is_over.fetch_or(is_large, Ordering::Release);
            }
            done.send(()).unwrap();
        })
    };
    for _round in 0..20 {
        let is_over = Arc::new(AtomicBool::new(false));
        copies_until(1, Arc::clone(&is_over), done.clone());
        copies_until(16 << 20, is_over, done.clone());
        for _ in 0..2 {
            ended.recv_timeout(Duration::from_secs(60)).expect("a thread waits for a step that no thread takes");
        }
    }
}
