//! Several futures at once.

use std::fmt;
use std::ops::Index;

use crate::event::{Event, JoinOptions, when_all_with};
use crate::future::{Future, Promise};

/// The values of futures that have all succeeded, by reference and in their order.
pub struct Joined<T: Send + Sync + 'static>(Box<[Future<T>]>);

/// A future of all the values of `futures`, in their order; nothing is copied. It fails if any of them does, as `options`
/// say. Its waiters run on the thread that completes it, under no lock.
#[must_use]
#[track_caller]
pub fn join_futures<T: Send + Sync + 'static>(futures: &[Future<T>], options: JoinOptions) -> Future<Joined<T>> {
    let events: Vec<Event> = futures.iter().map(Future::ready_event).collect();
    let all = when_all_with(&events, options);
    drop(events);
    let joined = Joined(futures.into());
    if all.is_ready() {
        return Future::from_result(all.error().into_result().map(|()| joined));
    }
    let promise = Promise::new(c"JoinFutures");
    promise.0.owes_to(&all);
    let future = promise.future();
    all.on_ready(move |status| {
        // Nobody else sets it.
        let _ = promise.set(status.clone().into_result().map(|()| joined));
    });
    future
}

impl<T: Send + Sync + 'static> Joined<T> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of that index, if there are so many.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.0.get(index).and_then(Future::get)
    }

    /// The values, in the order of the futures.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(Future::get)
    }
}

impl<T: Send + Sync + 'static> Index<usize> for Joined<T> {
    type Output = T;

    /// # Panics
    /// As a slice does.
    fn index(&self, index: usize) -> &T {
        self.0[index].get().expect("the join has succeeded, so every value is there")
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Joined<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Joined({})", self.len())
    }
}
