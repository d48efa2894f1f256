//! The least that makes a pool out of crossbeam's deques: an injector, a deque a worker, stealing, a condition to
//! sleep.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crossbeam_deque::{Injector, Steal, Stealer, Worker};

type Job = Box<dyn FnOnce() + Send>;

struct PoolState {
    injector: Injector<Job>,
    stealers: Vec<Stealer<Job>>,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

thread_local! {
    static LOCAL: OnceCell<Worker<Job>> = const { OnceCell::new() };
}

/// Two workers that live as long as the process.
pub struct DequePool(Arc<PoolState>);

impl DequePool {
    /// Starts the workers.
    pub fn new() -> Self {
        let locals: Vec<Worker<Job>> = (0..2).map(|_| Worker::new_lifo()).collect();
        let shared = Arc::new(PoolState {
            injector: Injector::new(),
            stealers: locals.iter().map(Worker::stealer).collect(),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        });
        for local in locals {
            let shared = shared.clone();
            thread::spawn(move || {
                LOCAL.with(|cell| {
                    let local = cell.get_or_init(|| local);
                    loop {
                        shared.next(local)();
                    }
                });
            });
        }
        Self(shared)
    }
    /// Runs `job` on a worker.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        let job: Job = Box::new(job);
        LOCAL.with(|cell| match cell.get() {
            Some(local) => local.push(job),
            None => self.0.injector.push(job),
        });
        // Pairs with the fence in `next`: either we see the sleeper, or it sees the job.
        fence(Ordering::SeqCst);
        if self.0.sleepers.load(Ordering::Relaxed) > 0 {
            drop(self.0.lock.lock().unwrap());
            self.0.wake.notify_one();
        }
    }
}

impl PoolState {
    fn find(&self, local: &Worker<Job>) -> Option<Job> {
        if let Some(job) = local.pop() {
            return Some(job);
        }
        loop {
            let found = self
                .injector
                .steal_batch_and_pop(local)
                .or_else(|| self.stealers.iter().map(Stealer::steal).collect::<Steal<Job>>());
            match found {
                Steal::Success(job) => return Some(job),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }
    fn next(&self, local: &Worker<Job>) -> Job {
        for _ in 0..20 {
            if let Some(job) = self.find(local) {
                return job;
            }
            thread::yield_now();
        }
        let mut guard = self.lock.lock().unwrap();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        loop {
            fence(Ordering::SeqCst);
            if let Some(job) = self.find(local) {
                self.sleepers.fetch_sub(1, Ordering::Relaxed);
                return job;
            }
            guard = self.wake.wait(guard).unwrap();
        }
    }
}
