//! One way to do what a row measures.

use std::time::{Duration, Instant};

/// See the module.
pub(crate) struct Column<'a> {
    pub(crate) name: &'static str,
    /// Does it, and answers how many ns it took.
    pub(crate) turn: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Column<'a> {
    /// The time from the call to its return.
    pub(crate) fn new(name: &'static str, turn: impl FnMut() + 'a) -> Self {
        Self::of_many(name, 1, turn)
    }

    /// The same, of so many calls, each.
    pub(crate) fn of_many(name: &'static str, count: u32, mut turn: impl FnMut() + 'a) -> Self {
        Self::telling(name, count, move || {
            let begin = Instant::now();
            (0..count).for_each(|_| turn());
            begin.elapsed()
        })
    }

    /// What takes the time of so many calls by itself.
    pub(crate) fn telling(name: &'static str, count: u32, mut turn: impl FnMut() -> Duration + 'a) -> Self {
        Self { name, turn: Box::new(move || turn().as_secs_f64() * 1e9 / f64::from(count)) }
    }
}
