use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::LIMIT;
use crate::event::{EventPromise, when_all};
use crate::services::timer::Timers;
use purlin_base::status::StatusCode;

const HOUR: Duration = Duration::from_secs(3600);
const CANCEL: ShutdownOptions = ShutdownOptions { mode: ShutdownMode::CancelPending, timeout: None };

fn within(timeout: Duration) -> ShutdownOptions {
    ShutdownOptions { timeout: Some(timeout), ..Default::default() }
}

fn options(max_threads: usize, idle_timeout: Duration) -> ElasticPoolOptions {
    ElasticPoolOptions { max_threads, idle_timeout, stack_size_bytes: 0, name: "elastic".to_owned() }
}

fn pool(max_threads: usize, idle_timeout: Duration) -> ElasticPool {
    ElasticPool::new(&options(max_threads, idle_timeout)).unwrap()
}

/// Waits for what another thread will certainly do; a failure, instead of a hang, if it does not.
fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "hangs");
        thread::yield_now();
    }
}

#[test]
fn options_that_make_no_sense_are_refused_and_named() {
    for (options, named) in [
        (options(0, HOUR), "0"),
        (options(4097, HOUR), "4097"),
        (ElasticPoolOptions { stack_size_bytes: usize::MAX, ..options(1, HOUR) }, "stack_size_bytes"),
        (ElasticPoolOptions { name: String::new(), ..options(1, HOUR) }, "name"),
        (ElasticPoolOptions { name: "a\0b".to_owned(), ..options(1, HOUR) }, "NUL"),
    ] {
        let error = ElasticPool::new(&options).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert!(error.message().contains(named), "{error}");
    }
}

#[test]
fn tasks_that_block_get_a_thread_each_up_to_the_cap() {
    let pool = pool(3, HOUR);
    assert_eq!(pool.num_threads(), 0, "none is started for nothing");
    let gate = EventPromise::new(c"gate");
    let inside = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        let (open, inside) = (gate.event(), Arc::clone(&inside));
        let task = move || {
            inside.fetch_add(1, Ordering::Relaxed);
            open.wait().unwrap();
        };
        pool.schedule(c"t", task).unwrap();
    }
    until(|| inside.load(Ordering::Relaxed) == 3);
    assert_eq!(pool.num_threads(), 3);
    gate.set_ready();
    pool.shutdown_with(within(LIMIT)).unwrap();
    assert_eq!((inside.load(Ordering::Relaxed), pool.num_threads()), (5, 0));
}

#[test]
fn a_task_that_no_idle_thread_takes_starts_a_thread_before_it_is_scheduled() {
    let started = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&started);
    let spawn = move |builder: Builder, work: Box<dyn FnOnce() + Send>| {
        counted.fetch_add(1, Ordering::Relaxed);
        builder.spawn(work)
    };
    let pool = ElasticPool::with_parts(&options(3, HOUR), Box::new(spawn), Pace::default()).unwrap();
    // Gone before the pool, which waits for its tasks.
    let gate = EventPromise::new(c"gate");
    for tasks in 1..=5 {
        let open = gate.event();
        pool.schedule(c"blocks", move || _ = open.wait()).unwrap();
        let at_the_cap = tasks.min(3);
        assert_eq!((started.load(Ordering::Relaxed), pool.num_threads()), (at_the_cap, at_the_cap), "{pool:?}");
    }
    gate.set_ready();
    pool.shutdown_with(within(LIMIT)).unwrap();
}

#[test]
fn an_idle_thread_is_used_again() {
    let pool = pool(8, HOUR);
    for _ in 0..50 {
        let promise = EventPromise::new(c"done");
        let done = promise.event();
        pool.schedule(c"t", move || _ = promise.set_ready()).unwrap();
        done.wait_for(LIMIT).unwrap();
        until(|| pool.num_idle() == pool.num_threads());
    }
    assert_eq!(pool.num_threads(), 1);
}

#[test]
fn idle_threads_go_and_tasks_are_not_lost_to_those_that_go() {
    let pool = pool(2, Duration::ZERO);
    let ran = Arc::new(AtomicUsize::new(0));
    for round in 1..=300 {
        let ran = Arc::clone(&ran);
        pool.schedule(c"t", move || _ = ran.fetch_add(1, Ordering::Relaxed)).unwrap();
        if round % 3 == 0 {
            until(|| pool.num_threads() == 0);
        }
    }
    until(|| pool.num_threads() == 0);
    assert_eq!(ran.load(Ordering::Relaxed), 300);
}

#[test]
fn many_threads_may_schedule() {
    let pool = pool(4, Duration::ZERO);
    let ran = Arc::new(AtomicUsize::new(0));
    let submit = |_| {
        let (pool, ran) = (pool.clone(), Arc::clone(&ran));
        thread::spawn(move || {
            for _ in 0..200 {
                let ran = Arc::clone(&ran);
                pool.schedule(c"t", move || _ = ran.fetch_add(1, Ordering::Relaxed)).unwrap();
            }
        })
    };
    (0..4).map(submit).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    pool.shutdown().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 800);
}

#[test]
fn the_stack_is_as_large_as_asked() {
    let deep = ElasticPoolOptions { stack_size_bytes: 64 << 20, ..options(1, HOUR) };
    let pool = ElasticPool::new(&deep).unwrap();
    let promise = EventPromise::new(c"done");
    let done = promise.event();
    let task = move || {
        // More than a thread has by default.
        let large = [7_u8; 16 << 20];
        assert_eq!(std::hint::black_box(&large)[1 << 20], 7);
        promise.set_ready();
    };
    pool.schedule(c"deep", task).unwrap();
    done.wait_for(LIMIT).unwrap();
}

#[test]
fn r10_without_a_thread_the_task_is_refused_and_with_one_it_waits() {
    let refuse = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&refuse);
    let spawn = move |builder: Builder, work: Box<dyn FnOnce() + Send>| {
        if asked.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        builder.spawn(work)
    };
    let pool = ElasticPool::with_parts(&options(4, HOUR), Box::new(spawn), Pace::default()).unwrap();
    let promise = EventPromise::new(c"owed");
    let owed = promise.event();
    let error = pool.schedule(c"t", move || _ = promise.set_ready()).unwrap_err();
    assert_eq!(error.code(), StatusCode::ResourceExhausted);
    assert!(error.message().contains("'elastic'") && error.message().contains("'t'"), "{error}");
    assert!(owed.is_ready(), "what it owed is told");
    assert_eq!(pool.num_threads(), 0);

    refuse.store(false, Ordering::Relaxed);
    let (gate, ran) = (EventPromise::new(c"gate"), Arc::new(AtomicUsize::new(0)));
    let open = gate.event();
    pool.schedule(c"blocker", move || open.wait().unwrap()).unwrap();
    refuse.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        let ran = Arc::clone(&ran);
        pool.schedule(c"t", move || _ = ran.fetch_add(1, Ordering::Relaxed)).unwrap();
    }
    assert_eq!(pool.num_threads(), 1);
    gate.set_ready();
    pool.shutdown().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 3);
}

#[test]
fn r8_after_shutdown_tasks_are_refused() {
    let pool = pool(1, HOUR);
    pool.shutdown().unwrap();
    pool.shutdown_with(CANCEL).unwrap();
    let promise = EventPromise::new(c"owed");
    let owed = promise.event();
    let error = pool.schedule(c"late", move || _ = promise.set_ready()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Cancelled);
    assert!(error.message().contains("'late'"), "{error}");
    assert!(owed.is_ready());
}

/// A pool of one thread that is in a task until the promise is set, and five tasks that wait behind it.
fn busy() -> (ElasticPool, EventPromise, Vec<crate::event::Event>) {
    let (pool, gate, started) = (pool(1, HOUR), EventPromise::new(c"gate"), EventPromise::new(c"started"));
    let (open, running) = (gate.event(), started.event());
    let blocker = move || {
        started.set_ready();
        let _ = open.wait();
    };
    pool.schedule(c"blocker", blocker).unwrap();
    running.wait_for(LIMIT).unwrap();
    let owe = |_| {
        let promise = EventPromise::new(c"owed");
        let owed = promise.event();
        pool.schedule(c"t", move || _ = promise.set_ready()).unwrap();
        owed
    };
    let owed = (0..5).map(owe).collect();
    (pool, gate, owed)
}

#[test]
fn r8_cancel_pending_drops_what_has_not_started() {
    let (pool, gate, owed) = busy();
    let canceller = {
        let pool = pool.clone();
        thread::spawn(move || pool.shutdown_with(CANCEL))
    };
    for owed in owed {
        assert_eq!(owed.wait_for(LIMIT).unwrap_err().code(), StatusCode::Internal);
    }
    gate.set_ready();
    canceller.join().unwrap().unwrap();
    assert_eq!(pool.num_threads(), 0);
}

#[test]
fn r8_a_shutdown_with_a_deadline_gives_up_and_says_so() {
    let (pool, gate, owed) = busy();
    let error = pool.shutdown_with(within(Duration::ZERO)).unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    assert!(error.message().contains("1 threads") && error.message().contains("5 tasks"), "{error}");
    assert!(when_all(&owed).wait().is_err());
    gate.set_ready();
    pool.shutdown_with(within(HOUR)).unwrap();
    assert_eq!(pool.num_threads(), 0);
}

#[test]
fn r7_a_task_cannot_shut_its_own_pool_down_but_may_hold_the_last_handle() {
    let pool = pool(1, HOUR);
    let (inner, answer) = (pool.clone(), EventPromise::new(c"answer"));
    let told = answer.event();
    drop(pool.schedule(c"t", move || {
        let refused = inner.shutdown().unwrap_err();
        drop(inner);
        answer.set_error(refused);
    }));
    drop(pool);
    assert_eq!(told.wait_for(LIMIT).unwrap_err().code(), StatusCode::FailedPrecondition);
}

#[test]
fn a_task_that_panics_does_not_stop_its_thread() {
    let pool = pool(1, HOUR);
    let promise = EventPromise::new(c"done");
    let done = promise.event();
    pool.schedule(c"bad", || panic!("expected by a test")).unwrap();
    pool.schedule(c"good", move || _ = promise.set_ready()).unwrap();
    done.wait_for(LIMIT).unwrap();
    assert_eq!(pool.num_threads(), 1);
}

#[test]
fn r8_the_last_handle_does_not_wait_for_what_a_deadline_has_left() {
    let pool = ElasticPool::new(&options(1, HOUR)).unwrap();
    let (begun, opened) = (EventPromise::new(c"begun"), EventPromise::new(c"opened"));
    let (has_begun, gate, ended) = (begun.event(), opened.event(), EventPromise::new(c"ended"));
    let has_ended = ended.event();
    let task = move || {
        begun.set_ready();
        gate.wait().unwrap();
        ended.set_ready();
    };
    pool.schedule(c"slow", task).unwrap();
    has_begun.wait_for(LIMIT).unwrap();
    let error = pool.shutdown_with(within(Duration::ZERO)).unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    let (gone, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(pool);
        gone.send(()).unwrap();
    });
    seen.recv_timeout(Duration::from_secs(60)).expect("the last handle waits for a task that a deadline has left");
    opened.set_ready();
    has_ended.wait_for(LIMIT).unwrap();
}

#[test]
fn the_last_handle_may_go_on_the_timers_thread_while_a_task_waits_for_a_timer() {
    let pool = pool(1, HOUR);
    let (begun, opened, ended) =
        (EventPromise::new(c"begun"), EventPromise::new(c"opened"), EventPromise::new(c"the last handle has gone"));
    let (has_begun, open, has_ended) = (begun.event(), opened.event(), ended.event());
    let task = move || {
        begun.set_ready();
        open.wait().unwrap();
    };
    pool.schedule(c"waits", task).unwrap();
    has_begun.wait_for(LIMIT).unwrap();
    let timers = Timers::shared();
    let on_the_timers_thread = move |_| {
        timers.call_at(timers.now(), c"opens", move |_| _ = opened.set_ready()).detach();
        drop(pool);
        ended.set_ready();
    };
    timers.call_at(timers.now(), c"ends the pool", on_the_timers_thread).detach();
    has_ended.wait_for(LIMIT).expect("the timers stand still while a pool ends on their thread");
}

#[test]
fn a_task_at_the_cap_may_shut_a_pool_down_whose_task_waits_for_one_behind_it() {
    let (outer, inner) = (pool_of_at_most(usize::MAX, 1), pool(1, HOUR));
    let ended = EventPromise::new(c"the other pool has ended");
    let has_ended = ended.event();
    let of_outer = outer.clone();
    let task = move || {
        let shut_down = inner.clone();
        let waits = move || {
            let opened = EventPromise::new(c"opened");
            let open = opened.event();
            of_outer.schedule(c"opens", move || _ = opened.set_ready()).unwrap();
            open.wait().unwrap();
        };
        inner.schedule(c"waits", waits).unwrap();
        shut_down.shutdown().unwrap();
        ended.set_ready();
    };
    outer.schedule(c"shuts another pool down", task).unwrap();
    has_ended.wait_for(LIMIT).expect("a pool stands still while its task shuts another one down");
}

#[test]
fn a_pool_whose_last_start_is_refused_while_it_is_shut_down_ends() {
    let (begun, refused) = (EventPromise::new(c"begun"), EventPromise::new(c"refused"));
    let (has_begun, refuse) = (begun.event(), refused.event());
    let spawn = move |_: Builder, _: Box<dyn FnOnce() + Send>| {
        begun.set_ready();
        refuse.wait().unwrap();
        Err(io::ErrorKind::WouldBlock.into())
    };
    let pool = ElasticPool::with_parts(&options(1, HOUR), Box::new(spawn), Pace::default()).unwrap();
    let scheduling = {
        let pool = pool.clone();
        thread::spawn(move || pool.schedule(c"t", || ()).unwrap_err())
    };
    has_begun.wait_for(LIMIT).unwrap();
    let late = pool.shutdown_with(within(Duration::ZERO)).unwrap_err();
    assert_eq!(late.code(), StatusCode::DeadlineExceeded);
    refused.set_ready();
    assert_eq!(scheduling.join().unwrap().code(), StatusCode::Cancelled);
    pool.shutdown_with(within(LIMIT)).unwrap();
}

/// A pool that gets as many threads as said, then none, and notices standstills soon.
fn pool_of_at_most(threads: usize, max_threads: usize) -> ElasticPool {
    let left = AtomicUsize::new(threads);
    let spawn = move |builder: Builder, work: Box<dyn FnOnce() + Send>| match left.fetch_update(
        Ordering::Relaxed,
        Ordering::Relaxed,
        |left| left.checked_sub(1),
    ) {
        Ok(_) => builder.spawn(work),
        Err(_) => Err(io::ErrorKind::WouldBlock.into()),
    };
    let pace = Pace { round: Duration::from_millis(1), patience: 3 };
    ElasticPool::with_parts(&options(max_threads, HOUR), Box::new(spawn), pace).unwrap()
}

/// `count` tasks that wait for the last one that is scheduled, each by `wait`; what their waits say.
fn waits_for_the_last(pool: &ElasticPool, count: usize, opened: EventPromise) -> Vec<Result<(), Error>> {
    let (send, answers) = std::sync::mpsc::channel();
    for _ in 0..count {
        let (event, send) = (opened.event(), send.clone());
        pool.schedule(c"waits", move || send.send(event.wait()).unwrap()).unwrap();
    }
    pool.schedule(c"opens", move || _ = opened.set_ready()).unwrap();
    (0..count).map(|_| answers.recv_timeout(LIMIT).expect("a task that waits for one behind it hangs")).collect()
}

#[test]
fn tasks_at_the_cap_may_wait_for_one_that_is_queued_behind_them() {
    let pool = pool_of_at_most(usize::MAX, 2);
    for _ in 0..2 {
        assert_eq!(waits_for_the_last(&pool, 30, EventPromise::new(c"opened")), vec![Ok(()); 30]);
        until(|| pool.num_threads() <= 2);
    }
    // Also those until which memory is lent.
    assert_eq!(waits_for_the_last(&pool, 30, EventPromise::guarding(c"lent")), vec![Ok(()); 30]);
    pool.shutdown().unwrap();
}

#[test]
fn a_wait_at_the_cap_of_a_pool_that_gets_no_thread_is_given_up_and_names_the_pool() {
    let pool = pool_of_at_most(2, 2);
    let answers = waits_for_the_last(&pool, 10, EventPromise::new(c"opened"));
    let errors: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(errors.len() > 8, "two waits may stand");
    for error in errors {
        assert_eq!(error.code(), StatusCode::ResourceExhausted);
        let text = "pool 'elastic' cannot go on: all of its threads wait while tasks are queued, and the system refused another: ";
        assert!(error.message().starts_with(text), "{error}");
        let end = "; the wait for event 'opened', which is still pending, was given up";
        assert!(error.message().ends_with(end), "{error}");
    }
    pool.shutdown().unwrap();
}

#[test]
fn a_report_names_an_elastic_pool_whose_waits_are_not_given_up() {
    let pool = pool_of_at_most(1, 1);
    let (copied, ran) = (EventPromise::guarding(c"copied"), EventPromise::new(c"ran"));
    let (event, has_run) = (copied.event(), ran.event());
    pool.schedule(c"waits", move || event.wait().unwrap()).unwrap();
    pool.schedule(c"is queued", move || _ = ran.set_ready()).unwrap();
    let text = "pool 'elastic': 1 threads (max_threads is 1), 1 wait, 0 idle; 1 tasks are queued; ALL OF ITS THREADS WAIT while tasks are \
                queued; IT CANNOT GO ON: its waits are not given up, because memory may be lent until they end, and the system \
                refused another: ";
    until(|| census::occupations().iter().any(|occupation| occupation.text.starts_with(text)) || has_run.is_ready());
    assert!(!has_run.is_ready());
    copied.set_ready();
    has_run.wait_for(LIMIT).unwrap();
}

impl ElasticPool {
    /// A pool of at most one thread that notices standstills soon, and gets no thread while `refuse` says so.
    pub(crate) fn refused_while(refuse: Arc<AtomicBool>) -> Self {
        let spawn = move |builder: Builder, work: Box<dyn FnOnce() + Send>| {
            if refuse.load(Ordering::Relaxed) { Err(io::ErrorKind::WouldBlock.into()) } else { builder.spawn(work) }
        };
        let pace = Pace { round: Duration::from_millis(1), patience: 3 };
        Self::with_parts(&options(1, HOUR), Box::new(spawn), pace).unwrap()
    }
}
