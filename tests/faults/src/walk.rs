//! The walk: every site, every reach, in every scenario; and the table of the results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use purlin_async::dump_stalls;
use purlin_base::Error;
use purlin_base::fault::{self, Kind, Plan, Seen, Site};
use purlin_conformance::ledger::Ledger;
use purlin_device::{Client, ClientOptions};

use crate::run::{On, Run, works};

/// A program to be troubled.
pub type Scenario = fn(&Arc<Run>) -> Result<(), Error>;

/// A site that is reached more often than this in one run is reached for ever.
const MOST_REACHES: usize = 300;
/// What is ending is gone by then, on any machine.
const LONGEST_END: Duration = Duration::from_secs(20);
/// No run takes so long.
const LONGEST_RUN: Duration = Duration::from_secs(100);

/// A scenario with so many complaints is not walked to its end.
const ENOUGH_COMPLAINTS: usize = 5;

/// Sites whose failure need not be reported, because the library makes up for it, and how.
const MADE_GOOD: &[(Site, &str)] = &[
    (Site::Map, "a smaller extent is asked for, or empty ones are given back first"),
    (Site::MapHost, "as arena.map"),
    (Site::Allocate, "an allocation that waits looks again, one with a hook asks it"),
    (Site::TakeHost, "an allocation that waits looks again"),
    (Site::SpawnSpare, "the blocked worker runs queued tasks itself"),
    (Site::SpawnElastic, "the threads that are there do the work"),
    (Site::SpawnTimers, "idle memory is given back with the next free, or at the end"),
    (Site::Import, "zero copy becomes a copy"),
    (Site::SubmitLate, "an operation that is over ends on the thread that hands it over"),
];

/// One walk at a time: fail points and the ledger are the process's.
static ALONE: Mutex<()> = Mutex::new(());

/// Panics that were reported, by the hook.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Counts runs, so that the monitor sees that they go on.
static RUNS: AtomicU64 = AtomicU64::new(0);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a scenario.
#[derive(Debug, Default)]
pub struct Walked {
    /// How often each site failed, and how often that was reported.
    pub sites: BTreeMap<Site, (usize, usize)>,
    /// How many runs that took.
    pub runs: usize,
    /// What was wrong.
    pub complaints: Vec<String>,
}

/// Keeps other tests out, and the panics of fail points quiet, until it is dropped.
#[derive(Debug)]
pub struct Alone(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Alone {
    /// Waits for its turn.
    #[must_use]
    pub fn new() -> Self {
        let guard = locked(&ALONE);
        panic::set_hook(Box::new(|panic| {
            let text = panic.payload_as_str().unwrap_or("a value that is not text").to_owned();
            if !text.starts_with("fail point") {
                eprintln!("{panic}");
            }
            locked(&PANICS).push(text);
        }));
        Self(guard)
    }
}

impl Default for Alone {
    fn default() -> Self {
        Self::new()
    }
}

/// Ends the process, telling why, when a run does not end: a hang must not pass for slowness.
fn monitor(name: String) -> impl FnOnce() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let watching = thread::Builder::new().name("monitor".to_owned()).spawn(move || {
        let mut last = (RUNS.load(Ordering::Relaxed), Instant::now());
        while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_millis(500)) {
            let runs = RUNS.load(Ordering::Relaxed);
            if runs != last.0 {
                last = (runs, Instant::now());
            } else if last.1.elapsed() > LONGEST_RUN {
                eprintln!("HANG in {name}, run {runs}: {:?}\n{}", *locked(&NOW), dump_stalls(Duration::ZERO));
                std::process::exit(1);
            }
        }
    });
    let watching = watching.expect("a test has a thread to spare");
    move || {
        drop(stop);
        watching.join().expect("the monitor does not panic");
    }
}

/// The plan of the run that is on.
static NOW: Mutex<Option<Plan>> = Mutex::new(None);

/// What fails at a reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// That one alone.
    Once,
    /// That one alone, and in another run all reaches after it as well.
    OnceAndAllAfter,
}

/// Runs `scenario` in all ways in which it can fail.
#[must_use]
pub fn walk(name: &str, on: On, scenario: Scenario, failing: Failing) -> Walked {
    let stop = monitor(name.to_owned());
    let before = Ledger::now();
    let mut walked = Walked::default();
    walked.go(on, scenario, &before, Plan { site: None, nth: 0, and_all_after: false });
    for &site in Site::ALL {
        let ways: &[bool] = if failing == Failing::Once { &[false] } else { &[false, true] };
        for &and_all_after in ways {
            for nth in 1.. {
                if walked.complaints.len() >= ENOUGH_COMPLAINTS {
                    break;
                }
                if nth > MOST_REACHES {
                    walked.complaints.push(format!("'{}' is reached without an end", site.name()));
                }
                let plan = Plan { site: Some(site), nth, and_all_after };
                if nth > MOST_REACHES || !walked.go(on, scenario, &before, plan) {
                    break;
                }
            }
        }
    }
    stop();
    walked
}

impl Walked {
    /// One run; whether its site was reached often enough to fail.
    fn go(&mut self, on: On, scenario: Scenario, before: &Ledger, plan: Plan) -> bool {
        *locked(&NOW) = Some(plan);
        RUNS.fetch_add(1, Ordering::Relaxed);
        self.runs += 1;
        locked(&PANICS).clear();
        fault::arm(plan);
        let (run, mut complaints) = (Run::new(on), String::new());
        let outcome = purlin_base::panics::caught(|| scenario(&run));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => run.meet("the scenario", error),
            Err(_panic) if plan.site.is_some_and(|site| site.kind() == Kind::Callback) => {
                complaints += "a panic of a callback came through to the caller\n";
            }
            Err(_panic) => complaints += "a panic came through to the caller\n",
        }
        run.finish();
        if !plan.and_all_after && fault::seen().failed > 0 {
            complaints += &run.check_clients().err().unwrap_or_default();
        }
        run.drop_clients();
        if let Err(left) = before.settles_within(LONGEST_END) {
            complaints += &left;
        }
        let seen = fault::disarm();
        complaints += &run.complaints(seen.failed > 0);
        complaints += &self.judge(plan, &seen, &run);
        if let Err(why) = fresh(on) {
            complaints += &format!("afterwards, {why}\n");
        }
        if !complaints.is_empty() {
            let which = plan.site.map_or("nothing".to_owned(), |site| format!("'{}'", site.name()));
            let all = if plan.and_all_after { " and all after it" } else { "" };
            let line = |error: &Error| error.message().lines().next().unwrap_or_default().to_owned();
            let errors = run.errors();
            let errors: Vec<String> = errors
                .iter()
                .map(|(what, error)| format!("  {what}: {}: {}\n", error.code().name(), line(error)))
                .collect();
            self.complaints.push(format!(
                "with {which} failing at reach {}{all}:\n{complaints}statuses met:\n{}",
                plan.nth,
                errors.concat()
            ));
        }
        plan.site.is_some() && seen.failed > 0
    }

    fn judge(&mut self, plan: Plan, seen: &Seen, run: &Run) -> String {
        let errors = run.errors();
        let Some(site) = plan.site.filter(|_| seen.failed > 0) else {
            return errors
                .iter()
                .map(|(what, error)| format!("{what} failed, but nothing was to: {error}\n"))
                .collect();
        };
        let place = format!("fail point '{}'", site.name());
        let named = errors.iter().any(|(_, error)| error.message().contains(&place));
        let is_reported = || locked(&PANICS).iter().any(|text| text.contains(&place));
        // The panic of a thread of its own comes after its count.
        let long_enough = Instant::now() + Duration::from_secs(10);
        while site.kind() == Kind::Callback && !named && !is_reported() && Instant::now() < long_enough {
            thread::yield_now();
        }
        let reported = is_reported();
        let count = self.sites.entry(site).or_default();
        count.0 += seen.failed;
        count.1 += usize::from(named || reported);
        let may_be_silent = errors.is_empty() && MADE_GOOD.iter().any(|(good, _)| *good == site);
        if named || reported || may_be_silent {
            return String::new();
        }
        match errors.as_slice() {
            [] => format!("{place} failed, and nobody was told\n"),
            _ => format!("no error names {place}\n"),
        }
    }
}

fn fresh(on: On) -> Result<(), String> {
    let options = ClientOptions { worker_count: 1, ..Default::default() };
    let client = Client::new(&options, on.backend()).map_err(|error| format!("no new client: {error}"))?;
    works(&client)
}

/// The table: a line per site with its failures per scenario, and the sums.
#[must_use]
pub fn table(walks: &[(String, Walked)]) -> String {
    let mut text = String::new();
    let mut line = |parts: std::fmt::Arguments<'_>| _ = text.write_fmt(parts);
    line(format_args!("{:<38} {:>9} {:>8} {:>8}\n", "site", "scenarios", "failures", "told"));
    for site in Site::ALL {
        let of: Vec<_> = walks.iter().filter_map(|(_, walked)| walked.sites.get(site)).collect();
        let (failures, told) = of.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        line(format_args!("{:<38} {:>9} {failures:>8} {told:>8}\n", site.name(), of.len()));
    }
    line(format_args!("\n{:<60} {:>5} {:>6}\n", "scenario", "sites", "runs"));
    for (name, walked) in walks {
        line(format_args!("{name:<60} {:>5} {:>6}\n", walked.sites.len(), walked.runs));
    }
    let pairs: usize = walks.iter().map(|(_, walked)| walked.sites.len()).sum();
    let runs: usize = walks.iter().map(|(_, walked)| walked.runs).sum();
    let sites = Site::ALL.iter().filter(|site| walks.iter().any(|(_, walked)| walked.sites.contains_key(site))).count();
    line(format_args!(
        "\nfaults: {sites} of {} sites x {} scenarios: {pairs} pairs reached, {runs} runs\n",
        Site::ALL.len(),
        walks.len()
    ));
    text
}

/// Sites that no scenario reached.
#[must_use]
pub fn unreached(walks: &[(String, Walked)]) -> Vec<&'static str> {
    let reached = |site: &&Site| walks.iter().any(|(_, walked)| walked.sites.contains_key(site));
    Site::ALL.iter().filter(|site| !reached(site)).map(|site| site.name()).collect()
}
