//! The report: what was seen, and how it reads.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::cycle::{self, Node};
use super::poison::{Known, Verdicts};
use crate::event::{Debt, Pending, Sleeper, pending, sleepers};
use crate::task::census::occupations;
use crate::user_context::UserContext;
use purlin_base::clock;
use purlin_base::label::Label;
use purlin_base::status::SourceLocation;

/// An event that has been pending for long.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{EventPromise, stalls};
///
/// let (first, second) = (EventPromise::new(c"first"), EventPromise::new(c"second"));
/// let followed = first.event();
/// second.forward(&followed);
/// let report = stalls(Duration::ZERO);
/// let stalled = report.events.iter().find(|event| event.label.as_str() == "first").unwrap();
/// assert_eq!(stalled.location, followed.location());
/// # first.set_ready();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StalledEvent {
    /// What it was named.
    pub label: Label,
    /// Where its promise was made.
    pub location: SourceLocation,
    /// How long it has been pending, at most.
    pub age: Duration,
    /// The number of the user context in which it was made; 0 for none.
    pub context: u64,
    /// What completes it, in words.
    pub owed_by: String,
    /// What waits for it, in words.
    pub waited_for_by: Vec<String>,
    /// What a watchdog that poisons may do about it, in words.
    pub poison: String,
    /// Whether it does anything about it: makes it fail, or what it waits for.
    pub can_be_poisoned: bool,
    pub(super) address: usize,
    pub(super) born_ms: u32,
    /// A thread slept on it when the report was taken.
    pub(super) is_slept_on: bool,
}

/// A thread that sleeps until an event is terminal.
///
/// ```
/// use std::thread;
/// use std::time::Duration;
///
/// use purlin::stall::BlockedThread;
/// use purlin::{EventPromise, stalls};
///
/// let promise = EventPromise::new(c"forgotten");
/// let event = promise.event();
/// let sleeper = thread::Builder::new().name("sleeper".into()).spawn(move || event.wait()).unwrap();
/// let blocked: BlockedThread = loop {
///     let threads = stalls(Duration::ZERO).threads;
///     if let Some(found) = threads.into_iter().find(|thread| thread.name.contains("sleeper")) {
///         break found;
///     }
///     thread::yield_now();
/// };
/// assert!(blocked.waits_for.contains("forgotten"), "{}", blocked.waits_for);
/// promise.set_ready();
/// assert_eq!(sleeper.join().unwrap(), Ok(()));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlockedThread {
    /// Its name, or its number.
    pub name: String,
    /// What it sleeps on, in words.
    pub waits_for: String,
    /// For how long, at most.
    pub age: Duration,
    /// What it runs, innermost first.
    pub tasks: Vec<Label>,
}

/// See [`stalls`](super::stalls). Reads as text for people.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{EventPromise, StallReport, stalls};
///
/// assert!(StallReport::default().is_empty());
/// let promise = EventPromise::new(c"forgotten");
/// let report = stalls(Duration::ZERO);
/// assert!(!report.is_empty());
/// assert!(report.to_string().contains("forgotten"));
/// # drop(promise);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StallReport {
    /// Oldest first.
    pub events: Vec<StalledEvent>,
    /// In no order.
    pub threads: Vec<BlockedThread>,
    /// What the executors, the clients and the programs do, a line each.
    pub executors: Vec<String>,
    /// Each cycle of waits: a sentence.
    pub cycles: Vec<String>,
    /// Of each cycle, the wait that may be ended: the event's address, its age, and the number of the task that waits.
    pub(super) waits_in_cycles: Vec<Option<(usize, Duration, usize)>>,
}

/// Names for nodes.
struct Names<'a> {
    events: &'a Known<'a>,
    sleepers: &'a [Sleeper],
    verdicts: Verdicts<'a>,
    /// What follows an event.
    followers: BTreeMap<usize, Vec<usize>>,
}

pub(super) fn take(older_than: Duration) -> StallReport {
    let all = pending(Duration::ZERO);
    let (sleepers, occupations) = (sleepers(), occupations());
    let now_ms = clock::now_ms();
    let events: Known<'_> = all.iter().map(|event| (event.address, event)).collect();
    let names =
        Names { verdicts: Verdicts::new(&events), events: &events, sleepers: &sleepers, followers: followers(&all) };
    let graph = cycle::graph(&all, &sleepers, &occupations);
    let cycles = cycle::cycles(&graph);
    let sentence = |cycle: &Vec<(Node, &str)>| {
        let steps: Vec<_> = cycle.iter().map(|(node, words)| format!("{} {words} ", names.of(*node))).collect();
        let first = cycle.first().map(|(node, _)| names.of(*node)).unwrap_or_default();
        steps.concat() + &first
    };
    StallReport {
        events: all.iter().filter(|event| event.age >= older_than).map(|event| names.stalled(event)).collect(),
        threads: sleepers.iter().map(|sleeper| names.blocked(sleeper, now_ms)).collect(),
        executors: occupations.into_iter().map(|occupation| occupation.text).filter(|text| !text.is_empty()).collect(),
        cycles: cycles.iter().map(sentence).collect(),
        waits_in_cycles: cycles.iter().map(|cycle| names.wait_in(cycle)).collect(),
    }
}

fn followers(all: &[Pending]) -> BTreeMap<usize, Vec<usize>> {
    let mut followers = BTreeMap::<usize, Vec<usize>>::new();
    for event in all {
        for &source in event.debt.events() {
            followers.entry(source).or_default().push(event.address);
        }
    }
    followers
}

impl Names<'_> {
    fn of(&self, node: Node) -> String {
        match node {
            Node::Event(address) => self.event(address),
            Node::Task(number) => self.task(number),
        }
    }

    fn event(&self, address: usize) -> String {
        match self.events.get(&address) {
            Some(event) => format!("event '{}' (made at {})", event.label, event.location),
            None => "an event that has completed by now".to_owned(),
        }
    }

    fn task(&self, number: usize) -> String {
        let running = self.sleepers.iter().find_map(|sleeper| {
            let (_, label) = sleeper.tasks.iter().find(|(task, _)| *task == number)?;
            Some(format!("task '{label}' on thread '{}'", sleeper.thread_name()))
        });
        running.unwrap_or_else(|| "a task that is queued or runs".to_owned())
    }

    fn stalled(&self, event: &Pending) -> StalledEvent {
        let owed_by = match &event.debt {
            Debt::Promise => format!("the promise made at {}", event.location),
            Debt::Event(source) => format!("{}, which it follows", self.event(*source)),
            Debt::Task(task) => self.task(*task),
            Debt::Several(sources) if sources.len() == 1 => format!("{}, which it follows", self.event(sources[0])),
            Debt::Several(sources) => {
                let first = sources.first().map(|&source| self.event(source)).unwrap_or_default();
                format!("{first}, and {} others, which it follows", sources.len().saturating_sub(1))
            }
        };
        let sleeping = self.sleepers.iter().filter(|sleeper| sleeper.event == event.address);
        let mut waited_for_by: Vec<_> = sleeping.map(describe).collect();
        let is_slept_on = !waited_for_by.is_empty();
        let followers = self.followers.get(&event.address).into_iter().flatten();
        waited_for_by.extend(followers.map(|&follower| self.event(follower)));
        if event.has_waiters {
            waited_for_by.push("attached waiters".to_owned());
        }
        let (can_be_poisoned, poison) = self.verdicts.of(event, |address| self.event(address));
        let Pending { label, location, age, context, address, born_ms, .. } = *event;
        StalledEvent {
            label,
            location,
            age,
            context,
            owed_by,
            waited_for_by,
            poison,
            can_be_poisoned,
            address,
            born_ms,
            is_slept_on,
        }
    }

    /// The wait of a task for what another task of the cycle owes, of several that for the oldest event: where tasks
    /// wait for what they have begun, that is the one that goes the other way.
    fn wait_in(&self, cycle: &[(Node, &str)]) -> Option<(usize, Duration, usize)> {
        let next = cycle.iter().skip(1).chain(cycle.first());
        let waits = cycle.iter().zip(next).filter_map(|((node, _), (target, _))| match (*node, *target) {
            (Node::Task(task), Node::Event(event)) => {
                let event = self.events.get(&event).filter(|event| matches!(event.debt, Debt::Task(_)))?;
                let may_end = |sleeper: &Sleeper| {
                    sleeper.may_end
                        && sleeper.event == event.address
                        && sleeper.tasks.iter().any(|(own, _)| *own == task)
                };
                self.sleepers.iter().any(may_end).then_some((event.address, event.age, task))
            }
            _ => None,
        });
        waits.max_by_key(|(_, age, _)| *age)
    }

    fn blocked(&self, sleeper: &Sleeper, now_ms: u32) -> BlockedThread {
        BlockedThread {
            name: sleeper.thread_name(),
            waits_for: self.event(sleeper.event),
            age: Duration::from_millis(u64::from(now_ms.saturating_sub(sleeper.since_ms))),
            tasks: sleeper.tasks.iter().map(|(_, label)| *label).collect(),
        }
    }
}

fn describe(sleeper: &Sleeper) -> String {
    match sleeper.tasks.first() {
        Some((_, label)) => format!("thread '{}' in task '{label}'", sleeper.thread_name()),
        None => format!("thread '{}'", sleeper.thread_name()),
    }
}

impl StallReport {
    /// True if nothing is pending for that long and no thread sleeps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.threads.is_empty()
    }
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, threads) = (self.events.len(), self.threads.len());
        writeln!(f, "purlin: {events} pending events, {threads} blocked threads, {} cycles", self.cycles.len())?;
        for cycle in &self.cycles {
            writeln!(f, "CYCLE: {cycle}")?;
        }
        for event in &self.events {
            write!(f, "event '{}' made at {}, pending for {:?}", event.label, event.location, event.age)?;
            if event.context != 0 {
                let text = UserContext::lookup(event.context).map(|context| context.debug_string());
                write!(f, ", context {} ({})", event.context, text.as_deref().unwrap_or("gone"))?;
            }
            writeln!(f, "\n  owed by {}", event.owed_by)?;
            for waiter in &event.waited_for_by {
                writeln!(f, "  waited for by {waiter}")?;
            }
            writeln!(f, "  {}", event.poison)?;
        }
        for BlockedThread { name, waits_for, age, tasks } in &self.threads {
            write!(f, "thread '{name}' has slept for {age:?} on {waits_for}")?;
            let tasks: Vec<_> = tasks.iter().map(|label| format!("'{label}'")).collect();
            if tasks.is_empty() { writeln!(f)? } else { writeln!(f, ", in task {}", tasks.join(" inside "))? }
        }
        self.executors.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
