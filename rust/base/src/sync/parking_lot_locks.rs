//! Locks of parking_lot, which are compiled with us and so seen by ThreadSanitizer.

pub(super) type MutexGuard<'a, T> = parking_lot::MutexGuard<'a, T>;

#[derive(Debug, Default)]
pub(super) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
