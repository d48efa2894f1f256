//! Works for a long time, and writes down once a second how much memory the process has: `soak MINUTES FILE.csv`.
//!
//! Three threads work beside each other: one plays sequences of the reference model, which must agree all the time; one
//! makes each of its outputs the next input (`soak/feedback.rs`); one moves arrays of mixed sizes through every kind of
//! end: donated, given back, bitcast, copied to another device, cancelled, failed, abandoned, transferred in pieces,
//! refused for want of memory. The last line says by how much memory grows in a minute after the first fifth of the
//! time (least squares); more than a MiB is a failure, and so is memory of a device that is in use in the end.

#![allow(unsafe_code, reason = "transfers read host memory by address")]

#[path = "../soak/feedback.rs"]
mod feedback;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use purlin_array::Shape;
use purlin_async::{CancelSource, Event, EventPromise, Executor, Task, TaskOptions};
use purlin_base::Error;
use purlin_device::{
    AllocOptions, AsyncHostToDeviceTransferManager, Buffer, Client, ClientOptions, RawBuffer, TransferSpec,
};
use purlin_host::HostBackend;
use purlin_reference::{Backend, Corpus, Fuzz, Random, RustSubject};

use feedback::Feedback;

const MIB: f64 = (1 << 20) as f64;
/// The most that memory may grow in a minute.
const LIMIT_MIB: f64 = 1.0;
/// Arrays that live at the same time.
const LIVE: usize = 24;

/// Bytes of the process that are in memory; none where the kernel does not say.
fn resident_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096.0)
}

/// What the second thread works on.
struct Mixed {
    client: Arc<Client>,
    live: Vec<Option<Buffer>>,
    random: Random,
    source: Vec<u8>,
}

impl Mixed {
    fn new() -> Result<Self, Error> {
        let options = ClientOptions {
            device_count: 2,
            worker_count: 2,
            memory_limit_bytes: 64 << 20,
            ..ClientOptions::default()
        };
        let client = Client::new(&options, Arc::new(HostBackend::new()))?;
        Ok(Self { client, live: vec![None; LIVE], random: Random::new(5), source: vec![7; 1 << 20] })
    }

    /// 1 byte to 1 MiB, as many small as large.
    fn size(&mut self) -> usize {
        let bits = self.random.below(21);
        1 + self.random.below(1 << bits) as usize
    }

    /// One thing. Errors that are asked for are looked for; others end the soak.
    fn step(&mut self) -> Result<(), Error> {
        let space = self.client.devices()[0].default_memory_space();
        let slot = self.random.below(LIVE as u64) as usize;
        let size = self.size();
        let dims = [size as i64];
        let made = Buffer::from_slice(&self.source[..size], &dims, &space)?;
        let new = match self.random.below(12) {
            0 => made.donate_after(&Event::ready())?,
            1 => made.bitcast(&Shape::new(purlin_array::DType::U8, &[1, size as i64])?, None)?,
            2 => made.copy_to_device(&self.client.devices()[1])?,
            3 => {
                // Given back once, then taken over.
                drop(made.donate(c"soak")?);
                let donation = made.donate(c"soak")?;
                let free = donation.free_event();
                Buffer::from_raw(donation.confirm(), &Shape::new(purlin_array::DType::U8, &dims)?, None, &free)?
            }
            4 => {
                // Abandoned: the copy fails, and nothing stays.
                let promise = EventPromise::new(c"soak");
                let pending = made.donate_after(&promise.event())?;
                let copy = pending.copy_to_device(&self.client.devices()[1])?;
                drop(promise);
                expect_error(copy.ready_event().wait())?;
                pending
            }
            5 => {
                let source = CancelSource::new(c"soak");
                let options = TaskOptions { cancel: source.token(), ..TaskOptions::default() };
                let keeps = made.clone();
                let promise = EventPromise::new(c"cancelled");
                let done = promise.event();
                let work = move || drop((keeps, promise.set_ready()));
                if self.random.below(2) == 0 {
                    source.cancel(Error::cancelled("soak"));
                }
                // Refused at once if it was cancelled before.
                let _ = options.apply(Task::new(c"soak", work)).and_then(|task| self.client.runner().execute(task));
                source.cancel(Error::cancelled("soak"));
                let _ = done.wait();
                made
            }
            6 => {
                made.delete();
                expect_error(made.to_vec::<u8>().map(drop))?;
                Buffer::error(Error::data_loss("soak"), made.shape(), &space)
            }
            7 => {
                let options = AllocOptions::default();
                expect_error(RawBuffer::allocate_with(&space, 1 << 30, &options).map(drop))?;
                made
            }
            8 | 9 => self.transfer(size)?,
            10 => {
                let (channel, promise) = Buffer::channel(made.shape(), None, &space)?;
                promise.fulfil(&made).map_err(|(error, _)| error)?;
                channel
            }
            _ => made,
        };
        if let Some(old) = self.live[slot].replace(new)
            && old.ready_event().wait().is_ok()
        {
            let back = old.to_vec::<u8>()?;
            if back.iter().any(|&byte| byte != 7) {
                return Err(Error::data_loss("the bytes of an array are not those that it was made of"));
            }
        }
        Ok(())
    }

    /// In two pieces, or given up after the first.
    fn transfer(&mut self, size: usize) -> Result<Buffer, Error> {
        let space = self.client.devices()[0].default_memory_space();
        let spec = TransferSpec { shape: Shape::new(purlin_array::DType::U8, &[size as i64])?, layout: None };
        let manager = AsyncHostToDeviceTransferManager::new(&[spec], &space, &AllocOptions::default())?;
        let buffer = manager.retrieve_buffer(0)?;
        let half = size / 2;
        let data = self.source.as_ptr();
        // SAFETY: the source lives as long as this, and is never written; the event is waited for below, or the pieces
        // are small copies that the wait for all of them covers.
        unsafe { manager.transfer_raw_data_to_sub_buffer(0, data, 0, half, false, None)? };
        if self.random.below(4) == 0 {
            drop(manager);
            expect_error(buffer.ready_event().wait())?;
            return Ok(buffer);
        }
        // SAFETY: as above.
        unsafe { manager.transfer_raw_data_to_sub_buffer(0, data, half, size - half, true, None)? };
        buffer.ready_event().wait()?;
        Ok(buffer)
    }

    /// Bytes of devices in use after everything has gone.
    fn end(mut self) -> u64 {
        self.live.clear();
        let _ = self.client.runner().shutdown();
        let devices = self.client.devices();
        devices.iter().flat_map(purlin_device::Device::memory_spaces).map(|space| space.stats().bytes_in_use).sum()
    }
}

fn expect_error(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Ok(()) => Err(Error::internal("what had to fail has succeeded")),
        Err(_) => Ok(()),
    }
}

/// Growth by a unit of x.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    along / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

fn play(stop: &AtomicBool, done: &AtomicU64) -> Result<(), String> {
    let mut subject = RustSubject::new();
    for seed in 0.. {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let run = Fuzz {
            subject: &mut subject,
            backend: Backend::Host,
            seed,
            operations: 2_000,
            grow: false,
            corpus: &Corpus::here(),
        }
        .run();
        let report = run.map_err(|difference| difference.to_string())?;
        // Relaxed: a number to print.
        done.fetch_add(report.operations, Ordering::Relaxed);
    }
    Ok(())
}

fn mix(stop: &AtomicBool, done: &AtomicU64) -> Result<(), String> {
    let mut mixed = Mixed::new().map_err(|error| error.to_string())?;
    while !stop.load(Ordering::Acquire) {
        mixed.step().map_err(|error| error.to_string())?;
        // Relaxed: a number to print.
        done.fetch_add(1, Ordering::Relaxed);
    }
    match mixed.end() {
        0 => Ok(()),
        left => Err(format!("{left} bytes of devices are in use in the end")),
    }
}

fn feed_back(stop: &AtomicBool, done: &AtomicU64) -> Result<(), String> {
    let mut feedback = Feedback::new().map_err(|error| error.to_string())?;
    while !stop.load(Ordering::Acquire) {
        feedback.step().map_err(|error| format!("feedback: {error}"))?;
        // Relaxed: a number to print.
        done.fetch_add(1, Ordering::Relaxed);
    }
    match feedback.end() {
        0 => Ok(()),
        left => Err(format!("feedback: {left} bytes of devices are in use in the end")),
    }
}

fn soak(minutes: f64, path: &str) -> Result<String, String> {
    let mut csv = BufWriter::new(File::create(path).map_err(|error| format!("{path}: {error}"))?);
    let (stop, operations, arrays, feedback) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (begin, mut points) = (Instant::now(), Vec::new());
    let written = |error: std::io::Error| format!("{path}: {error}");
    writeln!(csv, "seconds,resident_bytes,operations,arrays,feedback").map_err(written)?;
    let outcomes = std::thread::scope(|scope| {
        let players = [
            scope.spawn(|| play(&stop, &operations)),
            scope.spawn(|| mix(&stop, &arrays)),
            scope.spawn(|| feed_back(&stop, &feedback)),
        ];
        while begin.elapsed().as_secs_f64() < minutes * 60.0 && !players.iter().any(|player| player.is_finished()) {
            std::thread::sleep(Duration::from_secs(1));
            let (seconds, Some(bytes)) = (begin.elapsed().as_secs_f64(), resident_bytes()) else { continue };
            // Relaxed: numbers to print.
            let numbers = [&operations, &arrays, &feedback].map(|number| number.load(Ordering::Relaxed));
            let _ = writeln!(csv, "{seconds:.1},{bytes},{},{},{}", numbers[0], numbers[1], numbers[2]);
            points.push((seconds / 60.0, bytes / MIB));
        }
        stop.store(true, Ordering::Release);
        players.map(|player| player.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    });
    csv.flush().map_err(written)?;
    outcomes.into_iter().collect::<Result<(), String>>()?;
    let warm: Vec<_> = points.into_iter().filter(|point| point.0 >= minutes / 5.0).collect();
    if warm.len() < 10 {
        return Err("too short, or the kernel does not say how much memory the process has".into());
    }
    let (grows, last) = (slope(&warm), warm[warm.len() - 1].1);
    let said = format!(
        "soak: {minutes} minutes, {} operations against the model, {} arrays of mixed sizes, {} steps of \
         feedback, {last:.1} MiB resident, growing by {grows:.3} MiB a minute (limit {LIMIT_MIB})",
        operations.into_inner(),
        arrays.into_inner(),
        feedback.into_inner()
    );
    if grows < LIMIT_MIB { Ok(said) } else { Err(said) }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [minutes, path] = &words[..] else {
        eprintln!("usage: soak MINUTES FILE.csv");
        return ExitCode::from(2);
    };
    match minutes.parse().map_err(|_| format!("'{minutes}' is no number")).and_then(|minutes| soak(minutes, path)) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}
