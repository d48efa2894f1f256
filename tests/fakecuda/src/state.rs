//! All books of the driver, under its one lock.

use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::Duration;

use purlin_fakecuda_options::{Ignored, Options};

use crate::context::Context;
use crate::detector::Detector;
use crate::detector::report::Kind;
use crate::detector::stamp::Stamp;
use crate::entry::Entry;
use crate::event::Event;
use crate::exec::Exec;
use crate::graph::{Capture, Graph};
use crate::kernel::module::{Function, Module};
use crate::memory::Memory;
use crate::stream::Stream;
use crate::thread;

/// What tests turn while the driver runs.
pub(crate) struct Controls {
    /// No operation begins.
    pub(crate) is_held: bool,
    pub(crate) ignored_waits: Ignored,
    pub(crate) traps: Vec<(String, u32)>,
    pub(crate) endless: Vec<String>,
    /// The state of the chances, and the longest delay in microseconds.
    delays: Option<(u64, u64)>,
}

/// See the module. Streams, events and so on are found by their handles.
pub(crate) struct State {
    /// One a device.
    pub(crate) contexts: Vec<Context>,
    pub(crate) streams: HashMap<usize, Stream>,
    /// Threads of closed streams, with the streams' handles.
    pub(crate) ending: Vec<(usize, JoinHandle<()>)>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) modules: HashMap<usize, Module>,
    pub(crate) functions: HashMap<usize, Function>,
    pub(crate) captures: HashMap<usize, Capture>,
    pub(crate) graphs: HashMap<usize, Graph>,
    pub(crate) execs: HashMap<usize, Exec>,
    pub(crate) memory: Memory,
    pub(crate) detector: Detector,
    pub(crate) controls: Controls,
}

impl Controls {
    pub(crate) fn set_delays(&mut self, seed: u64, most_us: u64) {
        self.delays = (most_us > 0).then_some((seed, most_us));
    }

    /// How much later the next operation begins.
    pub(crate) fn draw_delay(&mut self) -> Option<Duration> {
        let (chance, most_us) = self.delays.as_mut()?;
        // The generator of Knuth's MMIX; its upper half is random enough.
        *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(Duration::from_micros((*chance >> 33) % (*most_us + 1)))
    }

    /// Whether a wait of the calling thread is a no-op.
    pub(crate) fn ignores_wait(&self) -> bool {
        match &self.ignored_waits {
            Ignored::None => false,
            Ignored::All => true,
            Ignored::Labels(labels) => labels.iter().any(|label| **label == *thread::label()),
        }
    }
}

impl State {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            contexts: (0..options.devices).map(|_| Context::default()).collect(),
            streams: HashMap::new(),
            ending: Vec::new(),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            captures: HashMap::new(),
            graphs: HashMap::new(),
            execs: HashMap::new(),
            memory: Memory::new(options),
            detector: Detector::new(options),
            controls: Controls {
                is_held: false,
                ignored_waits: options.ignored_waits.clone(),
                traps: options.traps.clone(),
                endless: options.endless.clone(),
                delays: options.delays,
            },
        }
    }

    /// A report with one side, which is the calling thread.
    pub(crate) fn report(&mut self, kind: Kind, entry: Entry, why: &str) {
        if self.detector.is_on {
            let stamp = self.detector.host_stamp(entry.name(), thread::label());
            self.detector.reports.add(kind, None, &stamp, None, why);
        }
    }

    /// As [`report`](Self::report), beside what a block's life began with.
    pub(crate) fn report_beside(&mut self, kind: Kind, entry: Entry, other: &Stamp, why: &str) {
        if self.detector.is_on {
            let stamp = self.detector.host_stamp(entry.name(), thread::label());
            self.detector.reports.add(kind, None, &stamp, Some(other), why);
        }
    }

    pub(crate) fn call_in_host_function(&mut self, entry: Entry) {
        self.report(Kind::CallInHostFunction, entry, "");
    }
}
