//! Allocations that wait: memory that is freed, other waiters, waiters that give up and the client's end, against one
//! another. The queue and what follows from a shortage are the real ones; the arena is a count of free units behind a
//! lock, and a block gives its units back, and serves the queue, when its last holder drops it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::waiting::after_shortage;
use crate::arena::MemoryStats;
use purlin_base::sync::{Mutex, explore};
use purlin_base::turns::{Look, Source, Turns};

struct Space {
    turns: Turns<Arc<Block>>,
    state: Mutex<SpaceState>,
    told: Mutex<Vec<(char, Found)>>,
}

struct SpaceState {
    free: u64,
    held: u64,
    num_allocs: u64,
    /// Blocks in the order in which they got memory.
    served: Vec<char>,
    has_ended: bool,
}

/// What asks for `units`.
struct Block {
    name: char,
    units: u64,
    /// Its holders; it is gone with the last.
    holders: AtomicUsize,
    /// Units that it has.
    has: Mutex<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Memory,
    NobodyWaits,
    Ended,
    Nothing,
}

impl Space {
    /// `held` units are held.
    fn new(free: u64, held: u64) -> Arc<Self> {
        let state = SpaceState { free, held, num_allocs: held, served: Vec::new(), has_ended: false };
        Arc::new(Self { turns: Turns::new(), state: Mutex::new(state), told: Mutex::new(Vec::new()) })
    }

    fn stats(&self) -> MemoryStats {
        let state = self.state.lock();
        MemoryStats { pool_bytes: state.held, num_allocs: state.num_allocs, ..MemoryStats::default() }
    }

    fn take(&self, units: u64, name: char) -> bool {
        let mut state = self.state.lock();
        if state.free < units {
            return false;
        }
        state.free -= units;
        state.held += units;
        state.num_allocs += 1;
        state.served.push(name);
        true
    }

    fn give_back(&self, units: u64) {
        {
            let mut state = self.state.lock();
            state.free += units;
            state.held -= units;
        }
        self.turns.serve(self);
    }

    /// Waits for `units`; the answer is the caller's hold.
    fn wait(&self, name: char, units: u64) -> Arc<Block> {
        let block = Arc::new(Block { name, units, holders: AtomicUsize::new(1), has: Mutex::new(0) });
        self.turns.wait(block.clone(), self);
        block
    }

    /// As an allocation does that may wait: behind others it waits, otherwise it tries first. True: it waited.
    fn allocate(&self, name: char, units: u64) -> bool {
        let waits = self.turns.has_entries() || !self.take(units, name);
        if waits {
            self.wait(name, units);
        }
        waits
    }

    /// A holder of `block` drops it.
    fn let_go(&self, block: &Block) {
        if block.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let had = *block.has.lock();
            match had {
                0 => self.turns.serve(self),
                had => self.give_back(had),
            }
        }
    }

    fn end(&self) {
        self.state.lock().has_ended = true;
        self.turns.serve(self);
    }

    /// What `name` was answered; it has been answered once.
    fn told(&self, name: char) -> Found {
        let told: Vec<Found> = self.told.lock().iter().filter(|told| told.0 == name).map(|&(_, found)| found).collect();
        assert_eq!(told.len(), 1, "{name} was told {told:?}");
        told[0]
    }

    fn served(&self) -> String {
        self.state.lock().served.iter().collect()
    }
}

impl Source for Space {
    type Entry = Arc<Block>;
    type Seen = Arc<Block>;
    type Found = (char, Found);

    fn see(entry: &Arc<Block>) -> Arc<Block> {
        entry.clone()
    }

    fn look(&self, block: Arc<Block>) -> Look<(char, Found)> {
        let take = |found| Look::Take((block.name, found));
        if self.state.lock().has_ended {
            return take(Found::Ended);
        }
        // The look is one of the holders, if there is one yet.
        let one_more = |holders: usize| (holders > 0).then_some(holders + 1);
        if block.holders.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_err() {
            return take(Found::NobodyWaits);
        }
        let before = self.stats();
        let look = if self.take(block.units, block.name) {
            *block.has.lock() = block.units;
            take(Found::Memory)
        } else {
            match after_shortage(&before, &self.stats()) {
                Look::Take(()) => take(Found::Nothing),
                Look::Stay => Look::Stay,
                Look::Again => Look::Again,
            }
        };
        self.let_go(&block);
        look
    }

    fn tell(&self, entry: Arc<Block>, (name, found): (char, Found)) {
        assert_eq!(entry.name, name, "it is told what was found for it");
        self.told.lock().push((name, found));
    }
}

#[test]
fn memory_that_comes_back_is_not_overlooked() {
    explore("wait for memory against giving back", None, || {
        let space = Space::new(0, 1);
        let other = space.clone();
        let holder = thread::spawn(move || other.give_back(1));
        let waits = space.allocate('a', 1);
        holder.join().unwrap();
        assert!(!waits || space.told('a') == Found::Memory);
        assert_eq!((space.served().as_str(), space.turns.count()), ("a", 0));
    });
}

#[test]
fn the_oldest_is_served_first_and_by_one_thread() {
    explore("give back against give back", None, || {
        let space = Space::new(0, 4);
        space.wait('a', 2);
        space.wait('b', 1);
        let other = space.clone();
        // Enough for both; or twice for the first, if two threads served it.
        let holder = thread::spawn(move || other.give_back(3));
        space.give_back(1);
        holder.join().unwrap();
        assert_eq!((space.told('a'), space.told('b')), (Found::Memory, Found::Memory));
        assert_eq!(
            (space.served().as_str(), space.turns.count()),
            ("ab", 0),
            "the small one has not passed the large one"
        );
    });
}

#[test]
fn none_of_a_thread_passes_the_one_before() {
    explore("two that wait, one after the other, against giving back", 2, || {
        let space = Space::new(0, 2);
        let other = space.clone();
        let holder = thread::spawn(move || {
            other.give_back(1);
            other.give_back(1);
        });
        space.allocate('a', 1);
        space.allocate('b', 1);
        holder.join().unwrap();
        assert_eq!((space.served().as_str(), space.turns.count()), ("ab", 0), "in the order of the calls");
    });
}

#[test]
fn who_gives_up_leaves_the_memory_to_the_next() {
    explore("give up against giving back", None, || {
        let space = Space::new(0, 1);
        let a = space.wait('a', 1);
        space.wait('b', 1);
        let other = space.clone();
        let holder = thread::spawn(move || other.give_back(1));
        space.let_go(&a);
        holder.join().unwrap();
        assert!(matches!(space.told('a'), Found::Memory | Found::NobodyWaits));
        assert_eq!((space.told('b'), space.turns.count()), (Found::Memory, 0));
    });
}

#[test]
fn a_client_that_ends_tells_everybody_once() {
    explore("wait for memory against the client's end, and giving back", 2, || {
        let space = Space::new(0, 1);
        space.wait('a', 1);
        let (first, second) = (space.clone(), space.clone());
        let holder = thread::spawn(move || first.give_back(1));
        let late = thread::spawn(move || _ = second.wait('b', 1));
        space.end();
        holder.join().unwrap();
        late.join().unwrap();
        assert!(matches!(space.told('a'), Found::Memory | Found::Ended));
        // It waits for what the first holds on to, or is too late.
        assert!(matches!(space.told('b'), Found::Memory | Found::Ended));
        assert_eq!(space.turns.count(), 0);
    });
}

#[test]
fn nobody_is_told_that_nothing_can_come_because_somebody_came_and_went() {
    explore("wait for memory against who has it for a moment", None, || {
        let space = Space::new(1, 0);
        let other = space.clone();
        let guest = thread::spawn(move || {
            if other.take(1, 'g') {
                other.give_back(1);
            }
        });
        space.wait('a', 1);
        guest.join().unwrap();
        assert_eq!((space.told('a'), space.turns.count()), (Found::Memory, 0));
    });
}
