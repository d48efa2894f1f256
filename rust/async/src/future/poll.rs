//! Futures of ours in Rust's `async`: `(&future).await` resolves to a reference to the value. The event does the work
//! (`crate::event`).

use std::fmt;
use std::future::{Future as RustFuture, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::event::EventFuture;
use crate::future::Future;
use purlin_base::status::Error;

impl<'a, T: Send + Sync + 'static> IntoFuture for &'a Future<T> {
    type Output = Result<&'a T, Error>;
    type IntoFuture = FutureRef<'a, T>;

    fn into_future(self) -> FutureRef<'a, T> {
        FutureRef { future: self, event: self.ready_event().into_future() }
    }
}

/// A [`Future`] that is being awaited. Dropping it stops nothing but the waiting.
#[must_use = "a future does nothing until it is polled"]
pub struct FutureRef<'a, T: Send + Sync + 'static> {
    future: &'a Future<T>,
    event: EventFuture,
}

impl<T: Send + Sync + 'static> fmt::Debug for FutureRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureRef").field("event", &self.event).finish_non_exhaustive()
    }
}

impl<'a, T: Send + Sync + 'static> RustFuture for FutureRef<'a, T> {
    type Output = Result<&'a T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.event).poll(context).map(|_| self.future.wait())
    }
}
