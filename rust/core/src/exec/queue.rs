//! A queue of tasks that can be closed: after [`Queue::close`] no task can enter, so a drain that finds it empty is over.

use std::collections::VecDeque;

use super::Task;
use crate::sync::Mutex;

/// First in, first out; any thread may push and pop.
pub(super) struct Queue(Mutex<State>);

struct State {
    tasks: VecDeque<Task>,
    closed: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { tasks: VecDeque::new(), closed: false }))
    }

    /// Gives the task back if the queue is closed.
    pub(super) fn push(&self, task: Task) -> Result<(), Task> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(task);
        }
        state.tasks.push_back(task);
        Ok(())
    }

    /// The oldest task.
    pub(super) fn pop(&self) -> Option<Task> {
        self.0.lock().tasks.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().tasks.is_empty()
    }

    pub(super) fn close(&self) {
        self.0.lock().closed = true;
    }
}
