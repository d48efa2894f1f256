//! A process for each test: the fakes read the environment once, and a driver that was broken stays so.

use std::panic::Location;
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::{Control, Options, on_a_gpu};

/// Names the test that a process was started for.
const CHILD: &str = "PURLIN_FAKECUDA_TEST";

/// No test of the fake takes so many seconds on any machine, unless its rounds are many times as many as by default.
const LIMIT_S: u64 = 170;

/// What such a process ends with when all went well.
const DONE: i32 = 42;

/// How long a test may take, before it counts as stuck: as many seconds as `PURLIN_TEST_LIMIT_S` says. Nextest's own
/// limit must be longer (its profile `long` has an hour).
///
/// # Panics
/// For what is no number.
#[must_use]
pub fn limit() -> Duration {
    let said = env::var("PURLIN_TEST_LIMIT_S").ok();
    let seconds = said.map_or(LIMIT_S, |said| {
        said.parse().unwrap_or_else(|_| panic!("PURLIN_TEST_LIMIT_S is a number of seconds, not '{said}'"))
    });
    Duration::from_secs(seconds)
}

/// Runs `body` in a process of its own, whose fake driver is as the options say; on a GPU ([`on_a_gpu`]) the driver is
/// as it is. `name` is the whole name of the calling test, as libtest has it. At its end the race detector must be
/// silent: a test that expects reports takes them ([`Control::take_reports`](crate::Control::take_reports)).
///
/// # Panics
/// If the process fails, does not end, or has reports.
#[track_caller]
pub fn run(name: &str, options: &Options, body: impl FnOnce()) {
    let variables = if on_a_gpu() { Vec::new() } else { options.variables() };
    run_with(name, |command| _ = command.envs(variables), body);
}

/// As [`run`], in a process that `prepare` makes ready: its environment, say.
///
/// # Panics
/// As there.
#[track_caller]
pub fn run_with(name: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) {
    if env::var(CHILD).is_ok_and(|child| child == name) {
        body();
        no_reports();
        // Not the code of a test program, which is 0 if it has no test of that name.
        process::exit(DONE);
    }
    let program = env::current_exe().expect("a program knows where it is");
    let mut command = Command::new(program);
    command.args(["--exact", name, "--nocapture", "--include-ignored"]).env(CHILD, name).stdin(Stdio::null());
    prepare(&mut command);
    let mut child = command.spawn().expect("this program can be started");
    let limit = limit();
    let ended = wait(&mut child, limit);
    let place = Location::caller();
    let status = ended.unwrap_or_else(|| panic!("{name} of {place} did not end within {limit:?}"));
    assert_ne!(status.code(), Some(0), "no test of this program is called {name}, as {place} says");
    assert_eq!(status.code(), Some(DONE), "the process of {name} ended with {status}; what it says is above");
}

/// The race detector of this process is silent. In a child of fork whose parent has used the driver there is nothing to
/// ask: it answers no call.
///
/// # Panics
/// With the reports, if there are any.
#[track_caller]
pub fn no_reports() {
    if let Some(control) = Control::if_loaded() {
        control.no_reports();
    }
}

/// How it ended; `None` if it had to be killed.
fn wait(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return Some(status);
        }
        if begin.elapsed() > limit {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            return None;
        }
        // Nothing is won by it: the child ends when it ends.
        thread::sleep(Duration::from_millis(2));
    }
}
