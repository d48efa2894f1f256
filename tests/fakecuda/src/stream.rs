//! Streams: a thread and a queue each. An operation runs when those before it on its stream are over, and all points
//! that it waits for.
//!
//! A point is a place in a stream's queue: it is over when as many operations are. The thread is started by the first
//! operation and ends when the stream is closed and its queue is empty; only then the stream leaves the table, so a
//! point of a stream that is not there is over.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::detector::clock::Clock;
use crate::detector::shadow::Span;
use crate::detector::stamp::Stamp;
use crate::detector::{Access, Life};
use crate::driver::{self, Driver};
use crate::kernel::launch::Outcome;
use crate::memory::Found;
use crate::operation::{Operation, Origin, Request, Work};
use crate::state::State;
use crate::sync::{Condvar, Guard};
use crate::thread;

/// A stack for interpreted kernels and host functions.
const STACK_BYTES: usize = 1 << 20;

/// How a stream is ordered with its context's legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is that.
    Legacy,
    /// In both directions.
    Blocking,
    /// Not at all.
    NonBlocking,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) stream: usize,
    pub(crate) sequence: u64,
}

/// See the module.
pub(crate) struct Stream {
    pub(crate) device: usize,
    pub(crate) kind: Kind,
    pub(crate) place: Arc<str>,
    pub(crate) lane: usize,
    pub(crate) clock: Clock,
    /// The last operation that was queued.
    pub(crate) tail: u64,
    /// The last that is over.
    pub(crate) completed: u64,
    pub(crate) queue: VecDeque<Operation>,
    /// The capture that the stream takes part in.
    pub(crate) capture: Option<usize>,
    pub(crate) is_closed: bool,
    /// The program made it; otherwise it is a default stream.
    pub(crate) is_made: bool,
    /// The operation at the head, and whether it is a copy that has begun.
    running: Option<(u64, bool)>,
    wake: Arc<Condvar>,
    worker: Option<JoinHandle<()>>,
}

impl State {
    /// A new stream.
    pub(crate) fn open_stream(&mut self, driver: &Driver, device: usize, kind: Kind) -> usize {
        let handle = driver.new_handle();
        let (lane, last) = self.detector.new_lane();
        let place = match kind {
            Kind::Legacy => format!("the default stream of device {device}"),
            Kind::Blocking | Kind::NonBlocking => format!("stream {handle:#x} of device {device}"),
        };
        let stream = Stream {
            device,
            kind,
            place: place.into(),
            lane,
            clock: Clock::default(),
            tail: last,
            completed: last,
            queue: VecDeque::new(),
            capture: None,
            is_closed: false,
            is_made: false,
            running: None,
            wake: Arc::default(),
            worker: None,
        };
        self.streams.insert(handle, stream);
        handle
    }

    /// The stream takes no more work, and goes when what it has is over; [`settle`] waits for its thread.
    pub(crate) fn close_stream(&mut self, handle: usize) {
        let Some(stream) = self.streams.get_mut(&handle) else { return };
        stream.is_closed = true;
        match stream.worker.take() {
            Some(worker) => {
                stream.wake.notify_all();
                self.ending.push((handle, worker));
            }
            None => self.remove_stream(handle),
        }
    }

    fn remove_stream(&mut self, handle: usize) {
        if let Some(stream) = self.streams.remove(&handle) {
            self.detector.end_lane(stream.lane, stream.tail);
        }
    }

    pub(crate) fn wake_streams(&self) {
        self.streams.values().for_each(|stream| stream.wake.notify_all());
    }

    /// Copies that run at this moment.
    pub(crate) fn running_copies(&self) -> Vec<Point> {
        let copies =
            self.streams.iter().filter_map(|(handle, stream)| Some((*handle, stream.running.filter(|of| of.1)?)));
        copies.map(|(stream, (sequence, _))| Point { stream, sequence }).collect()
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self, point: Point) -> bool {
        self.streams.get(&point.stream).is_none_or(|stream| stream.completed >= point.sequence)
    }

    /// The last point of a stream, with those of the streams that it is ordered behind by itself, and their clocks.
    fn tail(&self, handle: usize) -> (Vec<Point>, Clock) {
        let Some(stream) = self.streams.get(&handle) else { return (Vec::new(), Clock::default()) };
        let mut clock = stream.clock.clone();
        let mut points = vec![Point { stream: handle, sequence: stream.tail }];
        for (other, with) in self.ordered_with(stream) {
            points.push(Point { stream: other, sequence: with.tail });
            clock.join(&with.clock);
        }
        (points, clock)
    }

    /// What a thread that waits for the stream waits for. To others than the legacy default stream what that has now is
    /// nothing: their own work has waited for what it had then.
    pub(crate) fn waited_for(&self, handle: usize) -> (Vec<Point>, Clock) {
        match self.streams.get(&handle) {
            Some(stream) if stream.kind != Kind::Legacy => {
                (vec![Point { stream: handle, sequence: stream.tail }], stream.clock.clone())
            }
            _ => self.tail(handle),
        }
    }

    /// The streams whose work so far comes before all that is put on this one.
    fn ordered_with(&self, stream: &Stream) -> impl Iterator<Item = (usize, &Stream)> {
        let (device, kind) = (stream.device, stream.kind);
        let is_ordered = move |other: &Stream| match kind {
            Kind::Legacy => other.kind == Kind::Blocking,
            Kind::Blocking => other.kind == Kind::Legacy,
            Kind::NonBlocking => false,
        };
        let streams = self.streams.iter().filter(move |(_, other)| other.device == device && is_ordered(other));
        streams.map(|(handle, other)| (*handle, other))
    }

    /// Puts an operation on a stream that does not capture. Its point, and its stamp.
    pub(crate) fn enqueue(&mut self, call: &Call, handle: usize, request: Request) -> Answer<(Point, Arc<Stamp>)> {
        let (mut waits, before) = self.tail(handle);
        let stream = self.streams.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
        if stream.worker.is_none() {
            stream.worker = Some(start(call.driver, handle)?);
        }
        let Request { work, accesses, copied, waits: more, clock, origin } = request;
        stream.clock.join(&before);
        clock.iter().for_each(|clock| stream.clock.join(clock));
        waits.extend(more);
        waits.retain(|point| point.stream != handle);
        stream.tail += 1;
        let sequence = stream.tail;
        let kernel = if let Work::Launch(launch) = &work { Some(Arc::clone(&launch.function.name)) } else { None };
        let own = || Origin { entry: call.entry.name(), label: thread::label(), place: None };
        let Origin { entry, label, mut place } = origin.unwrap_or_else(own);
        let stamp = Stamp {
            number: 0,
            entry,
            kernel,
            label,
            place: Arc::clone(&stream.place),
            lane: stream.lane,
            sequence,
            clock: Clock::default(),
        };
        let stamp = match &mut place {
            Some((lane, sequence, clock)) => self.detector.stamp(clock, *lane, *sequence, stamp),
            None => self.detector.stamp(&mut stream.clock, stream.lane, sequence, stamp),
        };
        let is_launch = matches!(work, Work::Launch(_));
        let (reads, copied) = self.look_at(&stamp, &accesses, copied, is_launch);
        let stream = self.streams.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
        let fault = call.fault;
        let operation = Operation { sequence, stamp: Arc::clone(&stamp), waits, work, fault, reads, copied };
        stream.queue.push_back(operation);
        stream.wake.notify_all();
        Ok((Point { stream: handle, sequence }, stamp))
    }

    /// Shows the detector what an operation touches. What can be judged only when it runs comes back.
    fn look_at(
        &mut self,
        stamp: &Arc<Stamp>,
        accesses: &[Access],
        copied: Vec<(Span, Span)>,
        is_launch: bool,
    ) -> (Vec<Span>, Vec<(Span, Span)>) {
        if !self.detector.is_on {
            return (Vec::new(), Vec::new());
        }
        let is_early = self.detector.is_early(stamp);
        let mut reads = Vec::new();
        for access in accesses {
            let Some(life) = self.life(*access) else { continue };
            self.detector.access(*access, stamp, &life);
            if access.must_be_written && is_early {
                reads.push(access.span);
            } else if access.must_be_written {
                self.detector.must_be_written(access.span, stamp, &life);
            }
        }
        if !is_early {
            copied.iter().for_each(|(from, to)| self.detector.copied(*from, *to, stamp));
        }
        if is_launch || !reads.is_empty() || (is_early && !copied.is_empty()) {
            self.detector.expect(stamp);
        }
        (reads, if is_early { copied } else { Vec::new() })
    }

    /// Of the block that the access lies in.
    pub(crate) fn life(&self, access: Access) -> Option<Life> {
        match self.memory.find(access.span) {
            Found::Inside(block) => Some(block.life.clone()),
            Found::Beyond(_) | Found::Nothing => None,
        }
    }

    /// An operation has run, or was dropped.
    fn finish(&mut self, operation: &Operation, outcome: &Outcome) {
        for read in &operation.reads {
            let life = self.life(Access { span: *read, writes: false, must_be_written: true });
            life.iter().for_each(|life| self.detector.must_be_written(*read, &operation.stamp, life));
        }
        operation.copied.iter().for_each(|(from, to)| self.detector.copied(*from, *to, &operation.stamp));
        outcome.tell(self, &operation.stamp);
        if let Work::Free(bytes, address) = &operation.work {
            // Also if it was dropped: nobody will ask for them.
            bytes.free();
            self.memory.bury(*address);
        }
        self.detector.over(&operation.stamp);
    }
}

/// Waits for the threads of closed streams that have nothing left to do.
pub(crate) fn settle(driver: &Driver) {
    let mut state = driver.state.lock();
    let is_about_to_end = |stream: &Stream| stream.is_closed && stream.queue.is_empty() && stream.running.is_none();
    while state.streams.values().any(is_about_to_end) {
        state = driver.changed.wait(state);
    }
    let ending = mem::take(&mut state.ending);
    let (busy, ended) = ending.into_iter().partition(|(stream, _)| state.streams.contains_key(stream));
    state.ending = busy;
    drop(state);
    let ended: Vec<(usize, JoinHandle<()>)> = ended;
    ended.into_iter().for_each(|(_, worker)| _ = worker.join());
}

fn start(driver: &'static Driver, handle: usize) -> Answer<JoinHandle<()>> {
    let name = format!("fakecuda-{handle:x}");
    driver.threads.fetch_add(1, Ordering::Relaxed);
    let started = Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        serve(driver, handle);
        driver.threads.fetch_sub(1, Ordering::Relaxed);
    });
    started.map_err(|_| {
        driver.threads.fetch_sub(1, Ordering::Relaxed);
        Code::OUT_OF_MEMORY
    })
}

/// What a stream's thread does.
fn serve(driver: &'static Driver, handle: usize) {
    let mut state = driver.state.lock();
    while let Some(stream) = state.streams.get_mut(&handle) {
        let (device, wake) = (stream.device, Arc::clone(&stream.wake));
        let Some(operation) = stream.queue.pop_front() else {
            if stream.is_closed {
                state.remove_stream(handle);
                break;
            }
            state = wake.wait(state);
            continue;
        };
        stream.running = Some((operation.sequence, false));
        let outcome;
        (state, outcome) = run(driver, state, (handle, device), &operation);
        if let Some(code) = outcome.code {
            driver.break_device(&mut state, device, code);
        }
        state.finish(&operation, &outcome);
        if let Some(stream) = state.streams.get_mut(&handle) {
            stream.running = None;
            stream.completed = operation.sequence;
        }
        driver.changed.notify_all();
        // What it held may be the last of its kind, and unmaps memory: not under the lock.
        state = outside(driver, state, || drop(operation));
    }
    drop(state);
    driver.changed.notify_all();
}

fn outside<'a>(driver: &'a Driver, state: Guard<'a, State>, body: impl FnOnce()) -> Guard<'a, State> {
    drop(state);
    body();
    driver.state.lock()
}

type Ran<'a> = (Guard<'a, State>, Outcome);

/// Waits for what the operation waits for, and runs it; on a broken device it is dropped.
fn run<'a>(
    driver: &'a Driver,
    mut state: Guard<'a, State>,
    (handle, device): (usize, usize),
    operation: &Operation,
) -> Ran<'a> {
    loop {
        if driver.works(device).is_err() {
            return (state, Outcome::default());
        }
        let is_due =
            |state: &State| !state.controls.is_held && operation.waits.iter().all(|point| state.is_over(*point));
        if is_due(&state) {
            break;
        }
        state = driver.changed.wait(state);
    }
    if let Some(code) = operation.fault {
        return (state, Outcome::broken(code));
    }
    let is_copy = matches!(operation.work, Work::Copy { .. } | Work::Fill { .. });
    state.streams.entry(handle).and_modify(|stream| stream.running = Some((operation.sequence, is_copy)));
    let delay = state.controls.draw_delay();
    let mut outcome = Outcome::default();
    state = outside(driver, state, || {
        delay.into_iter().for_each(std::thread::sleep);
        // clippy.toml names base's door for this; see `boundary`.
        #[allow(clippy::disallowed_methods, reason = "a stream's thread goes on after a panic in a kernel")]
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| operation.work.run(&operation.stamp)));
        outcome = ran.unwrap_or_else(|_| {
            driver::complain(&format!("{} panicked while it ran: a bug of the fake", operation.stamp));
            Outcome::broken(Code::UNKNOWN.0)
        });
    });
    (state, outcome)
}
