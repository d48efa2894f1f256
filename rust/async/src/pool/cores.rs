//! Which core each worker is on, so that a worker that is woken need not wait until its waker leaves it.
//!
//! A worker that wakes another one works on. Linux may wake a thread on the core of its waker although another one is
//! idle: so in virtual machines, where a core that halts looks like one that the host has taken away. Then the woken
//! worker begins when its waker sleeps, or some milliseconds later, when the kernel balances its load, and the pool has
//! had one core for that time. So once a worker has woken up on the core of its waker, sleepers are kept from the cores
//! of the workers that are awake, by their affinity, from just before a worker wakes them until they run. Then they
//! give themselves their own affinity back ([`restore`]), before they run a task; if a worker falls asleep before that,
//! it does so for them, because its core is free then. docs/benchmarks.md has what this costs and gains.
//!
//! The kernel decides alone in a pool that has more workers than cores, where the system refuses, and where a filter of
//! system calls is in force (seccomp), because that may end a process that asks.

use std::cell::RefCell;
use std::num::NonZero;

/// As glibc's `cpu_set_t`. Where there are more cores, the system refuses to tell them, and no worker is moved.
const MOST_CORES: usize = 1024;

/// A set of cores, by the system's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cores([u64; MOST_CORES / 64]);

/// A core: one more than the system's number. So an unknown one is a whole word, too; memcheck takes the empty half of
/// an `Option<usize>` that is compared for memory that was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Core(NonZero<usize>);

/// What a worker that was kept from cores has to make good.
pub(super) struct Parted {
    /// Where it might run before.
    own: Cores,
    /// Where it may run since.
    now: Cores,
}

/// Where a worker is. Behind the lock of `idle.rs`.
#[derive(Default)]
pub(super) struct Place {
    /// When it last fell asleep, woke up, or woke another worker. None: not known.
    pub(super) core: Option<Core>,
    /// The system's number of its thread, while it sleeps.
    thread: u32,
    /// Where the thread is that wakes it, if that works on.
    pub(super) waker: Option<Core>,
    parted: Option<Parted>,
}

impl Core {
    /// The one with the system's number.
    fn of(number: usize) -> Option<Self> {
        Some(Self(NonZero::new(number.wrapping_add(1))?))
    }

    fn number(self) -> usize {
        self.0.get() - 1
    }
}

impl Cores {
    const ALL: Self = Self([u64::MAX; MOST_CORES / 64]);

    /// Those on which a thread may run; 0 is this thread. None if the system does not say.
    fn allowed(thread: u32) -> Option<Self> {
        let mut cores = Self([0; MOST_CORES / 64]);
        system::get(thread, &mut cores.0).then_some(cores)
    }

    /// Lets a thread run on these only; false if the system refuses.
    fn restrict(&self, thread: u32) -> bool {
        system::set(thread, &self.0)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn are_within(&self, others: &Self) -> bool {
        self.0.iter().zip(&others.0).all(|(own, other)| own & !other == 0)
    }

    /// These without some; none if nothing is left.
    fn without(&self, taken: impl Iterator<Item = Core>) -> Option<Self> {
        let mut left = self.clone();
        for core in taken.map(Core::number).filter(|&core| core < MOST_CORES) {
            left.0[core / 64] &= !(1 << (core % 64));
        }
        left.0.iter().any(|&word| word != 0).then_some(left)
    }
}

impl Place {
    /// The worker of this thread, which has this number, falls asleep on `core`.
    pub(super) fn enter(&mut self, thread: u32, core: Option<Core>) {
        *self = Self { core, thread, waker: None, parted: None };
    }

    /// The worker of this thread runs again, on `core`. What it must [`restore`], without the lock, and whether that is
    /// the core of the thread that has woken it, which works on.
    pub(super) fn leave(&mut self, core: Option<Core>) -> (Option<Parted>, bool) {
        self.core = core;
        let waker = self.waker.take();
        (self.parted.take(), waker.is_some() && waker == core)
    }

    /// Before a thread on `here` wakes this sleeper: keeps it from there and from the cores in `taken`, or, if it has
    /// no others, from there alone. Not if there are fewer cores for it than `workers`. False if the system refuses.
    pub(super) fn part(&mut self, here: Core, taken: impl Iterator<Item = Core>, workers: usize) -> bool {
        let Some(now) = Cores::allowed(self.thread) else { return false };
        if now.count() < workers {
            return true;
        }
        let Some(free) = now.without(taken.chain([here])).or_else(|| now.without([here].into_iter())) else {
            return true;
        };
        if free == now {
            return true;
        }
        let parted = free.restrict(self.thread);
        if parted {
            self.parted = Some(Parted { own: now, now: free });
        }
        parted
    }

    /// Whether [`part`](Self::part) has kept it from cores since it last ran.
    pub(super) fn is_parted(&self) -> bool {
        self.parted.is_some()
    }

    /// A core that this one was kept from is free: it may run there, if it has not begun to.
    pub(super) fn release(&mut self) {
        if let Some(Parted { own, now }) = &mut self.parted
            && now != own
            && own.restrict(self.thread)
        {
            now.clone_from(own);
        }
    }
}

thread_local! {
    /// What this thread was last found to be limited to by more than the cores that its process may use.
    static LIMITED: RefCell<Option<Cores>> = const { RefCell::new(None) };
}

/// Gives this thread its own affinity back, unless another affinity was asked for meanwhile. False if the system
/// refuses.
///
/// A thread for which no affinity was ever asked follows the cores of its process, which may become more. One for
/// which the same cores were asked by name does not. So all cores are asked for, where that leaves it where it was.
pub(super) fn restore(parted: Option<Parted>) -> bool {
    let Some(Parted { own, now }) = parted else { return true };
    if Cores::allowed(0).is_some_and(|cores| !cores.are_within(&now)) {
        return true;
    }
    let is_limited = LIMITED.with_borrow(|limited| limited.as_ref() == Some(&own));
    if !is_limited && Cores::ALL.restrict(0) {
        if Cores::allowed(0).as_ref() == Some(&own) {
            return true;
        }
        LIMITED.set(Some(own.clone()));
    }
    own.restrict(0)
}

/// Whether each of so many workers can have a core that this thread may use.
pub(super) fn suffice(workers: usize) -> bool {
    Cores::allowed(0).is_some_and(|cores| cores.count() >= workers)
}

/// The core of this thread; none if the system does not say.
pub(super) fn this_core() -> Option<Core> {
    Core::of(system::this_core()?)
}

#[cfg(all(target_os = "linux", not(purlin_model)))]
mod system {
    use std::ffi::c_int;

    use super::MOST_CORES;

    unsafe extern "C" {
        fn sched_getcpu() -> c_int;
        fn sched_getaffinity(thread: c_int, bytes: usize, cores: *mut u64) -> c_int;
        fn sched_setaffinity(thread: c_int, bytes: usize, cores: *const u64) -> c_int;
    }

    pub(super) fn this_core() -> Option<usize> {
        // SAFETY: it takes nothing.
        usize::try_from(unsafe { sched_getcpu() }).ok()
    }

    pub(super) fn get(thread: u32, cores: &mut [u64; MOST_CORES / 64]) -> bool {
        // SAFETY: the room is as large as its size says.
        unsafe { sched_getaffinity(thread.cast_signed(), size_of_val(cores), cores.as_mut_ptr()) == 0 }
    }

    pub(super) fn set(thread: u32, cores: &[u64; MOST_CORES / 64]) -> bool {
        // SAFETY: the set is as large as its size says.
        unsafe { sched_setaffinity(thread.cast_signed(), size_of_val(cores), cores.as_ptr()) == 0 }
    }
}

/// Models have no cores, and no other system was tried.
#[cfg(not(all(target_os = "linux", not(purlin_model))))]
mod system {
    use super::MOST_CORES;

    pub(super) fn this_core() -> Option<usize> {
        None
    }

    pub(super) fn get(_thread: u32, _cores: &mut [u64; MOST_CORES / 64]) -> bool {
        false
    }

    pub(super) fn set(_thread: u32, _cores: &[u64; MOST_CORES / 64]) -> bool {
        false
    }
}

/// That of this thread.
#[cfg(all(test, target_os = "linux", not(purlin_model)))]
pub(super) fn affinity() -> Cores {
    Cores::allowed(0).expect("Linux tells the affinity of up to 1024 cores")
}

// Elsewhere no worker is moved.
#[cfg(all(test, target_os = "linux", not(purlin_model)))]
mod tests;
