//! What is measured: an operation in columns, of which the first is Purlin's.

use std::time::{Duration, Instant};

use crate::column::Column;

/// How long a row is measured.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    time: Duration,
    rounds: usize,
}

impl Limits {
    /// All rows together stay under a minute.
    pub(crate) const FULL: Self = Self { time: Duration::from_millis(1500), rounds: 5000 };
    pub(crate) const QUICK: Self = Self { time: Duration::from_secs(60), rounds: 3 };
    /// Fewer say nothing, however long they take.
    const LEAST_ROUNDS: usize = 3;
}

/// See the module.
pub(crate) struct Row<'a> {
    pub(crate) name: String,
    /// How many bytes are moved.
    bytes: Option<usize>,
    /// The most that Purlin's minimum may be of the best of the others.
    goal: Option<f64>,
    columns: Vec<Column<'a>>,
    /// Takes away what a turn has done.
    clear: Box<dyn FnMut() + 'a>,
    /// That a turn has done it.
    check: Box<dyn FnMut() -> bool + 'a>,
}

/// How long a column took.
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) min_ns: f64,
    pub(crate) median_ns: f64,
}

/// A row that was measured.
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) bytes: Option<usize>,
    pub(crate) goal: Option<f64>,
    pub(crate) rounds: usize,
    pub(crate) cells: Vec<Cell>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(name: impl Into<String>, ours: Column<'a>) -> Self {
        let (clear, check) = (Box::new(|| ()), Box::new(|| true));
        Self { name: name.into(), bytes: None, goal: None, columns: vec![ours], clear, check }
    }

    pub(crate) fn beside(mut self, column: Column<'a>) -> Self {
        self.columns.push(column);
        self
    }

    pub(crate) fn beside_all(self, columns: impl IntoIterator<Item = Column<'a>>) -> Self {
        columns.into_iter().fold(self, Self::beside)
    }

    pub(crate) fn goal(mut self, goal: f64) -> Self {
        self.goal = Some(goal);
        self
    }

    pub(crate) fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = Some(bytes);
        self
    }

    pub(crate) fn checked(mut self, clear: impl FnMut() + 'a, check: impl FnMut() -> bool + 'a) -> Self {
        (self.clear, self.check) = (Box::new(clear), Box::new(check));
        self
    }

    /// Looks at what each column does, then measures all.
    ///
    /// # Panics
    /// One does something else.
    pub(crate) fn measured(mut self, limits: Limits) -> Measured {
        /// A graph is recorded by the second launch, and memory is there after the first.
        const WARM_TURNS: usize = 3;
        let begin = Instant::now();
        println!("[ RUN      ] {}", self.name);
        for column in &mut self.columns {
            for _ in 0..WARM_TURNS {
                (self.clear)();
                (column.turn)();
                assert!((self.check)(), "{}: {} has not done it", self.name, column.name);
            }
        }
        let mut times = vec![Vec::new(); self.columns.len()];
        let mut round = 0;
        let measuring = Instant::now();
        while round < Limits::LEAST_ROUNDS || round < limits.rounds && measuring.elapsed() < limits.time {
            for at in 0..self.columns.len() {
                // There and back, so that each comes after each.
                let at = if round % 2 == 0 { at } else { self.columns.len() - 1 - at };
                times[at].push((self.columns[at].turn)());
            }
            round += 1;
        }
        let cells = self.columns.iter().zip(times).map(|(column, mut times)| {
            times.sort_by(f64::total_cmp);
            Cell { name: column.name, min_ns: times[0], median_ns: times[times.len() / 2] }
        });
        let measured =
            Measured { name: self.name, bytes: self.bytes, goal: self.goal, rounds: round, cells: cells.collect() };
        // As GoogleTest says it, which tests/gpu/run.sh counts.
        println!("[       OK ] {} ({} ms)", measured.name, begin.elapsed().as_millis());
        measured
    }
}

impl Measured {
    pub(crate) fn ours(&self) -> &Cell {
        &self.cells[0]
    }

    /// The best of the others.
    pub(crate) fn peer(&self) -> Option<&Cell> {
        self.cells[1..].iter().min_by(|a, b| a.min_ns.total_cmp(&b.min_ns))
    }

    /// Ours to the best of the others: of minima, and of those columns' medians.
    pub(crate) fn ratios(&self) -> Option<(f64, f64)> {
        let (ours, peer) = (self.ours(), self.peer()?);
        Some((ours.min_ns / peer.min_ns, ours.median_ns / peer.median_ns))
    }

    /// `None`: nothing was wanted of it.
    pub(crate) fn is_met(&self) -> Option<bool> {
        Some(self.ratios()?.0 <= self.goal?)
    }
}
