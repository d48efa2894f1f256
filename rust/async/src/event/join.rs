//! Waiting for several events at once. A join costs one allocation at most: its state and a node per event in one
//! block, freed by the last event that arrives.
//!
//! A node does not keep its event alive: it notes the event's error when it arrives, and an event whose last reference
//! is dropped completes first. So a join keeps no value from being given up.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr;
#[cfg(not(purlin_model))]
use std::sync::atomic::AtomicUsize as PlainUsize;

#[cfg(not(purlin_model))]
use super::abi::{DEBT_SEVERAL, FLAG_PART_FAILED};
use super::abi::{EventHeader, Waiter};
#[cfg(not(purlin_model))]
use super::debt;
use super::error_policy::{ErrorPolicy, Failure, JoinOptions, chosen, merge};
use super::raw::OwedBy;
#[cfg(not(purlin_model))]
use super::several::{self, Several};
use super::{Event, EventPromise, EventState};
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::UnsafeCell;
use purlin_base::sync::atomic::AtomicUsize;
use purlin_base::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// As [`when_all_with`] with the default options: after all of `events`, with the error of the lowest index.
///
/// ```
/// use purlin::{Event, Error, when_all};
///
/// when_all(&[Event::ready(), Event::ready()]).wait()?;
/// let error = Error::not_found("second");
/// assert_eq!(when_all(&[Event::ready(), Event::from_error(error.clone())]).wait(), Err(error));
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn when_all(events: &[Event]) -> Event {
    when_all_with(events, JoinOptions::default())
}

/// An event that is ready after all of `events` are terminal, whether they happened or failed.
///
/// ```
/// use purlin::{Event, Error, after_all};
///
/// let over = after_all(&[Event::ready(), Event::from_error(Error::internal("failed"))]);
/// over.wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn after_all(events: &[Event]) -> Event {
    let here = SourceLocation::caller();
    join_events(events, None, || SourceLocation::stated().unwrap_or(here))
}

/// Calls `f` once all of `events` are terminal, whether they happened or failed: at once and without an allocation if
/// they are, else on the thread that completes the last. A panic is reported and swallowed.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use purlin::{EventPromise, run_when_ready};
///
/// let (promise, called) = (EventPromise::new(c"input"), Arc::new(AtomicBool::new(false)));
/// let flag = Arc::clone(&called);
/// run_when_ready(&[promise.event()], move || flag.store(true, Ordering::Relaxed));
/// assert!(!called.load(Ordering::Relaxed));
/// promise.set_ready();
/// assert!(called.load(Ordering::Relaxed));
/// ```
#[track_caller]
pub fn run_when_ready(events: &[Event], f: impl FnOnce() + Send + 'static) {
    let mut pending = events.iter().filter(|event| !event.is_ready());
    match (pending.next(), pending.next()) {
        (None, _) => Event::ready().on_ready(|_| f()),
        (Some(only), None) => only.on_ready(|_| f()),
        _ => after_all(events).on_ready(|_| f()),
    }
}

/// An event that completes after all of `events`, and fails if any of them did, as `options` say
/// ([`ErrorPolicy`] has the contract). For no events, or
/// only ready ones, it is [`Event::ready`], without an allocation. For one event alone, it is that event. For several
/// that are all terminal, it is the failed one that the policy chooses.
///
/// ```
/// use purlin::{ErrorPolicy, EventPromise, JoinOptions, Error, when_all_with};
///
/// let promises = [EventPromise::new(c"first"), EventPromise::new(c"second")];
/// let options = JoinOptions { policy: ErrorPolicy::LastInTime, ..Default::default() };
/// let joined = when_all_with(&[promises[0].event(), promises[1].event()], options);
/// promises[1].set_error(Error::internal("early"));
/// promises[0].set_error(Error::internal("late"));
/// assert_eq!(joined.error().unwrap().message(), "late");
/// ```
#[must_use]
#[track_caller]
pub fn when_all_with(events: &[Event], options: JoinOptions) -> Event {
    let here = SourceLocation::caller();
    join_events(events, Some(options), || SourceLocation::stated().unwrap_or(here))
}

/// [`when_all_with`] `options`, or [`after_all`] without any. `place` is asked for if an event is made: mostly none is,
/// which is quicker than to state a place, so the bridge gives its own.
#[doc(hidden)]
#[must_use]
pub fn join_events(events: &[Event], options: Option<JoinOptions>, place: impl FnOnce() -> SourceLocation) -> Event {
    let Some(options) = options else {
        if events.iter().all(Event::is_ready) {
            return Event::ready();
        }
        return Join::event(events, Rule::Ignore, c"AfterAll", place());
    };
    if let [only] = events {
        return only.clone();
    }
    if events.iter().all(Event::is_ready) {
        if events.iter().all(|event| event.state() == EventState::Ready) {
            return Event::ready();
        }
        let errors: Vec<_> = events.iter().map(Event::error).collect();
        let failures: Vec<_> = numbered(errors.iter().map(Option::as_ref)).collect();
        if let Some(at) = chosen(options.effective_policy(), &failures) {
            return events[failures[at].0].clone();
        }
    }
    let rule = if options.fail_fast { Rule::FailFast } else { Rule::Wait(options.policy) };
    Join::event(events, rule, c"WhenAll", place())
}

/// What an arrival does with its event's error.
#[derive(Clone, Copy)]
enum Rule {
    Ignore,
    FailFast,
    Wait(ErrorPolicy),
}

/// The head of the block; the nodes follow.
#[repr(C)]
struct Join {
    /// Events that have not arrived, plus one for `start` while it attaches.
    missing: AtomicUsize,
    /// Errors so far: numbers them in time.
    failures: AtomicUsize,
    promise: EventPromise,
    rule: Rule,
    count: usize,
    /// In the list, if more than one of the events was pending.
    #[cfg(not(purlin_model))]
    owed: Option<Several>,
    nodes: [Node; 0],
}

/// A waiter on one of the events. `waiter` is the first field, so that its address is the node's.
#[repr(C)]
struct Node {
    waiter: Waiter,
    join: *mut Join,
    /// Written by the arrival, read by the last one.
    error: UnsafeCell<Option<Error>>,
    /// The error's number in time.
    failure: usize,
    /// The debt to the event, until it has arrived; for reports.
    #[cfg(not(purlin_model))]
    owed: PlainUsize,
}

impl Join {
    fn layout(count: usize) -> Layout {
        // Events are in memory, one word each, so a few words for each cannot overflow what addresses can count.
        let nodes = Layout::array::<Node>(count).expect("no slice is that long");
        Layout::new::<Self>().extend(nodes).expect("no slice is that long").0.pad_to_align()
    }

    /// The event of a join that is started here.
    fn event(events: &[Event], rule: Rule, label: &'static CStr, place: SourceLocation) -> Event {
        let ignores_errors = matches!(rule, Rule::Ignore);
        let promise = EventPromise::owed_by(OwedBy::Others { ignores_errors }, label, place);
        let all = promise.event();
        Self::start(events, promise, rule);
        all
    }

    #[expect(clippy::cast_ptr_alignment, reason = "the layout's alignment is that of the type")]
    fn start(events: &[Event], promise: EventPromise, rule: Rule) {
        let layout = Self::layout(events.len());
        // SAFETY: the layout is not empty.
        let join = unsafe { alloc(layout) }.cast::<Self>();
        if join.is_null() {
            handle_alloc_error(layout);
        }
        let missing = AtomicUsize::new(events.len() + 1);
        // SAFETY: new memory of that layout. All nodes are written before the first is attached: a last arrival reads
        // all.
        unsafe {
            join.write(Self {
                missing,
                failures: AtomicUsize::new(0),
                promise,
                rule,
                count: events.len(),
                #[cfg(not(purlin_model))]
                owed: None,
                nodes: [],
            });
            for index in 0..events.len() {
                Self::node(join, index).write(Node {
                    waiter: Waiter { next: ptr::null_mut(), invoke: Node::arrived },
                    join,
                    error: UnsafeCell::new(None),
                    failure: 0,
                    #[cfg(not(purlin_model))]
                    owed: PlainUsize::new(0),
                });
            }
        }
        #[cfg(not(purlin_model))]
        let (mut pending, mut only) = (0, 0);
        for (index, event) in events.iter().enumerate() {
            // SAFETY: `missing` still counts this function, so the join is alive; until the push below succeeds, no
            // other thread knows this node. Raw places only: other nodes may be in use by threads that arrive.
            unsafe {
                let node = Self::node(join, index);
                let header = event.as_raw();
                #[cfg(not(purlin_model))]
                if !event.is_ready() {
                    only = debt::to(header);
                    pending += 1;
                    (*node).owed = PlainUsize::new(only);
                }
                if header.is_null() || !(*header).push(node.cast()) {
                    Node::arrive(node, header);
                }
            }
        }
        // SAFETY: as above, and the events are alive.
        #[cfg(not(purlin_model))]
        unsafe {
            Self::note_debts(join, pending, only);
        }
        // SAFETY: this function's own count.
        unsafe { Self::arrive(join) };
    }

    /// Notes, for reports, which events are missing: `pending` of them when they were attached, one of which is owed
    /// `only`. Only `start` knows yet what they are joined into, so nothing can follow it before this; and as long as
    /// `start` counts, it stays pending, or has failed.
    ///
    /// # Safety
    /// All nodes are attached, `start` counts, and the events are alive.
    #[cfg(not(purlin_model))]
    unsafe fn note_debts(join: *mut Self, pending: usize, only: usize) {
        // SAFETY: the caller's promises.
        unsafe {
            let Some(event) = (*join).promise.0.header() else { return };
            if pending == 1 {
                debt::note(event, only);
            } else if pending > 1 {
                let (waiter, first) = (ptr::from_ref(event).addr(), &raw const (*Self::node(join, 0)).owed);
                let owed = (*join).owed.insert(Several::new(waiter, first, size_of::<Node>(), (*join).count));
                Several::enter(owed);
                debt::note(event, DEBT_SEVERAL);
            }
        }
    }

    /// # Safety
    /// `join` is from `start`, and `index` less than its count.
    unsafe fn node(join: *mut Self, index: usize) -> *mut Node {
        // SAFETY: inside the block, which the nodes follow.
        unsafe { join.byte_add(offset_of!(Self, nodes)).cast::<Node>().add(index) }
    }

    /// # Safety
    /// The caller owns one of the counts in `missing` and gives it up.
    unsafe fn arrive(join: *mut Self) {
        // Release: what this arrival noted of its event happens before the last one reads it.
        // SAFETY: the caller's count keeps the join alive up to here.
        if unsafe { (*join).missing.fetch_sub(1, Release) } != 1 {
            return;
        }
        // SAFETY: no other thread has a count; the load pairs with the releases above. The block is read once and
        // freed.
        let (promise, outcome) = unsafe {
            let _ = (*join).missing.load(Acquire);
            let count = (*join).count;
            #[cfg(not(purlin_model))]
            if let Some(owed) = (*join).owed.as_mut() {
                Several::leave(owed);
            }
            let nodes = std::slice::from_raw_parts_mut(Self::node(join, 0), count);
            let outcome = match (*join).rule {
                Rule::Ignore | Rule::FailFast => Ok(()),
                Rule::Wait(_) if (*join).failures.load(Relaxed) == 0 => Ok(()),
                Rule::Wait(policy) => result_of(policy, nodes),
            };
            ptr::drop_in_place(nodes);
            let Self { promise, .. } = join.read();
            dealloc(join.cast(), Self::layout(count));
            (promise, outcome)
        };
        // No user code runs before this. A join that failed fast was set before.
        promise.set(outcome);
    }
}

impl Node {
    unsafe extern "C" fn arrived(waiter: *mut Waiter, event: *const EventHeader) {
        // SAFETY: `waiter` is the first field of a node whose join counts it, and it arrives once.
        unsafe { Self::arrive(waiter.cast(), event) };
    }

    /// The error that the arrival noted. Only for the join's last arrival, which has acquired the others.
    fn noted(&self) -> Option<&Error> {
        // SAFETY: all nodes have arrived, so no thread writes it any more.
        self.error.with(|error| unsafe { (*error).as_ref() })
    }

    /// # Safety
    /// The node's own arrival; `event` is null or alive and terminal.
    unsafe fn arrive(node: *mut Self, event: *const EventHeader) {
        // SAFETY: the caller's promises; the join is alive until our count is given up, and the node is ours until
        // then.
        unsafe {
            let join = (*node).join;
            let error = event.as_ref().and_then(EventHeader::error);
            // First the mark, for readers of what is still owed.
            #[cfg(not(purlin_model))]
            if error.is_some()
                && !matches!((*join).rule, Rule::Ignore)
                && let Some(all) = (*join).promise.0.header()
            {
                all.flags.fetch_or(FLAG_PART_FAILED, Relaxed);
            }
            #[cfg(not(purlin_model))]
            several::arrived(&(*node).owed);
            if let Some(error) = error {
                match (*join).rule {
                    Rule::Ignore => {}
                    Rule::FailFast => _ = (*join).promise.set_error(error),
                    Rule::Wait(_) => {
                        // Relaxed: only the numbers matter; a thread that reads the node has acquired the arrival.
                        (*node).failure = (*join).failures.fetch_add(1, Relaxed);
                        (*node).error.with_mut(|place| *place = Some(error));
                    }
                }
            }
            Join::arrive(join);
        }
    }
}

/// Those that there are, with their index.
fn numbered<'a>(errors: impl Iterator<Item = Option<&'a Error>>) -> impl Iterator<Item = Failure<'a>> {
    errors.enumerate().filter_map(|(index, error)| Some((index, error?)))
}

/// The result of a join of these nodes, all of which have arrived.
fn result_of(policy: ErrorPolicy, nodes: &[Node]) -> Result<(), Error> {
    let mut failures: Vec<_> = numbered(nodes.iter().map(Node::noted)).collect();
    failures.sort_by_key(|(index, _)| nodes[*index].failure);
    merge(policy, nodes.len(), failures.len(), &failures)
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
