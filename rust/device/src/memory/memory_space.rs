//! A kind of memory of one device, and how blocks of it are asked for.

#![allow(unsafe_code, reason = "a space is known by its address; blocks promise the arena to give back what they get")]

use std::cell::Cell;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ptr::NonNull;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Instance;
use super::alias::Links;
use super::alloc_options::{AllocOptions, OomPolicy};
use super::block::{Backing, MemoryBlock, Tag};
use super::report::{MEMORY_REPORT_TYPE_URL, MemoryReport};
use super::space::Space;
use super::waiting::{Entry, not_wanted};
use crate::arena::{MemoryStats, Piece, Shortage};
use crate::backend::{Gated, Memory, MemoryProperties, erased};
use crate::in_flight::{EndReason, InFlight};
use purlin_async::event::{Event, EventPromise};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::panics::contained;
use purlin_base::status::{Error, SourceLocation, StatusCode, StatusOr, without_place};
use purlin_base::sync::{Mutex, PinnedArc, per_thread};

/// How often one allocation asks the client's hook for help.
const MOST_HOOK_CALLS: u32 = 1000;
// Whether this thread is in a client's hook.
per_thread!(static IN_HOOK: Cell<bool> = Cell::new(false));
/// The largest alignment that can be asked for.
const LARGEST_ALIGNMENT_BYTES: usize = 1 << 30;

/// A handle to one kind of memory of one device; it keeps its client alive. Equal if it is the same space of the same
/// client.
///
/// ```
/// use purlin::RawBuffer;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// assert_eq!((space.to_string().as_str(), space.kind()), ("host:0/device", "device"));
/// let memory = RawBuffer::allocate(&space, 1000)?;
/// assert_eq!((memory.memory_space(), space.stats().bytes_in_use), (space, 1000));
/// # Ok::<(), purlin::Error>(())
/// ```
// One word, because each block of memory has one: the space, for a reference to the instance that it belongs to.
pub struct MemorySpace(NonNull<Space>);

// SAFETY: it is a counted reference to an instance, which may be shared and sent.
unsafe impl Send for MemorySpace {}
// SAFETY: as above.
unsafe impl Sync for MemorySpace {}

impl Clone for MemorySpace {
    fn clone(&self) -> Self {
        mem::forget(self.shared_instance());
        Self(self.0)
    }
}

impl Drop for MemorySpace {
    fn drop(&mut self) {
        // SAFETY: the reference that new() or clone() has put aside, given up once.
        drop(unsafe { self.space().instance().into_counted() });
    }
}

impl MemorySpace {
    /// `index < instance.spaces().len()`
    pub(crate) fn new(instance: PinnedArc<Instance>, index: usize) -> Self {
        let space = NonNull::from(&instance.spaces()[index]);
        // It is the space's from now on.
        mem::forget(instance);
        Self(space)
    }

    /// The same handle, for which no reference is counted.
    ///
    /// # Safety
    /// It is used only while a reference to the instance is counted elsewhere. It is dropped at most where a reference
    /// was put aside for it.
    pub(crate) unsafe fn uncounted(&self) -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self(self.0))
    }

    /// So many clones, which cost less than one by one.
    ///
    /// ```
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    /// assert!(space.clones(3).all(|clone| clone == space));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn clones(&self, count: usize) -> impl ExactSizeIterator<Item = Self> + use<> {
        // SAFETY: this handle's reference, which it keeps.
        let ours = ManuallyDrop::new(unsafe { self.space().instance().into_counted() });
        let space = self.0;
        PinnedArc::clones(&ours, count).map(move |instance| {
            mem::forget(instance);
            Self(space)
        })
    }

    /// A reference of its own to the instance.
    pub(crate) fn shared_instance(&self) -> PinnedArc<Instance> {
        // SAFETY: this handle's reference, which it keeps.
        let ours = ManuallyDrop::new(unsafe { self.space().instance().into_counted() });
        PinnedArc::clone(&ours)
    }

    /// Unique within the client.
    #[must_use]
    pub fn id(&self) -> i32 {
        i32::try_from(self.space().index).expect("a client has at most 1024 devices with a handful of spaces each")
    }

    /// The backend's name for the kind, such as `"device"` or `"pinned_host"`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.space().kind
    }

    /// What is allocated here now, and was at most.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        self.space().arena.stats()
    }

    /// True if `other` belongs to the same client.
    #[must_use]
    pub fn same_client(&self, other: &Self) -> bool {
        std::ptr::eq(self.instance(), other.instance())
    }

    pub(crate) fn instance(&self) -> &Instance {
        // SAFETY: this handle has a reference to it.
        unsafe { self.space().instance().get() }
    }

    /// The number of its device.
    pub(crate) fn device_index(&self) -> usize {
        self.space().index / self.instance().kind_count()
    }

    /// The holders of this space's memory now.
    #[must_use]
    pub fn report(&self) -> MemoryReport {
        MemoryReport::of(self.space(), self.to_string(), None)
    }

    /// Gives back to the system what is kept for later allocations, at once; without this, it is given back after ten
    /// seconds.
    pub fn trim(&self) {
        self.space().arena.trim(0);
    }

    /// The peak of [`stats`](Self::stats) begins anew at what is in use now.
    pub fn clear_peak(&self) {
        self.space().arena.clear_peak();
    }

    /// Every allocation begins at a multiple of this.
    #[must_use]
    pub fn alignment_bytes(&self) -> usize {
        self.properties().alignment_bytes
    }

    /// Whether the host reaches the memory by address.
    #[must_use]
    pub fn is_host_visible(&self) -> bool {
        self.properties().is_host_visible
    }

    /// See [`SpaceRules`](super::SpaceRules).
    pub(crate) fn checks_frozen_memory(&self) -> bool {
        self.space().rules.checks_frozen_memory
    }

    pub(crate) fn properties(&self) -> &MemoryProperties {
        self.space().arena.properties()
    }

    pub(crate) fn memory(&self) -> &dyn Memory {
        self.space().arena.memory()
    }

    fn space(&self) -> &Space {
        // SAFETY: it is the instance's, to which this handle has a reference.
        unsafe { self.0.as_ref() }
    }

    /// New memory, counted in the statistics for as long as it lives; pending if it has to wait for something.
    ///
    /// # Errors
    /// `InvalidArgument`: an alignment that is no power of two up to 1 GiB. `ResourceExhausted`: a report of the
    /// memory's holders, also as the payload [`MEMORY_REPORT_TYPE_URL`]. What `options.after` failed with, if it has.
    pub(crate) fn allocate(
        &self,
        size_bytes: usize,
        options: &AllocOptions,
        place: SourceLocation,
    ) -> StatusOr<PinnedArc<MemoryBlock>> {
        let alignment_bytes = options.alignment_bytes.max(1);
        if !alignment_bytes.is_power_of_two() || alignment_bytes > LARGEST_ALIGNMENT_BYTES {
            return Err(Error::invalid_argument(format!(
                "alignment_bytes is {alignment_bytes}; it must be a power of two up to {LARGEST_ALIGNMENT_BYTES}"
            )));
        }
        if let Some(refusal) = self.in_flight().refusal() {
            return Err(refusal);
        }
        let tag = Tag::new(options.label, place);
        match &options.after {
            Some(after) if !after.is_ready() => {
                self.allocate_after(after, size_bytes, alignment_bytes, options.oom, tag)
            }
            after => match after.as_ref().and_then(Event::error) {
                Some(error) => Err(error),
                None => self.allocate_now(size_bytes, alignment_bytes, options.oom, tag),
            },
        }
    }

    /// New memory of each of these sizes, as [`allocate`](Self::allocate) gives with `label` alone; all or none.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn allocate_all(
        &self,
        sizes_bytes: &[usize],
        label: Label,
        place: SourceLocation,
        mut give: impl FnMut(PinnedArc<MemoryBlock>),
    ) -> Result<(), Error> {
        if let Some(refusal) = self.in_flight().refusal() {
            return Err(refusal);
        }
        let tag = Tag::new(label, place);
        let spaces = self.clones(sizes_bytes.len());
        let mut blocks: SmallVec<[_; 32]> = SmallVec::new();
        blocks.extend(spaces.zip(sizes_bytes).map(|(space, &bytes)| MemoryBlock::new(space, bytes, true, tag)));
        let mut pieces = SmallVec::new();
        let holders = blocks.iter().zip(sizes_bytes).map(|(block, &bytes)| (block, bytes));
        let asked = sizes_bytes.iter().try_for_each(|_| fault::point(Site::Allocate)).map_err(Shortage::Backend);
        // SAFETY: each block gets its piece below, and gives it back in its drop.
        let outcome = asked.and_then(|()| unsafe { self.space().arena.allocate_all(holders, &mut pieces) });
        let taken = pieces.len();
        for (block, piece) in blocks.iter().zip(pieces.drain(..)) {
            // SAFETY: the block is new.
            unsafe { block.provide(Backing::Piece(piece)) };
        }
        let Err(shortage) = outcome else {
            blocks.drain(..).for_each(&mut give);
            return Ok(());
        };
        // The report names the blocks that this call has had to give back, too.
        let error = self.exhausted(sizes_bytes.get(taken).copied().unwrap_or_default(), shortage);
        drop(blocks);
        self.serve_waiting();
        Err(error)
    }

    fn allocate_now(
        &self,
        size_bytes: usize,
        alignment_bytes: usize,
        oom: OomPolicy,
        tag: Tag,
    ) -> StatusOr<PinnedArc<MemoryBlock>> {
        let queued = || {
            let (block, promise) = MemoryBlock::pending(self.clone(), size_bytes, tag);
            self.wait_for_memory(&block, alignment_bytes, promise).map(|()| block)
        };
        if self.comes_behind(size_bytes, oom) {
            return queued();
        }
        let block = MemoryBlock::new(self.clone(), size_bytes, true, tag);
        match self.fill(&block, alignment_bytes, oom) {
            Ok(()) => Ok(block),
            Err(shortage) if oom == OomPolicy::Wait && self.is_worth_waiting(size_bytes, &shortage) => queued(),
            Err(shortage) => {
                let error = self.exhausted(size_bytes, shortage);
                self.serve_waiting();
                Err(error)
            }
        }
    }

    /// The promise is dropped with the event's waiter: if the event never happens, it reports that.
    fn allocate_after(
        &self,
        after: &Event,
        size_bytes: usize,
        alignment_bytes: usize,
        oom: OomPolicy,
        tag: Tag,
    ) -> StatusOr<PinnedArc<MemoryBlock>> {
        let pending = self.in_flight().begin()?;
        let (block, promise) = MemoryBlock::pending(self.clone(), size_bytes, tag);
        let weak = PinnedArc::downgrade(&block);
        let gated = Gated::Memory { size_bytes, block: PinnedArc::downgrade(&erased(block.clone())) };
        promise.waits_for(after);
        let allocate = move |outcome: &Result<(), Error>| {
            // It is over when this is: what waits on for memory counts anew.
            pending.notifying(|| {
                promise.waits_no_more();
                let Some(block) = weak.upgrade() else { return not_wanted(&promise) };
                if let Err(error) = outcome {
                    promise.set_error(error.clone());
                    return;
                }
                // The promise reports what it fails with.
                let _ = block.memory_space().fill_or_wait(&block, alignment_bytes, oom, promise);
            });
        };
        self.in_flight().hold(after, after, gated, Box::new(allocate));
        Ok(block)
    }

    /// Keeps the promise of `block`, which is pending: now, or when enough has been freed, if `oom` says so.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate); the block has failed with that too.
    #[track_caller]
    pub(crate) fn fill_or_wait(
        &self,
        block: &PinnedArc<MemoryBlock>,
        alignment_bytes: usize,
        oom: OomPolicy,
        promise: EventPromise,
    ) -> Result<(), Error> {
        let size_bytes = block.size_bytes();
        if self.comes_behind(size_bytes, oom) {
            return self.wait_for_memory(block, alignment_bytes, promise);
        }
        match self.fill(block, alignment_bytes, oom) {
            Ok(()) => _ = promise.set_ready(),
            Err(shortage) if oom == OomPolicy::Wait && self.is_worth_waiting(size_bytes, &shortage) => {
                self.wait_for_memory(block, alignment_bytes, promise)?;
            }
            Err(shortage) => {
                let error = self.exhausted(size_bytes, shortage);
                promise.set_error(error.clone());
                self.serve_waiting();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether an allocation that may wait queues without a look, because others wait already. If it took what has just
    /// been freed, and its use came after theirs, none of them would ever have memory.
    fn comes_behind(&self, size_bytes: usize, oom: OomPolicy) -> bool {
        let space = self.space();
        oom == OomPolicy::Wait && space.waiting.has_entries() && space.arena.fits_limit(size_bytes)
    }

    /// Looks for memory for `block`, with the client's hook's help if `oom` says so, and if that could help. A hook
    /// that allocates is not called for that.
    fn fill(&self, block: &PinnedArc<MemoryBlock>, alignment_bytes: usize, oom: OomPolicy) -> Result<(), Shortage> {
        let mut calls_left = if oom == OomPolicy::Retry { MOST_HOOK_CALLS } else { 0 };
        loop {
            let asked = fault::point(Site::Allocate).map_err(Shortage::Backend);
            let Err(shortage) = asked.and_then(|()| self.try_fill(block, alignment_bytes)) else { return Ok(()) };
            let could_help =
                calls_left > 0 && !IN_HOOK.with(Cell::get) && self.is_worth_waiting(block.size_bytes(), &shortage);
            let hook = self.space().rules.out_of_memory.as_ref().filter(|_| could_help);
            calls_left = calls_left.saturating_sub(1);
            let asked = (block.size_bytes(), shortage.to_string());
            let mut helped = false;
            if let Some(hook) = hook {
                let report = MemoryReport::of(self.space(), self.to_string(), Some(asked));
                IN_HOOK.with(|here| here.set(true));
                contained("out-of-memory hook", Label::default, || helped = without_place(|| hook(&report)));
                IN_HOOK.with(|here| here.set(false));
            }
            if !helped {
                return Err(shortage);
            }
        }
    }

    /// False if it is clear that nothing that is freed here could ever make room.
    fn is_worth_waiting(&self, size_bytes: usize, shortage: &Shortage) -> bool {
        match shortage {
            Shortage::Limit => self.space().arena.fits_limit(size_bytes),
            // Whether others hold memory that could help, the queue finds out.
            Shortage::Backend(reason) => reason.code() == StatusCode::ResourceExhausted,
        }
    }

    /// Looks once for memory for `block`, which has none yet.
    pub(super) fn try_fill(&self, block: &PinnedArc<MemoryBlock>, alignment_bytes: usize) -> Result<(), Shortage> {
        // SAFETY: the block gets the piece here, and gives it back in its drop.
        let piece = unsafe { self.space().arena.allocate(block.size_bytes(), alignment_bytes, block) }?;
        // SAFETY: the block is new, or its promise is the caller's.
        unsafe { block.provide(Backing::Piece(piece)) };
        Ok(())
    }

    /// Queues the block.
    ///
    /// # Errors
    /// What it has failed with at once, because nothing is held that could be freed.
    fn wait_for_memory(
        &self,
        block: &PinnedArc<MemoryBlock>,
        alignment_bytes: usize,
        promise: EventPromise,
    ) -> Result<(), Error> {
        let pending = self.in_flight().go_on();
        let told = promise.event();
        let entry = Entry { block: PinnedArc::downgrade(block), alignment_bytes, promise, pending };
        self.space().waiting.wait(entry, self);
        told.error().map_or(Ok(()), Err)
    }

    fn in_flight(&self) -> &Arc<InFlight> {
        self.instance().runner().in_flight()
    }

    /// Whether the client is this process's: false in a child made by `fork`, where no thread works for it.
    pub(crate) fn is_here(&self) -> bool {
        self.in_flight().process().is_this()
    }

    /// `event`, or an event that fails if the client ends first; `label` is what fails then.
    ///
    /// # Errors
    /// `FailedPrecondition`: the client has shut down, and `event` has not happened.
    pub(crate) fn until_end(&self, event: &Event, label: Label) -> StatusOr<Event> {
        self.in_flight().until_end(event, label)
    }

    /// As [`until_end`](Self::until_end), for a use of memory that has begun already; it has failed if the client has
    /// ended.
    pub(crate) fn until_end_of_use(&self, event: &Event) -> Event {
        self.in_flight().until_end_of_begun(event, Label::new(c"use of a buffer"))
    }

    /// Fails the allocations that wait for others to be freed, now and later; says what they were.
    pub(crate) fn end_waiting(&self, why: &EndReason) -> Vec<String> {
        let waiting = &self.space().waiting;
        let failed = (0..waiting.len()).map(|_| format!("an allocation in {self}, which waited for memory")).collect();
        waiting.end(
            self,
            Error::new(why.0.code(), format!("{}: an allocation in {self} waited for memory", why.0.message())),
        );
        failed
    }

    /// The links between blocks of this space.
    pub(super) fn links(&self) -> &Mutex<Links> {
        &self.space().links
    }

    pub(super) fn serve_waiting(&self) {
        self.space().waiting.serve(self);
    }

    /// Takes the memory of a block back.
    pub(super) fn give_back(&self, piece: Piece, size_bytes: usize) {
        let space = self.space();
        let is_large = space.arena.give_back(piece, size_bytes);
        self.serve_waiting();
        if is_large {
            space.decay.arm(&self.shared_instance(), space.index, space.arena.warm_bytes());
        }
    }

    /// The error of an allocation.
    #[track_caller]
    pub(super) fn exhausted(&self, size_bytes: usize, shortage: Shortage) -> Error {
        let code = match &shortage {
            Shortage::Backend(reason) => reason.code(),
            Shortage::Limit => StatusCode::ResourceExhausted,
        };
        let report = MemoryReport::of(self.space(), self.to_string(), Some((size_bytes, shortage.to_string())));
        tracing::warn!(target: "purlin", %report, "out of memory");
        let mut error = Error::new(code, report.to_string());
        error.set_payload(MEMORY_REPORT_TYPE_URL, report.to_json().as_bytes());
        error
    }
}

impl PartialEq for MemorySpace {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for MemorySpace {}

/// `host:2/pinned_host`
impl fmt::Display for MemorySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.instance().backend().platform_name(), self.device_index(), self.kind())
    }
}

impl fmt::Debug for MemorySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
