use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::LIMIT;
use crate::event::{Event, EventPromise};
use crate::pool::{ThreadPool, ThreadPoolOptions};
use crate::task::{AsyncWorkRunner, Executor};
use crate::{ElasticPool, Future, Promise, SerialQueue, Timers, future_on, when_all};
use purlin_base::{Error, StatusCode};

/// The report's event of that label.
fn event(report: &StallReport, label: &str) -> StalledEvent {
    let found = report.events.iter().find(|event| event.label.as_str() == label);
    found.unwrap_or_else(|| panic!("no event '{label}' in:\n{report}")).clone()
}

/// Looks until the report has what `ready` wants: what is waited for is another thread falling asleep.
#[track_caller]
fn when(ready: impl Fn(&StallReport) -> bool) -> StallReport {
    let begun = Instant::now();
    loop {
        let report = stalls(Duration::ZERO);
        if ready(&report) {
            return report;
        }
        assert!(begun.elapsed() < LIMIT, "this is not what was looked for:\n{report}");
        thread::yield_now();
    }
}

fn has_cycle(report: &StallReport, word: &str) -> bool {
    report.cycles.iter().any(|cycle| cycle.contains(word))
}

#[test]
fn a_pending_event_has_its_label_place_and_debtor() {
    let promise = EventPromise::new(c"stall: plain");
    let line = line!() - 1;
    let found = event(&stalls(Duration::ZERO), "stall: plain");
    assert_eq!(found.location.line(), line);
    assert!(found.owed_by.starts_with("the promise made at "), "{}", found.owed_by);
    assert!(found.waited_for_by.is_empty());
    promise.event().on_ready(|_| ());
    assert_eq!(event(&stalls(Duration::ZERO), "stall: plain").waited_for_by, ["attached waiters"]);
    promise.set_ready();
    assert!(!stalls(Duration::ZERO).events.iter().any(|event| event.label.as_str() == "stall: plain"));
}

#[test]
fn young_events_are_left_out() {
    let _promise = EventPromise::new(c"stall: young");
    let report = stalls(Duration::from_secs(3600));
    assert!(!report.events.iter().any(|event| event.label.as_str() == "stall: young"));
}

#[test]
fn a_sleeping_thread_is_named_with_what_it_waits_for() {
    let promise = EventPromise::new(c"stall: slept on");
    let waited = promise.event();
    let sleeper = thread::Builder::new().name("sleepy".to_owned()).spawn(move || waited.wait()).unwrap();
    let report = when(|report| report.threads.iter().any(|thread| thread.name == "sleepy"));
    let thread = report.threads.iter().find(|thread| thread.name == "sleepy").unwrap();
    assert!(thread.waits_for.contains("stall: slept on"));
    assert!(event(&report, "stall: slept on").waited_for_by.contains(&"thread 'sleepy'".to_owned()));
    promise.set_ready();
    sleeper.join().unwrap().unwrap();
}

#[test]
fn joins_and_forwards_name_what_they_follow() {
    let source = EventPromise::new(c"stall: source");
    let other = EventPromise::new(c"stall: other");
    let all = when_all(&[source.event(), other.event()]);
    let forwarded = EventPromise::new(c"stall: forwarded");
    let follower = forwarded.event();
    forwarded.forward(&all);
    let report = stalls(Duration::ZERO);
    assert!(event(&report, "stall: forwarded").owed_by.contains("WhenAll"));
    assert!(event(&report, "stall: source").waited_for_by.iter().any(|waiter| waiter.contains("WhenAll")));
    source.set_ready();
    other.set_ready();
    follower.wait().unwrap();
}

#[test]
fn events_that_follow_each_other_are_a_cycle() {
    let (a, b) = (EventPromise::new(c"stall: ring a"), EventPromise::new(c"stall: ring b"));
    let (ready_a, ready_b) = (a.event(), b.event());
    a.forward(&ready_b);
    // What closes the cycle fails, and the rest with it: no other thread could complete them.
    b.forward(&ready_a);
    for event in [ready_a, ready_b] {
        let error = event.error().unwrap();
        assert_eq!(error.code(), StatusCode::Internal);
        let names = ["event 'stall: ring b' (made at ", "follows event 'stall: ring a' (made at "];
        assert!(names.iter().all(|name| error.message().contains(name)), "{error}");
    }
}

/// Two tasks that wait for each other's result, on `executor`; the results. `wait` is what each does.
fn wait_for_each_other<T: Send + Sync + 'static>(
    executor: &(impl Executor + ?Sized),
    wait: fn(Future<T>) -> Result<T, Error>,
) -> [Future<T>; 2] {
    let ((tell_one, one), (tell_other, other)) = (mpsc::channel(), mpsc::channel());
    let selfish = future_on(executor, c"stall: selfish", move || wait(one.recv().unwrap()));
    let selfless = future_on(executor, c"stall: no better", move || wait(other.recv().unwrap()));
    tell_one.send(selfless.clone()).unwrap();
    tell_other.send(selfish.clone()).unwrap();
    [selfish, selfless]
}

#[test]
fn tasks_that_wait_for_each_other_are_named_100_times_of_100() {
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, name: "selfish".to_owned() }).unwrap();
    let mut longest = Duration::ZERO;
    for _ in 0..100 {
        let (tell, told) = mpsc::channel();
        let tell = Mutex::new(tell);
        let planted = Instant::now();
        let _watchdog = Watchdog::start(WatchdogOptions {
            older_than: Duration::from_millis(20),
            action: WatchdogAction::Poison,
            sink: Some(Box::new(move |report| _ = tell.lock().unwrap().send(report.clone()))),
        })
        .unwrap();
        let results = wait_for_each_other(&pool, |other: Future<()>| other.wait().copied());
        let report = loop {
            let report: StallReport = told.recv_timeout(LIMIT).expect("no report names the cycle");
            if has_cycle(&report, "stall: selfish") {
                break report;
            }
        };
        longest = longest.max(planted.elapsed());
        let cycle = report.cycles.iter().find(|cycle| cycle.contains("stall: selfish")).unwrap();
        assert!(cycle.contains("is owed by task 'stall: selfish' on thread 'selfish/"), "{cycle}");
        for result in results {
            assert_eq!(result.wait().unwrap_err().code(), StatusCode::DeadlineExceeded);
        }
    }
    // Milliseconds on a quiet machine; not asserted, because it is the machine's.
    println!("the slowest of 100 was named after {longest:?}");
}

#[test]
fn a_wait_that_a_watchdog_ends_says_why_and_leaves_its_event_pending() {
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap();
    let _watchdog = Watchdog::start(WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Poison,
        sink: Some(Box::new(|_| ())),
    })
    .unwrap();
    let results = wait_for_each_other(&pool, |other: Future<String>| match other.wait() {
        Ok(said) => Ok(said.clone()),
        Err(error) => Ok(format!("{error}, ready: {}", other.is_ready())),
    });
    for result in results {
        let said = result.wait().unwrap();
        assert!(said.contains("'stall: selfish'") && said.contains("is owed by task"), "{said}");
        assert!(said.contains("ready: false"), "{said}");
    }
}

#[test]
fn a_task_that_waits_for_itself_is_told_at_once() {
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() }).unwrap();
    let (tell, told) = mpsc::channel::<Future<()>>();
    let waits = move || {
        let own = told.recv().unwrap();
        let follows = when_all(&[own.ready_event()]);
        let late = own.wait_for(Duration::ZERO).unwrap_err();
        assert_eq!(late.code(), StatusCode::DeadlineExceeded, "somebody may look whether it was cancelled: {late}");
        assert_eq!(follows.wait().unwrap_err().code(), StatusCode::FailedPrecondition);
        own.wait().copied()
    };
    let result = future_on(&pool, c"stall: selfish", waits);
    tell.send(result.clone()).unwrap();
    let error = result.wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition, "{error}");
    assert!(error.message().contains("is owed by task 'stall: selfish', which this thread runs"), "{error}");
}

/// A thread that has no spare runs an inner task while its outer one waits, so both go on only after what the inner one
/// waits for. Here that waits for either of the two.
#[test]
fn a_cycle_through_each_task_of_a_thread_that_helps_is_named() {
    for (through, about) in [(0, "stall: outer"), (1, "stall: inner")] {
        let (helping, other) = (ThreadPool::that_helps(), ThreadPool::that_helps());
        let (opened, (tell_inner, inner_told), (tell_other, other_told)) =
            (EventPromise::new(c"stall: opened later"), mpsc::channel::<Future<()>>(), mpsc::channel::<Future<()>>());
        let open = opened.event();
        let outer: Future<()> = future_on(&helping, c"stall: outer", move || open.wait());
        let inner = future_on(&helping, c"stall: inner", move || inner_told.recv().unwrap().wait().copied());
        let far = future_on(&other, c"stall: far", move || other_told.recv().unwrap().wait().copied());
        tell_other.send([&outer, &inner][through].clone()).unwrap();
        tell_inner.send(far.clone()).unwrap();
        let report = when(|report| has_cycle(report, "'stall: far'") && has_cycle(report, about));
        let cycle = report.cycles.iter().find(|cycle| cycle.contains("'stall: far'")).unwrap();
        assert!(cycle.contains(&format!("task '{about}'")), "{report}");
        // A watchdog ends it.
        let _watchdog = Watchdog::start(WatchdogOptions {
            older_than: Duration::from_millis(10),
            action: WatchdogAction::Poison,
            sink: Some(Box::new(|_| ())),
        })
        .unwrap();
        assert!(far.wait_for(LIMIT).is_err() || inner.wait_for(LIMIT).is_err());
        opened.set_ready();
        for result in [far, inner, outer] {
            let _ = result.wait_for(LIMIT);
            assert!(result.is_ready(), "{}", stalls(Duration::ZERO));
        }
    }
}

#[test]
fn a_task_that_waits_for_a_later_one_of_its_queue_is_a_cycle() {
    let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() }).unwrap());
    let queue = SerialQueue::new(c"stall: queue", pool);
    let (tell, told) = mpsc::channel::<Event>();
    queue.schedule(c"stall: first", move || _ = told.recv().unwrap().wait()).unwrap();
    let later: Future<()> = future_on(&queue, c"stall: later", || Ok(()));
    tell.send(later.ready_event()).unwrap();
    let report = when(|report| has_cycle(report, "stall: later"));
    let cycle = report.cycles.iter().find(|cycle| cycle.contains("stall: later")).unwrap();
    assert!(cycle.contains("is queued behind task 'stall: first'"), "{report}");
    assert!(report.executors.iter().any(|line| line.contains("stall: queue")), "{report}");
    // What the later task owes is not poisoned, because it will run: the wait for it ends, and with it the cycle.
    let _watchdog = Watchdog::start(WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Poison,
        sink: Some(Box::new(|_| ())),
    })
    .unwrap();
    assert_eq!(later.wait(), Ok(&()));
}

#[test]
fn pools_say_what_they_run() {
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, name: "busy".to_owned() }).unwrap();
    let (gate, open) = mpsc::channel::<()>();
    pool.schedule(c"stall: running", move || _ = open.recv()).unwrap();
    let report = when(|report| report.executors.iter().any(|line| line.contains("'stall: running'")));
    assert!(report.executors.iter().any(|line| line.starts_with("pool 'busy'")), "{report}");
    drop(gate);
    pool.schedule_when_ready(&[], crate::Task::new(c"t", || ())).unwrap();
}

#[test]
fn a_watchdog_refuses_to_look_too_often_and_reports_once() {
    let short = WatchdogOptions { older_than: Duration::from_millis(1), ..Default::default() };
    assert_eq!(Watchdog::start(short).unwrap_err().code(), StatusCode::InvalidArgument);
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let promise: Promise<u32> = Promise::new(c"stall: once");
    let watchdog = Watchdog::start(WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Report,
        sink: Some(Box::new(move |report| {
            let mine = report.events.iter().any(|event| event.label.as_str() == "stall: once");
            tell.lock().unwrap().send(mine).unwrap();
        })),
    })
    .unwrap();
    while !told.recv_timeout(LIMIT).expect("no report names the event") {}
    drop(watchdog);
    assert!(promise.set(Ok(7)).is_ok());
}

#[test]
fn a_watchdog_may_be_ended_on_the_timers_thread_while_its_sink_waits_for_a_timer() {
    let (begun, opened, ended) =
        (EventPromise::new(c"begun"), EventPromise::new(c"opened"), EventPromise::new(c"the watchdog has ended"));
    let (has_begun, open, has_ended) = (begun.event(), opened.event(), ended.event());
    let watchdog = Watchdog::start(WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Report,
        sink: Some(Box::new(move |report| {
            assert!(!report.events.iter().any(|event| event.label.as_str().starts_with("watchdog")), "{report}");
            begun.set_ready();
            open.wait().unwrap();
        })),
    })
    .unwrap();
    has_begun.wait_for(Duration::from_secs(60)).unwrap();
    let timers = Timers::shared();
    let on_the_timers_thread = move |_| {
        timers.call_at(timers.now(), c"opens", move |_| _ = opened.set_ready()).detach();
        drop(watchdog);
        ended.set_ready();
    };
    timers.call_at(timers.now(), c"ends the watchdog", on_the_timers_thread).detach();
    has_ended.wait_for(Duration::from_secs(60)).expect("the timers stand still while a watchdog ends on their thread");
}

#[test]
fn a_thread_that_goes_to_sleep_on_what_was_reported_before_is_woken_too() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let promise = EventPromise::new(c"stall: slept on late");
    let _watchdog = Watchdog::start(WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Poison,
        sink: Some(Box::new(move |report| {
            let mine = report.events.iter().any(|event| event.label.as_str() == "stall: slept on late");
            let _ = tell.lock().unwrap().send(mine);
        })),
    })
    .unwrap();
    while !told.recv_timeout(LIMIT).expect("no report names the event") {}
    assert_eq!(promise.event().wait().unwrap_err().code(), StatusCode::DeadlineExceeded);
}

#[test]
fn a_cycle_through_the_queue_of_a_pool_that_gets_no_thread_is_named() {
    let refuse = Arc::new(AtomicBool::new(false));
    let pool = ElasticPool::refused_while(Arc::clone(&refuse));
    let (inner, told, lent) = (Arc::new(pool.clone()), EventPromise::new(c"told"), EventPromise::guarding(c"lent"));
    let (answer, refused, lent_until) = (told.event(), Arc::clone(&refuse), lent.event());
    let task = move || {
        refused.store(true, Ordering::Relaxed);
        let owed = Future::ready(1).map_on(&inner, |value| value + 1);
        // Lent until the end of both, so that this wait is not given up.
        told.set(when_all(&[owed.ready_event(), lent_until]).wait());
    };
    pool.schedule(c"waits", task).unwrap();
    let begun = Instant::now();
    let is_named =
        |cycle: &String| cycle.contains("is queued, in a pool that gets no further thread, behind task 'waits'");
    while !stalls(Duration::ZERO).cycles.iter().any(is_named) {
        assert!(!answer.is_ready() && begun.elapsed() < Duration::from_secs(60), "{}", stalls(Duration::ZERO));
        thread::yield_now();
    }
    refuse.store(false, Ordering::Relaxed);
    lent.set_ready();
    answer.wait().unwrap();
}
