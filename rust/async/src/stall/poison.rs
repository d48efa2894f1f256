//! What a watchdog may make fail: only an event that a user's promise owes, and until which no memory is kept.
//!
//! Everything else stands for something that goes on: a copy, a loop on a thread's stack, a thread that ends; or it
//! follows other events, and fails with them. So a watchdog that finds a thread asleep follows the debts of its event
//! to the promises of users, makes these fail, and lets the error flow. An event that a task owes is not poisoned: the
//! task may use what its waiter guards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::report::{StallReport, StalledEvent};
use crate::event::{self, Debt, Event, Pending, pending, slept_on};
use purlin_base::status::{Error, StatusCode};

/// Pending events by address.
pub(super) type Known<'a> = BTreeMap<usize, &'a Pending>;

/// What a chain of debts leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// A promise that may be broken, at this address. Of several, one.
    Poisonable(usize),
    /// An event that may not be poisoned. Of several, one.
    Held(usize),
    /// Itself.
    Cycle,
}

/// What a watchdog does about the events of a report.
pub(super) struct Verdicts<'a> {
    known: &'a Known<'a>,
    protected: BTreeSet<usize>,
    ends: HashMap<usize, End>,
}

/// What memory is kept until, directly or not.
fn protected(known: &Known<'_>) -> BTreeSet<usize> {
    let mut open: Vec<_> = known.values().filter(|event| event.keeps_memory).map(|event| event.address).collect();
    let mut found: BTreeSet<_> = open.iter().copied().collect();
    while let Some(address) = open.pop() {
        let Some(event) = known.get(&address) else { continue };
        open.extend(event.debt.events().iter().copied().filter(|&source| found.insert(source)));
    }
    found
}

impl<'a> Verdicts<'a> {
    pub(super) fn new(known: &'a Known<'a>) -> Self {
        let mut this = Self { known, protected: protected(known), ends: HashMap::new() };
        known.keys().for_each(|&address| this.find_end(address));
        this
    }

    fn may_poison(&self, event: &Pending) -> bool {
        event.is_the_users && event.debt == Debt::Promise && !self.protected.contains(&event.address)
    }

    /// Depth first, without recursion; each event once.
    fn find_end(&mut self, start: usize) {
        let mut path = vec![(start, 0)];
        while let Some((address, next)) = path.last_mut() {
            let (address, Some(event)) = (*address, self.known.get(address)) else {
                // It has completed by now.
                path.pop();
                continue;
            };
            if *next == 0 && self.ends.contains_key(&address) {
                path.pop();
                continue;
            }
            let sources = event.debt.events();
            if let Some(&source) = sources.get(*next) {
                if *next == 0 {
                    // Until it is known: a path that returns here is a cycle.
                    self.ends.insert(address, End::Cycle);
                }
                *next += 1;
                if !self.ends.contains_key(&source) {
                    path.push((source, 0));
                }
                continue;
            }
            let of_sources = || sources.iter().filter_map(|source| self.ends.get(source)).copied();
            let end = match of_sources().find(|end| matches!(end, End::Poisonable(_))) {
                Some(end) => end,
                None if sources.is_empty() && self.may_poison(event) => End::Poisonable(address),
                None if sources.is_empty() => End::Held(address),
                None => of_sources().find(|end| matches!(end, End::Held(_))).unwrap_or(End::Cycle),
            };
            self.ends.insert(address, end);
            path.pop();
        }
    }

    /// Whether a watchdog does anything about `event`, if a thread sleeps on it, and what, or why not. `name` is how
    /// events are named.
    pub(super) fn of(&self, event: &Pending, name: impl Fn(usize) -> String) -> (bool, String) {
        match self.ends.get(&event.address).copied().unwrap_or(End::Cycle) {
            End::Poisonable(root) if root == event.address => (true, "can be poisoned".to_owned()),
            End::Poisonable(root) => (true, format!("can be poisoned through {}", name(root))),
            End::Cycle => (false, "cannot be poisoned: it waits for events that wait for each other".to_owned()),
            End::Held(root) => (false, format!("cannot be poisoned: {}", self.why_held(event, root, name))),
        }
    }

    fn why_held(&self, event: &Pending, root: usize, name: impl Fn(usize) -> String) -> String {
        let which = if root == event.address { "it".to_owned() } else { name(root) };
        match self.known.get(&root) {
            Some(root) if matches!(root.debt, Debt::Task(_)) => {
                format!("{which} is owed by a task, which may still use what its waiters guard")
            }
            Some(root) if root.is_the_users => {
                format!("memory is kept until {which}, which a promise of the user's owes")
            }
            _ => format!("{which} is the library's own, and what it stands for goes on"),
        }
    }
}

/// Makes fail what may: what a thread sleeps on, or what that waits for.
pub(super) fn poison(stalled: &StalledEvent, older_than: Duration) {
    let Some(event) = slept_on(stalled.address) else { return };
    let is_direct = event.is_poisonable();
    let targets = if is_direct { vec![event] } else { event.roots() };
    // Events that have begun to keep memory since the report was taken.
    let all = if targets.is_empty() { Vec::new() } else { pending(Duration::ZERO) };
    let known: Known<'_> = all.iter().map(|event| (event.address, event)).collect();
    let protected = protected(&known);
    for target in targets {
        let address = target.as_raw().addr();
        let Some(&seen) = known.get(&address) else { continue };
        if !protected.contains(&address) && seen.age >= older_than {
            target.poison(reason(stalled, &target, seen.age, is_direct));
        }
    }
}

/// Ends the wait by which a cycle of tasks closes, if it is too old. The event stays pending: its task continues.
pub(super) fn end_wait_in(report: &StallReport, index: usize, older_than: Duration) {
    let (Some(sentence), Some(&Some((event, age, task)))) =
        (report.cycles.get(index), report.waits_in_cycles.get(index))
    else {
        return;
    };
    if age >= older_than {
        let why = format!("a watchdog has ended a wait, which would never have ended: {sentence}");
        event::end_wait(event, task, &Error::deadline_exceeded(why));
    }
}

fn reason(stalled: &StalledEvent, target: &Event, age: Duration, is_direct: bool) -> Error {
    let (label, place) = (target.label(), target.location());
    let mut text = format!("event '{label}' was poisoned by a watchdog: pending for {age:?}, owed by ");
    if is_direct {
        text += &stalled.owed_by;
    } else {
        text += &format!("the promise made at {place}; event '{}' waits for it, and a thread for that", stalled.label);
    }
    Error::with_location(StatusCode::DeadlineExceeded, text, place)
}
