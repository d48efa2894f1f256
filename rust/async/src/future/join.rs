//! Several futures at once.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use crate::event::{Event, JoinOptions, when_all_with};
use crate::future::{Future, Promise};
use purlin_base::sync::Mutex;

/// The values of futures that have all succeeded, by reference and in their order.
///
/// ```
/// use purlin::{Future, JoinOptions, join_futures};
///
/// let parts = [Future::ready(2), Future::ready(3)];
/// let joined = join_futures(&parts, JoinOptions::default());
/// let values = joined.wait()?;
/// assert_eq!((values.len(), values[1], values.get(2)), (2, 3, None));
/// assert_eq!(values.iter().sum::<i32>(), 5);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct Joined<T: Send + Sync + 'static>(Box<[Future<T>]>);

/// A future of all the values of `futures`, in their order; nothing is copied. It fails if any of them does, as
/// `options` say. Its waiters run on the thread that completes it, under no lock. It keeps no pending future alive: one
/// whose last promise was dropped fails it.
///
/// ```
/// use purlin::{Future, JoinOptions, Promise, Error, join_futures};
///
/// let promise = Promise::new(c"second");
/// let joined = join_futures(&[Future::ready(1), promise.future()], JoinOptions::default());
/// assert!(!joined.is_ready());
/// promise.set(Err(Error::data_loss("second is damaged"))).unwrap();
/// assert_eq!(joined.error().unwrap().message(), "second is damaged");
/// ```
#[must_use]
#[track_caller]
pub fn join_futures<T: Send + Sync + 'static>(futures: &[Future<T>], options: JoinOptions) -> Future<Joined<T>> {
    // Each future is taken into its place when it is complete, by a waiter that is older than the join's.
    let places: Arc<Mutex<Vec<Option<Future<T>>>>> = Arc::new(Mutex::new(vec![None; futures.len()]));
    for (index, future) in futures.iter().enumerate().filter(|(_, future)| !future.is_ready()) {
        let places = Arc::clone(&places);
        future.0.and_then_owned(move |own| {
            let before = places.lock()[index].replace(Future(own));
            drop(before);
        });
    }
    let events: Vec<Event> = futures.iter().map(Future::ready_event).collect();
    let all = when_all_with(&events, options);
    drop(events);
    // Those that the join has seen complete before their waiters ran.
    for (index, future) in futures.iter().enumerate().filter(|(_, future)| future.is_ready()) {
        places.lock()[index].get_or_insert_with(|| future.clone());
    }
    let joined = move || {
        let mut places = places.lock();
        let complete =
            places.iter_mut().map(|place| place.take().expect("the join has succeeded, so every place is taken"));
        Joined(complete.collect())
    };
    if all.is_ready() {
        return Future::from_result(all.error().map_or(Ok(()), Err).map(|()| joined()));
    }
    let promise = Promise::derived(c"JoinFutures");
    promise.0.owes_to(&all);
    let future = promise.future();
    all.on_ready(move |outcome| {
        // No other thread sets it.
        let _ = promise.set(outcome.clone().map(|()| joined()));
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
