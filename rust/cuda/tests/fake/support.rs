//! A client on the fake driver, its memory, and what must be left when it is gone.

#![allow(unsafe_code, reason = "copies are made by address, processes by fork, and the driver is asked")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use purlin::{Client, ClientOptions, Error, Event, RawBuffer, ShutdownMode, ShutdownOptions};
use purlin_cuda::CudaBackend;
use purlin_fakecuda::{Cuda, Driver, on_a_gpu, process};

/// Nothing takes so long on any machine: what does is stuck.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A client with a thread for the host's work, and the fake driver under it.
pub(crate) struct Session {
    pub(crate) driver: Driver,
    pub(crate) client: Arc<Client>,
}

pub(crate) fn client(devices: usize) -> Result<Arc<Client>, Error> {
    let options = ClientOptions { device_count: devices, worker_count: 2, ..ClientOptions::default() };
    // A machine may have fewer GPUs than the fake driver.
    Client::new(&options, Arc::new(CudaBackend::new()?.with_virtual_devices(on_a_gpu())))
}

impl Session {
    pub(crate) fn new(devices: usize) -> Self {
        let driver = Driver::open();
        Self { driver, client: client(devices).unwrap() }
    }

    pub(crate) fn block(&self, device: usize, kind: &str, bytes: usize) -> RawBuffer {
        block(&self.client, device, kind, bytes).unwrap()
    }

    /// Has a session do something, and ends it when all that is used of it is gone.
    pub(crate) fn with(devices: usize, body: impl FnOnce(&Self)) {
        let session = Self::new(devices);
        body(&session);
        session.end();
    }

    /// Ends the client; nothing is left of it, and the detector is silent.
    pub(crate) fn end(self) {
        self.ended().control.no_reports();
    }

    /// As [`end`](Self::end), where a GPU of the client's has broken: what was in flight there is freed all the same.
    #[track_caller]
    pub(crate) fn end_broken(self) {
        only_what_broke_is_reported("a broken GPU", &self.ended());
    }

    fn ended(self) -> Driver {
        let Self { driver, client } = self;
        shut_down(&client).unwrap();
        drop(client);
        nothing_is_left(&driver);
        nothing_is_promised("");
        driver
    }

    /// Each of these was called so often since the last reset. Only the fake driver counts.
    #[track_caller]
    pub(crate) fn called(&self, expected: &[(&str, u64)], what: &str) {
        if self.driver.control.is_fake() {
            let found: Vec<_> = expected.iter().map(|(entry, _)| (*entry, self.driver.control.calls(entry))).collect();
            assert_eq!(found, expected, "{what}");
        }
    }

    /// How often each entry point was called since the last reset, without those that `but` has.
    pub(crate) fn calls(&self, but: &[&str]) -> BTreeMap<&'static str, u64> {
        let names = Cuda::NAMES.iter().filter(|name| !but.contains(name));
        names.map(|name| (*name, self.driver.control.calls(name))).filter(|(_, calls)| *calls > 0).collect()
    }
}

/// How many GPUs there are.
pub(crate) fn gpus() -> usize {
    let (driver, mut count) = (Driver::open(), 0);
    // SAFETY: the driver may be initialised again, and writes a number.
    let codes = unsafe { [(driver.cuda.cuInit)(0), (driver.cuda.cuDeviceGetCount)(&mut count)] };
    assert_eq!(codes, [0; 2]);
    usize::try_from(count).unwrap()
}

pub(crate) fn block(client: &Client, device: usize, kind: &str, bytes: usize) -> Result<RawBuffer, Error> {
    RawBuffer::allocate(&client.devices()[device].memory_space(kind)?, bytes)
}

/// Ends the client; what is in flight then has a limit.
pub(crate) fn shut_down(client: &Client) -> Result<(), Error> {
    client.shutdown(ShutdownOptions { mode: ShutdownMode::Drain, timeout: Some(LIMIT) })
}

/// Nothing that the driver has begins, until this is dropped: also if a test fails meanwhile. Only the fake driver
/// holds its work; what others have may begin and be over at any time.
pub(crate) struct Held<'a>(&'a Driver);

impl<'a> Held<'a> {
    pub(crate) fn new(driver: &'a Driver) -> Self {
        driver.control.hold(true);
        Self(driver)
    }

    /// None of these is over, as long as this holds the driver's work.
    #[track_caller]
    pub(crate) fn keeps<'e>(&self, events: impl IntoIterator<Item = &'e Event>) {
        if self.0.control.is_fake() {
            assert!(events.into_iter().all(|event| !event.is_ready()), "something is over");
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.control.hold(false);
    }
}

/// How it ended. It must.
#[track_caller]
pub(crate) fn outcome(event: &Event) -> Result<(), Error> {
    let outcome = event.wait_for(LIMIT);
    assert!(event.is_ready(), "an event does not happen: {outcome:?}");
    outcome
}

/// Waits until it is so.
///
/// # Panics
/// With what `what` says, if it does not become so.
#[track_caller]
pub(crate) fn until(what: impl Fn() -> String, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{}", what());
        // Nothing is won by it: what is waited for comes when it comes.
        thread::sleep(Duration::from_millis(1));
    }
}

/// Threads of the backend.
pub(crate) fn threads() -> Vec<String> {
    let folder = fs::read_dir("/proc/self/task").unwrap();
    let names = folder.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with("purlin-cuda")).collect()
}

/// The driver's books have no more than `before`, but for what is `allowed`, and the backend has no thread.
#[track_caller]
pub(crate) fn only_is_left(what: &str, driver: &Driver, before: &[(&'static str, u64)], allowed: &[&str]) {
    let left = || {
        let mut left = driver.left();
        left.retain(|entry| !allowed.contains(&entry.0) && !before.contains(entry));
        left
    };
    let is_over = || left().is_empty() && threads().is_empty();
    until(|| format!("{what}: left: {:?}, threads {:?}", left(), threads()), is_over);
}

/// No promise is pending, and no client lives.
#[track_caller]
pub(crate) fn nothing_is_promised(what: &str) {
    let stalls = || purlin_async::stalls(Duration::ZERO);
    let is_over = |stalls: purlin_async::stall::StallReport| stalls.events.is_empty() && stalls.executors.is_empty();
    until(|| format!("{what}: promised: {:?}", stalls()), || is_over(stalls()));
}

#[track_caller]
pub(crate) fn nothing_is_left(driver: &Driver) {
    only_is_left("", driver, &[], &[]);
}

/// Bytes that no two places of which have in common soon.
pub(crate) fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
    /// After so many it begins again.
    const PERIOD: usize = 1 << 16;
    let byte = |at: usize| (at.wrapping_mul(31).wrapping_add(at >> 8).wrapping_add(seed * 77) & 0xff) as u8;
    let first: Vec<u8> = (0..bytes.min(PERIOD)).map(byte).collect();
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        all.extend_from_slice(&first[..first.len().min(bytes - all.len())]);
    }
    all
}

/// Copies to a block, and waits.
#[track_caller]
pub(crate) fn write(block: &RawBuffer, bytes: &[u8]) -> Result<(), Error> {
    // SAFETY: the bytes stay until the event, which outcome() waits for or fails the process; the caller has no other
    // use of the block under way.
    outcome(&unsafe { block.copy_from_host(bytes.as_ptr(), 0, bytes.len(), &[]) })
}

/// Copies from a block, and waits.
#[track_caller]
pub(crate) fn read(block: &RawBuffer) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; block.size_bytes()];
    // SAFETY: as in write().
    outcome(&unsafe { block.copy_to_host(bytes.as_mut_ptr(), 0, bytes.len(), &[]) })?;
    Ok(bytes)
}

/// All of a block to another, asked for where this is.
#[track_caller]
pub(crate) fn copy(from: &RawBuffer, to: &RawBuffer, after: &[Event]) -> Event {
    // SAFETY: callers order what uses the blocks by `after`.
    unsafe { from.copy_to(to, after) }
}

/// The detector is silent but for what a device had when it broke: that is never over, so nothing can be ordered behind
/// it; but it goes on no more.
#[track_caller]
pub(crate) fn only_what_broke_is_reported(what: &str, driver: &Driver) {
    let mut reports = driver.control.take_reports();
    reports.retain(|report| !report.starts_with("free not ordered behind a use"));
    assert!(reports.is_empty(), "{what}: the detector says:\n{}", reports.join("\n"));
}

/// Runs `body` in a child made by fork, which must end well within the limit, and without a report of the detector
/// where it was the first to use the driver. `what` names it.
#[track_caller]
pub(crate) fn forked(what: &str, body: impl FnOnce()) {
    // SAFETY: Purlin's locks keep clear of forks, and this process runs one test.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no fork");
    if child == 0 {
        let ended = purlin_base::panics::caught(|| {
            body();
            process::no_reports();
        });
        // SAFETY: it ends the child, with nothing of the parent's run.
        unsafe { libc::_exit(if ended.is_ok() { 0 } else { 1 }) };
    }
    let status = ended(child).unwrap_or_else(|| panic!("hangs: {what}"));
    assert_eq!(status, 0, "status of the child: {what}");
}

/// As [`forked`]. What `body` has counted.
#[track_caller]
pub(crate) fn counted_in_child(what: &str, body: impl FnOnce() -> u64) -> u64 {
    let (mut answers, mut tells) = std::io::pipe().unwrap();
    forked(what, || tells.write_all(&body().to_le_bytes()).unwrap());
    let mut counted = [0; 8];
    answers.read_exact(&mut counted).unwrap();
    u64::from_le_bytes(counted)
}

/// How a child ended; `None`: it had to be killed.
pub(crate) fn ended(child: libc::pid_t) -> Option<i32> {
    let (begin, mut status) = (Instant::now(), 0);
    loop {
        // SAFETY: it writes a number, and the child is ours.
        match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
            // Its own waits end before, and say what they wait for.
            0 if begin.elapsed() > LIMIT + LIMIT / 2 => {
                // SAFETY: the child is ours, and was not waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
                // SAFETY: as above.
                unsafe { libc::waitpid(child, &mut status, 0) };
                return None;
            }
            // As in until().
            0 => thread::sleep(Duration::from_millis(1)),
            _ => return Some(status),
        }
    }
}
