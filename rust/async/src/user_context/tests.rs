use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use super::*;
use crate::event::{Event, EventPromise, when_all};
use crate::pool::{ThreadPool, ThreadPoolOptions};
use crate::task::{AsyncWorkRunner, Task};
use purlin_base::status::StatusCode;

/// Keeps tests apart: a test that lists all contexts holds those of the others for a moment.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count: threads, ..Default::default() }).unwrap()
}

fn payload_of(error: &Error) -> String {
    String::from_utf8(error.payload(PAYLOAD).expect("an error with contexts").to_vec()).unwrap()
}

/// A context whose origin counts how often it is rendered and, by its other references, whether it is gone.
fn counted() -> (UserContext, Arc<AtomicUsize>) {
    let renders = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&renders);
    let origin = Origin::lazy(move || format!("render {}", inside.fetch_add(1, Ordering::Relaxed)));
    (UserContext::new(origin), renders)
}

/// The one reference of the caller; more would be a leak.
fn is_last(context: &UserContext) -> bool {
    Arc::strong_count(&context.0) == 1
}

#[test]
fn kinds_read_as_documented() {
    let _alone = alone();
    let line = UserContext::new("main.py:3");
    let call = UserContext::annotated(line.clone(), "copy".to_owned());
    assert_eq!(line.debug_string(), "main.py:3");
    assert_eq!(call.debug_string(), "copy (in main.py:3)");
    let chain = UserContext::chained(call.clone(), UserContext::new("kernel 7"));
    assert_eq!(chain.debug_string(), "copy (in main.py:3) -> kernel 7");
    let fused = UserContext::fused(vec![line.clone(), chain, call]).unwrap();
    assert_eq!(fused.debug_string(), "fused(main.py:3 | copy (in main.py:3) -> kernel 7 | copy (in main.py:3))");
    assert_eq!(UserContext::fused(vec![]), None);
    assert_eq!(UserContext::fused(vec![line.clone()]), Some(line.clone()));
    assert_eq!(format!("{line:?}"), format!("UserContext({})", line.id()));
}

#[test]
fn an_origin_is_rendered_exactly_when_asked() {
    let _alone = alone();
    let (context, renders) = counted();
    let promise = EventPromise::new(c"e");
    {
        let _scope = UserContextScope::new(context.clone());
        let event = EventPromise::new(c"made in it");
        assert!(event.set_error(Error::internal("x")));
        assert!(promise.set_error(event.event().error().unwrap()));
    }
    let _ = format!("{context:?} {:?}", UserContext::lookup_all());
    assert_eq!(renders.load(Ordering::Relaxed), 0);
    assert_eq!(context.debug_string(), "render 0");
    assert_eq!(UserContext::annotated(context.clone(), "a").debug_string(), "a (in render 1)");
    assert!(expand(&promise.event().error().unwrap()).message().ends_with(": render 2"));
    assert_eq!(renders.load(Ordering::Relaxed), 3);
    drop(context);
    assert_eq!(Arc::strong_count(&renders), 1, "the origin's closure is destroyed");
}

#[test]
fn an_origin_may_use_contexts_and_may_panic() {
    let _alone = alone();
    let outer = UserContext::new("outer");
    let id = outer.id();
    // Would deadlock if rendering held the registry's lock.
    let nosy = UserContext::new(Origin::lazy(move || UserContext::lookup(id).unwrap().debug_string()));
    assert_eq!(nosy.debug_string(), "outer");
    let broken = UserContext::annotated(outer, Origin::lazy(|| panic!("expected by a test")));
    assert_eq!(broken.debug_string(), "(the closure that renders this context panicked) (in outer)");
}

#[test]
fn an_origin_that_ends_may_use_contexts() {
    let _alone = alone();
    struct Nosy;
    impl Drop for Nosy {
        fn drop(&mut self) {
            let _ = UserContext::lookup_all();
            drop(UserContext::new("made while another ends"));
        }
    }
    let nosy = Nosy;
    let context = UserContext::new(Origin::lazy(move || format!("{}", size_of_val(&nosy))));
    let _scope = UserContextScope::new(context);
}

#[test]
fn depth_and_sharing_need_no_stack_and_bound_the_text() {
    let _alone = alone();
    let mut deep = UserContext::new("root");
    let mut wide = deep.clone();
    for _ in 0..30_000 {
        deep = UserContext::annotated(deep, "x");
    }
    for _ in 0..100 {
        wide = UserContext::chained(wide.clone(), wide);
    }
    assert!(deep.debug_string().starts_with("x (in x (in "));
    assert!(deep.debug_string().ends_with("..."));
    assert!(wide.debug_string().ends_with("..."));
    let error = annotate(Error::internal("x"), &wide);
    assert!(payload_of(&error).split(',').count() < 200);
}

#[test]
fn scopes_nest_and_restore() {
    let _alone = alone();
    assert_eq!(UserContext::current(), None);
    let (a, b) = (UserContext::new("a"), UserContext::new("b"));
    {
        let _a = UserContextScope::new(a.clone());
        assert_eq!(UserContext::current().as_ref(), Some(&a));
        {
            let _b = UserContextScope::new(b.clone());
            assert_eq!(UserContext::current().as_ref(), Some(&b));
            {
                let _none = UserContextScope::none();
                assert_eq!(UserContext::current(), None);
            }
            assert_eq!(UserContext::current().as_ref(), Some(&b));
        }
        assert_eq!(UserContext::current().as_ref(), Some(&a));
    }
    assert_eq!(UserContext::current(), None);
    assert!(is_last(&a) && is_last(&b));
}

#[test]
fn scopes_that_end_out_of_order_use_nothing_that_is_gone() {
    let _alone = alone();
    let ids = thread::spawn(|| {
        let (a, b) = (UserContext::new("a"), UserContext::new("b"));
        let ids = [a.id(), b.id()];
        let (first, second) = (UserContextScope::new(a), UserContextScope::new(b));
        drop(first);
        assert_eq!(UserContext::current(), None);
        drop(second);
        // Wrong, but alive.
        assert_eq!(UserContext::current().map(|context| context.debug_string()), Some("a".to_owned()));
        drop(UserContextScope::none());
        ids
    })
    .join()
    .unwrap();
    assert_eq!(UserContext::lookup(ids[1]), None);
}

#[test]
fn a_scope_belongs_to_its_thread() {
    let _alone = alone();
    let context = UserContext::new("here");
    let _scope = UserContextScope::new(context.clone());
    thread::spawn(|| assert_eq!(UserContext::current(), None)).join().unwrap();
    let seen = thread::spawn(with_user_context(context.clone(), UserContext::current)).join().unwrap();
    assert_eq!(seen, Some(context));
}

#[test]
fn a_panic_restores_what_was_current() {
    let _alone = alone();
    let (a, b) = (UserContext::new("a"), UserContext::new("b"));
    let _a = UserContextScope::new(a.clone());
    let caught = purlin_base::panics::caught(with_user_context(b.clone(), || panic!("expected by a test")));
    assert!(caught.is_err());
    assert_eq!(UserContext::current(), Some(a));
    assert!(is_last(&b));
}

#[test]
fn a_waiter_runs_in_the_context_where_it_was_attached() {
    let _alone = alone();
    let (setter, attacher) = (UserContext::new("setter"), UserContext::new("attacher"));
    let promise = EventPromise::new(c"e");
    let event = promise.event();
    let (sender, seen) = mpsc::channel();
    let report = |sender: &mpsc::Sender<Option<UserContext>>| {
        let sender = sender.clone();
        move |_: &Result<(), Error>| sender.send(UserContext::current()).unwrap()
    };
    event.on_ready(report(&sender));
    {
        let _scope = UserContextScope::new(attacher.clone());
        event.on_ready(report(&sender));
        event.on_ready(|_| panic!("expected by a test"));
    }
    event.on_ready(report(&sender));
    {
        let _scope = UserContextScope::new(setter.clone());
        assert!(promise.set_ready());
        assert_eq!(UserContext::current(), Some(setter.clone()), "restored after the waiters");
        event.on_ready(report(&sender));
    }
    let seen: Vec<_> = seen.try_iter().collect();
    assert_eq!(seen, [None, Some(attacher.clone()), None, Some(setter.clone())]);
    drop(seen);
    assert!(is_last(&attacher) && is_last(&setter), "nobody keeps a context longer than its work");
}

#[test]
fn waiters_beyond_the_nesting_limit_keep_their_context() {
    let _alone = alone();
    const LINKS: usize = 100;
    let contexts: Vec<_> = (0..LINKS).map(|link| UserContext::new(format!("link {link}"))).collect();
    let promises: Vec<_> = (0..=LINKS).map(|_| EventPromise::new(c"link")).collect();
    let last = promises[LINKS].event();
    let events: Vec<_> = promises.iter().map(EventPromise::event).collect();
    let mut promises = promises.into_iter();
    let first = promises.next().unwrap();
    for ((context, event), next) in contexts.iter().zip(&events).zip(promises) {
        let _scope = UserContextScope::new(context.clone());
        let expected = context.clone();
        event.on_ready(move |_| {
            assert_eq!(UserContext::current(), Some(expected.clone()));
            // Also attached, at depth, to an event that is ready.
            Event::ready().on_ready(move |_| {
                assert_eq!(UserContext::current(), Some(expected));
                next.set_ready();
            });
        });
    }
    first.set_ready();
    assert!(last.wait().is_ok(), "an assertion in a waiter would have abandoned the next link");
    assert_eq!(UserContext::current(), None);
    assert!(contexts.iter().all(is_last));
}

#[test]
fn tasks_and_chains_of_events_and_tasks_keep_their_context() {
    let _alone = alone();
    let pool = pool(2);
    let context = UserContext::new("step 7");
    let (start, end) = (EventPromise::new(c"start"), EventPromise::new(c"end"));
    let (event, done) = (start.event(), end.event());
    {
        let _scope = UserContextScope::new(context.clone());
        let next = pool.clone();
        let id = context.id();
        // Event, task on another thread, two new events joined, waiter, task: five hops, each from within the last.
        let first = Task::new(c"first", move || {
            assert_eq!(current_id(), Some(id));
            let (a, b) = (EventPromise::new(c"a"), EventPromise::new(c"b"));
            let joined = when_all(&[a.event(), b.event()]);
            let after = next.clone();
            joined.on_ready(move |_| {
                assert_eq!(current_id(), Some(id));
                after
                    .schedule(c"last", move || {
                        let _ = end.set_error(annotate_with_id(Error::aborted("seen"), current_id().unwrap_or(1)));
                    })
                    .unwrap();
            });
            next.schedule(c"set", move || assert!(a.set_ready() && b.set_ready())).unwrap();
        });
        pool.schedule_when_ready(&[event], first).unwrap();
    }
    start.set_ready();
    assert_eq!(payload_of(&done.wait().unwrap_err()), context.id().to_string());
    pool.shutdown().unwrap();
    assert!(is_last(&context));
}

#[test]
fn a_task_made_in_no_context_runs_in_none_and_a_dropped_one_lets_go() {
    let _alone = alone();
    let context = UserContext::new("c");
    let (sender, seen) = mpsc::channel();
    let task = Task::new(c"t", move || sender.send(UserContext::current()).unwrap());
    let _scope = UserContextScope::new(context.clone());
    task.run();
    assert_eq!(seen.recv().unwrap(), None);
    assert_eq!(UserContext::current(), Some(context));
    let inner = UserContext::new("inner");
    drop(with_user_context(inner.clone(), || Task::new(c"dropped", || ()))());
    assert!(is_last(&inner));
}

#[test]
fn a_parallel_loop_runs_in_its_callers_context() {
    let _alone = alone();
    let pool = pool(3);
    let context = UserContext::new("loop");
    let _scope = UserContextScope::new(context.clone());
    let meet = Barrier::new(2);
    let check = |range: std::ops::Range<usize>| {
        if range.start < 2 {
            meet.wait(); // So that a helper takes part.
        }
        if current_id() == Some(context.id()) { Ok(()) } else { Err(Error::internal("another context")) }
    };
    pool.parallel_for(16, 1, &check).unwrap();
}

#[test]
fn an_error_names_the_context_of_its_event() {
    let _alone = alone();
    let (maker, setter) = (UserContext::new("maker"), UserContext::new("setter"));
    let in_maker = |label| with_user_context(maker.clone(), || EventPromise::new(label))();
    let _scope = UserContextScope::new(setter.clone());

    let abandoned = in_maker(c"abandoned");
    let event = abandoned.event();
    drop(abandoned);
    assert_eq!(payload_of(&event.error().unwrap()), maker.id().to_string());
    assert_eq!(payload_of(&event.error().unwrap().clone()), maker.id().to_string());

    let failed = in_maker(c"failed");
    assert!(failed.set_error(Error::data_loss("x")));
    assert_eq!(payload_of(&failed.event().error().unwrap()), maker.id().to_string());

    let elsewhere = {
        let _none = UserContextScope::none();
        EventPromise::new(c"made in none")
    };
    assert!(elsewhere.set_error(Error::aborted("x")));
    assert_eq!(payload_of(&elsewhere.event().error().unwrap()), setter.id().to_string());
    assert_eq!(payload_of(&Event::from_error(Error::aborted("x")).error().unwrap()), setter.id().to_string());

    // The first context to fail is named, however far the error travels.
    let follower = EventPromise::new(c"follower");
    let followed = follower.event();
    follower.forward(&failed.event());
    assert_eq!(payload_of(&followed.error().unwrap()), maker.id().to_string());
}

#[test]
fn errors_outside_contexts_stay_as_they_are() {
    let _alone = alone();
    let promise = EventPromise::new(c"e");
    let error = Error::not_found("x");
    assert!(promise.set_error(error.clone()));
    assert_eq!(promise.event().error().unwrap().payloads().len(), 0);
    // The very record, not a copy.
    let (kept, given) = (promise.event().error().unwrap(), error.clone());
    assert_eq!(kept.message().as_ptr(), given.message().as_ptr());
    let context = UserContext::new("c");
    assert_eq!(annotate(error.clone(), &context).payload(PAYLOAD), Some(context.id().to_string().as_bytes()));
    assert!(error.payload(PAYLOAD).is_none(), "other copies are untouched");
    assert_eq!(expand(&error), error);
}

#[test]
fn a_chain_is_named_outer_first_and_expands_late() {
    let _alone = alone();
    let (outer, inner) = (UserContext::new("outer"), UserContext::new("inner"));
    let chain = UserContext::chained(outer.clone(), inner.clone());
    let id = chain.id();
    let promise = with_user_context(chain, || EventPromise::new(c"e"))();
    let event = promise.event();
    // The chain has ended: only its number is known, so that is what the error gets.
    drop(promise);
    assert_eq!(payload_of(&event.error().unwrap()), id.to_string());

    let chain = UserContext::chained(outer.clone(), inner.clone());
    let _scope = UserContextScope::new(chain);
    let mut error = Event::from_error(Error::resource_exhausted("no memory")).error().unwrap();
    assert_eq!(payload_of(&error), format!("{},{}", outer.id(), inner.id()));
    error.set_payload("other", b"kept");
    let (outer_id, inner_id) = (outer.id(), inner.id());
    drop((_scope, inner));
    let expanded = expand(&error);
    assert_eq!(
        expanded.message(),
        format!("no memory\n  in user context {outer_id}: outer\n  in user context {inner_id}, which has expired")
    );
    assert_eq!(expanded.code(), StatusCode::ResourceExhausted);
    assert_eq!(expanded.location(), error.location());
    assert_eq!(expanded.payloads().collect::<Vec<_>>(), [("other", &b"kept"[..])]);
    assert_eq!(expand(&expanded), expanded);
}

#[test]
fn a_payload_that_is_no_number_is_shown() {
    let _alone = alone();
    let mut error = Error::internal("x");
    error.set_payload(PAYLOAD, b"7,\xffseven\n,,99999999999999999999");
    let text = expand(&error).message().to_owned();
    assert!(text.contains("in user context 7, which has expired"), "{text}");
    assert!(text.contains("in user context \"\u{fffd}seven\\n\", which is no number"), "{text}");
    assert!(text.contains("in user context \"\", which is no number"), "{text}");
    assert!(text.contains("in user context \"99999999999999999999\", which is no number"), "{text}");
}

#[test]
fn numbers_are_unique_among_threads() {
    let _alone = alone();
    const THREADS: usize = 4;
    const EACH: usize = 2000;
    let start = Arc::new(Barrier::new(THREADS));
    let makers: Vec<_> = (0..THREADS)
        .map(|_| {
            let start = Arc::clone(&start);
            thread::spawn(move || {
                start.wait();
                (0..EACH).map(|_| UserContext::new("x")).collect::<Vec<_>>()
            })
        })
        .collect();
    let contexts: Vec<_> = makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect();
    let ids: HashSet<_> = contexts.iter().map(UserContext::id).collect();
    assert_eq!(ids.len(), THREADS * EACH);
    assert!(!ids.contains(&0));
    let all: HashSet<_> = UserContext::lookup_all().iter().map(UserContext::id).collect();
    assert!(ids.is_subset(&all));
    assert!(contexts.iter().all(|context| UserContext::lookup(context.id()).as_ref() == Some(context)));
    drop(contexts);
    let all: HashSet<_> = UserContext::lookup_all().iter().map(UserContext::id).collect();
    assert!(ids.is_disjoint(&all), "what has ended is forgotten");
}

#[test]
fn a_number_from_elsewhere_finds_the_living_or_makes_one() {
    let _alone = alone();
    let id = number::next();
    let first = UserContext::with_id(id, "from the wire").unwrap();
    assert_eq!(first.id(), id);
    let (again, unused) = (UserContext::with_id(id, "ignored").unwrap(), UserContext::lookup(id));
    assert_eq!((&again, unused.as_ref()), (&first, Some(&first)));
    assert_eq!(again.debug_string(), "from the wire");
    drop((first, again, unused));
    assert_eq!(UserContext::lookup(id), None);
    assert_eq!(UserContext::with_id(id, "anew").unwrap().debug_string(), "anew");
    let error = UserContext::with_id(0, "x").unwrap_err();
    assert_eq!((error.code(), error.message()), (StatusCode::InvalidArgument, "0 is no number of a user context"));
}

#[test]
fn a_dying_entry_neither_blocks_nor_removes_its_successor() {
    let _alone = alone();
    const THREADS: usize = 4;
    const ROUNDS: usize = 20_000;
    let id = number::next();
    let start = Arc::new(Barrier::new(THREADS));
    let racer = {
        let start = Arc::clone(&start);
        move || {
            start.wait();
            for _ in 0..ROUNDS {
                let mine = UserContext::with_id(id, "x").unwrap();
                let found = UserContext::lookup(id).expect("registered while it lives");
                assert_eq!(found, mine);
                drop(found);
                drop(mine);
            }
        }
    };
    let racers: Vec<_> = (0..THREADS).map(|_| thread::spawn(racer.clone())).collect();
    racers.into_iter().for_each(|racer| racer.join().unwrap());
    assert_eq!(UserContext::lookup(id), None);
}
