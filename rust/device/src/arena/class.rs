//! Small blocks: slots of one size, in runs that are cut from extents.
//!
//! The newest free slot of the newest run is used first, so what is warm stays in use. One empty run stays with its
//! class; further ones are given back, and that one too when memory is short or trimmed. One lock per class.

#![allow(unsafe_code, reason = "holders are asked under the lock under which they go")]

use purlin_base::sync::{Mutex, MutexGuard, PinnedArc};

use super::piece::{Holder, Home, Piece};

/// The largest small block.
pub(super) const LARGEST_SLOT_BYTES: usize = 32 << 10;
/// Slots are multiples of this.
pub(super) const SLOT_STEP_BYTES: usize = 64;
/// Four classes per doubling, from 64 bytes: 64, 128, 192, 256, 320, 384, 448, 512, 640, ...
pub(super) const CLASS_COUNT: usize = 32;
/// What a run is cut to, unless it would have fewer than [`FEWEST_SLOTS`].
const RUN_BYTES: usize = 64 << 10;
const FEWEST_SLOTS: usize = 8;

/// The class whose slots are the smallest that hold `size_bytes`, in 1..=[`LARGEST_SLOT_BYTES`].
pub(super) const fn class_of(size_bytes: usize) -> usize {
    let steps = (size_bytes - 1) / SLOT_STEP_BYTES;
    if steps < 4 {
        return steps;
    }
    // `steps` in [4 << n, 8 << n) belongs to the n-th group of four, by its next two bits.
    let doubling = steps.ilog2() as usize - 2;
    4 + doubling * 4 + ((steps >> doubling) - 4)
}

/// Bytes of a slot of that class.
pub(super) const fn slot_bytes(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * SLOT_STEP_BYTES;
    }
    let (doubling, quarter) = ((class - 4) / 4, (class - 4) % 4);
    ((5 + quarter) << doubling) * SLOT_STEP_BYTES
}

/// Slots of a run of that class.
const fn slots_per_run(class: usize) -> usize {
    let slots = RUN_BYTES / slot_bytes(class);
    if slots < FEWEST_SLOTS { FEWEST_SLOTS } else { slots }
}

/// Bytes of a run of that class.
pub(super) const fn run_bytes(class: usize) -> usize {
    slots_per_run(class) * slot_bytes(class)
}

/// See the module.
pub(super) struct Class<H> {
    number: u8,
    state: Mutex<ClassState<H>>,
}

/// A class, locked.
pub(super) struct OpenClass<'a, H> {
    number: u8,
    state: MutexGuard<'a, ClassState<H>>,
}

struct ClassState<H> {
    runs: Vec<Option<Run<H>>>,
    /// Indices in `runs` that are free.
    vacant: Vec<u32>,
    /// Runs with free slots.
    open: Vec<u32>,
    /// Of those, the ones without a used slot.
    empty: usize,
    /// Slots taken so far.
    taken: u64,
}

struct Run<H> {
    span: Piece,
    /// `None` where a slot is free.
    holders: Box<[Option<Holder<H>>]>,
    free: Vec<u16>,
    /// Its index in `open`, while it has free slots.
    open_at: usize,
}

impl<H> Class<H> {
    pub(super) fn new(number: usize) -> Self {
        let state = ClassState { runs: Vec::new(), vacant: Vec::new(), open: Vec::new(), empty: 0, taken: 0 };
        Self { number: u8::try_from(number).expect("there are 32 classes"), state: Mutex::new(state) }
    }

    fn slot_bytes(&self) -> usize {
        slot_bytes(self.number.into())
    }

    /// A slot for `holder`. `None`: no run has one.
    pub(super) fn take(&self, holder: &PinnedArc<H>) -> Option<Piece> {
        self.open().take(holder)
    }

    /// Slots for several holders, while this is kept. No other code is called meanwhile.
    pub(super) fn open(&self) -> OpenClass<'_, H> {
        OpenClass { number: self.number, state: self.state.lock() }
    }

    /// Adds a run, made of [`run_bytes`] bytes, and takes a slot of it at once: no other thread can have taken them
    /// all.
    pub(super) fn take_of_new_run(&self, span: Piece, holder: &PinnedArc<H>) -> Piece {
        let count = slots_per_run(self.number.into());
        let mut state = self.state.lock();
        let run_index = state.vacant.pop().unwrap_or_else(|| {
            state.runs.push(None);
            u32::try_from(state.runs.len() - 1).expect("runs are fewer than 2^32")
        });
        let mut holders = vec![None; count];
        holders[0] = Some(Holder::of(holder));
        let most = u16::try_from(count).expect("a run has 1024 slots at most");
        let piece = span.part(0, Home::Slot { class: self.number, slot: 0, run: run_index });
        let open_at = state.open.len();
        state.open.push(run_index);
        let mut free = Vec::with_capacity(count);
        free.extend((1..most).rev());
        let run = Run { span, holders: holders.into(), free, open_at };
        state.runs[run_index as usize] = Some(run);
        state.taken += 1;
        piece
    }

    /// Takes a slot back. A run that is no longer needed, to be given back to its extent.
    #[must_use = "its bytes go back to their extent"]
    pub(super) fn give_back(&self, run_index: u32, slot: u16) -> Option<Piece> {
        let mut state = self.state.lock();
        let open_at = state.open.len();
        let run = state.runs[run_index as usize].as_mut().expect("a slot is given back once");
        run.holders[usize::from(slot)] = None;
        if run.free.is_empty() {
            run.open_at = open_at;
        }
        let was_full = run.free.is_empty();
        run.free.push(slot);
        let is_empty = run.free.len() == run.holders.len();
        if was_full {
            state.open.push(run_index);
        }
        let surplus = is_empty && {
            state.empty += 1;
            state.empty > 1
        };
        surplus.then(|| state.remove(run_index))
    }

    /// Takes the empty run out, if there is one.
    pub(super) fn take_empty(&self) -> Option<Piece> {
        let mut state = self.state.lock();
        let is_empty = |run: &Option<Run<H>>| run.as_ref().is_some_and(|run| run.free.len() == run.holders.len());
        if state.empty == 0 {
            return None;
        }
        let index = state.open.iter().copied().find(|&index| is_empty(&state.runs[index as usize]))?;
        Some(state.remove(index))
    }

    /// Slots taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.state.lock().taken
    }

    /// Bytes of free slots.
    pub(super) fn free_bytes(&self) -> usize {
        let state = self.state.lock();
        let free: usize = state.runs.iter().flatten().map(|run| run.free.len()).sum();
        free * self.slot_bytes()
    }

    /// The holders of all blocks, but for those that are about to go.
    pub(super) fn holders(&self, out: &mut Vec<PinnedArc<H>>) {
        let state = self.state.lock();
        let holders = state.runs.iter().flatten().flat_map(|run| run.holders.iter().flatten());
        // SAFETY: a slot is given back under this lock.
        out.extend(holders.filter_map(|holder| unsafe { holder.upgrade() }));
    }
}

impl<H> OpenClass<'_, H> {
    /// Its number.
    pub(super) fn number(&self) -> usize {
        self.number.into()
    }

    /// As [`Class::take`].
    pub(super) fn take(&mut self, holder: &PinnedArc<H>) -> Option<Piece> {
        let state = &mut *self.state;
        let run_index = *state.open.last()?;
        let run = state.runs[run_index as usize].as_mut().expect("open runs exist");
        let was_empty = run.free.len() == run.holders.len();
        let slot = run.free.pop().expect("open runs have free slots");
        run.holders[usize::from(slot)] = Some(Holder::of(holder));
        let home = Home::Slot { class: self.number, slot, run: run_index };
        let piece = run.span.part(usize::from(slot) * slot_bytes(self.number.into()), home);
        if run.free.is_empty() {
            state.open.pop();
        }
        state.empty -= usize::from(was_empty);
        state.taken += 1;
        Some(piece)
    }
}

impl<H> ClassState<H> {
    /// Removes an empty run; its span.
    fn remove(&mut self, index: u32) -> Piece {
        let run = self.runs[index as usize].take().expect("an empty run exists");
        self.vacant.push(index);
        self.open.swap_remove(run.open_at);
        if let Some(&moved) = self.open.get(run.open_at) {
            self.runs[moved as usize].as_mut().expect("open runs exist").open_at = run.open_at;
        }
        self.empty -= 1;
        run.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        assert_eq!(slot_bytes(CLASS_COUNT - 1), LARGEST_SLOT_BYTES);
        for class in 1..CLASS_COUNT {
            assert!(slot_bytes(class) > slot_bytes(class - 1));
            assert!(slot_bytes(class) <= 64 + slot_bytes(class - 1) * 5 / 4, "at most a quarter is wasted");
        }
        for size_bytes in 1..=LARGEST_SLOT_BYTES {
            let class = class_of(size_bytes);
            assert!(slot_bytes(class) >= size_bytes, "{size_bytes}");
            assert!(class == 0 || slot_bytes(class - 1) < size_bytes, "{size_bytes}");
        }
    }

    #[test]
    fn slots_are_numbered_by_16_bits() {
        assert!((0..CLASS_COUNT).all(|class| (FEWEST_SLOTS..=1024).contains(&slots_per_run(class))));
    }
}
