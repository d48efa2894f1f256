//! Locks without poison: those of std, or, for ThreadSanitizer, ones that it sees (`--cfg purlin_tsan`). What panics
//! inside a call is answered 999 (`boundary`), and the next call goes on.

#[cfg(not(purlin_tsan))]
mod locks {
    use std::sync::PoisonError;

    pub(crate) type Guard<'a, T> = std::sync::MutexGuard<'a, T>;

    #[derive(Default)]
    pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> Guard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[derive(Default)]
    pub(crate) struct Condvar(std::sync::Condvar);

    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, guard: Guard<'a, T>) -> Guard<'a, T> {
            self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

#[cfg(purlin_tsan)]
mod locks {
    pub(crate) type Guard<'a, T> = parking_lot::MutexGuard<'a, T>;

    #[derive(Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(parking_lot::const_mutex(value))
        }

        pub(crate) fn lock(&self) -> Guard<'_, T> {
            self.0.lock()
        }
    }

    #[derive(Default)]
    pub(crate) struct Condvar(parking_lot::Condvar);

    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, mut guard: Guard<'a, T>) -> Guard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

pub(crate) use locks::{Condvar, Guard, Mutex};
