//! A value that will be there once: an [`Event`] with a payload, in one cell.
//!
//! States are the event's: pending, then ready (there is a value, for ever) or error. Every holder of an [`AsyncValue`]
//! may set it; the first wins, later ones get their value back. If the last reference is dropped while there are
//! waiters, they get an error. To complete it when its *maker* is dropped, use a [`Promise`](crate::future::Promise).
//!
//! A value is in the cell itself, or the cell is indirect: it follows another [`AsyncValue`] or shares an [`Arc`], and
//! costs no copy. Chains of indirect cells collapse: each points at the value and holds the cell that has it, so
//! dropping a long chain needs no stack.
//!
//! Closures run as waiters do (`waiters.rs`): under no lock, on the thread that completes the value, or at once if it
//! is complete. A panic in one becomes the error of what it was to compute.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::abi::{
    DEBT_TASK, EventHeader, FLAG_CONSTRUCTED, FLAG_INDIRECT, FLAG_KEEP_ON_ERROR, FLAG_POISONABLE, FLAG_SUBMITTING,
    FLAG_UNCALLED,
};
use super::{Event, debt, raw, typed};
use purlin_base::label::Label;
use purlin_base::panics::answered;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::atomic::AtomicU16;
use purlin_base::sync::atomic::Ordering::{AcqRel, Relaxed};

/// A reference to a value that is there, will be there, or has failed. One word; cheap to clone.
///
/// ```
/// use purlin::AsyncValue;
///
/// let value = AsyncValue::<u32>::new_unconstructed(c"rows");
/// let cells = value.map(|rows| rows * 3);
/// assert!(!cells.is_ready());
/// value.emplace(4).unwrap();
/// assert_eq!(cells.get(), Some(&12));
/// ```
pub struct AsyncValue<T: Send + Sync + 'static> {
    /// Never [`Event::ready`], and of the value's type.
    event: Event,
    value: PhantomData<Arc<T>>,
}

/// The field's name for [`AsyncValue`].
///
/// ```
/// use purlin::{AsyncValueRef, Error};
///
/// let there = AsyncValueRef::new_available(7);
/// let failed = AsyncValueRef::<i32>::new_error(Error::not_found("no value"));
/// assert_eq!((there.get(), failed.get()), (Some(&7), None));
/// ```
pub type AsyncValueRef<T> = AsyncValue<T>;

/// The payload of an indirect cell.
#[repr(C)]
struct Indirect<T> {
    value: *const T,
    owner: Owner<T>,
}

/// What keeps the value of an indirect cell in its place.
enum Owner<T> {
    /// A ready cell that has the value inline.
    Cell(Event),
    Shared(Arc<T>),
}

// SAFETY: a shared reference to a T with a share in its owner.
unsafe impl<T: Send + Sync> Send for Indirect<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Indirect<T> {}

impl<T: Send + Sync + 'static> AsyncValue<T> {
    /// Pending, with room for a value.
    #[must_use]
    #[track_caller]
    pub fn new_unconstructed(label: impl Into<Label>) -> Self {
        Self::inline(label.into(), SourceLocation::caller(), FLAG_POISONABLE)
    }

    /// As [`new_unconstructed`](Self::new_unconstructed), for a value that no promise of the user's owes.
    #[must_use]
    #[track_caller]
    pub(crate) fn derived(label: impl Into<Label>) -> Self {
        Self::inline(label.into(), SourceLocation::caller(), 0)
    }

    /// Pending, with a value that [`publish`](Self::publish) makes readable and an error destroys.
    ///
    /// ```
    /// use purlin::AsyncValue;
    ///
    /// let value = AsyncValue::new_constructed(c"table", vec![1, 2]);
    /// assert_eq!(value.get(), None);
    /// assert!(value.publish());
    /// assert_eq!(value.get(), Some(&vec![1, 2]));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new_constructed(label: impl Into<Label>, value: T) -> Self {
        Self::inline_constructed(label.into(), SourceLocation::caller(), FLAG_POISONABLE, value)
    }

    /// As [`new_constructed`](Self::new_constructed), with a value that is readable from now on, whatever happens:
    /// through [`constructed`](Self::constructed) while it is pending, and beside the error if it fails.
    #[must_use]
    #[track_caller]
    pub fn new_kept_on_error(label: impl Into<Label>, value: T) -> Self {
        Self::inline_constructed(label.into(), SourceLocation::caller(), FLAG_POISONABLE | FLAG_KEEP_ON_ERROR, value)
    }

    /// Ready.
    #[must_use]
    #[track_caller]
    pub fn new_available(value: T) -> Self {
        let this = Self::inline_constructed(Label::default(), SourceLocation::caller(), 0, value);
        // SAFETY: the event is ours.
        unsafe { raw::set_ready(this.event.as_raw()) };
        this
    }

    /// Failed.
    #[must_use]
    #[track_caller]
    pub fn new_error(error: Error) -> Self {
        // An indirect cell, because it is small whatever T is.
        let this = Self::indirect(Label::default());
        this.set_error(error);
        this
    }

    /// Pending; made to follow another value by [`forward`](Self::forward).
    #[must_use]
    #[track_caller]
    pub fn indirect(label: impl Into<Label>) -> Self {
        let place = SourceLocation::caller();
        Self::of(typed::new::<Indirect<T>, T>(label.into(), place, FLAG_POISONABLE | FLAG_INDIRECT))
    }

    /// As [`indirect`](Self::indirect), for a value that no promise of the user's owes.
    #[must_use]
    #[track_caller]
    pub(crate) fn derived_indirect(label: impl Into<Label>) -> Self {
        let place = SourceLocation::caller();
        Self::of(typed::new::<Indirect<T>, T>(label.into(), place, FLAG_INDIRECT))
    }

    /// Ready, sharing `value`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use purlin::AsyncValue;
    ///
    /// let text = Arc::new("shared".to_owned());
    /// let value = AsyncValue::from_shared(Arc::clone(&text));
    /// assert!(std::ptr::eq(value.get().unwrap(), &*text), "no copy was made");
    /// ```
    #[must_use]
    #[track_caller]
    pub fn from_shared(value: Arc<T>) -> Self {
        let this = Self::indirect(Label::default());
        // No other thread knows it yet, so it cannot be refused.
        let _ = this.point_at(Indirect { value: Arc::as_ptr(&value), owner: Owner::Shared(value) });
        this
    }

    fn inline(label: Label, place: SourceLocation, flags: u16) -> Self {
        Self::of(typed::new::<T, T>(label, place, flags))
    }

    fn inline_constructed(label: Label, place: SourceLocation, flags: u16, value: T) -> Self {
        let this = Self::inline(label, place, flags);
        // SAFETY: an inline cell that no other thread knows yet.
        unsafe { typed::construct(this.event.as_raw(), value) };
        this
    }

    /// `event` is of the type.
    fn of(event: Event) -> Self {
        Self { event, value: PhantomData }
    }

    /// The value behind an event that [`as_event`](Self::as_event) gave. Not public: the holder of the result may set
    /// it, and an event may be a promise's.
    pub(crate) fn from_event(event: Event) -> Result<Self, Event> {
        if typed::is_a::<T>(&event) { Ok(Self::of(event)) } else { Err(event) }
    }

    /// Puts the value there and runs the waiters on this thread.
    ///
    /// # Errors
    /// The value, if it was set before or has been constructed.
    ///
    /// # Examples
    /// ```
    /// use purlin::AsyncValue;
    ///
    /// let value = AsyncValue::new_unconstructed(c"answer");
    /// assert_eq!(value.emplace(42), Ok(()));
    /// assert_eq!(value.emplace(43), Err(43), "the first wins");
    /// assert_eq!(value.wait(), Ok(&42));
    /// ```
    #[track_caller]
    pub fn emplace(&self, value: T) -> Result<(), T> {
        if !self.has(FLAG_INDIRECT) {
            if self.is_constructed_pending() {
                return Err(value);
            }
            // SAFETY: our reference keeps the inline cell alive; it was not constructed when it was made.
            return unsafe { typed::emplace(self.event.as_raw(), value) };
        }
        let cell = Self::new_available(value);
        if self.point_at(cell.place()).is_ok() {
            return Ok(());
        }
        match cell.into_inner() {
            Ok(value) => Err(value),
            Err(_) => unreachable!("the only reference to a cell that has just been made"),
        }
    }

    /// Makes a constructed value readable and runs the waiters on this thread. False, and nothing changes, if it was
    /// set before or there is no value.
    pub fn publish(&self) -> bool {
        // SAFETY: our reference keeps the event alive.
        self.is_constructed_pending() && unsafe { raw::set_ready(self.event.as_raw()) }
    }

    /// Makes it fail and runs the waiters on this thread. False, and nothing changes, if it was set before.
    pub fn set_error(&self, error: Error) -> bool {
        // SAFETY: our reference keeps the cell alive, whose payload is of that type.
        unsafe {
            if self.has(FLAG_INDIRECT) {
                typed::fail::<Indirect<T>>(self.event.as_raw(), error)
            } else {
                typed::fail::<T>(self.event.as_raw(), error)
            }
        }
    }

    /// [`emplace`](Self::emplace) or [`set_error`](Self::set_error).
    ///
    /// # Errors
    /// The result, if it was set before.
    #[track_caller]
    pub fn set(&self, result: Result<T, Error>) -> Result<(), Result<T, Error>> {
        match result {
            Ok(value) => self.emplace(value).map_err(Ok),
            Err(error) if self.set_error(error.clone()) => Ok(()),
            Err(error) => Err(Err(error)),
        }
    }

    /// Makes an indirect value follow `other`: ready with the same value, not a copy, or failed with its error, on the
    /// thread that completes it.
    ///
    /// # Errors
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition) if this is not indirect or was set before;
    /// [`InvalidArgument`](purlin_base::StatusCode::InvalidArgument) if `other` is this value. If `other` waits for
    /// this value, [`Internal`](purlin_base::StatusCode::Internal), naming the cycle; this value has then failed with
    /// it.
    #[track_caller]
    pub fn forward(&self, other: &Self) -> Result<(), Error> {
        if !self.has(FLAG_INDIRECT) {
            return Err(Error::failed_precondition("only an indirect AsyncValue can be forwarded"));
        }
        if self.event == other.event {
            return Err(Error::invalid_argument("an AsyncValue cannot be forwarded to itself"));
        }
        if self.event.is_ready() {
            return Err(Error::failed_precondition("an AsyncValue that was set cannot be forwarded"));
        }
        self.follow(other)
    }

    /// As [`forward`](Self::forward), where all that is known to hold but that there is no cycle.
    pub(crate) fn follow(&self, other: &Self) -> Result<(), Error> {
        if !other.event.is_ready() {
            // SAFETY: our references keep both alive.
            let noted = unsafe { debt::follow(self.event.as_raw(), other.event.as_raw()) };
            if let Err(cycle) = noted {
                self.set_error(cycle.clone());
                return Err(cycle);
            }
        }
        let (this, source) = (self.clone(), Source::<T>::of(&other.event));
        other.event.on_ready(move |outcome| match outcome {
            // SAFETY: a waiter runs while its event is alive and terminal.
            Ok(()) => _ = this.point_at(unsafe { source.place() }),
            Err(error) => _ = this.set_error(error.clone()),
        });
        Ok(())
    }

    /// Completes an indirect cell; false if it was set before.
    fn point_at(&self, place: Indirect<T>) -> Result<(), Indirect<T>> {
        debug_assert!(self.has(FLAG_INDIRECT));
        // SAFETY: our reference keeps the indirect cell alive; they are never constructed while pending.
        unsafe { typed::emplace(self.event.as_raw(), place) }
    }

    /// Where the value of a ready cell is.
    fn place(&self) -> Indirect<T> {
        debug_assert!(self.event.is_ready());
        // SAFETY: our reference keeps it alive; callers have seen it ready.
        unsafe { Source::of(&self.event).place() }
    }

    /// Notes, for stall reports, what this waits for; it is new.
    pub(crate) fn owes_to(&self, source: &Event) {
        let (Some(event), false) = (self.event.header(), source.0.is_none()) else { return };
        // SAFETY: our reference keeps it alive, the caller's the source.
        debt::note(event, unsafe { debt::to(source.as_raw()) });
    }

    /// Notes that the task whose node that is completes this, and nothing that it waited for.
    pub(crate) fn owes_to_task<N>(&self, node: *const N) {
        if let Some(event) = self.event.header() {
            debt::note(event, node.addr() | DEBT_TASK);
        }
    }

    /// A task that completes this is about to be given to an executor by this thread.
    pub(crate) fn begin_submission(&self) {
        self.change_flags(|flags| flags.fetch_or(FLAG_SUBMITTING, AcqRel));
    }

    /// The executor has answered. True if the task was dropped uncalled meanwhile, and completing is left to the
    /// caller.
    #[must_use]
    pub(crate) fn end_submission(&self) -> bool {
        self.change_flags(|flags| flags.fetch_and(!FLAG_SUBMITTING, AcqRel)) & FLAG_UNCALLED != 0
    }

    /// The task is being dropped uncalled. True if its submitter will complete this, else the caller must.
    #[must_use]
    pub(crate) fn note_uncalled(&self) -> bool {
        self.change_flags(|flags| flags.fetch_or(FLAG_UNCALLED, AcqRel)) & FLAG_SUBMITTING != 0
    }

    fn change_flags(&self, change: impl FnOnce(&AtomicU16) -> u16) -> u16 {
        self.event.header().map_or(0, |header| change(&header.flags))
    }

    fn flags(&self) -> u16 {
        // Relaxed: what the maker wrote was shared with the reference; what else is there is read after an acquire.
        self.event.header().map_or(0, |header| header.flags.load(Relaxed))
    }

    fn has(&self, flag: u16) -> bool {
        self.flags() & flag != 0
    }

    /// A value is there that [`publish`](Self::publish) may publish. True also for a moment while another thread puts
    /// one there, which is harmless: that thread has won.
    fn is_constructed_pending(&self) -> bool {
        !self.event.is_ready() && self.has(FLAG_CONSTRUCTED)
    }

    /// True once there is a value or an error. Never blocks.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.event.is_ready()
    }

    /// The value, if it is ready; also one that failed, if it was [kept](Self::new_kept_on_error). Never blocks.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        let header = self.event.header()?;
        let readable = typed::is_readable(header) || (header.is_terminal() && self.has(FLAG_KEEP_ON_ERROR));
        // SAFETY: alive; ready, or kept and terminal, so readable by every thread for as long as there is a reference.
        readable.then(|| unsafe { &*Source::of(&self.event).value() })
    }

    /// The value that is [kept](Self::new_kept_on_error) whatever happens, in every state; else as [`get`](Self::get).
    #[must_use]
    pub fn constructed(&self) -> Option<&T> {
        if self.has(FLAG_KEEP_ON_ERROR) {
            // SAFETY: such a value was constructed before it was shared and lives as long as its cell.
            return Some(unsafe { &*Source::of(&self.event).value() });
        }
        self.get()
    }

    /// The error if it has failed.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.event.error()
    }

    /// Blocks until there is a value or an error. In a task, do not wait for what needs a task of the same pool.
    ///
    /// # Errors
    /// The value's error.
    pub fn wait(&self) -> Result<&T, Error> {
        self.event.wait()?;
        Ok(self.get().expect("a value that did not fail is there"))
    }

    /// As [`wait`](Self::wait), for at most `timeout` of the monotonic clock.
    ///
    /// # Errors
    /// The value's error, or [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded); the value stays pending.
    pub fn wait_for(&self, timeout: Duration) -> Result<&T, Error> {
        self.event.wait_for(timeout)?;
        Ok(self.get().expect("a value that did not fail is there"))
    }

    /// Calls `f` once with the value or the error: on the thread that completes it, or inside this call if it is
    /// complete. It borrows that thread, so it must not block for long. A panic is reported and swallowed.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// use purlin::AsyncValue;
    ///
    /// let (sender, receiver) = mpsc::channel();
    /// let value = AsyncValue::new_unconstructed(c"answer");
    /// value.and_then(move |result| sender.send(result.ok().copied()).unwrap());
    /// value.emplace(42).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(Some(42)));
    /// ```
    pub fn and_then(&self, f: impl FnOnce(Result<&T, &Error>) + Send + 'static) {
        let source = Source::<T>::of(&self.event);
        self.event.on_ready(move |outcome| match outcome {
            // SAFETY: a waiter runs while its event is alive, and the value is ready.
            Ok(()) => f(Ok(unsafe { &*source.value() })),
            Err(error) => f(Err(error)),
        });
    }

    /// Calls `f` as [`and_then`](Self::and_then) does, with a reference of its own to the complete value.
    pub(crate) fn and_then_owned(&self, f: impl FnOnce(Self) + Send + 'static) {
        let source = Source::<T>::of(&self.event);
        // SAFETY: a waiter runs while its event is alive.
        self.event.on_ready(move |_| f(Self::of(unsafe { source.event() })));
    }

    /// The value of `f`, or this value's error, or a panic of `f` as [`Internal`](purlin_base::StatusCode::Internal).
    /// `f` runs as in [`and_then`](Self::and_then).
    #[must_use]
    #[track_caller]
    pub fn map<U: Send + Sync + 'static>(&self, f: impl FnOnce(&T) -> U + Send + 'static) -> AsyncValue<U> {
        self.try_map(move |value| Ok(f(value)))
    }

    /// As [`map`](Self::map), for an `f` that may fail.
    ///
    /// ```
    /// use purlin::{AsyncValue, Error};
    ///
    /// let text = AsyncValue::new_available("12 rows");
    /// let parse = |text: &&str| text.parse::<u32>().map_err(|error| Error::invalid_argument(error.to_string()));
    /// assert_eq!(text.try_map(parse).error().unwrap().message(), "invalid digit found in string");
    /// ```
    #[must_use]
    #[track_caller]
    pub fn try_map<U: Send + Sync + 'static>(
        &self,
        f: impl FnOnce(&T) -> Result<U, Error> + Send + 'static,
    ) -> AsyncValue<U> {
        if self.is_ready() {
            return match self.wait().and_then(|value| guarded("map", || f(value))) {
                Ok(value) => AsyncValue::new_available(value),
                Err(error) => AsyncValue::new_error(error),
            };
        }
        let mapped = AsyncValue::derived(c"Map");
        mapped.owes_to(&self.event);
        let target = mapped.clone();
        self.and_then(move |result| {
            let _ = target.set(result.map_err(Error::clone).and_then(|value| guarded("map", || f(value))));
        });
        mapped
    }

    /// What the value of `f` becomes, or this one's error, or a panic of `f`.
    ///
    /// ```
    /// use purlin::AsyncValue;
    ///
    /// let size = AsyncValue::new_available(3);
    /// let row = size.flat_map(|size| AsyncValue::new_available(vec![0; *size]));
    /// assert_eq!(row.get(), Some(&vec![0, 0, 0]));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn flat_map<U: Send + Sync + 'static>(
        &self,
        f: impl FnOnce(&T) -> AsyncValue<U> + Send + 'static,
    ) -> AsyncValue<U> {
        if self.is_ready() {
            return match self.wait().and_then(|value| guarded("flat_map", || Ok(f(value)))) {
                Ok(inner) => inner,
                Err(error) => AsyncValue::new_error(error),
            };
        }
        let mapped = AsyncValue::derived_indirect(c"FlatMap");
        mapped.owes_to(&self.event);
        let target = mapped.clone();
        self.and_then(move |result| {
            match result.map_err(Error::clone).and_then(|value| guarded("flat_map", || Ok(f(value)))) {
                Ok(inner) if inner.event == target.event => {
                    target.set_error(Error::internal("flat_map was answered with its own result"));
                }
                // A cycle has failed the target.
                Ok(inner) => _ = target.follow(&inner),
                Err(error) => _ = target.set_error(error),
            }
        });
        mapped
    }

    /// The value's event: ready when it is. It keeps the value alive but cannot set it.
    #[must_use]
    pub fn as_event(&self) -> &Event {
        &self.event
    }

    /// The value's event, with this reference.
    #[must_use]
    pub fn into_event(self) -> Event {
        self.event
    }

    /// Completes it with an error that names it, unless it is complete: the owner that was to set it is being dropped.
    pub(crate) fn abandon(&self) {
        // SAFETY: our reference keeps it alive.
        unsafe { raw::abandon(self.event.as_raw()) };
    }

    /// True if there is another reference or a waiter.
    pub(crate) fn is_observed(&self) -> bool {
        !self.is_unique() || self.event.has_waiters()
    }

    /// True if this is the only reference.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.event.ref_count() == 1
    }

    /// Takes the value out of the only reference.
    ///
    /// # Errors
    /// Returns the reference itself, if there are others, if the value is not ready, or if the value is elsewhere
    /// (indirect).
    ///
    /// # Examples
    /// ```
    /// use purlin::AsyncValue;
    ///
    /// let value = AsyncValue::new_available("text".to_owned());
    /// let other = value.clone();
    /// let value = value.into_inner().unwrap_err();
    /// drop(other);
    /// assert_eq!(value.into_inner().unwrap(), "text");
    /// ```
    pub fn into_inner(self) -> Result<T, Self> {
        let ready = self.event.header().is_some_and(typed::is_readable);
        if !ready || !self.is_unique() || self.has(FLAG_INDIRECT) {
            return Err(self);
        }
        // SAFETY: the only reference to an inline cell whose value is there.
        Ok(unsafe { typed::take(self.event.as_raw()) })
    }
}

/// A cell that is kept alive elsewhere: what closures hold of the value that they wait for, so that waiting does not
/// keep a value alive which can no longer be set.
struct Source<T>(*mut EventHeader, PhantomData<fn() -> T>);

// SAFETY: only an address; its users promise that the cell is alive.
unsafe impl<T> Send for Source<T> {}

impl<T: Send + Sync + 'static> Source<T> {
    fn of(event: &Event) -> Self {
        Self(event.as_raw(), PhantomData)
    }

    /// # Safety
    /// The cell is alive.
    unsafe fn event(&self) -> Event {
        // SAFETY: the caller's promise.
        unsafe { Event::from_borrowed_raw(self.0) }
    }

    /// # Safety
    /// The cell is alive, and its value is readable.
    unsafe fn value(&self) -> *const T {
        // SAFETY: the caller's promises; the flag says which payload it is.
        unsafe {
            if (*self.0).flags.load(Relaxed) & FLAG_INDIRECT == 0 {
                typed::payload::<T>(self.0)
            } else {
                (*typed::payload::<Indirect<T>>(self.0)).value
            }
        }
    }

    /// # Safety
    /// As [`value`](Self::value).
    unsafe fn place(&self) -> Indirect<T> {
        // SAFETY: the caller's promises.
        unsafe {
            if (*self.0).flags.load(Relaxed) & FLAG_INDIRECT == 0 {
                Indirect { value: typed::payload::<T>(self.0), owner: Owner::Cell(self.event()) }
            } else {
                let Indirect { value, owner } = &*typed::payload::<Indirect<T>>(self.0);
                let owner = match owner {
                    Owner::Cell(cell) => Owner::Cell(cell.clone()),
                    Owner::Shared(shared) => Owner::Shared(Arc::clone(shared)),
                };
                Indirect { value: *value, owner }
            }
        }
    }
}

/// Calls `f`; a panic becomes an error that says what panicked.
pub(crate) fn guarded<R>(what: &str, f: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    let called = || {
        purlin_base::fault::callback("closure");
        f()
    };
    answered(|| format!("the closure of {what}"), called)
}

impl<T: Send + Sync + 'static> Clone for AsyncValue<T> {
    fn clone(&self) -> Self {
        Self::of(self.event.clone())
    }
}

impl<T: Send + Sync + 'static> From<Arc<T>> for AsyncValue<T> {
    #[track_caller]
    fn from(value: Arc<T>) -> Self {
        Self::from_shared(value)
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for AsyncValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsyncValue({:?}, {:?})", self.event.label(), self.event.state())
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
