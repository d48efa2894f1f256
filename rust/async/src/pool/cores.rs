//! Which core each worker is on, so that a worker that is woken need not wait until its waker leaves it.
//!
//! A worker that wakes another one works on. Linux may wake a thread on the core of its waker although another one is
//! idle: so in virtual machines, where a core that halts looks like one that the host has taken away. Then the woken
//! worker begins when its waker sleeps, or some milliseconds later, when the kernel balances its load, and the pool has
//! had one core for that time. So once a worker has woken up on the core of another, sleepers are kept from the cores
//! of the workers that are awake, by their affinity, from just before a worker wakes them until they run. Then they get
//! their own affinity back, before they run a task. In a pool that has more workers than cores, or where the
//! system refuses, the kernel decides alone. docs/benchmarks.md has what this costs and gains.

/// As glibc's `cpu_set_t`. Where there are more cores, the system refuses to tell them, and no worker is moved.
const MOST_CORES: usize = 1024;

/// A set of cores, by the system's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cores([u64; MOST_CORES / 64]);

/// Where a worker is. Behind the lock of `idle.rs`.
#[derive(Default)]
pub(super) struct Place {
    /// When it last fell asleep, woke up, or woke another worker. None: not known.
    pub(super) core: Option<usize>,
    /// The system's number of its thread, while it sleeps.
    thread: u32,
    /// Where the thread is that wakes it, if that works on.
    pub(super) waker: Option<usize>,
    /// The affinity that it must give itself back.
    own: Option<Cores>,
}

impl Cores {
    /// Those on which a thread may run; 0 is this thread. None if the system does not say.
    fn allowed(thread: u32) -> Option<Self> {
        let mut cores = Self([0; MOST_CORES / 64]);
        system::get(thread, &mut cores.0).then_some(cores)
    }

    /// Lets a thread run on these only; false if the system refuses.
    fn restrict(&self, thread: u32) -> bool {
        system::set(thread, &self.0)
    }

    /// These without some; none if nothing is left.
    fn without(&self, taken: impl Iterator<Item = usize>) -> Option<Self> {
        let mut left = self.clone();
        for core in taken.filter(|&core| core < MOST_CORES) {
            left.0[core / 64] &= !(1 << (core % 64));
        }
        left.0.iter().any(|&word| word != 0).then_some(left)
    }
}

impl Place {
    /// The worker of this thread, which has this number, falls asleep.
    pub(super) fn enter(&mut self, thread: u32) {
        *self = Self { core: this_core(), thread, waker: None, own: None };
    }

    /// The worker of this thread runs again, on `core`. What it must [`restore`], without the lock, and where the
    /// thread was that has woken it, if that works on.
    pub(super) fn leave(&mut self, core: Option<usize>) -> (Option<Cores>, Option<usize>) {
        self.core = core;
        (self.own.take(), self.waker.take())
    }

    /// Before this sleeper is woken: keeps it from the cores in `taken`,
    /// if it may run on others. False if the system refuses.
    pub(super) fn part(&mut self, taken: impl Iterator<Item = usize>) -> bool {
        let Some(own) = Cores::allowed(self.thread) else { return false };
        let Some(free) = own.without(taken) else { return true };
        let parted = free.restrict(self.thread);
        self.own = parted.then_some(own);
        parted
    }

    pub(super) fn is_among(&self, mut cores: impl Iterator<Item = usize>) -> bool {
        self.core.is_some_and(|core| cores.any(|other| other == core))
    }
}

/// Gives this thread its own affinity back.
pub(super) fn restore(own: Option<Cores>) {
    // The system grants what it granted before; where it does not, the thread stays where it is.
    let _ = own.is_none_or(|own| own.restrict(0));
}

/// Whether each of so many workers can have a core that this thread may use.
pub(super) fn suffice(workers: usize) -> bool {
    Cores::allowed(0)
        .is_some_and(|cores| cores.0.iter().map(|word| word.count_ones() as usize).sum::<usize>() >= workers)
}

/// The core of this thread; none if the system does not say.
pub(super) fn this_core() -> Option<usize> {
    system::this_core()
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

// Elsewhere no worker is moved.
#[cfg(all(test, target_os = "linux", not(purlin_model)))]
mod tests;
