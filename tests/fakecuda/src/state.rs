//! All books of the driver, under its one lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use purlin_fakecuda_options::{Ignored, Options};

use crate::context::Context;
use crate::detector::Detector;
use crate::detector::report::{Kind, Side};
use crate::detector::shadow::Span;
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

/// A call that is refused, and is a mistake.
pub(crate) struct Refusal<'a> {
    pub(crate) kind: Kind,
    /// The stream that it was to be put on, if it is of that kind.
    pub(crate) stream: Option<usize>,
    pub(crate) span: Option<Span>,
    /// What it clashes with, and that one's range.
    pub(crate) beside: Option<(Arc<Stamp>, Option<Span>)>,
    pub(crate) why: &'a str,
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

    /// Reports a call that is refused: on a stream, or by the host alone.
    pub(crate) fn report(&mut self, entry: Entry, refusal: Refusal<'_>) {
        if !self.detector.is_on {
            return;
        }
        let Refusal { kind, stream, span, beside, why } = refusal;
        let (label, stream) = (thread::label(), stream.and_then(|stream| self.streams.get(&stream)));
        let stamp = match stream {
            Some(stream) => {
                Arc::new(self.detector.refused_stamp(entry.name(), label, Arc::clone(&stream.place), stream.lane))
            }
            None => self.detector.host_stamp(entry.name(), label),
        };
        let side =
            |stamp, span: Option<Span>| span.map_or_else(|| Side::without_bytes(stamp), |span| Side::new(stamp, span));
        let beside = beside.as_ref().map(|(stamp, span)| side(stamp, *span));
        self.detector.reports.add(kind, span, side(&stamp, span), beside, why);
    }

    /// Reports a call inside a host function, beside what put the function on its stream.
    pub(crate) fn call_in_host_function(&mut self, entry: Entry) {
        if !self.detector.is_on {
            return;
        }
        let Some(launch) = thread::host_function_stamp() else {
            let (kind, stream, span, beside) = (Kind::CallInHostFunction, None, None, None);
            return self.report(entry, Refusal { kind, stream, span, beside, why: "" });
        };
        let (label, place) = (Arc::clone(&launch.label), Arc::clone(&launch.place));
        let stamp = self.detector.refused_stamp(entry.name(), label, place, launch.lane);
        let (call, launch) = (Side::without_bytes(&stamp), Side::without_bytes(&launch));
        self.detector.reports.add(Kind::CallInHostFunction, None, call, Some(launch), "");
    }
}
