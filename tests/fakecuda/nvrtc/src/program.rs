//! Programs by handle, and what is counted and held, by the names of sources.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

use crate::code;
use crate::sync::{Condvar, Guard, Mutex};

/// What `nvrtcCreateProgram` was given, and what has become of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Name and text of each.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) expressions: Vec<String>,
    pub(crate) log: String,
    /// `None`: it was not compiled yet.
    pub(crate) ptx: Option<String>,
    /// What expressions are called there; handed out by address, so they stay where they are.
    pub(crate) lowered: BTreeMap<String, Arc<CString>>,
}

impl Program {
    /// What the source says that this entry point answers.
    pub(crate) fn answer(&self, entry: &str) -> Result<(), u32> {
        let said = self.said(&format!("{entry} answers ")).and_then(|code| code.parse().ok());
        said.map_or(Ok(()), Err)
    }

    /// What the source says behind these words.
    pub(crate) fn said(&self, words: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.trim().strip_prefix("// fake: ")?.strip_prefix(words))
    }
}

#[derive(Default)]
struct State {
    programs: BTreeMap<usize, Program>,
    last: usize,
    compilations: BTreeMap<String, u64>,
    held: Vec<String>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static RELEASED: std::sync::LazyLock<Condvar> = std::sync::LazyLock::new(Condvar::default);

fn with<R>(f: impl FnOnce(&mut State) -> R) -> R {
    f(STATE.lock().get_or_insert_with(State::default))
}

fn is_held(state: &Guard<'_, Option<State>>, name: &str) -> bool {
    state.as_ref().is_some_and(|state| state.held.iter().any(|held| held == name))
}

pub(crate) fn add(program: Program) -> usize {
    with(|state| {
        state.last += 1;
        state.programs.insert(state.last, program);
        state.last
    })
}

/// Has the program do something, under the lock.
pub(crate) fn use_program<R>(handle: usize, f: impl FnOnce(&mut Program) -> Result<R, u32>) -> Result<R, u32> {
    with(|state| state.programs.get_mut(&handle).ok_or(code::INVALID_PROGRAM).and_then(f))
}

pub(crate) fn destroy(handle: usize) -> Result<(), u32> {
    with(|state| state.programs.remove(&handle)).map(|_| ()).ok_or(code::INVALID_PROGRAM)
}

/// How many programs there are.
pub(crate) fn count() -> u64 {
    with(|state| state.programs.len() as u64)
}

/// A compilation begins: it is counted, and waits while its source is held.
pub(crate) fn begin(name: &str) {
    let mut state = STATE.lock();
    *state.get_or_insert_with(State::default).compilations.entry(name.to_owned()).or_default() += 1;
    while is_held(&state, name) {
        state = RELEASED.wait(state);
    }
}

/// How many compilations of that source have begun.
pub(crate) fn compilations(name: &str) -> u64 {
    with(|state| state.compilations.get(name).copied().unwrap_or(0))
}

pub(crate) fn hold(name: String) {
    with(|state| state.held.push(name));
}

pub(crate) fn release(name: &str) {
    with(|state| state.held.retain(|held| held != name));
    RELEASED.notify_all();
}
