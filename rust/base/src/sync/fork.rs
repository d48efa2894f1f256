//! `fork`, for all locks of the process: it copies none that is taken, and the child knows that it is one.
//!
//! Handlers of `pthread_atfork`, which are there before the first lock is taken:
//! 1. *prepare* closes the gate (`gate/mod.rs`) and waits until every other thread is outside of our locks
//!    ([`LONGEST_WAIT`] at most: a thread that stands still inside, in a debugger perhaps, must not stop the process);
//! 2. *parent* opens the gate;
//! 3. *child* forgets the threads that are not there, opens the gate, counts the process ([`Process`]) and calls what
//!    was given to [`in_children`].
//!
//! Each thread has a record in a list, from its first lock or fork to its end. Code that takes a lock later, in another
//! destructor of the thread or in one of the process, borrows a place of [`LATE`] for that.
//!
//! A thread that forks while it holds a lock of ours is not waited for: it continues in the child, and gives the lock
//! back there. A fork in a signal handler is a fork of the thread that was interrupted, perhaps inside; its child may
//! only `exec`, as POSIX says. `vfork`, `posix_spawn` and a bare system call run no handlers; their children may call
//! nothing of ours, either.

#![allow(unsafe_code, reason = "handlers of pthread_atfork, and a list of variables of threads")]

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

use super::futex;
use super::gate::{COUNT, Gate, Presence};

/// How long a fork waits for threads that are inside, and how long a thread that wants to go inside waits for a fork.
/// Neither takes long; but handlers of other libraries, which hold their locks meanwhile, must not make a deadlock out
/// of both.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Bits of a presence above the count. The thread has no record in the list:
const UNLISTED: usize = 1 << (usize::BITS - 1);
/// The thread's record has left the list: it is ending.
const ENDED: usize = 1 << (usize::BITS - 2);

static GATE: Gate = Gate(AtomicU32::new(Gate::OPEN));
/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// What a child calls first, or null.
static IN_CHILDREN: AtomicPtr<fn()> = AtomicPtr::new(ptr::null_mut());

/// The process in which something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one.
    #[inline]
    #[must_use]
    pub fn this() -> Self {
        Self(GENERATION.load(Relaxed))
    }

    /// False in a child of it.
    #[inline]
    #[must_use]
    pub fn is_this(self) -> bool {
        self == Self::this()
    }

    /// As a number, for code that keeps it in an atomic.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// `call` is what every child calls from now on, in `fork`, before any other code runs there; no lock of ours is taken
/// then.
pub fn in_children(call: &'static fn()) {
    IN_CHILDREN.store(ptr::from_ref(call).cast_mut(), Relaxed);
    watch();
}

/// A thread's place in the list.
struct Record {
    presence: Presence,
    /// Behind [`List`]'s lock.
    next: Cell<*const Record>,
    previous: Cell<*const Record>,
}

thread_local! {
    // Without a destructor, so it can be used until the thread is gone.
    static RECORD: Record = const {
        Record {
            presence: Presence(AtomicUsize::new(UNLISTED)),
            next: Cell::new(ptr::null()),
            previous: Cell::new(ptr::null()),
        }
    };
    /// Its end is the thread's.
    static END: End = const { End(Cell::new(())) };
}

struct End(Cell<()>);

impl Drop for End {
    fn drop(&mut self) {
        RECORD.with(|record| {
            let list = List::lock();
            list.remove(record);
            record.presence.0.store(ENDED, Relaxed);
        });
    }
}

/// The list of records, while its lock is held; a fork holds it from *prepare* to the end. A lock of its own, because
/// it is needed before the others are usable.
struct List;

static LIST_IS_TAKEN: AtomicBool = AtomicBool::new(false);
static FIRST: AtomicPtr<Record> = AtomicPtr::new(ptr::null_mut());

impl List {
    fn lock() -> Self {
        let mut looks = 0;
        while LIST_IS_TAKEN.swap(true, Acquire) {
            pause(&mut looks);
        }
        Self
    }

    fn first(&self) -> *const Record {
        FIRST.load(Relaxed)
    }

    fn add(&self, record: &Record) {
        let next = self.first();
        record.next.set(next);
        record.previous.set(ptr::null());
        // SAFETY: records of the list stay until they leave it, under the lock that we hold.
        if let Some(next) = unsafe { next.as_ref() } {
            next.previous.set(record);
        }
        FIRST.store(ptr::from_ref(record).cast_mut(), Relaxed);
    }

    fn remove(&self, record: &Record) {
        let (next, previous) = (record.next.get(), record.previous.get());
        // SAFETY: as in add().
        unsafe {
            match previous.as_ref() {
                Some(previous) => previous.next.set(next),
                None => FIRST.store(next.cast_mut(), Relaxed),
            }
            if let Some(next) = next.as_ref() {
                next.previous.set(previous);
            }
        }
    }

    /// The lock may be kept beyond this value.
    fn unlock() {
        LIST_IS_TAKEN.store(false, Release);
    }
}

impl Drop for List {
    fn drop(&mut self) {
        Self::unlock();
    }
}

/// Places for threads that take locks while they end: odd while a thread is inside, the address of its record and one.
static LATE: [Presence; 64] = [const { Presence(AtomicUsize::new(0)) }; 64];

/// Says that its thread is inside, until it is dropped.
#[derive(Debug)]
pub struct Inside(*const Presence);

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the presence of this thread, or one of LATE: guards stay on the thread that made them.
        unsafe { (*self.0).leave() };
    }
}

impl Inside {
    /// Goes inside; waits while a thread forks, unless this thread is inside already.
    #[inline(always)]
    pub fn enter() -> Self {
        RECORD.with(|record| {
            let before = record.presence.enter();
            if before | GATE.state() as usize != 0 {
                return enter_slowly(record, before);
            }
            Self(&raw const record.presence)
        })
    }
}

impl Inside {
    /// Stays inside until [`from_raw`](Self::from_raw).
    pub fn into_raw(self) -> *const () {
        std::mem::ManuallyDrop::new(self).0.cast()
    }

    /// # Safety
    /// `place` came from [`into_raw`](Self::into_raw), on this thread, once per call.
    pub unsafe fn from_raw(place: *const ()) -> Self {
        Self(place.cast())
    }
}

/// No thread forks until what this answers is dropped, as while a lock is held: for locks of others.
pub fn without_forks() -> Inside {
    Inside::enter()
}

/// Nested, or the gate is closed, or the thread is not in the list.
#[cold]
#[inline(never)]
fn enter_slowly(record: &Record, mut before: usize) -> Inside {
    let presence = &record.presence;
    loop {
        if before & ENDED != 0 {
            presence.leave();
            return enter_late(record);
        }
        if before & UNLISTED != 0 {
            presence.leave();
            enlist(record);
        } else if before > 0 || !GATE.is_closed() {
            return Inside(presence);
        } else {
            presence.leave();
            if !wait_until_open() {
                presence.enter();
                return Inside(presence);
            }
        }
        before = presence.enter();
        if before == 0 && !GATE.is_closed() {
            return Inside(presence);
        }
    }
}

fn enlist(record: &Record) {
    watch();
    // A thread that asks for a destructor has the dynamic linker's lock, which a fork would copy: so it borrows a
    // place.
    let place = enter_late(record);
    // An error means that the thread is ending already.
    let is_ending = END.try_with(|end| end.0.get()).is_err();
    drop(place);
    if is_ending {
        return record.presence.0.store(ENDED, Relaxed);
    }
    let list = List::lock();
    record.presence.0.store(0, Relaxed);
    list.add(record);
}

fn enter_late(record: &Record) -> Inside {
    let mine = ptr::from_ref(record).addr() | 1;
    let is_nested = LATE.iter().any(|place| place.0.load(Relaxed) == mine);
    let mut looks = 0;
    loop {
        for place in &LATE {
            let before = place.0.load(Relaxed);
            if before & 1 != 0 || place.0.compare_exchange(before, mine, AcqRel, Relaxed).is_err() {
                continue;
            }
            // The exchange is a barrier on x86; elsewhere this is.
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            if is_nested || !GATE.is_closed() {
                return Inside(place);
            }
            place.leave();
            if !wait_until_open() {
                place.0.store(mine, Relaxed);
                return Inside(place);
            }
        }
        pause(&mut looks);
    }
}

/// False if that took too long.
fn wait_until_open() -> bool {
    let until = Instant::now() + LONGEST_WAIT;
    while GATE.is_closed() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        futex::wait(&GATE.0, GATE.state().max(1), Some(left));
    }
    true
}

/// A moment, longer when it is asked for again.
fn pause(looks: &mut u32) {
    *looks += 1;
    match *looks {
        ..100 => std::hint::spin_loop(),
        100..1000 => thread::yield_now(),
        _ => thread::sleep(Duration::from_micros(50)),
    }
}

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

/// No thread installs the handlers yet.
const UNWATCHED: u32 = 0;
/// They are there. Else, the number of the process in which a thread installs them.
const WATCHED: u32 = u32::MAX;
static WATCH: AtomicU32 = AtomicU32::new(UNWATCHED);

/// How often the system was asked for this process's number.
#[cfg(test)]
static ASKED: AtomicU32 = AtomicU32::new(0);

/// This process's number: a call of the system.
fn process_id() -> u32 {
    #[cfg(test)]
    ASKED.fetch_add(1, Relaxed);
    std::process::id()
}

/// Installs the handlers, once. A thread that calls this meanwhile waits until they are there; it does not wait for a
/// thread that a fork has left behind in the parent. Once they are there it costs a load: the slab comes here for each
/// batch of blocks.
fn watch() {
    let mut looks = 0;
    if cfg!(miri) {
        // It knows no fork.
        return;
    }
    loop {
        let seen = WATCH.load(Acquire);
        if seen == WATCHED {
            return;
        }
        let here = process_id();
        if seen == here || WATCH.compare_exchange(seen, here, AcqRel, Relaxed).is_err() {
            pause(&mut looks);
            continue;
        }
        // SAFETY: the handlers are functions of this library, which lives as long as they are installed. An error means
        // that memory is short; then forks are as they are without us.
        let _ = unsafe { pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
        return WATCH.store(WATCHED, Release);
    }
}

/// The record of the thread that forks. The handlers may be there twice: a fork may copy them before it copies that
/// they are there.
static FORKS: AtomicPtr<Record> = AtomicPtr::new(ptr::null_mut());

/// Whether this is the first call of one of the other two handlers in this fork.
fn ends_the_fork() -> bool {
    FORKS.compare_exchange(own_record(), ptr::null_mut(), Relaxed, Relaxed).is_ok()
}

fn own_record() -> *mut Record {
    RECORD.with(|own| ptr::from_ref(own).cast_mut())
}

unsafe extern "C" fn prepare() {
    if FORKS.load(Relaxed) == own_record() {
        return;
    }
    // In the child this thread then needs no destructor, for which it would ask the dynamic linker: another thread may
    // have that one's lock now.
    RECORD.with(|own| {
        if own.presence.0.load(Relaxed) & UNLISTED != 0 {
            enlist(own);
        }
    });
    let list = List::lock();
    FORKS.store(own_record(), Relaxed);
    GATE.close(futex::barrier_for_all);
    RECORD.with(|own| {
        let late = ptr::from_ref(own).addr() | 1;
        let until = Instant::now() + LONGEST_WAIT;
        let mut looks = 0;
        let mut wait_for = |is_inside: &dyn Fn() -> bool| {
            while is_inside() && Instant::now() < until {
                pause(&mut looks);
            }
        };
        let mut next = list.first();
        // SAFETY: records of the list stay until they leave it, under the lock that we hold.
        while let Some(record) = unsafe { next.as_ref() } {
            if !ptr::eq(record, own) {
                wait_for(&|| record.presence.is_inside());
            }
            next = record.next.get();
        }
        for place in &LATE {
            wait_for(&|| {
                let word = place.0.load(Acquire);
                word & 1 != 0 && word != late
            });
        }
    });
    // Until one of the other two handlers.
    std::mem::forget(list);
}

unsafe extern "C" fn in_parent() {
    if !ends_the_fork() {
        return;
    }
    GATE.open();
    futex::wake(&GATE.0, i32::MAX);
    List::unlock();
}

unsafe extern "C" fn in_child() {
    if !ends_the_fork() {
        return;
    }
    WATCH.store(WATCHED, Release);
    RECORD.with(|own| {
        let late = ptr::from_ref(own).addr() | 1;
        FIRST.store(ptr::null_mut(), Relaxed);
        if own.presence.0.load(Relaxed) & !COUNT == 0 {
            // Ours since *prepare*, and not given back here.
            let list = std::mem::ManuallyDrop::new(List);
            list.add(own);
        }
        for place in LATE.iter().filter(|place| place.0.load(Relaxed) != late) {
            place.0.store(0, Relaxed);
        }
    });
    GENERATION.fetch_add(1, Relaxed);
    GATE.open();
    List::unlock();
    let call = IN_CHILDREN.load(Relaxed);
    // SAFETY: null, or what in_children() stored.
    if let Some(call) = unsafe { call.as_ref() } {
        call();
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
