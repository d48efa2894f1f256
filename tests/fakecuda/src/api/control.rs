//! What tests ask of the fake and turn while it runs. `purlin-fakecuda` has these for Rust; C and C++ declare them as
//! they stand here. They work before `cuInit`, are not counted, and answer 0 where there is nothing to answer.

#![allow(unsafe_code, reason = "symbols have names that others could have")]

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering;

use purlin_fakecuda_options as options;
use purlin_fakecuda_options::Fault;

use crate::boundary::{In, Out};
use crate::driver::{self, Driver};
use crate::memory::Kind;
use crate::state::State;
use crate::stream::settle;
use crate::{entry, thread, watch};

fn with<T: Default>(body: impl FnOnce(&'static Driver) -> T) -> T {
    driver::may_be_called().and_then(|()| driver::get()).map(body).unwrap_or_default()
}

/// Changes a control; all streams look again.
fn turn(body: impl FnOnce(&mut State)) {
    with(|driver| {
        body(&mut driver.state.lock());
        driver.changed.notify_all();
    });
}

fn text(text: In<c_char>) -> String {
    text.text().unwrap_or_default()
}

/// Says lines of `VARIABLE=VALUE` in the place of the environment, before the process first calls the driver. 0, or 1
/// if it is too late, or not understood.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_configure(lines: In<c_char>) -> c_int {
    let lines = text(lines);
    let variables = lines.lines().filter_map(|line| line.split_once('='));
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    c_int::from(!driver::configure(&variables))
}

/// The calls of this thread have that label from now on.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_set_label(label: In<c_char>) {
    thread::set_label(&text(label));
}

/// How often an entry point was called; the most there is, if there is none of that name.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_calls(name: In<c_char>) -> u64 {
    entry::calls(&text(name)).unwrap_or(u64::MAX)
}

/// All counters are 0.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_reset_calls() {
    entry::reset();
}

/// Writes down from now on, if it is not 0, which threads call what; else no longer.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_watch(is_on: c_int) {
    watch::turn(is_on != 0);
}

/// What was seen by [`purlin_fakecuda_watch`], as much as there is room for, with a null at the end. How many bytes all
/// needs.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_watched(buffer: Out<c_char>, size_bytes: usize) -> usize {
    give(&watch::seen(), buffer, size_bytes)
}

/// Faults as the environment says them, in place of those that were there. 0, or 1 for what is not understood.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_set_faults(faults: In<c_char>) -> c_int {
    let parsed: Option<Vec<Fault>> = options::names(&text(faults)).iter().map(|fault| Fault::parse(fault)).collect();
    let Some(parsed) = parsed else { return 1 };
    with(|driver| driver.faults.set(parsed));
    0
}

/// Traps as the environment says them, in place of those that were there. 0, or 1 for what is not understood.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_set_traps(traps: In<c_char>) -> c_int {
    let Some(traps) = options::traps(&text(traps)) else { return 1 };
    turn(|state| state.controls.traps = traps);
    0
}

/// Kernels of these names never end; those that are not named any more do.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_set_endless(kernels: In<c_char>) {
    turn(|state| state.controls.endless = options::names(&text(kernels)));
}

/// Each operation begins up to so much later; 0 for at once.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_set_delays(seed: u64, most_us: u64) {
    turn(|state| state.controls.set_delays(seed, most_us));
}

/// While it is not 0, no operation begins.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_hold(is_held: c_int) {
    turn(|state| state.controls.is_held = is_held != 0);
}

/// Which waits do nothing, as the environment says it.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_ignore_waits(labels: In<c_char>) {
    turn(|state| state.controls.ignored_waits = options::ignored(&text(labels)));
}

/// The device falls off: every call on it answers the code from now on.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_break_device(device: c_int, code: c_uint) {
    with(|driver| {
        let device = usize::try_from(device).unwrap_or(usize::MAX);
        driver.break_device(&mut driver.state.lock(), device, code);
    });
}

/// How many reports there are.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_report_count() -> usize {
    with(|driver| driver.state.lock().detector.reports.count())
}

/// The reports, a line each, as much as there is room for, with a null at the end. How many bytes all need.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_reports(buffer: Out<c_char>, size_bytes: usize) -> usize {
    with(|driver| {
        let lines = driver.state.lock().detector.reports.kept().join("\n");
        give(&lines, buffer, size_bytes)
    })
}

/// Writes as much of the text as there is room for. How many bytes all needs.
fn give(text: &str, buffer: Out<c_char>, size_bytes: usize) -> usize {
    if buffer.required().is_ok() {
        buffer.set_text(text, size_bytes);
    }
    text.len() + 1
}

/// There are no reports.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_clear_reports() {
    turn(|state| state.detector.reports.clear());
}

/// How many there are of `contexts` (retains), `streams`, `events`, `modules`, `graphs` (and executable ones), `pools`,
/// `device_bytes`, `pinned_bytes` or `threads`; the most there is for any other name. A context's default streams are
/// not counted, since nobody made them; their threads are.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakecuda_ledger(what: In<c_char>) -> u64 {
    with(|driver| {
        settle(driver);
        let state = driver.state.lock();
        let count = match text(what).as_str() {
            "contexts" => state.contexts.iter().map(|context| context.retained).sum(),
            "streams" => state.streams.values().filter(|stream| stream.is_made && !stream.is_closed).count(),
            "events" => state.events.len(),
            "modules" => state.modules.len(),
            "graphs" => state.graphs.len() + state.execs.len(),
            "pools" => state.memory.pools.values().filter(|pool| !pool.is_default && !pool.is_destroyed).count(),
            "threads" => driver.threads.load(Ordering::Acquire),
            "device_bytes" => return state.memory.live_bytes(|kind| matches!(kind, Kind::Plain | Kind::Pooled(_))),
            "pinned_bytes" => return state.memory.live_bytes(Kind::is_host),
            _ => return u64::MAX,
        };
        count as u64
    })
}
