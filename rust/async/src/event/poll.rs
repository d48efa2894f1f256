//! Events in Rust's `async`: `event.await` in any executor, without a thread that blocks.
//!
//! An event has at most one waiter of ours, however many futures await it and however often they are made and dropped:
//! the waiter wakes a [`Hub`], found by the event's address, in which each future has a seat for its waker. A future
//! that is dropped gives its seat back, so no thread calls a waker whose future is gone.
//!
//! A hub enters the table before its waiter is attached and leaves it when the waiter runs, which is before the event's
//! memory can be used again: so an address names one event at a time. Wakers are cloned, dropped and called under no
//! lock.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Event;
use purlin_base::panics::reported;
use purlin_base::status::Error;
use purlin_base::sync::Mutex;

const BUCKETS: usize = 64;

/// Hubs by the address of their event.
type Bucket = Mutex<Vec<(usize, Arc<Hub>)>>;

static TABLE: [Bucket; BUCKETS] = [const { Mutex::new(Vec::new()) }; BUCKETS];

/// The futures that await one event.
#[derive(Default)]
struct Hub(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    wakers: Vec<Option<Waker>>,
    /// Seats that are not taken.
    free: Vec<usize>,
    /// The event has completed: no waker will be called any more.
    closed: bool,
}

/// An event that is being awaited. Resolves to how the event ended. Dropping it stops nothing but the waiting.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::{EventPromise, InlineExecutor, try_spawn};
///
/// let promise = EventPromise::new(c"copied");
/// let copied = promise.event();
/// let length = try_spawn(Arc::new(InlineExecutor), c"measure", async move {
///     copied.await?;
///     Ok(4)
/// });
/// promise.set_ready();
/// assert_eq!(length.wait(), Ok(&4));
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct EventFuture {
    event: Event,
    seat: Option<(Arc<Hub>, usize)>,
}

impl fmt::Debug for EventFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventFuture").field("event", &self.event).finish_non_exhaustive()
    }
}

impl IntoFuture for Event {
    type Output = Result<(), Error>;
    type IntoFuture = EventFuture;

    fn into_future(self) -> EventFuture {
        EventFuture { event: self, seat: None }
    }
}

impl IntoFuture for &Event {
    type Output = Result<(), Error>;
    type IntoFuture = EventFuture;

    fn into_future(self) -> EventFuture {
        self.clone().into_future()
    }
}

impl Future for EventFuture {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.event.is_ready() {
            let waker = context.waker().clone();
            let seated = match &self.seat {
                Some((hub, seat)) => hub.change(*seat, waker),
                None => self.take_seat(waker),
            };
            if seated {
                return Poll::Pending;
            }
        }
        // Hubs close after their event is terminal.
        Poll::Ready(self.event.outcome())
    }
}

impl EventFuture {
    /// False if the event has completed meanwhile.
    fn take_seat(&mut self, waker: Waker) -> bool {
        let (hub, is_new) = hub_of(&self.event);
        if is_new {
            let (address, hub) = (self.event.as_raw().addr(), Arc::clone(&hub));
            self.event.on_ready(move |_| {
                leave_table(address, &hub);
                hub.close();
            });
        }
        let seat = hub.take(waker);
        self.seat = seat.map(|seat| (hub, seat));
        self.seat.is_some()
    }
}

impl Drop for EventFuture {
    fn drop(&mut self) {
        if let Some((hub, seat)) = &self.seat {
            hub.give_back(*seat);
        }
    }
}

fn bucket(address: usize) -> &'static Bucket {
    // As park.rs: cells are 64 bytes apart, and the multiplier spreads the rest.
    let hash = (address >> 6).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    &TABLE[hash >> (usize::BITS - BUCKETS.ilog2())]
}

/// The hub of a pending event, and whether it is a new one, whose waiter the caller must attach.
fn hub_of(event: &Event) -> (Arc<Hub>, bool) {
    let address = event.as_raw().addr();
    let mut hubs = bucket(address).lock();
    if let Some((_, hub)) = hubs.iter().find(|(known, _)| *known == address) {
        return (Arc::clone(hub), false);
    }
    let hub = Arc::<Hub>::default();
    hubs.push((address, Arc::clone(&hub)));
    (hub, true)
}

fn leave_table(address: usize, hub: &Arc<Hub>) {
    bucket(address).lock().retain(|(_, known)| !Arc::ptr_eq(known, hub));
}

impl Hub {
    /// A seat; none, and the waker is dropped, if the event has completed.
    fn take(&self, waker: Waker) -> Option<usize> {
        let mut seats = self.0.lock();
        if seats.closed {
            drop(seats);
            drop(waker);
            return None;
        }
        let seat = seats.free.pop().unwrap_or_else(|| {
            seats.wakers.push(None);
            seats.wakers.len() - 1
        });
        seats.wakers[seat] = Some(waker);
        Some(seat)
    }

    /// False if the event has completed.
    fn change(&self, seat: usize, waker: Waker) -> bool {
        let mut seats = self.0.lock();
        let open = !seats.closed;
        let unused = if open { seats.wakers[seat].replace(waker) } else { Some(waker) };
        drop(seats);
        drop(unused);
        open
    }

    fn give_back(&self, seat: usize) {
        let mut seats = self.0.lock();
        if seats.closed {
            return;
        }
        let unused = seats.wakers[seat].take();
        seats.free.push(seat);
        drop(seats);
        drop(unused);
    }

    /// Wakes all futures, once and for all. One waker that panics does not keep the others asleep.
    fn close(&self) {
        let mut seats = self.0.lock();
        seats.closed = true;
        let wakers = mem::take(&mut seats.wakers);
        drop(seats);
        for waker in wakers.into_iter().flatten() {
            reported(|| "a waker", || waker.wake());
        }
    }
}

#[cfg(test)]
mod tests;
