//! Which bytes of an extent are still in use by work that is enqueued, though their memory may have another holder.
//!
//! Core hands memory out anew as soon as all that uses it is enqueued. Work of the next holder comes behind the earlier
//! work by waits between streams, which it finds here. So a program that allocates and frees in step with its GPU needs
//! no more memory than a step, and no thread waits.

use std::collections::BTreeMap;
use std::ops::Range;

use purlin_base::sync::Mutex;
use purlin_device::backend::Access;

/// A place in the order of a stream.
pub(crate) trait Point: Clone {
    /// Whether all before it is over. False may mean that nobody has looked.
    fn is_over(&self) -> bool;

    /// Whether what comes behind this comes behind the other, because both are of one stream.
    fn covers(&self, other: &Self) -> bool;
}

/// See the module.
pub(crate) struct Uses<P>(Mutex<Segments<P>>);

struct Segments<P> {
    /// By the first byte of each. They do not overlap.
    by_begin: BTreeMap<usize, Segment<P>>,
    /// With how many of them those that are over are dropped.
    sweep_at: usize,
}

/// Bytes that are used by the same work.
#[derive(Clone)]
struct Segment<P> {
    end: usize,
    uses: Vec<(Access, P)>,
}

/// How many segments are kept without a look at whether they are over.
const FEW: usize = 64;

impl<P> Default for Uses<P> {
    fn default() -> Self {
        Self(Mutex::new(Segments { by_begin: BTreeMap::new(), sweep_at: FEW }))
    }
}

impl<P: Point> Uses<P> {
    /// Work at `point` uses these bytes, of which there is at least one.
    pub(crate) fn add(&self, bytes: Range<usize>, access: Access, point: &P) {
        let mut segments = self.0.lock();
        let segments = &mut *segments;
        // Most are used again as they were.
        if let Some(same) = segments.by_begin.get_mut(&bytes.start).filter(|segment| segment.end == bytes.end) {
            return same.add(access, point);
        }
        segments.split(bytes.start);
        segments.split(bytes.end);
        let mut at = bytes.start;
        let mut gaps = Vec::new();
        for (&begin, segment) in segments.by_begin.range_mut(bytes.clone()) {
            if at < begin {
                gaps.push(at..begin);
            }
            at = segment.end;
            segment.add(access, point);
        }
        if at < bytes.end {
            gaps.push(at..bytes.end);
        }
        for gap in gaps {
            segments.by_begin.insert(gap.start, Segment { end: gap.end, uses: vec![(access, point.clone())] });
        }
        segments.sweep();
    }

    /// Adds to `points` what an access to these bytes has to wait for.
    pub(crate) fn before(&self, bytes: Range<usize>, access: Access, points: &mut Vec<P>) {
        let segments = self.0.lock();
        // Most are used again as they were.
        if let Some(same) = segments.by_begin.get(&bytes.start).filter(|segment| segment.end >= bytes.end) {
            return same.before(access, points);
        }
        // The last that begins before these bytes may reach into them.
        let first = segments.by_begin.range(..bytes.start).next_back().map_or(bytes.start, |(begin, _)| *begin);
        for (_, segment) in segments.by_begin.range(first..bytes.end).filter(|(_, segment)| segment.end > bytes.start) {
            segment.before(access, points);
        }
    }

    /// All work that is not over.
    pub(crate) fn all(&self) -> Vec<P> {
        let mut points = Vec::new();
        self.before(0..usize::MAX, Access::Write, &mut points);
        points
    }
}

/// Adds a point, unless one of them covers it.
fn wait_for<P: Point>(points: &mut Vec<P>, point: &P) {
    if points.iter().any(|other| other.covers(point)) {
        return;
    }
    points.retain(|other| !point.covers(other));
    points.push(point.clone());
}

impl<P: Point> Segment<P> {
    fn before(&self, access: Access, points: &mut Vec<P>) {
        for (earlier, point) in &self.uses {
            if access.conflicts_with(*earlier) && !point.is_over() {
                wait_for(points, point);
            }
        }
    }

    fn add(&mut self, mut access: Access, point: &P) {
        self.uses.retain(|(earlier, other)| {
            let is_covered = point.covers(other);
            if is_covered && *earlier == Access::Write && !other.is_over() {
                // What waits for the later one has waited for both.
                access = Access::Write;
            }
            !is_covered && !other.is_over()
        });
        self.uses.push((access, point.clone()));
    }
}

impl<P: Point> Segments<P> {
    /// No segment reaches over `at` afterwards.
    fn split(&mut self, at: usize) {
        let Some((_, segment)) = self.by_begin.range_mut(..at).next_back() else { return };
        if segment.end > at {
            let rest = segment.clone();
            segment.end = at;
            self.by_begin.insert(at, rest);
        }
    }

    /// Drops what is over, once in a while.
    fn sweep(&mut self) {
        if self.by_begin.len() < self.sweep_at {
            return;
        }
        self.by_begin.retain(|_, segment| segment.uses.iter().any(|(_, point)| !point.is_over()));
        self.sweep_at = FEW.max(2 * self.by_begin.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A number on a stream, and how far that is.
    #[derive(Clone, Debug)]
    struct At(usize, u32, Rc<[Cell<u32>; 3]>);

    impl PartialEq for At {
        fn eq(&self, other: &Self) -> bool {
            (self.0, self.1) == (other.0, other.1)
        }
    }

    impl Point for At {
        fn is_over(&self) -> bool {
            self.2[self.0].get() >= self.1
        }

        fn covers(&self, other: &Self) -> bool {
            self.0 == other.0 && self.1 >= other.1
        }
    }

    fn before(uses: &Uses<At>, bytes: Range<usize>, access: Access) -> Vec<(usize, u32)> {
        let mut points = Vec::new();
        uses.before(bytes, access, &mut points);
        let mut points: Vec<_> = points.iter().map(|point| (point.0, point.1)).collect();
        points.sort_unstable();
        points
    }

    #[test]
    fn a_writer_waits_for_all_and_a_reader_for_writers() {
        let (uses, over) = (Uses::default(), Rc::default());
        uses.add(0..10, Access::Write, &At(0, 1, Rc::clone(&over)));
        uses.add(5..20, Access::Read, &At(1, 1, Rc::clone(&over)));
        assert_eq!(before(&uses, 7..8, Access::Read), [(0, 1)]);
        assert_eq!(before(&uses, 7..8, Access::Write), [(0, 1), (1, 1)]);
        assert_eq!(before(&uses, 10..30, Access::Read), []);
        assert_eq!(before(&uses, 19..30, Access::Write), [(1, 1)]);
        assert_eq!(before(&uses, 20..30, Access::Write), []);
        over[0].set(1);
        assert_eq!(before(&uses, 0..30, Access::Write), [(1, 1)]);
    }

    #[test]
    fn a_read_behind_a_write_of_its_stream_stands_for_both() {
        let (uses, over) = (Uses::default(), Rc::default());
        uses.add(0..10, Access::Write, &At(0, 1, Rc::clone(&over)));
        uses.add(0..5, Access::Read, &At(0, 2, Rc::clone(&over)));
        assert_eq!(before(&uses, 0..5, Access::Read), [(0, 2)]);
        assert_eq!(before(&uses, 0..10, Access::Read), [(0, 2)], "which covers the other");
        assert_eq!(before(&uses, 5..10, Access::Read), [(0, 1)]);
    }

    #[test]
    fn what_is_over_is_dropped() {
        let (uses, over) = (Uses::default(), Rc::<[Cell<u32>; 3]>::default());
        for number in 0..10_000 {
            let begin = number as usize * 8 % 40_000;
            uses.add(begin..begin + 8, Access::Write, &At(0, number + 1, Rc::clone(&over)));
            over[0].set(number.saturating_sub(20));
        }
        assert!(uses.0.lock().by_begin.len() <= 2 * FEW);
        assert_eq!(uses.all(), [At(0, 10_000, over)]);
    }

    /// Random uses, beside a list of all that has ever been.
    #[test]
    fn waits_are_those_of_a_list_of_all() {
        let mut chance = 0x9e37_79b9_u32;
        let mut next = |bound: usize| {
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (chance >> 8) as usize % bound
        };
        for _ in 0..200 {
            let (uses, over) = (Uses::default(), Rc::<[Cell<u32>; 3]>::default());
            let mut all: Vec<(Range<usize>, Access, At)> = Vec::new();
            for number in 1..=60 {
                let begin = next(100);
                let (bytes, stream) = (begin..begin + 1 + next(30), next(3));
                let access = if next(2) == 0 { Access::Read } else { Access::Write };
                let meets = |other: &Range<usize>| other.start < bytes.end && bytes.start < other.end;
                let pending = all.iter().filter(|(other, _, at)| meets(other) && !at.is_over());
                let found = before(&uses, bytes.clone(), access);
                for (_, earlier, At(stream, number, _)) in pending.clone() {
                    let is_waited_for = found.iter().any(|(other, last)| other == stream && last >= number);
                    assert!(is_waited_for || !access.conflicts_with(*earlier), "{found:?} without {number}");
                }
                // A read stands for the write of its stream that was forgotten for it, even when that is over.
                for &(stream, number) in &found {
                    let writes = all.iter().any(|(other, earlier, at)| {
                        meets(other) && at.0 == stream && at.1 <= number && access.conflicts_with(*earlier)
                    });
                    assert!(writes && pending.clone().any(|(_, _, at)| (at.0, at.1) == (stream, number)));
                }
                let point = At(stream, number, Rc::clone(&over));
                uses.add(bytes.clone(), access, &point);
                all.push((bytes, access, point));
                let over = &over[next(3)];
                over.set(over.get().max(number.saturating_sub(next(40) as u32)));
            }
        }
    }
}
