//! The runs of one loaded executable that are executing commands, for stall reports: program, launch, device, and the
//! command that each executes.
//!
//! Runs of small programs are not watched: they take less time than this would. A watched run pays for two short
//! locked sections, and for one relaxed store per command. After the first runs it allocates nothing.

use std::fmt::Write;
use std::sync::Arc;

use tracing::span::EnteredSpan;
use tracing::trace_span;

use crate::collective::CollectiveLaunch;
use crate::command::{Command, Sequence};
use crate::program::Program;
use purlin_base::clock;
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::AtomicU32;
use purlin_base::sync::atomic::Ordering::Relaxed;
use purlin_device::backend::LaunchInfo;

/// The watched runs.
#[derive(Default)]
pub(crate) struct Watched(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    running: Vec<Entry>,
    /// Positions of runs that are over, for the next ones.
    spare: Vec<Arc<AtomicU32>>,
}

struct Entry {
    /// The number of the command that was begun last.
    position: Arc<AtomicU32>,
    launch_id: i32,
    device: u16,
    since_ms: u32,
}

impl Watched {
    /// Watches a run until the result is dropped. If `is_traced`, each command is a span.
    pub(crate) fn begin<'a>(
        &'a self,
        program: &'a Program,
        info: LaunchInfo,
        is_traced: bool,
        part: Option<Part<'a>>,
    ) -> Watch<'a> {
        let mut entries = self.0.lock();
        let position = entries.spare.pop().unwrap_or_default();
        position.store(0, Relaxed);
        let LaunchInfo { launch_id, device, .. } = info;
        let entry = Entry { position: Arc::clone(&position), launch_id, device, since_ms: clock::now_ms() };
        entries.running.push(entry);
        drop(entries);
        Watch { program, watched: self, position, is_traced, part }
    }

    /// A line for each run; empty if there is none.
    pub(crate) fn describe(&self, program: &Program) -> String {
        let (entries, now_ms) = (self.0.lock(), clock::now_ms());
        let mut text = String::new();
        for Entry { position, launch_id, device, since_ms } in &entries.running {
            let separator = if text.is_empty() { "" } else { "\n" };
            let path = program.sequence().path_of(position.load(Relaxed));
            let seconds = f64::from(now_ms.saturating_sub(*since_ms)) / 1000.0;
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{separator}program '{}', launch {launch_id} on device {device}, runs for {seconds:.1} s: at command {}",
                program.name(),
                path.as_deref().unwrap_or("0, of none")
            );
        }
        text
    }
}

/// A run that is watched; dropping this ends it.
pub(crate) struct Watch<'a> {
    program: &'a Program,
    watched: &'a Watched,
    position: Arc<AtomicU32>,
    is_traced: bool,
    /// The part in the launch's collectives, if the program has some.
    pub(crate) part: Option<Part<'a>>,
}

/// A participant of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) launch: &'a dyn CollectiveLaunch,
    pub(crate) participant: u32,
    pub(crate) replicas: u32,
    pub(crate) partitions: u32,
}

impl Watch<'_> {
    pub(crate) fn program(&self) -> &Program {
        self.program
    }

    /// A command begins. The result is its span, if a trace asks for it.
    #[inline]
    pub(crate) fn begins(&self, sequence: &Sequence, index: usize) -> Option<EnteredSpan> {
        let number = sequence.first().wrapping_add(index as u32);
        // Relaxed: the number is only shown.
        self.position.store(number, Relaxed);
        self.is_traced.then(|| self.span(number, &sequence.commands()[index]))
    }

    #[cold]
    fn span(&self, number: u32, command: &Command) -> EnteredSpan {
        let path = || self.program.sequence().path_of(number).unwrap_or_default();
        trace_span!(target: "purlin", "command", command = %command, path = path()).entered()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut entries = self.watched.0.lock();
        let own = entries.running.iter().position(|entry| Arc::ptr_eq(&entry.position, &self.position));
        if let Some(own) = own {
            let entry = entries.running.swap_remove(own);
            entries.spare.push(entry.position);
        }
    }
}
