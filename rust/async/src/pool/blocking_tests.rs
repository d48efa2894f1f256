//! Tasks that wait for tasks of their own pool, many and deep, and pools that get no further thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use super::threads;
use super::*;
use crate::LIMIT;
use crate::event::Event;
use crate::event::{EventPromise, when_all};
use crate::services::semaphore;
use crate::task::{AsyncWorkRunner, census};
use purlin_base::status::Error;
use purlin_base::status::{StatusCode, StatusOr};

/// Calls `f` on a thread of its own; a failure, instead of a hang, if it does not return.
fn must_end(f: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        f();
        done.send(()).unwrap();
    });
    ended.recv_timeout(LIMIT).expect("hangs, or has panicked above");
}

fn pool(thread_count: usize) -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count, name: "test".to_owned() }).unwrap()
}

/// A pool that gets as many threads as said, and then none.
pub(super) fn pool_of_at_most(threads: usize, thread_count: usize) -> StatusOr<ThreadPool> {
    let left = AtomicUsize::new(threads);
    let system = threads::of_the_system();
    let starter: threads::Starter = Box::new(move |name, work| {
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => system(name, work),
            Err(_) => Err(std::io::ErrorKind::WouldBlock.into()),
        }
    });
    ThreadPool::with_starter(&ThreadPoolOptions { thread_count, name: "few".to_owned() }, starter)
}

/// A task that schedules the next and waits for it, `depth` times; returns the depth that it reached.
fn descend(pool: &ThreadPool, depth: usize) -> Result<usize, Error> {
    if depth == 0 {
        return Ok(0);
    }
    let (answer, inner) = (Arc::new(std::sync::Mutex::new(Ok(0))), pool.clone());
    let (promise, told) = (EventPromise::new(c"deeper"), Arc::clone(&answer));
    let event = promise.event();
    pool.schedule(c"descends", move || {
        *told.lock().unwrap() = descend(&inner, depth - 1);
        promise.set_ready();
    })?;
    event.wait()?;
    let below = answer.lock().unwrap().clone();
    below.map(|below| below + 1)
}

#[test]
fn schedule_and_wait_may_be_a_thousand_deep_on_one_thread() {
    must_end(|| assert_eq!(descend(&pool(1), 1000), Ok(1000)));
}

/// `count` tasks that wait for the last one that is scheduled; what their waits say.
fn waits_for_the_last(pool: &ThreadPool, count: usize) -> Vec<Result<(), Error>> {
    let opened = EventPromise::new(c"opened by the last");
    let (send, answers) = mpsc::channel();
    for _ in 0..count {
        let (event, send) = (opened.event(), send.clone());
        pool.schedule(c"waits", move || send.send(event.wait()).unwrap()).unwrap();
    }
    pool.schedule(c"opens", move || _ = opened.set_ready()).unwrap();
    answers.iter().take(count).collect()
}

#[test]
fn many_tasks_may_wait_for_one_that_is_queued_behind_them() {
    must_end(|| {
        for (threads, count) in [(1, 1), (2, 50), (2, 500), (64, 200)] {
            assert_eq!(waits_for_the_last(&pool(threads), count), vec![Ok(()); count], "{count} on {threads}");
        }
    });
}

#[test]
fn spares_of_a_burst_end_and_few_of_them_rest() {
    must_end(|| {
        let pool = pool(2);
        assert_eq!(waits_for_the_last(&pool, 300), vec![Ok(()); 300]);
        // A superfluous thread ends when it next looks; two may have fallen asleep before they were superfluous.
        let threads = || {
            let text = pool.describe_roles();
            let numbers = text.split(' ').filter_map(|word| word.parse::<usize>().ok());
            numbers.step_by(2).sum::<usize>()
        };
        while threads() > 2 + 8 + 2 {
            std::thread::yield_now();
        }
        assert_eq!(waits_for_the_last(&pool, 300), vec![Ok(()); 300], "their places are taken again");
    });
}

#[test]
fn a_pool_that_gets_no_thread_gives_up_a_wait_and_says_so() {
    must_end(|| {
        let pool = pool_of_at_most(3, 2).unwrap();
        let answers = waits_for_the_last(&pool, 100);
        let errors: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
        assert!(!errors.is_empty(), "three threads are 51 deep at most");
        for error in errors {
            assert_eq!(error.code(), StatusCode::ResourceExhausted);
            let text = "pool 'few' cannot go on: all of its 2 threads and 1 spares wait while tasks are queued, and the \
                        system refused another: ";
            assert!(error.message().starts_with(text), "{error}");
            let end = "; the wait for event 'opened by the last', which is still pending, was given up";
            assert!(error.message().ends_with(end), "{error}");
        }
        pool.shutdown().unwrap();
    });
}

#[test]
fn a_recursion_that_gets_no_thread_ends_with_an_error() {
    must_end(|| {
        let pool = pool_of_at_most(2, 1).unwrap();
        let inner = pool.clone();
        let (send, answer) = mpsc::channel();
        pool.schedule(c"first", move || send.send(descend(&inner, 100)).unwrap()).unwrap();
        assert_eq!(answer.recv().unwrap().unwrap_err().code(), StatusCode::ResourceExhausted);
    });
}

/// The loops' own waits guard the body on their stacks: they run what is queued, and only the tasks' waits are given
/// up.
#[test]
fn loops_and_joins_of_a_pool_that_gets_no_thread_return_when_their_calls_have() {
    must_end(|| {
        let pool = pool_of_at_most(1, 1).unwrap();
        let (inner, opened) = (pool.clone(), EventPromise::new(c"opened by the last"));
        let (event, (send, answers)) = (opened.event(), mpsc::channel());
        for _ in 0..40 {
            let (inner, event, send) = (inner.clone(), event.clone(), send.clone());
            let task = move || {
                let calls = AtomicUsize::new(0);
                let looped = inner.parallel_for(2, 1, &|_| {
                    let waited = event.wait();
                    calls.fetch_add(1, Ordering::Relaxed);
                    waited
                });
                let (a, b) = inner.join(|| event.wait(), || event.wait());
                send.send((calls.load(Ordering::Relaxed), [looped, a, b])).unwrap();
            };
            pool.schedule(c"loops", task).unwrap();
        }
        pool.schedule(c"opens", move || _ = opened.set_ready()).unwrap();
        for (calls, waits) in answers.iter().take(40) {
            assert_eq!(calls, 2);
            for error in waits.into_iter().filter_map(Result::err) {
                assert_eq!(error.code(), StatusCode::ResourceExhausted, "{error}");
            }
        }
    });
}

/// Without a thread for it, the second task runs on top of the first, which has the unit that the second waits for.
#[test]
fn who_stands_on_top_of_what_it_waits_for_is_given_up() {
    must_end(|| {
        let pool = pool_of_at_most(1, 1).unwrap();
        let units = semaphore::Semaphore::new(c"units", 1);
        let (both, inside) = (Arc::new(Barrier::new(2)), units.clone());
        let (go, gate) = (EventPromise::new(c"go"), Arc::clone(&both));
        let (gone, (send, answers)) = (go.event(), mpsc::channel());
        let first = send.clone();
        pool.schedule(c"has the unit", move || {
            let permit = inside.acquire(1).unwrap();
            gate.wait();
            gone.wait().unwrap();
            drop(permit);
            first.send(Ok(())).unwrap();
        })
        .unwrap();
        pool.schedule(c"wants the unit", move || {
            // From elsewhere, as far as the pool knows.
            std::thread::spawn(move || go.set_ready());
            send.send(units.acquire(1).map(drop)).unwrap();
        })
        .unwrap();
        both.wait();
        let error = answers.recv().unwrap().unwrap_err();
        assert_eq!(error.code(), StatusCode::ResourceExhausted);
        assert!(error.message().starts_with("pool 'few' cannot go on: "), "{error}");
        assert_eq!(answers.recv().unwrap(), Ok(()));
    });
}

#[test]
fn a_wait_with_a_timeout_in_a_pool_that_gets_no_thread_ends_by_itself() {
    must_end(|| {
        let pool = pool_of_at_most(1, 1).unwrap();
        let opened = EventPromise::new(c"opened by the last");
        let (event, (send, answer)) = (opened.event(), mpsc::channel());
        pool.schedule(c"waits", move || send.send(event.wait_for(Duration::from_millis(1))).unwrap()).unwrap();
        pool.schedule(c"opens", move || _ = opened.set_ready()).unwrap();
        assert_eq!(answer.recv().unwrap().unwrap_err().code(), StatusCode::DeadlineExceeded);
    });
}

#[test]
fn a_report_names_a_pool_of_which_all_threads_wait_while_tasks_are_queued() {
    must_end(|| {
        let pool = pool_of_at_most(1, 1).unwrap();
        let opened = EventPromise::new(c"opened in the end");
        let event = opened.event();
        // With a timeout, so that the task behind it is not run on top of it.
        pool.schedule(c"waits", move || _ = event.wait_for(LIMIT)).unwrap();
        pool.schedule(c"is queued", || ()).unwrap();
        let text = "running 'waits'; ALL OF ITS THREADS WAIT while tasks are queued";
        let named = |line: &str| line.starts_with("pool 'few'") && line.contains(text);
        while !census::occupations().iter().any(|occupation| named(&occupation.text)) {
            std::thread::yield_now();
        }
        opened.set_ready();
        pool.shutdown().unwrap();
    });
}

/// Waits for what lends memory run 32 deep on top of one another, and the rest stays queued; none of them returns
/// early.
#[test]
fn a_wait_until_which_memory_is_lent_is_not_given_up_and_a_report_says_so() {
    must_end(|| {
        let pool = pool_of_at_most(1, 1).unwrap();
        let (copied, users) = (EventPromise::guarding(c"copied"), EventPromise::new(c"the user's"));
        let (follows, begun) = (EventPromise::new(c"is forwarded later"), Arc::new(AtomicUsize::new(0)));
        let lent = [copied.event(), when_all(&[users.event(), copied.event()])];
        let (send, answers) = mpsc::channel();
        let schedule = |event: Event| {
            let (send, begun) = (send.clone(), Arc::clone(&begun));
            let task = move || {
                begun.fetch_add(1, Ordering::Relaxed);
                send.send(event.wait()).unwrap();
            };
            pool.schedule(c"waits", task).unwrap();
        };
        lent.iter().cycle().take(32).cloned().for_each(schedule);
        // The innermost, for what lends nothing yet; it alone could be given up.
        schedule(follows.event());
        while begun.load(Ordering::Relaxed) < 33 {
            std::thread::yield_now();
        }
        follows.forward(&copied.event());
        lent.iter().cycle().take(87).cloned().for_each(schedule);
        let text = "; IT CANNOT GO ON: 1 threads are in waits that are not given up, because memory may be lent until they \
                    end, and the system refused another: ";
        let named =
            |line: &str| line.starts_with("pool 'few'") && line.contains("queued: 87; IT") && line.contains(text);
        while !census::occupations().iter().any(|occupation| named(&occupation.text)) {
            assert_eq!(answers.try_recv(), Err(mpsc::TryRecvError::Empty), "nothing has happened yet");
            std::thread::yield_now();
        }
        users.set_ready();
        copied.set_ready();
        assert_eq!(answers.iter().take(120).collect::<Vec<_>>(), vec![Ok(()); 120]);
        pool.shutdown().unwrap();
    });
}

impl ThreadPool {
    /// A pool of one thread that gets no other: while a task of it waits, the thread runs further ones.
    pub(crate) fn that_helps() -> Self {
        pool_of_at_most(1, 1).unwrap()
    }
}
