//! rayon, tokio's runtime and a minimal pool on crossbeam's deques, with two workers each.

use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::deque_pool::DequePool;
use crate::latch::Latch;
use crate::op::{ONCE, Op, THREADS};

const FIB_NODES: u64 = 242_785;
const LOOP_ITEMS: usize = 1_000_000;

unsafe extern "C" {
    /// In the driver: the body of every parallel loop.
    fn bench_loop_body(data: *mut u32, begin: usize, end: usize);
    fn clock() -> std::ffi::c_long;
}

/// A pool that lives as long as the process.
trait Pool {
    fn spawn(job: impl FnOnce() + Send + 'static);
}

struct Rayon;
static RAYON: LazyLock<rayon::ThreadPool> =
    LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads can be had"));
impl Pool for Rayon {
    fn spawn(job: impl FnOnce() + Send + 'static) {
        RAYON.spawn(job);
    }
}

struct Tokio;
static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("two threads can be had")
});
impl Pool for Tokio {
    fn spawn(job: impl FnOnce() + Send + 'static) {
        drop(TOKIO.spawn(async move { job() }));
    }
}

struct Crossbeam;
static CROSSBEAM: LazyLock<DequePool> = LazyLock::new(DequePool::new);
impl Pool for Crossbeam {
    fn spawn(job: impl FnOnce() + Send + 'static) {
        CROSSBEAM.spawn(job);
    }
}

static DONE: Latch = Latch::new();

/// Tasks of `WORDS` words; the latch is static here, where the C++ rows carry its address, so one word more is carried.
fn post<P: Pool, const WORDS: usize>(count: u64) {
    let mut payload = [0u64; WORDS];
    for i in 0..count {
        payload[0] = i;
        P::spawn(move || {
            assert!(payload[0] != u64::MAX);
            DONE.down();
        });
    }
}

extern "C" fn outside<P: Pool, const WORDS: usize>(count: u64) -> u64 {
    DONE.reset(count);
    post::<P, WORDS>(count);
    DONE.wait();
    0
}

extern "C" fn two_producers<P: Pool>(count: u64) -> u64 {
    let start_together = std::sync::Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            start_together.wait();
            post::<P, 2>(count / 2);
        });
        DONE.reset(count / 2 * 2);
        start_together.wait();
        let start = Instant::now();
        post::<P, 2>(count / 2);
        DONE.wait();
        nanoseconds(start.elapsed())
    })
}

extern "C" fn inside<P: Pool>(count: u64) -> u64 {
    DONE.reset(count + 1);
    P::spawn(move || {
        post::<P, 2>(count);
        DONE.down();
    });
    DONE.wait();
    0
}

fn tree<P: Pool>(n: u32) {
    if n >= 2 {
        P::spawn(move || tree::<P>(n - 1));
        P::spawn(move || tree::<P>(n - 2));
    }
    DONE.down();
}

extern "C" fn task_tree<P: Pool>(_: u64) -> u64 {
    DONE.reset(FIB_NODES);
    P::spawn(|| tree::<P>(25));
    DONE.wait();
    0
}

extern "C" fn parked<P: Pool, const ROUND_TRIP: bool>(count: u64) -> u64 {
    let mut total = Duration::ZERO;
    for _ in 0..count {
        thread::sleep(Duration::from_millis(1));
        DONE.reset(1);
        let start = Instant::now();
        P::spawn(|| DONE.down());
        let posted = start.elapsed();
        DONE.wait();
        total += if ROUND_TRIP { start.elapsed() } else { posted };
    }
    nanoseconds(total)
}

extern "C" fn idle<P: Pool>(_: u64) -> u64 {
    outside::<P, 2>(100);
    thread::sleep(Duration::from_millis(200));
    // SAFETY: clock() only reads the process's CPU time, in microseconds on every POSIX system.
    let cpu = || u64::try_from(unsafe { clock() }).unwrap_or(0);
    let before = cpu();
    thread::sleep(Duration::from_secs(1));
    (cpu() - before) * 1000
}

extern "C" fn rayon_loop(_: u64) -> u64 {
    static DATA: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let mut guard = DATA.lock().unwrap();
    guard.resize(LOOP_ITEMS, 0);
    let data = guard.as_mut_slice();
    RAYON.install(|| {
        data.par_chunks_mut(4096).for_each(|chunk| {
            // SAFETY: the body writes `chunk[0..len]`, which is ours alone.
            unsafe { bench_loop_body(chunk.as_mut_ptr(), 0, chunk.len()) }
        });
    });
    0
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

extern "C" fn rayon_join(_: u64) -> u64 {
    assert_eq!(RAYON.install(|| fib(25)), 75025);
    0
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a round takes no centuries")
}

fn rows<P: Pool>(ops: &mut Vec<Op>, peer: &'static std::ffi::CStr) {
    ops.push(Op::new(c"parked pool: CPU ns in a second of rest", peer, 1, idle::<P>, ONCE));
    ops.push(Op::new(c"schedule from outside, 16 B", peer, 4000, outside::<P, 2>, THREADS));
    ops.push(Op::new(c"schedule from outside, 64 B", peer, 4000, outside::<P, 8>, THREADS));
    ops.push(Op::new(c"schedule from outside, 2 producers, 16 B", peer, 4000, two_producers::<P>, THREADS));
    ops.push(Op::new(c"spawn from inside, 16 B", peer, 4000, inside::<P>, THREADS));
    ops.push(Op::new(c"tree of tasks fib(25), per task", peer, FIB_NODES, task_tree::<P>, THREADS));
    ops.push(Op::new(c"post to parked workers", peer, 10, parked::<P, false>, THREADS));
    ops.push(Op::new(c"post to parked workers and wait", peer, 10, parked::<P, true>, THREADS));
}

/// Adds the rows of all three.
pub fn add(ops: &mut Vec<Op>) {
    rows::<Rayon>(ops, c"rayon");
    rows::<Tokio>(ops, c"tokio");
    rows::<Crossbeam>(ops, c"crossbeam");
    ops.push(Op::new(c"fork-join fib(25), per call", c"rayon", FIB_NODES, rayon_join, THREADS));
    ops.push(Op::new(c"parallel loop, per item", c"rayon", LOOP_ITEMS as u64, rayon_loop, THREADS));
}
