//! Locks of parking_lot, which are compiled with us and so seen by ThreadSanitizer.

use std::time::Duration;

pub(crate) type MutexGuard<'a, T> = parking_lot::MutexGuard<'a, T>;

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

/// For statics: what is made stays for ever.
pub(crate) struct OnceLock<T: 'static>(Mutex<Option<&'static T>>);

impl<T> OnceLock<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &'static T {
        self.0.lock().get_or_insert_with(|| Box::leak(Box::new(make())))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(&mut guard);
        guard
    }

    /// May return early; the caller looks at its clock again.
    pub(crate) fn wait_for<'a, T>(&self, mut guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        self.0.wait_for(&mut guard, timeout);
        guard
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
