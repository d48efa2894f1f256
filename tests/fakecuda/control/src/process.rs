//! A process for each test: the fakes read the environment once, and a driver that was broken stays so.

use std::panic::Location;
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::Options;

/// Names the test that a process was started for.
const CHILD: &str = "PURLIN_FAKECUDA_TEST";

/// No test of the fake takes so long on any machine; one that does is stuck.
const LIMIT: Duration = Duration::from_secs(170);

/// What such a process ends with when all went well.
const DONE: i32 = 42;

/// Runs `body` in a process of its own, whose fake driver is as the options say. `name` is the whole name of the
/// calling test, as libtest has it.
///
/// # Panics
/// If the process fails, or does not end.
#[track_caller]
pub fn run(name: &str, options: &Options, body: impl FnOnce()) {
    run_with(name, |command| _ = command.envs(options.variables()), body);
}

/// As [`run`], in a process that `prepare` makes ready: its environment, say.
///
/// # Panics
/// As there.
#[track_caller]
pub fn run_with(name: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) {
    if env::var(CHILD).is_ok_and(|child| child == name) {
        body();
        // Not the code of a test program, which is 0 if it has no test of that name.
        process::exit(DONE);
    }
    let program = env::current_exe().expect("a program knows where it is");
    let mut command = Command::new(program);
    command.args(["--exact", name, "--nocapture", "--include-ignored"]).env(CHILD, name).stdin(Stdio::null());
    prepare(&mut command);
    let mut child = command.spawn().expect("this program can be started");
    let ended = wait(&mut child);
    let place = Location::caller();
    let status = ended.unwrap_or_else(|| panic!("{name} of {place} did not end within {LIMIT:?}"));
    assert_ne!(status.code(), Some(0), "no test of this program is called {name}, as {place} says");
    assert_eq!(status.code(), Some(DONE), "the process of {name} ended with {status}; what it says is above");
}

/// How it ended; `None` if it had to be killed.
fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return Some(status);
        }
        if begin.elapsed() > LIMIT {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            return None;
        }
        // Nothing is won by it: the child ends when it ends.
        thread::sleep(Duration::from_millis(2));
    }
}
