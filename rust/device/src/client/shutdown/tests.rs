#![allow(unsafe_code, reason = "copies have contracts about the use of memory while they are in flight")]

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::backend::NullBackend;
use crate::buffer::Buffer;
use crate::client::{Client, ClientOptions};
use crate::memory::{AllocOptions, OomPolicy};
use crate::raw_buffer::RawBuffer;
use purlin_array::dtype::DType;
use purlin_array::shape::Shape;
use purlin_async::event::EventPromise;
use purlin_async::future::Promise;
use purlin_base::label::Label;

fn client() -> Arc<Client> {
    let options = ClientOptions { worker_count: 1, memory_limit_bytes: 1 << 20, ..Default::default() };
    Client::new(&options, Arc::new(NullBackend::new())).unwrap()
}

fn by_timeout(milliseconds: u64) -> ShutdownOptions {
    ShutdownOptions { mode: ShutdownMode::Drain, timeout: Some(Duration::from_millis(milliseconds)) }
}

const CANCEL: ShutdownOptions = ShutdownOptions { mode: ShutdownMode::CancelPending, timeout: None };

/// A copy of 100 bytes behind `gate`.
fn copy_after(client: &Client, gate: &Event) -> Event {
    let space = client.devices()[0].default_memory_space();
    let (source, target) = (RawBuffer::allocate(&space, 100).unwrap(), RawBuffer::allocate(&space, 100).unwrap());
    copy(&source, &target, std::slice::from_ref(gate))
}

fn copy(source: &RawBuffer, target: &RawBuffer, dependencies: &[Event]) -> Event {
    // SAFETY: the null backend touches no memory.
    unsafe { source.copy_to(target, dependencies) }
}

#[test]
fn a_client_without_work_ends_at_once_and_again() {
    let client = client();
    for _ in 0..2 {
        assert_eq!(client.shutdown(ShutdownOptions::default()), Ok(()));
        assert_eq!(client.shutdown(by_timeout(0)), Ok(()));
        assert_eq!(client.shutdown(CANCEL), Ok(()));
    }
}

#[test]
fn what_is_in_flight_is_drained() {
    let (client, gate) = (client(), EventPromise::new(c"gate"));
    let copied = copy_after(&client, &gate.event());
    let ending = {
        let client = Arc::clone(&client);
        std::thread::spawn(move || client.shutdown(ShutdownOptions::default()))
    };
    while client.instance.runner().in_flight().refusal().is_none() {
        std::thread::yield_now();
    }
    assert!(!copied.is_ready());
    gate.set_ready();
    assert_eq!(ending.join().unwrap(), Ok(()));
    assert_eq!(copied.wait(), Ok(()));
}

#[test]
fn a_deadline_fails_what_waits_and_names_it() {
    let (client, gate) = (client(), EventPromise::new(c"gradient"));
    let place = format!("{}:{}", file!(), line!() - 1);
    let space = client.devices()[0].default_memory_space();
    let copied = copy_after(&client, &gate.event());
    let after = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let later = RawBuffer::allocate_with(&space, 300, &after).unwrap();
    let shape = Shape::new(DType::U8, &[10]).unwrap();
    let memory = RawBuffer::allocate(&space, 10).unwrap();
    let defined = Buffer::from_raw(memory, &shape, None, &gate.event()).unwrap();
    let all = RawBuffer::allocate(&space, 900_000).unwrap();
    let wait = AllocOptions { oom: OomPolicy::Wait, ..Default::default() };
    let waiting = RawBuffer::allocate_with(&space, 900_000, &wait).unwrap();
    let error = client.shutdown(by_timeout(1)).unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    let copy = format!(
        "the copy of 100 bytes from null:0/device to null:0/device, which waited for 'gradient' (made at {place})"
    );
    for part in ["the client of 1 null device(s) did not end within 1ms", "4 operations had not begun", &copy] {
        assert!(error.message().contains(part), "{error}");
    }
    let says = |event: &Event, parts: &[&str]| {
        let error = event.wait().unwrap_err();
        assert_eq!(error.code(), StatusCode::DeadlineExceeded, "{error}");
        assert!(parts.iter().all(|part| error.message().contains(part)), "{error}");
    };
    says(&copied, &[&copy]);
    says(&later.allocation_event(), &["the allocation of 300 bytes in null:0/device", "'gradient'"]);
    says(&defined.ready_event(), &["'definition of a buffer', which waited for 'gradient'"]);
    says(&waiting.allocation_event(), &["waited for memory"]);
    drop((later, defined, all, waiting));
    // The memory behind the definition stays: the code that was to write it may still do so.
    assert_eq!(space.stats().bytes_in_use, 10);
    gate.set_ready();
    assert_eq!(space.stats().bytes_in_use, 0);
    assert_eq!(client.instance.runner().in_flight().idle().wait(), Ok(()));
}

/// What the pool had, from its own error: all of its threads are in a task that ends after this.
fn timeout_of_the_pool(client: &Client, options: ShutdownOptions) -> String {
    let ((begins, begun), (opens, opened)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let slow = move || {
        begins.send(()).unwrap();
        let _ = opened.recv();
    };
    client.runner().schedule(Label::new(c"slow"), slow).unwrap();
    begun.recv_timeout(crate::LIMIT).unwrap();
    let error = client.shutdown(options).unwrap_err();
    opens.send(()).unwrap();
    let (_, timeout) = error.message().split_once("with a timeout of ").expect("the pool did not end, either");
    timeout.to_owned()
}

#[test]
fn the_threads_have_what_is_left_of_the_timeout_and_not_all_of_it_again() {
    // Some time passes before the threads are asked to end, however little.
    let timeout =
        timeout_of_the_pool(&client(), ShutdownOptions { mode: ShutdownMode::CancelPending, ..by_timeout(50) });
    assert_ne!(timeout, "50ms");
    // What fails late has a moment, whatever the timeout was.
    let (client, gate) = (client(), EventPromise::new(c"gate"));
    let copied = copy_after(&client, &gate.event());
    assert_eq!(timeout_of_the_pool(&client, by_timeout(1)), format!("{GRACE:?}"));
    assert_eq!(copied.error().unwrap().code(), StatusCode::DeadlineExceeded);
}

#[test]
fn a_deadline_fails_who_waits_for_memory_that_is_promised() {
    let client = client();
    let space = client.devices()[0].default_memory_space();
    let (memory, promise) = RawBuffer::channel(&space, 10, &AllocOptions::default());
    let place = format!("{}:{}", file!(), line!() - 1);
    let shape = Shape::new(DType::U8, &[10]).unwrap();
    let array = Buffer::from_raw(memory.clone(), &shape, None, &Event::ready()).unwrap();
    let (kept, other) = RawBuffer::channel(&space, 10, &AllocOptions::default());
    other.allocate(OomPolicy::Fail).unwrap();
    assert!(client.shutdown(by_timeout(1)).unwrap_err().message().contains("1 operations had not begun"));
    for event in [memory.allocation_event(), array.ready_event()] {
        let error = event.wait().unwrap_err();
        let text = format!("'memory of a channel', which waited for 'memory' (made at {place})");
        assert_eq!(error.code(), StatusCode::DeadlineExceeded, "{error}");
        assert!(
            error.message().contains("the client of 1 null device(s)") && error.message().contains(&text),
            "{error}"
        );
    }
    assert_eq!(kept.allocation_event().wait(), Ok(()));
    // A promise that is kept late reports nothing new, and nothing is lost.
    promise.fulfil(&kept).unwrap();
    assert_eq!(memory.allocation_event().error().unwrap().code(), StatusCode::DeadlineExceeded);
    let (late, _promise) = RawBuffer::channel(&space, 10, &AllocOptions::default());
    assert_eq!(late.allocation_event().error().unwrap().code(), StatusCode::FailedPrecondition);
    drop((memory, array, kept));
    assert_eq!(space.stats().bytes_in_use, 0);
}

#[test]
fn a_deadline_fails_a_donation_behind_an_event_and_a_read_whose_address_never_comes() {
    let (client, gate, address) = (client(), EventPromise::new(c"step"), Promise::new(c"address"));
    let space = client.devices()[0].default_memory_space();
    let shape = Shape::new(DType::U8, &[10]).unwrap();
    let array = || Buffer::uninitialized(&shape, None, &space, &AllocOptions::default()).unwrap();
    let (donated, source) = (array().donate_after(&gate.event()).unwrap(), array());
    // SAFETY: no address is ever given.
    let read = || unsafe { source.copy_raw_to_host_when(&address.future(), 0, 10) };
    let pending = read();
    assert!(client.shutdown(by_timeout(1)).unwrap_err().message().contains("2 operations had not begun"));
    let outcomes =
        [(donated.ready_event(), "'definition of a buffer', which waited for 'step'"), (pending, "'address'")];
    for (event, text) in outcomes {
        let error = event.wait().unwrap_err();
        assert_eq!(error.code(), StatusCode::DeadlineExceeded, "{error}");
        assert!(
            error.message().contains("the client of 1 null device(s)") && error.message().contains(text),
            "{error}"
        );
    }
    assert_eq!(read().error().unwrap().code(), StatusCode::FailedPrecondition);
    assert_eq!(source.donate_after(&gate.event()).unwrap_err().code(), StatusCode::FailedPrecondition);
    assert!(!source.is_deleted() && source.hold_counts() == (0, 0), "refused, it is as before");
}

#[test]
fn memory_that_is_promised_is_drained() {
    let client = client();
    let space = client.devices()[0].default_memory_space();
    let (memory, promise) = RawBuffer::channel(&space, 10, &AllocOptions::default());
    let kept = RawBuffer::allocate(&space, 10).unwrap();
    let ending = {
        let client = Arc::clone(&client);
        std::thread::spawn(move || client.shutdown(ShutdownOptions::default()))
    };
    while client.instance.runner().in_flight().refusal().is_none() {
        std::thread::yield_now();
    }
    assert!(!memory.allocation_event().is_ready());
    promise.fulfil(&kept).unwrap();
    assert_eq!(ending.join().unwrap(), Ok(()));
    assert_eq!(memory.allocation_event().wait(), Ok(()));
}

#[test]
fn a_deadline_fails_who_waits_for_the_end_of_uses() {
    let (client, gate) = (client(), EventPromise::new(c"kernel"));
    let space = client.devices()[0].default_memory_space();
    let shape = Shape::new(DType::U8, &[10]).unwrap();
    // Memory that is used until a user's event.
    let used = || {
        let memory = RawBuffer::allocate(&space, 10).unwrap();
        let array = Buffer::from_raw(memory, &shape, None, &Event::ready()).unwrap();
        array.usage_hold().unwrap().release_after(gate.event());
        array
    };
    let donation = used().donate(c"step").unwrap();
    let (released, free) = used().release().unwrap();
    let (made, promise) = Buffer::channel(&shape, None, &space).unwrap();
    promise.fulfil(&used()).unwrap();
    let (handed_on, free_too) = made.release().unwrap();
    let (asked_later, asked_for) = (used(), donation.free_event());
    let memory = RawBuffer::allocate(&space, 10).unwrap();
    let defined = Buffer::from_raw(memory, &shape, None, &gate.event()).unwrap();
    let error = client.shutdown(by_timeout(1)).unwrap_err();
    assert!(error.message().contains("4 operations had not begun"), "{error}");
    // The code that was to define an array may still write it.
    let (_, undefined) = defined.release().unwrap();
    for event in [asked_for, donation.free_event(), free, free_too, undefined] {
        let error = event.wait().unwrap_err();
        let text = "'use of a buffer', which waited for ";
        assert_eq!(error.code(), StatusCode::DeadlineExceeded, "{error}");
        assert!(
            error.message().contains("the client of 1 null device(s)") && error.message().contains(text),
            "{error}"
        );
    }
    let error = asked_later.release_ownership(true).unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded, "{error}");
    drop((donation, released, made, handed_on, asked_later));
    // The user of the memory still has it.
    assert_eq!(space.stats().bytes_in_use, 50);
    gate.set_ready();
    assert_eq!(space.stats().bytes_in_use, 0);
    assert_eq!(client.instance.runner().in_flight().idle().wait(), Ok(()));
}

#[test]
fn what_waits_is_cancelled_at_once_if_that_is_the_mode() {
    let (client, gate) = (client(), EventPromise::new(c"gate"));
    let copied = copy_after(&client, &gate.event());
    let again = copy_after(&client, &copied);
    assert_eq!(client.shutdown(CANCEL), Ok(()));
    for event in [copied, again] {
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::Cancelled);
        assert!(
            event.error().unwrap().message().contains("was shut down: the copy of 100 bytes"),
            "{:?}",
            event.error()
        );
    }
}

#[test]
fn nothing_new_begins_after_a_shutdown() {
    let client = client();
    let space = client.devices()[0].default_memory_space();
    let (memory, gate) = (RawBuffer::allocate(&space, 10).unwrap(), EventPromise::new(c"gate"));
    client.shutdown(ShutdownOptions::default()).unwrap();
    let shape = Shape::new(DType::U8, &[10]).unwrap();
    let refused = [
        copy(&memory, &memory, &[]).error().unwrap(),
        copy(&memory, &memory, &[gate.event()]).error().unwrap(),
        RawBuffer::allocate(&space, 10).unwrap_err(),
        Buffer::from_raw(memory.clone(), &shape, None, &gate.event()).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.code(), StatusCode::FailedPrecondition, "{error}");
        assert!(error.message().contains("the client has been shut down"), "{error}");
    }
    assert!(Buffer::from_raw(memory, &shape, None, &Event::ready()).is_ok(), "nothing is begun");
}

#[test]
fn it_is_not_shut_down_from_within() {
    let client = client();
    let answer = Arc::new(purlin_base::sync::Mutex::new(None));
    let (inside, told) = (Arc::clone(&client), Arc::clone(&answer));
    let done = EventPromise::new(c"done");
    let over = done.event();
    client
        .runner()
        .schedule(Label::new(c"inside"), move || {
            *told.lock() = Some(inside.shutdown(ShutdownOptions::default()));
            drop(inside);
            done.set_ready();
        })
        .unwrap();
    over.wait().unwrap();
    let error = answer.lock().take().unwrap().unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    let space = client.devices()[0].default_memory_space();
    assert!(RawBuffer::allocate(&space, 10).is_ok(), "nothing has happened");
}

#[test]
fn the_last_handle_ends_the_client_as_its_options_say() {
    for (options, code) in [(by_timeout(1), StatusCode::DeadlineExceeded), (CANCEL, StatusCode::Cancelled)] {
        let options = ClientOptions { worker_count: 1, shutdown_at_end: Some(options), ..Default::default() };
        let client = Client::new(&options, Arc::new(NullBackend::new())).unwrap();
        let instance = purlin_base::sync::PinnedArc::downgrade(&client.instance);
        let gate = EventPromise::new(c"gate");
        let copied = copy_after(&client, &gate.event());
        drop(client);
        assert_eq!(copied.wait().unwrap_err().code(), code);
        // Nothing lives, although the event never completed.
        while instance.strong_count() > 0 {
            std::thread::yield_now();
        }
        drop(gate);
    }
}

#[test]
fn the_last_handle_on_its_own_runner_does_not_wait() {
    let options =
        ClientOptions { worker_count: 1, shutdown_at_end: Some(ShutdownOptions::default()), ..Default::default() };
    let client = Client::new(&options, Arc::new(NullBackend::new())).unwrap();
    let (gate, open) = (EventPromise::new(c"gate"), EventPromise::new(c"open"));
    let copied = copy_after(&client, &gate.event());
    let (runner, inside) = (client.runner().clone(), Arc::clone(&client));
    let wait = open.event();
    runner.schedule(Label::new(c"inside"), move || _ = wait.wait().map(|()| drop(inside))).unwrap();
    drop(client);
    open.set_ready();
    assert_eq!(copied.wait().unwrap_err().code(), StatusCode::Cancelled);
}

#[test]
fn without_options_work_goes_on_behind() {
    let (client, gate) = (client(), EventPromise::new(c"gate"));
    let copied = copy_after(&client, &gate.event());
    drop(client);
    gate.set_ready();
    assert_eq!(copied.wait(), Ok(()));
}

/// Each way in which a shutdown, or what it ends, runs a waiter; the waiter shuts down, too, by each mode.
#[test]
fn a_waiter_of_the_clients_own_operation_cannot_wait_for_its_end() {
    for inner in [ShutdownOptions::default(), by_timeout(10_000), CANCEL] {
        for outer in [CANCEL, by_timeout(0)] {
            let (told, answers) = std::sync::mpsc::channel();
            let ending = std::thread::spawn(move || {
                let (client, gate) = (client(), EventPromise::new(c"never"));
                let space = client.devices()[0].default_memory_space();
                let after = AllocOptions { after: Some(gate.event()), ..Default::default() };
                let later = RawBuffer::allocate_with(&space, 300, &after).unwrap();
                let shape = Shape::new(DType::U8, &[10]).unwrap();
                let memory = RawBuffer::allocate(&space, 10).unwrap();
                let defined = Buffer::from_raw(memory, &shape, None, &gate.event()).unwrap();
                for event in [later.allocation_event(), defined.ready_event()] {
                    let (client, told) = (Arc::downgrade(&client), told.clone());
                    event.on_ready(move |_| {
                        let answer = client.upgrade().map(|client| client.shutdown(inner));
                        told.send(answer.expect("whoever ends it has it")).unwrap();
                    });
                }
                let ended = client.shutdown(outer);
                drop((gate, told));
                ended
            });
            let limit = Duration::from_secs(60);
            for _ in 0..2 {
                let answer = answers.recv_timeout(limit).expect("a waiter that shuts its client down hangs");
                let error = answer.unwrap_err();
                assert_eq!(error.code(), StatusCode::FailedPrecondition);
                assert!(
                    error.message().contains("cannot be shut down by a waiter of one of its own operations"),
                    "{error}"
                );
            }
            let ended = ending.join().unwrap();
            assert_eq!(ended.is_ok(), outer == CANCEL, "{ended:?}");
        }
    }
}

#[test]
fn a_waiter_of_a_copy_that_ends_elsewhere_cannot_wait_for_its_clients_end() {
    let (told, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (client, gate) = (client(), EventPromise::new(c"gate"));
        let space = client.devices()[0].default_memory_space();
        let after = AllocOptions { after: Some(gate.event()), ..Default::default() };
        let later = RawBuffer::allocate_with(&space, 300, &after).unwrap();
        let waiting = Arc::clone(&client);
        later.allocation_event().on_ready(move |_| told.send(waiting.shutdown(ShutdownOptions::default())).unwrap());
        // The memory is provided on this thread, inside the operation.
        gate.set_ready();
    });
    let answer = answer.recv_timeout(Duration::from_secs(60)).expect("a waiter that shuts its client down hangs");
    assert_eq!(answer.unwrap_err().code(), StatusCode::FailedPrecondition);
}
