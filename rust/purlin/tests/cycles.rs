//! What closes a cycle of events fails, of whatever kinds they are, and leaves nothing behind.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use purlin::stall::stalls;
use purlin::{
    AllocOptions, AsyncValue, Client, ClientOptions, Error, Event, EventPromise, Future, JoinOptions, NullBackend,
    OomPolicy, Promise, RawBuffer, StatusCode, after_all, join_futures, when_all,
};

fn is_cycle(error: &Error, names: &[&str]) -> bool {
    error.code() == StatusCode::Internal
        && error.message().contains("would wait for itself: event '")
        && names.iter().all(|name| error.message().contains(&format!("event '{name}' (made at ")))
}

fn promise(label: &'static std::ffi::CStr) -> (EventPromise, Event) {
    let promise = EventPromise::new(label);
    let event = promise.event();
    (promise, event)
}

#[test]
fn a_promise_through_joins_of_itself() {
    let joins: [fn(&[Event]) -> Event; 2] = [when_all, after_all];
    for join in joins {
        let ((a, of_a), (_b, of_b)) = (promise(c"a"), promise(c"b"));
        let inner = join(&[of_b.clone(), of_a.clone()]);
        let outer = join(&[of_b.clone(), inner.clone(), of_b]);
        a.forward(&outer);
        assert!(is_cycle(&of_a.error().unwrap(), &["a"]), "{:?}", of_a.error());
        assert!(!inner.is_ready(), "b is pending");
    }
}

#[test]
fn a_join_of_what_is_no_longer_missing_closes_nothing() {
    let ((a, of_a), (b, of_b), (c, of_c)) = (promise(c"a"), promise(c"b"), promise(c"c"));
    let all = when_all(&[of_a, of_b, of_c.clone()]);
    a.set_ready();
    let (d, of_d) = promise(c"d");
    d.forward(&all);
    b.set_ready();
    c.set_ready();
    assert_eq!(of_d.wait(), Ok(()));
}

#[test]
fn two_values_and_a_promise_of_its_own_future() {
    let (a, b) = (AsyncValue::<i32>::indirect(c"a"), AsyncValue::<i32>::indirect(c"b"));
    a.forward(&b).unwrap();
    let error = b.forward(&a).unwrap_err();
    assert!(is_cycle(&error, &["a", "b"]), "{error}");
    assert_eq!((a.error(), b.error()), (Some(error.clone()), Some(error)));
    assert!(a.is_unique() && b.is_unique(), "nothing is left behind");

    let own = Promise::<i32>::linked(c"own");
    let future = own.future();
    own.forward(&future);
    assert!(future.error().unwrap().message().contains("itself"), "{:?}", future.error());
    let own = Promise::<i32>::linked(c"own");
    let future = own.future();
    let mapped = future.map(|value| value + 1);
    own.forward(&mapped);
    assert!(is_cycle(&future.error().unwrap(), &["own", "Map"]), "{:?}", future.error());
    assert!(mapped.is_ready());
}

#[test]
fn a_mixture_of_event_value_future_join_and_channel() {
    let client = Client::new(&ClientOptions::default(), Arc::new(NullBackend::new())).unwrap();
    let space = client.devices()[0].default_memory_space();
    let options = AllocOptions::default();
    let (buffer, provides) = RawBuffer::channel(&space, 8, &options);
    let (other, provides_other) = RawBuffer::channel(&space, 8, &options);
    let (event, of_event) = promise(c"event");
    // buffer <- other <- event <- linked <- join of futures <- buffer
    let memory = when_all(&[buffer.allocation_event(), of_event.clone()]);
    let joined = join_futures(&[Future::from(memory.clone()), Future::from(memory)], JoinOptions::default());
    let linked = Promise::<()>::linked(c"linked");
    let of_linked = linked.future();
    linked.forward(&joined.map(|_| ()));
    provides.fulfil(&other).unwrap();
    event.forward(&of_linked.ready_event());
    assert!(is_cycle(&of_event.error().unwrap(), &["event", "linked"]), "{:?}", of_event.error());
    assert!(!of_linked.is_ready(), "the memory is missing");
    drop(provides_other);
    assert!(of_linked.is_ready());
}

#[test]
fn two_channels_that_wait_for_each_other() {
    let client = Client::new(&ClientOptions::default(), Arc::new(NullBackend::new())).unwrap();
    let space = client.devices()[0].default_memory_space();
    for _ in 0..200 {
        let (a, provides_a) = RawBuffer::channel(&space, 8, &AllocOptions::default());
        let (b, provides_b) = RawBuffer::channel(&space, 8, &AllocOptions::default());
        let begin = Barrier::new(2);
        thread::scope(|scope| {
            for (provides, memory) in [(provides_a, &b), (provides_b, &a)] {
                let begin = &begin;
                scope.spawn(move || {
                    begin.wait();
                    if let Err((_, provides)) = provides.fulfil(memory) {
                        drop(provides);
                    }
                });
            }
        });
        assert!(a.allocation_event().is_ready() && b.allocation_event().is_ready(), "{}", stalls(Duration::ZERO));
        assert!(a.allocation_event().wait().is_err() && b.allocation_event().wait().is_err());
    }
}

#[test]
fn memory_that_waits_on_for_memory_no_longer_waits_for_its_event() {
    let options = ClientOptions { memory_limit_bytes: 1 << 20, ..Default::default() };
    let client = Client::new(&options, Arc::new(NullBackend::new())).unwrap();
    let space = client.devices()[0].default_memory_space();
    let (after, of_after) = promise(c"after");
    let options = AllocOptions { after: Some(of_after), oom: OomPolicy::Wait, ..Default::default() };
    let (late, held) = (RawBuffer::allocate_with(&space, 1 << 20, &options).unwrap(), RawBuffer::allocate(&space, 8));
    let owed_by = || {
        let report = stalls(Duration::ZERO);
        let [memory] = report.events.iter().filter(|event| event.label.to_string() == "memory").collect::<Vec<_>>()[..]
        else {
            panic!("{report}")
        };
        memory.owed_by.clone()
    };
    drop(options);
    assert!(owed_by().starts_with("event 'after'"), "{}", owed_by());
    after.set_ready();
    drop(after);
    assert!(owed_by().starts_with("the promise made at "), "{}", owed_by());
    // Another event may be where that one was.
    let (again, of_again) = promise(c"again");
    again.forward(&late.allocation_event());
    drop(held);
    assert_eq!(of_again.wait(), Ok(()));
}

#[test]
fn threads_that_close_a_cycle_together_do_not_all_miss_it() {
    const THREADS: usize = 4;
    for _ in 0..500 {
        let promises: Vec<_> = (0..THREADS).map(|_| promise(c"of a thread")).collect();
        let events: Vec<_> = promises.iter().map(|(_, event)| event.clone()).collect();
        let begin = Barrier::new(THREADS);
        thread::scope(|scope| {
            for (index, (promise, _)) in promises.into_iter().enumerate() {
                let (begin, next) = (&begin, &events[(index + 1) % THREADS]);
                scope.spawn(move || {
                    begin.wait();
                    if index % 2 == 0 {
                        promise.forward(next)
                    } else {
                        promise.forward(&when_all(&[next.clone(), next.clone()]))
                    }
                });
            }
        });
        for event in &events {
            assert!(is_cycle(&event.error().unwrap(), &["of a thread"]), "{}", stalls(Duration::ZERO));
        }
    }
}

#[test]
fn a_long_chain_is_forwarded_and_reported() {
    const LINKS: usize = 100_000;
    let promises: Vec<_> = (0..LINKS).map(|_| EventPromise::new(c"link")).collect();
    let events: Vec<_> = promises.iter().map(EventPromise::event).collect();
    let mut first = None;
    for (index, promise) in promises.into_iter().enumerate().rev() {
        match events.get(index.wrapping_sub(1)) {
            Some(before) => promise.forward(before),
            None => first = Some(promise),
        }
    }
    let report = stalls(Duration::ZERO);
    let links = report.events.iter().filter(|event| event.label.as_str() == "link").count();
    assert_eq!((links, report.cycles.len()), (LINKS, 0));
    first.unwrap().set_ready();
    assert_eq!(events[LINKS - 1].wait(), Ok(()));
}
