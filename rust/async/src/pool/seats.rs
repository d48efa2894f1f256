//! Places that are numbered from 0, never move and grow in number: the first ones in one block, the others in blocks
//! that are made when they are needed. A place that exists is found without a lock.

use std::ops::Range;

use purlin_base::sync::OnceLock;

/// Places in a block after the first.
const BLOCK: usize = 64;

pub(super) struct Seats<T> {
    first: Box<[T]>,
    more: Box<[OnceLock<Box<[T]>>]>,
    make: fn() -> T,
}

impl<T> Seats<T> {
    /// `first` places, and room for `most`.
    pub(super) fn new(first: usize, most: usize, make: fn() -> T) -> Self {
        let blocks = most.saturating_sub(first).div_ceil(BLOCK);
        Self { first: (0..first).map(|_| make()).collect(), more: (0..blocks).map(|_| OnceLock::new()).collect(), make }
    }

    /// Makes the place if it is not there. Before its first use.
    pub(super) fn make_room(&self, place: usize) {
        if let Some(place) = place.checked_sub(self.first.len()) {
            self.more[place / BLOCK].get_or_init(|| (0..BLOCK).map(|_| (self.make)()).collect());
        }
    }

    /// A place that is there.
    #[inline]
    pub(super) fn get(&self, place: usize) -> &T {
        match self.first.get(place) {
            Some(found) => found,
            None => self.get_later(place).expect("a place is made before it is used"),
        }
    }

    #[cold]
    fn get_later(&self, place: usize) -> Option<&T> {
        let place = place - self.first.len();
        self.more.get(place / BLOCK)?.get()?.get(place % BLOCK)
    }

    /// The first answer of `look`, which is asked of the places in order.
    #[inline]
    pub(super) fn find_map<R>(&self, places: Range<usize>, look: impl Fn(&T) -> Option<R>) -> Option<R> {
        let len = self.first.len();
        let found = self.first[places.start.min(len)..places.end.min(len)].iter().find_map(&look);
        if found.is_some() || places.end <= len {
            return found;
        }
        (places.start.max(len)..places.end).filter_map(|place| self.get_later(place)).find_map(look)
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn places_are_made_when_they_are_needed_and_stay_where_they_are() {
        let seats = Seats::new(3, 1000, || AtomicUsize::new(0));
        let address = std::ptr::from_ref(seats.get(2));
        for place in [3, 66, 67, 999] {
            seats.make_room(place);
            seats.get(place).store(place, Relaxed);
        }
        assert_eq!(address, std::ptr::from_ref(seats.get(2)));
        let odd = |seat: &AtomicUsize| Some(seat.load(Relaxed)).filter(|place| place % 2 == 1);
        assert_eq!(seats.find_map(0..1000, odd), Some(3));
        assert_eq!(seats.find_map(4..1000, odd), Some(67));
        assert_eq!(seats.find_map(68..1000, odd), Some(999));
        assert_eq!(seats.find_map(68..999, odd), None);
        assert_eq!(seats.find_map(1..3, odd), None);
    }
}
