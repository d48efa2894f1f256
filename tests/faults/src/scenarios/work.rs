//! Executors and events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use purlin_async::{
    AsyncWorkRunner, CancelSource, CancelToken, CountDown, ElasticPool, ElasticPoolOptions, Event, EventPromise,
    Executor, Future, JoinOptions, Promise, Semaphore, SerialQueue, Task, ThreadPool, ThreadPoolOptions, Timers,
    Watchdog, WatchdogAction, WatchdogOptions, future_on, join_futures, run_when_ready, try_spawn, when_all,
};
use purlin_base::Error;
use purlin_base::fault::{self, Site};

use crate::run::Run;

fn new_pool(thread_count: usize) -> Result<ThreadPool, Error> {
    ThreadPool::new(&ThreadPoolOptions { thread_count, name: "walked".to_owned() })
}

/// A task that keeps a promise.
fn task(run: &Run, what: &'static str) -> Task {
    let (promise, token) = (EventPromise::new(c"task done"), run.token(what));
    run.watch(what, &promise.event());
    Task::new(c"task", move || {
        token.called();
        promise.set_ready();
    })
}

/// The two closures of a join, and a loop; panics of the closures are passed to the caller, which is this code.
fn join(pool: &ThreadPool) {
    let closure = || fault::callback(Site::Join.name());
    let joined = purlin_base::panics::caught(|| pool.join(closure, closure));
    drop(joined);
}

pub(super) fn pool(run: &Arc<Run>) -> Result<(), Error> {
    let pool = new_pool(3)?;
    for _ in 0..4 {
        run.see("execute", pool.execute(task(run, "a task of a pool")));
    }
    join(&pool);
    let (inner, promise) = (pool.clone(), EventPromise::new(c"task that joins"));
    run.watch("a task that joins", &promise.event());
    let scheduled = pool.schedule(c"joins", move || {
        join(&inner);
        drop(inner);
        promise.set_ready();
    });
    run.see("schedule", scheduled);
    let calls = AtomicUsize::new(0);
    let looped = pool.parallel_for(100, 10, &|range| {
        calls.fetch_add(range.len(), Ordering::Relaxed);
        Ok(())
    });
    if run.see("parallel_for", looped).is_some() {
        assert_eq!(calls.into_inner(), 100);
    }
    run.see("shutdown", pool.shutdown());
    Ok(())
}

pub(super) fn blocked_pool(run: &Arc<Run>) -> Result<(), Error> {
    let pool = new_pool(1)?;
    // Tasks that wait for tasks of the same pool, five deep.
    fn nest(pool: &ThreadPool, depth: usize) -> Result<(), Error> {
        if depth == 0 {
            return Ok(());
        }
        let inner = pool.clone();
        let answer = future_on(pool, c"nested", move || nest(&inner, depth - 1));
        answer.wait().copied()
    }
    let (inner, result) = (pool.clone(), EventPromise::new(c"nest"));
    run.watch("nested tasks", &result.event());
    let scheduled = pool.schedule(c"outermost", move || {
        let outcome = nest(&inner, 5);
        drop(inner);
        result.set(outcome);
    });
    run.see("schedule", scheduled);
    // Tasks from outside that wait for one another.
    let gate = EventPromise::new(c"opened by the last");
    for index in 0..3 {
        let (event, done) = (gate.event(), EventPromise::new(c"waited"));
        run.watch("a task that waits", &done.event());
        let wait = move || _ = done.set(event.wait());
        if run.see("schedule a wait", pool.schedule(c"waits", wait)).is_none() && index == 2 {
            break;
        }
    }
    let opener = pool.schedule(c"opens", move || _ = gate.set_ready());
    run.see("schedule the opener", opener);
    Ok(())
}

pub(super) fn when_ready(run: &Arc<Run>) -> Result<(), Error> {
    let pool = new_pool(2)?;
    let gates = [EventPromise::new(c"gate"), EventPromise::new(c"gate")];
    let events: Vec<Event> = gates.iter().map(EventPromise::event).collect();
    run.see("schedule_when_ready", pool.schedule_when_ready(&events, task(run, "a task after two events")));
    run.see("schedule_when_ready, one", pool.schedule_when_ready(&events[..1], task(run, "a task after an event")));
    run.see("schedule_when_ready, none", pool.schedule_when_ready(&[], task(run, "a task after nothing")));
    gates.iter().for_each(|gate| _ = gate.set_ready());
    run.see("shutdown", pool.shutdown());
    Ok(())
}

pub(super) fn elastic_pool(run: &Arc<Run>) -> Result<(), Error> {
    let pool = ElasticPool::new(&ElasticPoolOptions { max_threads: 3, ..Default::default() })?;
    let gate = EventPromise::new(c"gate");
    for _ in 0..4 {
        let (event, token, done) = (gate.event(), run.token("an elastic task"), EventPromise::new(c"elastic"));
        run.watch("an elastic task", &done.event());
        let scheduled = pool.schedule(c"waits", move || {
            token.called();
            done.set(event.wait());
        });
        run.see("schedule", scheduled);
    }
    gate.set_ready();
    run.see("shutdown", pool.shutdown());
    Ok(())
}

pub(super) fn serial_queue(run: &Arc<Run>) -> Result<(), Error> {
    let pool = new_pool(2)?;
    let queue = SerialQueue::new(c"queue", Arc::new(pool.clone()));
    // More than it runs in one go.
    for _ in 0..70 {
        run.see("execute", queue.execute(task(run, "a task of a queue")));
    }
    run.watch("drained", &queue.drained());
    run.see("drain", queue.drain());
    queue.close();
    drop(queue);
    run.see("shutdown", pool.shutdown());
    Ok(())
}

pub(super) fn timers(run: &Arc<Run>) -> Result<(), Error> {
    let timers = Timers::shared();
    let soon = timers.event_after(Duration::from_millis(1), c"soon");
    run.watch("a timer", soon.event());
    let token = run.token("a timer's action");
    let called = Arc::clone(run);
    let action = timers.call_at(timers.after(Duration::from_millis(1)), c"call", move |outcome| {
        token.called();
        if let Err(error) = outcome {
            called.meet("a timer's action", error);
        }
    });
    let never = EventPromise::new(c"never");
    // The thread may sleep until then, although nothing wants it any more.
    let late = timers.with_deadline(&never.event(), timers.after(Duration::from_secs(3)));
    never.set_ready();
    run.watch("in time", &late);
    run.wait("soon", soon.event());
    action.detach();
    while timers.waiting() > 0 {
        std::thread::yield_now();
    }
    Ok(())
}

pub(super) fn semaphore(run: &Arc<Run>) -> Result<(), Error> {
    let pool = new_pool(2)?;
    let semaphore = Semaphore::new(c"units", 2);
    // One for each thread: where no spare can be had, a third would run on top of one that waits, and could wait for
    // the units that this one has been granted and cannot give back.
    for _ in 0..2 {
        let (inner, token, done) = (semaphore.clone(), run.token("a task with a permit"), EventPromise::new(c"permit"));
        run.watch("a task with a permit", &done.event());
        let scheduled = pool.schedule(c"acquires", move || {
            token.called();
            let acquired = inner.acquire(2);
            done.set(acquired.map(drop));
        });
        run.see("schedule", scheduled);
    }
    let (token, other) = (run.token("acquire_then"), Arc::clone(run));
    semaphore.acquire_then(1, &CancelToken::default(), move |permit| {
        token.called();
        other.see("acquire_then", permit);
        fault::callback(Site::Waiter.name());
    });
    run.see("acquire", semaphore.acquire(1));
    run.see("shutdown", pool.shutdown());
    assert_eq!(semaphore.available(), 2, "all units are back");
    Ok(())
}

pub(super) fn cancellation(run: &Arc<Run>) -> Result<(), Error> {
    let source = CancelSource::new(c"source");
    let child = CancelSource::child_of(&source.token(), c"child");
    let mut kept = Vec::new();
    for token in [source.token(), child.token()] {
        let call = run.token("a cancel callback");
        kept.push(token.on_cancel(move |_reason| call.called()));
        run.watch("asked", &token.event());
    }
    assert!(source.cancel(Error::cancelled("planned")));
    Ok(())
}

pub(super) fn joins(run: &Arc<Run>) -> Result<(), Error> {
    let pool = new_pool(2)?;
    let promises: Vec<Arc<EventPromise>> = (0..4).map(|_| Arc::new(EventPromise::new(c"part"))).collect();
    let events: Vec<Event> = promises.iter().map(|promise| promise.event()).collect();
    let (all, count) = (when_all(&events), CountDown::new(c"count", 4));
    run.watch("all", &all);
    run.watch("counted", &count.event());
    run.waiter(&all);
    let token = run.token("run_when_ready");
    run_when_ready(&events, move || {
        token.called();
        fault::callback(Site::Waiter.name());
    });
    for promise in promises {
        let (count, event) = (count.clone(), promise.event());
        run.waiter(&event);
        let scheduled = pool.schedule(c"sets", move || _ = promise.set_ready());
        run.see("schedule", scheduled);
        event.on_ready(move |outcome| _ = count.count_down_with(outcome.clone()));
    }
    run.wait("all", &all);
    Ok(())
}

pub(super) fn futures(run: &Arc<Run>) -> Result<(), Error> {
    let pool = Arc::new(new_pool(2)?);
    let promise = Promise::<i32>::new(c"source");
    let source = promise.future();
    let mapped = source.map(|value| value + 1);
    let on_pool = mapped.map_on(&pool, |value| value * 2);
    let flat = on_pool.flat_map(|value| Future::ready(*value));
    let computed = future_on(&*pool, c"computed", || Ok(7));
    let joined = join_futures(&[flat.clone(), computed.clone()], JoinOptions::default());
    let detached = computed.detach(&pool);
    run.watch("joined", &joined.ready_event());
    run.watch("detached", &detached.ready_event());
    let token = run.token("a future's waiter");
    flat.on_ready(move |_result| {
        token.called();
        fault::callback(Site::Waiter.name());
    });
    // A promise that is set once.
    assert!(promise.set(Ok(20)).is_ok());
    run.wait("flat", &flat.ready_event());
    if let Some(value) = flat.get() {
        assert_eq!(*value, 42);
    }
    Ok(())
}

pub(super) fn spawned(run: &Arc<Run>) -> Result<(), Error> {
    let pool: Arc<dyn Executor> = Arc::new(new_pool(2)?);
    let gate = Promise::<i32>::new(c"gate");
    let (source, inner) = (gate.future(), Arc::clone(&pool));
    let result = try_spawn(Arc::clone(&pool), c"async", async move {
        let first = *(&future_on(&*inner, c"inner", || Ok(1))).await?;
        let second = *(&source).await?;
        Ok(first + second)
    });
    assert!(gate.set(Ok(1)).is_ok());
    if run.wait("spawned", &result.ready_event()) {
        assert_eq!(result.get(), Some(&2));
    }
    Ok(())
}

pub(super) fn watchdog(_run: &Arc<Run>) -> Result<(), Error> {
    let told = Arc::new(EventPromise::new(c"told"));
    let teller = Arc::clone(&told);
    let options = WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Report,
        sink: Some(Box::new(move |_report| _ = teller.set_ready())),
    };
    let stuck = EventPromise::new(c"stuck");
    let watchdog = Watchdog::start(options)?;
    // A sink that panicked is not called again for the same event; another event is news.
    let event = told.event();
    while event.wait_for(Duration::from_millis(50)).is_err() {
        if fault::seen().failed > 0 {
            break;
        }
    }
    stuck.set_ready();
    drop(watchdog);
    Ok(())
}
