//! Locks of parking_lot, which are compiled with us and so seen by ThreadSanitizer.

use std::time::Duration;

pub(crate) use parking_lot::MutexGuard;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(&mut guard);
        guard
    }

    /// May return early.
    pub(crate) fn wait_for<'a, T>(&self, mut guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        self.0.wait_for(&mut guard, timeout);
        guard
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
