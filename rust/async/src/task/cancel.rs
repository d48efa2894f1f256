//! Asking work to stop: a [`CancelSource`] asks, and any number of [`CancelToken`]s report it.
//!
//! States: live, then cancelled (cancellation was requested, for a reason) or retired (the last source was dropped, so
//! that it can no longer be requested); neither changes again. A child is cancelled with its parent, not the other way
//! round, and is retired once its own sources and its parent are. Retiring drops callbacks uncalled and fails
//! [`CancelToken::event`], so no thread waits for what cannot happen.
//!
//! The thread that cancels runs, itself and under no lock: the event's waiters, then the callbacks in the order in
//! which they were registered, then the same for each child. Chains of children need no stack. A callback that panics
//! is reported and the others run.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

use crate::event::raw::OwedBy;
use crate::event::{Event, EventPromise, EventState};
use purlin_base::label::Label;
use purlin_base::panics::contained;
use purlin_base::status::{Error, SourceLocation, StatusCode};
use purlin_base::sync::{Mutex, MutexGuard, Process};

/// The side that asks. Clones share it; dropping one cancels nothing.
///
/// ```
/// use purlin::{CancelSource, Error};
///
/// let request = CancelSource::new(c"request");
/// let part = CancelSource::child_of(&request.token(), c"part");
/// assert!(request.cancel(Error::cancelled("the user left")));
/// assert_eq!(part.token().reason().unwrap().message(), "the user left");
/// assert!(!part.cancel(None), "it is cancelled already");
/// ```
pub struct CancelSource(Arc<CancelShared>);

/// The side that listens: one word, cheap to clone. The default token is never cancelled.
///
/// ```
/// use purlin::{CancelSource, CancelToken, Error, StatusCode};
///
/// fn sum(values: &[u32], cancel: &CancelToken) -> Result<u32, Error> {
///     values.iter().try_fold(0, |sum, value| cancel.check().map(|()| sum + value))
/// }
///
/// assert_eq!(sum(&[1, 2], &CancelToken::default()), Ok(3));
/// let source = CancelSource::new(c"sum");
/// source.cancel(None);
/// assert_eq!(sum(&[1, 2], &source.token()).unwrap_err().code(), StatusCode::Cancelled);
/// ```
#[derive(Clone, Default)]
pub struct CancelToken(Option<Arc<CancelShared>>);

/// A callback's place in the list of a token; dropping it takes the callback out.
///
/// ```
/// use std::sync::mpsc;
///
/// use purlin::{CancelSource, Error};
///
/// let (source, (sender, receiver)) = (CancelSource::new(c"request"), mpsc::channel());
/// let registration = source.token().on_cancel(move |reason| sender.send(reason.clone()).unwrap());
/// source.cancel(Error::aborted("newer request"));
/// assert_eq!(receiver.try_recv().unwrap().message(), "newer request");
/// assert!(!registration.unregister(), "it was called before");
/// ```
#[derive(Default)]
#[must_use = "the callback is taken out when this is dropped"]
pub struct CancelRegistration(Option<(Arc<CancelShared>, u64)>);

struct CancelShared {
    label: Label,
    /// Happens on cancel, fails on retirement.
    asked: EventPromise,
    /// The event of `asked`, to look at without counting.
    happened: Event,
    state: Mutex<CancelState>,
    /// Set while a child is made, taken when it is dropped.
    parent: Mutex<CancelRegistration>,
}

struct CancelState {
    end: Option<End>,
    sources: usize,
    /// A parent that may still be cancelled.
    has_parent: bool,
    next_id: u64,
    entries: BTreeMap<u64, Entry>,
    /// Where the holders are.
    process: Process,
}

/// How a token ends.
#[derive(Clone)]
enum End {
    Cancelled(Error),
    Retired,
}

enum Entry {
    Call(Box<dyn FnOnce(&Error) + Send>),
    /// Weak: the child holds us.
    Child(Weak<CancelShared>),
}

impl CancelSource {
    /// A source that only its holders cancel.
    #[must_use]
    #[track_caller]
    pub fn new(label: impl Into<Label>) -> Self {
        Self(CancelShared::new(label.into(), false))
    }

    /// A source that is also cancelled when `parent` is, with the same reason; at once if that has happened.
    #[must_use]
    #[track_caller]
    pub fn child_of(parent: &CancelToken, label: impl Into<Label>) -> Self {
        let child = CancelShared::new(label.into(), parent.0.is_some());
        if let Some(parent) = &parent.0 {
            match parent.register(Entry::Child(Arc::downgrade(&child))) {
                Ok(registration) => *child.parent.lock() = registration,
                Err((end, _)) => {
                    child.state().has_parent = false;
                    end_all(&child, &end);
                }
            }
        }
        Self(child)
    }

    /// Another token of this source.
    #[must_use]
    pub fn token(&self) -> CancelToken {
        CancelToken(Some(Arc::clone(&self.0)))
    }

    /// Cancels the tokens and their children, for `reason` (`None` is a
    /// [`Cancelled`](purlin_base::StatusCode::Cancelled) that names the source), and returns when the callbacks have.
    /// False, and nothing changes, if that was done before.
    #[track_caller]
    pub fn cancel(&self, reason: impl Into<Option<Error>>) -> bool {
        let place = SourceLocation::caller();
        let reason = reason.into().unwrap_or_else(|| {
            Error::with_location(StatusCode::Cancelled, format!("'{}' was cancelled", self.0.label), place)
        });
        end_all(&self.0, &End::Cancelled(reason))
    }

    /// See [`CancelToken::is_cancelled`].
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl Clone for CancelSource {
    fn clone(&self) -> Self {
        self.0.state().sources += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for CancelSource {
    fn drop(&mut self) {
        let last = {
            let mut state = self.0.state();
            state.sources -= 1;
            state.sources == 0
        };
        if last {
            end_all(&self.0, &End::Retired);
        }
    }
}

impl CancelToken {
    /// True once a source of this token, or of one of its parents, has cancelled. One load; never blocks.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.is_cancelled())
    }

    /// Why this is cancelled; `None` if it is not.
    #[must_use]
    pub fn reason(&self) -> Option<Error> {
        match self.0.as_ref().and_then(|shared| shared.state().end.clone()) {
            Some(End::Cancelled(reason)) => Some(reason),
            Some(End::Retired) | None => None,
        }
    }

    /// `Ok` while this is not cancelled: for loops that give up between two steps.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { self.reason().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// True if it can never be cancelled: the default token, or one whose sources are gone. Then no callback is needed.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.0.as_ref().is_none_or(|shared| matches!(shared.state().end, Some(End::Retired)))
    }

    /// Happens when the token is cancelled; fails with
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition) when no source is left that could cancel it.
    ///
    /// ```
    /// use purlin::{CancelSource, Error};
    ///
    /// let source = CancelSource::new(c"request");
    /// let cancelled = source.token().event();
    /// assert!(!cancelled.is_ready());
    /// source.cancel(None);
    /// cancelled.wait()?;
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    pub fn event(&self) -> Event {
        match &self.0 {
            Some(shared) => shared.happened.clone(),
            None => Event::from_error(retired(Label::default())),
        }
    }

    /// Calls `callback` with the reason when the token is cancelled: on the thread that cancels, or inside this call if
    /// that has happened. It is dropped uncalled with the registration, or when no source is left that could cancel.
    /// Dropping the registration does not wait for a callback that another thread is in; it may be dropped inside the
    /// callback.
    pub fn on_cancel(&self, callback: impl FnOnce(&Error) + Send + 'static) -> CancelRegistration {
        let Some(shared) = &self.0 else { return CancelRegistration::default() };
        match shared.register(Entry::Call(Box::new(callback))) {
            Ok(registration) => registration,
            Err((end, entry)) => {
                if let Entry::Call(callback) = entry {
                    shared.call(callback, &end);
                }
                CancelRegistration::default()
            }
        }
    }
}

impl CancelRegistration {
    /// Takes the callback out and drops it; false if it was called, is being called, or was dropped before.
    pub fn unregister(mut self) -> bool {
        self.take().is_some()
    }

    fn take(&mut self) -> Option<Entry> {
        let (shared, id) = self.0.take()?;
        shared.state().entries.remove(&id)
    }
}

impl Drop for CancelRegistration {
    fn drop(&mut self) {
        // Dropped here, under no lock; it is a user's closure.
        drop(self.take());
    }
}

impl CancelShared {
    #[track_caller]
    fn new(label: Label, has_parent: bool) -> Arc<Self> {
        let state = CancelState {
            end: None,
            sources: 1,
            has_parent,
            next_id: 0,
            entries: BTreeMap::new(),
            process: Process::this(),
        };
        let asked = EventPromise::owed_by(OwedBy::Service, label, SourceLocation::caller());
        Arc::new(Self {
            label,
            happened: asked.event(),
            asked,
            state: Mutex::new(state),
            parent: Mutex::new(CancelRegistration::default()),
        })
    }

    /// In a child made by `fork`, what was not cancelled never will be: its event has failed with the others that were
    /// pending. The entries are the parent's, and stay where they are.
    fn state(&self) -> MutexGuard<'_, CancelState> {
        let mut state = self.state.lock();
        if !state.process.is_this() {
            state.process = Process::this();
            if state.end.is_none() {
                state.end = Some(End::Retired);
                std::mem::forget(std::mem::take(&mut state.entries));
            }
        }
        state
    }

    fn is_cancelled(&self) -> bool {
        self.happened.state() == EventState::Ready
    }

    /// Adds an entry, or gives it back with how the token has ended.
    fn register(self: &Arc<Self>, entry: Entry) -> Result<CancelRegistration, (End, Entry)> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err((end.clone(), entry));
        }
        let id = state.next_id;
        state.next_id += 1;
        state.entries.insert(id, entry);
        Ok(CancelRegistration(Some((Arc::clone(self), id))))
    }

    /// Moves the state and returns the callbacks to call; `None` if it stays.
    fn close(&self, end: &End) -> Option<BTreeMap<u64, Entry>> {
        let mut state = self.state();
        if state.end.is_some() {
            return None;
        }
        if matches!(end, End::Retired) && (state.sources > 0 || state.has_parent) {
            return None;
        }
        state.end = Some(end.clone());
        Some(std::mem::take(&mut state.entries))
    }

    /// As a waiter, because it may cancel something, whose callbacks do too, and so on: then they take turns, and the
    /// stack stays flat.
    fn call(&self, callback: Box<dyn FnOnce(&Error) + Send>, end: &End) {
        let (label, end) = (self.label, end.clone());
        Event::ready().on_ready(move |_status| {
            contained(
                "cancel callback",
                || label,
                || match end {
                    End::Cancelled(reason) => callback(&reason),
                    End::Retired => drop(callback),
                },
            );
        });
    }
}

/// Ends `root` and, as far as it concerns them, its children; false if `root` had ended or lives on.
fn end_all(root: &Arc<CancelShared>, end: &End) -> bool {
    let Some(entries) = root.close(end) else { return false };
    let mut open = VecDeque::from([(Arc::clone(root), entries)]);
    while let Some((shared, entries)) = open.pop_front() {
        match end {
            End::Cancelled(_) => shared.asked.set_ready(),
            End::Retired => shared.asked.set_error(retired(shared.label)),
        };
        for entry in entries.into_values() {
            match entry {
                Entry::Call(callback) => shared.call(callback, end),
                Entry::Child(child) => {
                    let Some(child) = child.upgrade() else { continue };
                    child.state().has_parent = false;
                    if let Some(entries) = child.close(end) {
                        open.push_back((child, entries));
                    }
                }
            }
        }
    }
    true
}

fn retired(label: Label) -> Error {
    Error::failed_precondition(format!("'{label}' can never be cancelled: no source of it is left"))
}

impl Drop for CancelShared {
    /// Releases the parents one by one: a long chain must not need a long stack.
    fn drop(&mut self) {
        let mut parent = take_parent(&self.parent);
        while let Some(shared) = parent {
            parent = Arc::into_inner(shared).and_then(|last| take_parent(&last.parent));
        }
    }
}

/// Leaves the parent's list, and gives the reference to it.
fn take_parent(parent: &Mutex<CancelRegistration>) -> Option<Arc<CancelShared>> {
    let mut registration = std::mem::take(&mut *parent.lock());
    let shared = registration.0.as_ref().map(|(shared, _)| Arc::clone(shared));
    drop(registration.take());
    shared
}

impl fmt::Debug for CancelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelSource({:?}, cancelled: {})", self.0.label, self.is_cancelled())
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(shared) => write!(f, "CancelToken({:?}, cancelled: {})", shared.label, self.is_cancelled()),
            None => f.write_str("CancelToken(never)"),
        }
    }
}

impl fmt::Debug for CancelRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelRegistration(registered: {})", self.0.is_some())
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
