//! How models are run: loom over every interleaving within a bound, shuttle over random schedules. Each model prints
//! one line about what was seen, which the scripts count (`scripts/loom`, `scripts/shuttle`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Explores `f` with at most `preemptions` interruptions of a thread that could go on, `None` without a bound.
/// `PURLIN_LOOM_BOUND` raises lower bounds; `PURLIN_LOOM_SECONDS` stops a model that takes longer, and its line says
/// so.
#[cfg(loom)]
pub fn explore(name: &str, preemptions: impl Into<Option<usize>>, f: impl Fn() + Send + Sync + 'static) {
    let (executions, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let counted = Arc::clone(&executions);
    let at_least = number("PURLIN_LOOM_BOUND").map_or(0, |bound| usize::try_from(bound).expect("small"));
    let bound = preemptions.into().map(|bound| bound.max(at_least));
    let mut model = loom::model::Builder::new();
    model.preemption_bound = bound;
    model.max_duration = number("PURLIN_LOOM_SECONDS").map(std::time::Duration::from_secs);
    let limit = model.max_duration;
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        f();
    });
    let bound = bound.map_or("no bound".to_owned(), |bound| format!("bound {bound}"));
    let executions = executions.load(Ordering::Relaxed);
    let (seconds, stopped) = (start.elapsed(), limit.is_some_and(|limit| start.elapsed() >= limit));
    let end = if stopped { ", NOT ALL: stopped by its time limit" } else { "" };
    println!("loom {name}: {bound}, {executions} executions, {:.1} s{end}", seconds.as_secs_f64());
}

/// Runs `f` under `schedules` random schedules, and under as many in which priorities change `depth` times (PCT), which
/// finds bugs of that depth with known odds. `PURLIN_SHUTTLE_SCHEDULES` overrides how many. The seed is 0x7075726c or
/// `PURLIN_SHUTTLE_SEED`: what failed fails again.
#[cfg(shuttle)]
pub fn explore(name: &str, schedules: usize, depth: usize, f: impl Fn() + Send + Sync + Clone + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    let seed = number("PURLIN_SHUTTLE_SEED").unwrap_or(0x7075_726c);
    let wanted = number("PURLIN_SHUTTLE_SCHEDULES").map(|wanted| usize::try_from(wanted).expect("fits"));
    let (schedules, start, seen) = (wanted.unwrap_or(schedules), Instant::now(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&seen);
    let f = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        f();
    };
    let mut config = shuttle::Config::new();
    config.stack_size = 256 * 1024;
    shuttle::Runner::new(RandomScheduler::new_from_seed(seed, schedules), config.clone()).run(f.clone());
    shuttle::Runner::new(PctScheduler::new_from_seed(seed, depth, schedules), config).run(f);
    let (seen, seconds) = (seen.load(Ordering::Relaxed), start.elapsed().as_secs_f64());
    println!("shuttle {name}: {seen} schedules (random and PCT of depth {depth}), seed {seed:#x}, {seconds:.1} s");
}
