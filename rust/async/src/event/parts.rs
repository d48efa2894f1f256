//! What stands for a join: the events that it still waits for, for code that can order its own work behind them without
//! waiting for the join.
//!
//! A join, or an event that stands in for another one, does nothing besides waiting ([`OwedBy::Others`]). So what comes
//! behind all that it waits for comes behind it. What it waits for is read from its [debts](super::debt), down to
//! events that the caller knows; where one is not known, or the debts change meanwhile, nothing stands for it.

use super::Event;
use super::abi::{FLAG_IGNORES_ERRORS, FLAG_OF_OTHERS, FLAG_PART_FAILED};
use super::debt::{self, Link, Node, Seen};
use std::ptr;

#[cfg(doc)]
use super::raw::OwedBy;

/// How many events are looked at. More are not worth the time: the join is waited for.
const MOST: usize = 256;

/// An event that a join waits for.
#[derive(Debug)]
pub struct Part<T> {
    /// What the caller knows of it.
    pub known: T,
    /// Whether the join succeeds if this one fails.
    pub may_fail: bool,
}

impl Event {
    /// The parts of this join, as `find` knows them by the addresses of their events. When all of them are terminal, so
    /// is the join, in a moment. An address is that of a part as long as `find` runs and finds it, if the answer is
    /// `Some`.
    ///
    /// `None`: the event is no join, is terminal, has a part that `find` does not know, or will fail by one that has
    /// failed.
    pub fn parts<T>(&self, mut find: impl FnMut(usize) -> Option<T>) -> Option<Vec<Part<T>>> {
        let root = self.header()?;
        let seen = Seen::of(root).filter(|seen| seen.flags & FLAG_OF_OTHERS != 0)?;
        let link = Link { address: ptr::from_ref(root).expose_provenance(), is_far: false };
        let mut nodes = vec![Node { link, seen, waiter: None }];
        // By node: whether the event at the top succeeds if this one fails.
        let mut may_fail = vec![false];
        let (mut parts, mut found) = (Vec::new(), Vec::new());
        // Joins that fail the one at the top.
        let mut minded = Vec::new();
        let mut next = 0;
        while let Some(&Node { link, seen, .. }) = nodes.get(next) {
            if let Some(known) = if next > 0 { find(link.address) } else { None } {
                parts.push(Part { known, may_fail: may_fail[next] });
                found.push(next);
            } else {
                let below = debt::links(link.address, seen.debt);
                if seen.flags & FLAG_OF_OTHERS == 0 || below.is_empty() || nodes.len() + below.len() > MOST {
                    return None;
                }
                if !may_fail[next] {
                    minded.push(link);
                }
                let ignores = may_fail[next] || seen.flags & FLAG_IGNORES_ERRORS != 0;
                for link in below {
                    nodes.push(Node { link, seen: debt::look(link)?, waiter: Some(next) });
                    may_fail.push(ignores);
                }
            }
            next += 1;
        }
        // A part that has failed is struck out after its join was marked, so a mark is seen now. The event at the top
        // may be in memory that the slab does not know.
        let is_marked = |link: &Link| {
            let seen = if link.address == ptr::from_ref(root).addr() { Seen::of(root) } else { debt::look(*link) };
            seen.is_none_or(|seen| seen.flags & FLAG_PART_FAILED != 0)
        };
        // SAFETY: the first node is this event, which is alive.
        let stand = found.iter().all(|&part| unsafe { debt::stands(&nodes, part) });
        (stand && !minded.iter().any(is_marked)).then_some(parts)
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use crate::event::{Event, EventPromise, after_all, when_all};
    use purlin_base::status::Error;

    /// The numbers of the parts of `event` among `known`, with whether each may fail.
    fn parts(event: &Event, known: &[Event]) -> Option<Vec<(usize, bool)>> {
        let find = |address| known.iter().position(|event| event.as_raw().addr() == address);
        Some(event.parts(find)?.into_iter().map(|part| (part.known, part.may_fail)).collect())
    }

    fn pending<const N: usize>() -> ([EventPromise; N], [Event; N]) {
        let promises = std::array::from_fn(|_| EventPromise::new(c"part"));
        let events = promises.each_ref().map(EventPromise::event);
        (promises, events)
    }

    #[test]
    fn a_join_stands_for_what_it_still_waits_for() {
        let (promises, events) = pending::<3>();
        let joined = when_all(&events);
        assert_eq!(parts(&joined, &events), Some(vec![(0, false), (1, false), (2, false)]));
        promises[1].set_ready();
        assert_eq!(parts(&joined, &events), Some(vec![(0, false), (2, false)]));
        promises[0].set_ready();
        assert_eq!(parts(&joined, &events), Some(vec![(2, false)]));
        promises[2].set_ready();
        assert_eq!(parts(&joined, &events), None, "it has happened");
    }

    #[test]
    fn joins_of_joins_and_what_stands_in_for_them_are_looked_through() {
        let (promises, events) = pending::<4>();
        let freed = after_all(&events[..2]);
        let stand_in = EventPromise::in_place_of(&freed);
        let all = when_all(&[stand_in.event(), events[2].clone(), Event::ready()]);
        assert_eq!(parts(&all, &events), Some(vec![(2, false), (0, true), (1, true)]));
        // Only of two, in one join, and known as a whole.
        assert_eq!(parts(&when_all(&[all.clone(), events[3].clone()]), &[all, events[3].clone()]).unwrap().len(), 2);
        promises.iter().for_each(|promise| _ = promise.set_ready());
        stand_in.set_ready();
    }

    #[test]
    fn what_is_not_known_or_does_more_than_wait_is_waited_for() {
        let (promises, events) = pending::<2>();
        let joined = when_all(&events);
        assert_eq!(parts(&joined, &events[..1]), None, "the second is not known");
        assert_eq!(parts(&events[0], &events), None, "a promise is no join");
        assert_eq!(parts(&Event::ready(), &events), None);
        let guard = EventPromise::guarding(c"more than waiting");
        let awaited = guard.waits_for_all(&events);
        assert_eq!(parts(&guard.event(), &events), None, "its owner has more to do");
        drop(awaited);
        guard.set_ready();
        promises.iter().for_each(|promise| _ = promise.set_ready());
    }

    #[test]
    fn a_join_that_will_fail_is_waited_for() {
        let (promises, events) = pending::<3>();
        let (all, after) = (when_all(&events), after_all(&events));
        let of_failed = when_all(&[events[0].clone(), Event::from_error(Error::internal("before"))]);
        assert_eq!(parts(&of_failed, &events), None, "one had failed before");
        promises[1].set_error(Error::internal("planned"));
        assert_eq!(parts(&all, &events), None, "one has failed since");
        assert_eq!(parts(&when_all(&[all.clone(), events[0].clone()]), &events), None, "also further down");
        assert_eq!(parts(&after, &events), Some(vec![(0, true), (2, true)]), "errors are ignored");
        let twice = after_all(&[all.clone(), events[0].clone()]);
        assert_eq!(parts(&twice, &events).map(|parts| parts.len()), Some(3), "errors are ignored further up");
        promises.iter().for_each(|promise| _ = promise.set_ready());
        assert!(all.error().is_some());
    }

    #[test]
    fn a_join_that_changes_while_it_is_looked_at_is_waited_for() {
        let (promises, events) = pending::<2>();
        let joined = when_all(&events);
        let mut looked = 0;
        let found = joined.parts(|_| {
            looked += 1;
            promises[0].set_ready();
            Some(())
        });
        assert!(found.is_none() && looked == 2, "the first part was over when the second was found");
        promises[1].set_ready();
    }

    #[test]
    fn many_parts_are_not_worth_the_time() {
        let (promises, events) = pending::<300>();
        assert_eq!(parts(&when_all(&events), &events), None);
        promises.iter().for_each(|promise| _ = promise.set_ready());
    }
}
