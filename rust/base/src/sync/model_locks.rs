//! Locks of loom or of shuttle. A wait with a timeout never times out there: models check what completes, not clocks.

use std::time::Duration;

#[cfg(loom)]
use loom::sync;
#[cfg(shuttle)]
use shuttle::sync;

#[allow(unused_imports, reason = "as outside of models")]
pub use std::sync::OnceLock;

/// Models do not fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process;

impl Process {
    pub fn this() -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "as outside of models")]
    pub fn is_this(self) -> bool {
        true
    }

    #[allow(clippy::unused_self, reason = "as outside of models")]
    pub fn number(self) -> u32 {
        0
    }
}

/// Why neither's locks are ever poisoned.
const WHOLE: &str = "a panic ends the model";

pub type MutexGuard<'a, T> = sync::MutexGuard<'a, T>;

#[derive(Debug)]
pub struct Mutex<T>(sync::Mutex<T>);

// loom's has no Default.
impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect(WHOLE)
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().expect(WHOLE)
    }
}

#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    pub fn new() -> Self {
        Self(sync::Condvar::new())
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).expect(WHOLE)
    }

    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, _timeout: Duration) -> MutexGuard<'a, T> {
        self.wait(guard)
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
