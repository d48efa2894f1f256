//! The last event of each stream: new work on a stream is ordered after it.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;

use super::{Event, when_all};
use purlin_base::sync::Mutex;

/// The last event that was recorded for each stream. Any thread may use it. Streams are known by their handles, as in
/// [`DefinitionStream`](super::DefinitionStream). An event stays until another takes its place or its stream is
/// forgotten.
///
/// ```
/// use purlin::{EventPromise, StreamEventMap};
///
/// let (last, kernel) = (StreamEventMap::new(), EventPromise::new(c"kernel"));
/// assert!(last.last(7).is_ready(), "nothing was recorded for this stream");
/// last.record(7, kernel.event());
/// assert_eq!(last.last(7), kernel.event());
/// kernel.set_ready();
/// last.all().wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Default)]
pub struct StreamEventMap(Mutex<BTreeMap<usize, Event>>);

impl StreamEventMap {
    /// No stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `event` is the last of `stream` from now on.
    pub fn record(&self, stream: usize, event: Event) {
        // What was before is dropped here, after the lock: an event that is dropped may run waiters.
        let _before = self.exchange(stream, event);
    }

    /// As [`record`](Self::record). Returns the event that was the last before; [`Event::ready`] if none was.
    #[must_use]
    pub fn exchange(&self, stream: usize, event: Event) -> Event {
        self.0.lock().insert(stream, event).unwrap_or_default()
    }

    /// The last event of `stream`; [`Event::ready`], which allocates nothing, if none was recorded.
    #[must_use]
    pub fn last(&self, stream: usize) -> Event {
        self.0.lock().get(&stream).cloned().unwrap_or_default()
    }

    /// Nothing is known of `stream` any more: for streams that are destroyed.
    pub fn forget(&self, stream: usize) {
        // The lock ends with the statement.
        let _gone = self.0.lock().remove(&stream);
    }

    /// As [`forget`](Self::forget), but only if `event` is still the last of `stream`.
    pub fn forget_if_last(&self, stream: usize, event: &Event) {
        let _gone = {
            let mut events = self.0.lock();
            if events.get(&stream) == Some(event) { events.remove(&stream) } else { None }
        };
    }

    /// An event after the last ones of all streams, which fails as [`when_all`] says; of several, the stream with the
    /// lowest handle counts as the first.
    #[must_use]
    #[track_caller]
    pub fn all(&self) -> Event {
        let events: Vec<_> = self.0.lock().values().cloned().collect();
        when_all(&events)
    }

    /// How many streams are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// True if none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all streams.
    pub fn clear(&self) {
        // As in forget.
        let _events = mem::take(&mut *self.0.lock());
    }
}

impl fmt::Debug for StreamEventMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamEventMap({} streams)", self.len())
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;
    use crate::event::{AsyncValue, EventPromise};
    use purlin_base::status::Error;
    use std::sync::Arc;

    #[test]
    fn the_last_event_of_a_stream_is_what_was_recorded_last() {
        let map = StreamEventMap::new();
        assert!(map.is_empty() && map.last(1) == Event::ready() && map.all().is_ready());
        let (first, second, other) =
            (EventPromise::new(c"first"), EventPromise::new(c"second"), EventPromise::new(c"other"));
        assert_eq!(map.exchange(1, first.event()), Event::ready());
        assert_eq!(map.exchange(1, second.event()), first.event());
        map.record(2, other.event());
        assert_eq!((map.last(1), map.last(2), map.len()), (second.event(), other.event(), 2));
        let all = map.all();
        other.set_error(Error::aborted("x"));
        assert!(!all.is_ready(), "the second is pending");
        second.set_ready();
        assert_eq!(all.error(), Some(Error::aborted("x")));
        map.forget_if_last(2, &second.event());
        assert_eq!(map.len(), 2);
        map.forget_if_last(2, &other.event());
        assert_eq!(map.len(), 1);
        map.forget(3);
        assert_eq!(map.last(2), Event::ready());
        map.clear();
        assert!(map.is_empty());
    }

    #[test]
    fn r3_a_waiter_of_an_event_that_goes_may_use_the_map() {
        let map = Arc::new(StreamEventMap::new());
        let ends: [fn(&StreamEventMap); 3] =
            [|map| map.record(1, Event::ready()), |map| map.forget(1), StreamEventMap::clear];
        for end in ends {
            let value = AsyncValue::<i32>::new_unconstructed(c"given up");
            let inside = Arc::clone(&map);
            let told = EventPromise::new(c"told");
            let event = told.event();
            value.and_then(move |_| {
                inside.record(2, Event::ready());
                told.set_ready();
            });
            map.record(1, value.into_event());
            assert!(!event.is_ready());
            // The map's was the last reference: its waiter runs here.
            end(&map);
            assert!(event.is_ready());
        }
    }
}
