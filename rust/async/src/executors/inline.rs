//! An executor without threads: a task runs on the thread that gives it.
//!
//! Tasks that give further tasks nest at most `MAX_DEPTH` deep on a thread; beyond that they queue and run, in order,
//! when the outermost one returns. So a chain of a million tasks needs no more stack than one of ten, and a task has
//! always been run when the outermost call of [`execute`](Executor::execute) on its thread returns.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::task::{Executor, Task};
use purlin_base::status::Error;
use purlin_base::sync::per_thread;

/// How deep tasks nest on one thread before they queue.
const MAX_DEPTH: u32 = 32;

// How many tasks this thread is in, and what waits for them to return.
per_thread!(static DEPTH: Cell<u32> = Cell::new(0));
per_thread!(static QUEUE: RefCell<VecDeque<Task>> = RefCell::new(VecDeque::new()));

/// Runs each task at once, on the calling thread. Never refuses one.
///
/// ```
/// use std::sync::mpsc;
///
/// use purlin::{Executor, InlineExecutor, Task};
///
/// let (sender, receiver) = mpsc::channel();
/// InlineExecutor.execute(Task::new(c"here", move || sender.send(std::thread::current().id()).unwrap()))?;
/// assert_eq!(receiver.try_recv(), Ok(std::thread::current().id()));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineExecutor;

impl Executor for InlineExecutor {
    fn execute(&self, task: Task) -> Result<(), Error> {
        let mut given = Some(task);
        let ran = DEPTH.try_with(|depth| {
            let outer = depth.get();
            if outer >= MAX_DEPTH {
                // An ending thread may have no queue any more; then the task runs below, without a bound.
                let _ = QUEUE.try_with(|queue| queue.borrow_mut().extend(given.take()));
                return;
            }
            depth.set(outer + 1);
            run(given.take());
            if outer == 0 {
                // The borrow ends before the task runs.
                while let Ok(Some(task)) = QUEUE.try_with(|queue| queue.borrow_mut().pop_front()) {
                    task.run();
                }
            }
            depth.set(outer);
        });
        // The thread is ending and its counter is gone.
        let _ = ran;
        run(given);
        Ok(())
    }
}

fn run(task: Option<Task>) {
    if let Some(task) = task {
        task.run();
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
