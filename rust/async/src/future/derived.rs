//! Futures made from futures. Each costs one cell and one waiter while the source is pending, and no heap allocation as
//! long as value and closure are small.

use crate::event::{AsyncValue, guarded};
use crate::future::{Future, Promise};
use purlin_base::status::Error;

/// What to do with a closure whose result can no longer be seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unused {
    Skip,
    Call,
}

impl<T: Send + Sync + 'static> Future<T> {
    /// The value of `f`, or this future's error, or a panic of `f` as [`Internal`](purlin_base::StatusCode::Internal).
    /// `f` runs at once if this is ready, else on the thread that completes it. It is **not called** if by then the new
    /// future has no holder and no waiter; see [`map_always`](Self::map_always).
    ///
    /// ```
    /// use purlin::Future;
    ///
    /// assert_eq!(Future::ready(4).map(|number| number * 2).wait(), Ok(&8));
    /// ```
    #[must_use = "a map that is not used may not be computed"]
    #[track_caller]
    pub fn map<U: Send + Sync + 'static>(&self, f: impl FnOnce(&T) -> U + Send + 'static) -> Future<U> {
        self.mapped(Unused::Skip, move |value| Ok(f(value)))
    }

    /// As [`map`](Self::map), and `f` is called even if the result is never looked at.
    #[track_caller]
    pub fn map_always<U: Send + Sync + 'static>(&self, f: impl FnOnce(&T) -> U + Send + 'static) -> Future<U> {
        self.mapped(Unused::Call, move |value| Ok(f(value)))
    }

    /// As [`map`](Self::map), for an `f` that may fail.
    ///
    /// ```
    /// use purlin::{Future, Error, StatusCode};
    ///
    /// let half = |number: &i32| match number % 2 {
    ///     0 => Ok(number / 2),
    ///     _ => Err(Error::invalid_argument("odd")),
    /// };
    /// assert_eq!(Future::ready(8).try_map(half).wait(), Ok(&4));
    /// assert_eq!(Future::ready(7).try_map(half).error().unwrap().code(), StatusCode::InvalidArgument);
    /// ```
    #[must_use = "a map that is not used may not be computed"]
    #[track_caller]
    pub fn try_map<U: Send + Sync + 'static>(
        &self,
        f: impl FnOnce(&T) -> Result<U, Error> + Send + 'static,
    ) -> Future<U> {
        self.mapped(Unused::Skip, f)
    }

    /// `value` when this is ready, or this future's error.
    #[must_use]
    #[track_caller]
    pub fn map_to<U: Send + Sync + 'static>(&self, value: U) -> Future<U> {
        self.mapped(Unused::Skip, move |_| Ok(value))
    }

    #[track_caller]
    fn mapped<U: Send + Sync + 'static>(
        &self,
        unused: Unused,
        f: impl FnOnce(&T) -> Result<U, Error> + Send + 'static,
    ) -> Future<U> {
        if self.is_ready() {
            return Future::from_result(self.wait().and_then(|value| guarded("map", || f(value))));
        }
        let promise = Promise::derived(c"Map");
        promise.0.owes_to(self.0.as_event());
        let mapped = promise.future();
        self.on_ready(move |result| {
            if unused == Unused::Skip && !promise.is_observed() {
                return;
            }
            // No other thread sets it.
            let _ = promise.set(result.map_err(Error::clone).and_then(|value| guarded("map", || f(value))));
        });
        mapped
    }

    /// What the future of `f` becomes, or this future's error, or a panic of `f`. `f` is called as in
    /// [`map`](Self::map).
    ///
    /// ```
    /// use purlin::{Future, Promise};
    ///
    /// let bytes = Promise::new(c"bytes");
    /// let length = bytes.future();
    /// let found = Future::ready("file").flat_map(move |_name| length.clone());
    /// bytes.set(Ok(512)).unwrap();
    /// assert_eq!(found.wait(), Ok(&512));
    /// ```
    #[must_use = "a map that is not used may not be computed"]
    #[track_caller]
    pub fn flat_map<U: Send + Sync + 'static>(&self, f: impl FnOnce(&T) -> Future<U> + Send + 'static) -> Future<U> {
        let call = move |value: &T| guarded("flat_map", || Ok(f(value)));
        if self.is_ready() {
            return self.wait().and_then(call).unwrap_or_else(Future::from_error);
        }
        let promise = Promise::<U>::derived_linked(c"FlatMap");
        promise.0.owes_to(self.0.as_event());
        let mapped = promise.future();
        self.on_ready(move |result| {
            if !promise.is_observed() {
                return;
            }
            match result.map_err(Error::clone).and_then(call) {
                Ok(inner) => promise.forward(&inner),
                // No other thread sets it.
                Err(error) => _ = promise.set(Err(error)),
            }
        });
        mapped
    }

    /// Calls `f` with a reference of its own to this future when that is complete.
    pub(super) fn on_ready_owned(&self, f: impl FnOnce(Self) + Send + 'static) {
        self.0.and_then_owned(move |value: AsyncValue<T>| f(Self(value)));
    }
}

impl<T: Send + Sync + 'static> Future<Future<T>> {
    /// The inner future, as soon as there is one.
    #[must_use]
    #[track_caller]
    pub fn flatten(&self) -> Future<T> {
        self.flat_map(Clone::clone)
    }
}
