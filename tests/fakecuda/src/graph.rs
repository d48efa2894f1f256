//! Graphs: what is put on a stream while it captures, kept as nodes, and run later in their order.
//!
//! A capture begins on one stream. Another stream joins by waiting for an event that was recorded in it, and must be
//! waited for again before the end. A node knows its stream, which is a branch of the graph, and which other branches
//! it comes after (`exec` runs them).
//!
//! Calls that would wait, and calls that could in any other way reach a stream that captures, spoil the capture of
//! their thread (or of all, in the global mode): they answer 900 and the end of the capture 901.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::detector::Access;
use crate::detector::shadow::Span;
use crate::detector::stamp::Stamp;
use crate::operation::{Request, Work};
use crate::state::State;
use crate::stream::{Kind, Point};
use crate::thread::label;

/// CU_STREAM_CAPTURE_MODE_GLOBAL, _THREAD_LOCAL and _RELAXED.
const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

/// One operation of a graph.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) handle: usize,
    pub(crate) work: Work,
    pub(crate) accesses: Vec<Access>,
    pub(crate) copied: Vec<(Span, Span)>,
    pub(crate) entry: &'static str,
    pub(crate) label: Arc<str>,
    /// The stream that it was captured on.
    pub(crate) branch: usize,
    /// Other branches, and how many of their nodes it comes after, besides those of its own branch.
    pub(crate) after: Vec<(usize, usize)>,
}

/// A graph that is being made.
pub(crate) struct Capture {
    origin: usize,
    mode: u32,
    thread: ThreadId,
    is_spoiled: bool,
    nodes: Vec<Node>,
    branches: HashMap<usize, Branch>,
}

/// A stream in a capture.
#[derive(Default)]
struct Branch {
    /// How many nodes it has.
    nodes: usize,
    /// How many it had when another stream last waited for it; `None`: never.
    waited: Option<usize>,
    /// What its next node comes after.
    after: Vec<(usize, usize)>,
}

/// A finished one.
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
}

impl State {
    /// Puts a request on a stream, or into its capture: then nothing comes back.
    pub(crate) fn submit(
        &mut self,
        call: &Call,
        stream: usize,
        request: Request,
    ) -> Answer<Option<(Point, Arc<Stamp>)>> {
        let Some(capture) = self.streams[&stream].capture else {
            self.forbid_implicit(stream)?;
            return self.enqueue(call, stream, request).map(Some);
        };
        let capture = self.captures.get_mut(&capture).ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
        if capture.is_spoiled {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        let Request { work, accesses, copied, .. } = request;
        let (handle, entry) = (call.driver.new_handle(), call.entry.name());
        let branch = capture.branches.entry(stream).or_default();
        let after = std::mem::take(&mut branch.after);
        branch.nodes += 1;
        capture.nodes.push(Node { handle, work, accesses, copied, entry, label: label(), branch: stream, after });
        Ok(None)
    }

    /// STREAM_CAPTURE_IMPLICIT for the legacy default stream while a stream captures that it is ordered with.
    pub(crate) fn forbid_implicit(&mut self, stream: usize) -> Answer {
        let (kind, device) = (self.streams[&stream].kind, self.streams[&stream].device);
        let captures = self.streams.values().filter(|other| other.device == device && other.kind == Kind::Blocking);
        let captures: Vec<usize> = captures.filter_map(|other| other.capture).collect();
        if kind != Kind::Legacy || captures.is_empty() {
            return Ok(());
        }
        captures.iter().for_each(|capture| self.spoil(*capture));
        Err(Code::STREAM_CAPTURE_IMPLICIT)
    }

    /// STREAM_CAPTURE_UNSUPPORTED for what a stream that captures cannot do.
    pub(crate) fn forbid_capturing(&mut self, stream: usize) -> Answer {
        let Some(capture) = self.streams[&stream].capture else { return Ok(()) };
        self.spoil(capture);
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// STREAM_CAPTURE_UNSUPPORTED for what must not be called while this thread captures, or any in the global mode.
    pub(crate) fn forbid_while_capturing(&mut self) -> Answer {
        let me = thread::current().id();
        let is_hit = |capture: &Capture| match capture.mode {
            GLOBAL => true,
            THREAD_LOCAL => capture.thread == me,
            _ => false,
        };
        let hit: Vec<usize> = self.captures.iter().filter(|(_, capture)| is_hit(capture)).map(|(id, _)| *id).collect();
        hit.iter().for_each(|capture| self.spoil(*capture));
        if hit.is_empty() { Ok(()) } else { Err(Code::STREAM_CAPTURE_UNSUPPORTED) }
    }

    pub(crate) fn spoil(&mut self, capture: usize) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.is_spoiled = true;
        }
    }

    /// An event is recorded in a capture.
    pub(crate) fn capture_record(&mut self, capture: usize, stream: usize) -> Answer<(usize, usize, usize)> {
        let open = self.captures.get(&capture).filter(|capture| !capture.is_spoiled);
        let open = open.ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
        Ok((capture, stream, open.branches.get(&stream).map_or(0, |branch| branch.nodes)))
    }

    /// A stream waits for an event of a capture, and joins it.
    pub(crate) fn capture_wait(&mut self, stream: usize, (id, recorded, had): (usize, usize, usize)) -> Answer {
        let capture = self.captures.get_mut(&id).ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
        if capture.is_spoiled {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        match self.streams[&stream].capture {
            Some(other) if other != id => {
                self.spoil(id);
                self.spoil(other);
                return Err(Code::STREAM_CAPTURE_MERGE);
            }
            Some(_) => capture.branches.entry(recorded).or_default().waited = Some(had),
            // It joins, and must be waited for in turn.
            None => {}
        }
        capture.branches.entry(stream).or_default().after.push((recorded, had));
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.capture = Some(id);
        }
        Ok(())
    }

    /// The stream is destroyed.
    pub(crate) fn abandon_capture(&mut self, stream: usize) {
        if let Some(capture) = self.streams.get(&stream).and_then(|stream| stream.capture) {
            self.spoil(capture);
        }
    }

    fn leave(&mut self, id: usize) {
        self.streams.values_mut().filter(|stream| stream.capture == Some(id)).for_each(|stream| stream.capture = None);
        self.events
            .values_mut()
            .filter(|event| event.captured.is_some_and(|of| of.0 == id))
            .for_each(|event| event.captured = None);
    }
}

/// NOT_SUPPORTED where the environment says that there are none.
pub(crate) fn supported(call: &Call) -> Answer {
    if call.driver.options.without_graphs { Err(Code::NOT_SUPPORTED) } else { Ok(()) }
}

pub(crate) fn begin(call: &Call, stream: usize, mode: u32) -> Answer {
    supported(call)?;
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    if state.streams[&stream].kind == Kind::Legacy {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    if state.streams[&stream].capture.is_some() {
        return Err(Code::ILLEGAL_STATE);
    }
    let (id, thread) = (call.driver.new_handle(), thread::current().id());
    let capture = Capture {
        origin: stream,
        mode,
        thread,
        is_spoiled: false,
        nodes: Vec::new(),
        branches: HashMap::from([(stream, Branch::default())]),
    };
    state.captures.insert(id, capture);
    state.streams.entry(stream).and_modify(|stream| stream.capture = Some(id));
    Ok(())
}

/// The graph; 901 if the capture was spoilt, 904 if a stream that joined was not waited for.
pub(crate) fn end(call: &Call, stream: usize) -> Answer<usize> {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    let id = state.streams[&stream].capture.ok_or(Code::ILLEGAL_STATE)?;
    let capture = state.captures.get_mut(&id).ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
    if capture.origin != stream {
        // Driver 580 goes on with nothing of it.
        capture.is_spoiled = true;
        return Err(Code::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != RELAXED && capture.thread != thread::current().id() {
        // Driver 580 ends it nevertheless.
        state.captures.remove(&id);
        state.leave(id);
        return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
    }
    let is_whole = |(of, branch): (&usize, &Branch)| *of == stream || branch.waited == Some(branch.nodes);
    let is_joined = capture.branches.iter().all(is_whole);
    let capture = state.captures.remove(&id).ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
    state.leave(id);
    if capture.is_spoiled {
        return Err(Code::STREAM_CAPTURE_INVALIDATED);
    }
    if !is_joined {
        return Err(Code::STREAM_CAPTURE_UNJOINED);
    }
    let handle = call.driver.new_handle();
    state.graphs.insert(handle, Graph { nodes: capture.nodes });
    Ok(handle)
}

/// CU_STREAM_CAPTURE_STATUS_NONE, _ACTIVE or _INVALIDATED.
pub(crate) fn status(call: &Call, stream: usize) -> Answer<u32> {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    let capture = state.streams[&stream].capture;
    Ok(capture.map_or(0, |id| if state.captures.get(&id).is_none_or(|capture| capture.is_spoiled) { 2 } else { 1 }))
}

pub(crate) fn destroy(call: &Call, graph: usize) -> Answer {
    call.driver.state.lock().graphs.remove(&graph).map(|_| ()).ok_or(Code::INVALID_VALUE)
}

/// The handles of a graph's nodes.
pub(crate) fn nodes(call: &Call, graph: usize) -> Answer<Vec<usize>> {
    let state = call.driver.state.lock();
    let graph = state.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?;
    Ok(graph.nodes.iter().map(|node| node.handle).collect())
}
