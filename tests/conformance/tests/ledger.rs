//! The ledger sees what is left behind, and says whose it is. A process of its own: the ledger is the process's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use purlin_async::{EventPromise, ThreadPool, ThreadPoolOptions};
use purlin_base::Label;
use purlin_conformance::ledger::{Ledger, add_books};
use purlin_device::{AllocOptions, Client, ClientOptions, NullBackend, RawBuffer};

const AT_ONCE: Duration = Duration::from_millis(20);
/// Only a failing test waits that long.
const LONG_ENOUGH: Duration = Duration::from_secs(20);

#[track_caller]
fn assert_left(before: &Ledger, parts: &[&str]) {
    let end = Instant::now() + LONG_ENOUGH;
    loop {
        let left = before.settles_within(AT_ONCE).expect_err("something was left behind");
        // A thread gives itself its name a moment after it has begun.
        let Some(part) = parts.iter().find(|part| !left.contains(**part)) else { return };
        assert!(Instant::now() < end, "'{part}' is missing in:\n{left}");
    }
}

/// One test, so that nothing else in this process lives meanwhile.
#[test]
fn what_is_left_behind_is_named() {
    let before = Ledger::now();
    assert_eq!(before.settles(), Ok(()));

    let promise = EventPromise::new(c"forgotten promise");
    assert_left(&before, &["1 promises left behind", "'forgotten promise' made at tests/conformance/tests/ledger.rs"]);
    drop(promise);
    assert_eq!(before.settles(), Ok(()));

    let client = Client::new(&ClientOptions { worker_count: 1, ..Default::default() }, Arc::new(NullBackend::new()));
    let space = client.expect("a client of one worker").devices()[0].default_memory_space();
    let options = AllocOptions { label: Label::new(c"forgotten array"), ..Default::default() };
    let buffer = RawBuffer::allocate_with(&space, 1000, &options).expect("a thousand bytes");
    drop(space);
    assert_left(
        &before,
        &["client of 'null'", "1000 bytes in use by 1 allocations", "1000 bytes 'forgotten array' from", "ledger.rs:"],
    );
    drop(buffer);
    assert_eq!(before.settles(), Ok(()));

    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, name: "forgotten".to_owned() }).expect("a pool");
    assert_left(&before, &["pool 'forgotten'", "2 threads left behind", "forgotten/1"]);
    drop(pool);
    assert_eq!(before.settles(), Ok(()));

    let (stop, stopped) = channel::<()>();
    let thread = thread::Builder::new().name("stray".to_owned()).spawn(move || stopped.recv()).expect("a thread");
    assert_left(&before, &["1 threads left behind"]);
    drop(stop);
    thread.join().expect("it does not panic").expect_err("nobody sends");
    assert_eq!(before.settles(), Ok(()));

    let file = std::fs::File::open("/dev/null").expect("there is one");
    assert_left(&before, &["1 descriptors left behind", "/dev/null"]);
    drop(file);
    assert_eq!(before.settles(), Ok(()));

    static STREAMS: AtomicU64 = AtomicU64::new(3);
    add_books(|| vec![("streams", STREAMS.load(Ordering::Relaxed))]);
    assert_left(&before, &["3 streams of the driver left behind"]);
    STREAMS.store(0, Ordering::Relaxed);
    assert_eq!(before.settles(), Ok(()));
}
