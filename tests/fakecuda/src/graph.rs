//! Graphs: what is put on a stream while it captures, kept as nodes, and run later in their order.
//!
//! A capture begins on one stream. Another stream joins by waiting for an event that was recorded in it, and must be
//! waited for again before the end. The nodes run one after another in the order of their capture, on the stream of the
//! launch: an order that every graph allows, so missing edges between branches are not found. Two launches of one
//! executable graph run one after the other.
//!
//! Calls that would wait, and calls that could in any other way reach a stream that captures, spoil the capture of
//! their thread (or of all, in the global mode): they answer 900 and the end of the capture 901.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::detector::Access;
use crate::detector::clock::Clock;
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
    accesses: Vec<Access>,
    copied: Vec<(Span, Span)>,
    entry: &'static str,
    label: Arc<str>,
}

/// A graph that is being made.
pub(crate) struct Capture {
    origin: usize,
    mode: u32,
    thread: ThreadId,
    is_spoiled: bool,
    nodes: Vec<Node>,
    /// Streams that joined, with how much they had when they were last waited for, and how much they have.
    joined: HashMap<usize, (usize, usize)>,
}

/// A finished one.
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
}

/// One that can be launched.
pub(crate) struct Exec {
    pub(crate) nodes: Vec<Node>,
    /// The last launch.
    last: Option<(Point, Clock)>,
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
        capture.nodes.push(Node { handle, work, accesses, copied, entry, label: label() });
        capture.joined.entry(stream).and_modify(|(_, has)| *has += 1);
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

    fn spoil(&mut self, capture: usize) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.is_spoiled = true;
        }
    }

    /// An event is recorded in a capture.
    pub(crate) fn capture_record(&mut self, capture: usize, stream: usize) -> Answer<(usize, usize, usize)> {
        let open = self.captures.get(&capture).filter(|capture| !capture.is_spoiled);
        let open = open.ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
        Ok((capture, stream, open.joined.get(&stream).map_or(0, |(_, has)| *has)))
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
            Some(_) => capture.joined.entry(recorded).and_modify(|(waited, _)| *waited = had).or_default(),
            // It has joined, and must be waited for: one more than it was waited for.
            None => capture.joined.entry(stream).or_insert((0, 1)),
        };
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

fn supported(call: &Call) -> Answer {
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
    let capture =
        Capture { origin: stream, mode, thread, is_spoiled: false, nodes: Vec::new(), joined: HashMap::new() };
    state.captures.insert(id, capture);
    state.streams.entry(stream).and_modify(|stream| stream.capture = Some(id));
    Ok(())
}

/// The graph; 901 if the capture was spoilt, 904 if a stream that joined was not waited for.
pub(crate) fn end(call: &Call, stream: usize) -> Answer<usize> {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    let id = state.streams[&stream].capture.ok_or(Code::ILLEGAL_STATE)?;
    let capture = state.captures.get(&id).ok_or(Code::STREAM_CAPTURE_INVALIDATED)?;
    if capture.origin != stream {
        return Err(Code::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != RELAXED && capture.thread != thread::current().id() {
        return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
    }
    let is_joined = capture.joined.iter().all(|(_, (waited, has))| waited >= has);
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

pub(crate) fn instantiate(call: &Call, graph: usize) -> Answer<usize> {
    supported(call)?;
    let (mut state, _) = crate::context::enter(call)?;
    let nodes = state.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?.nodes.clone();
    let handle = call.driver.new_handle();
    state.execs.insert(handle, Exec { nodes, last: None });
    Ok(handle)
}

/// CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED and _NODE_TYPE_CHANGED.
const TOPOLOGY_CHANGED: u32 = 2;
const NODE_TYPE_CHANGED: u32 = 3;

/// The executable graph does what that graph does. Otherwise the reason, and the node.
pub(crate) fn update(call: &Call, exec: usize, graph: usize) -> Answer<Result<(), (u32, usize)>> {
    let (mut state, _) = crate::context::enter(call)?;
    let nodes = state.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?.nodes.clone();
    let exec = state.execs.get_mut(&exec).ok_or(Code::INVALID_VALUE)?;
    if exec.nodes.len() != nodes.len() {
        return Ok(Err((TOPOLOGY_CHANGED, 0)));
    }
    let kind = |node: &Node| std::mem::discriminant(&node.work);
    if let Some((_, new)) = exec.nodes.iter().zip(&nodes).find(|(old, new)| kind(old) != kind(new)) {
        return Ok(Err((NODE_TYPE_CHANGED, new.handle)));
    }
    // The nodes keep the handles that they were made with.
    for (old, new) in exec.nodes.iter_mut().zip(nodes) {
        *old = Node { handle: old.handle, ..new };
    }
    Ok(Ok(()))
}

/// Runs the nodes on the stream, behind the last launch of the same graph.
pub(crate) fn launch(call: &Call, exec: usize, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    let Exec { nodes, last } = state.execs.get(&exec).ok_or(Code::INVALID_VALUE)?;
    let (nodes, last) = (nodes.clone(), last.clone());
    if let Some((point, clock)) = last {
        let request = Request { waits: vec![point], clock: Some(clock), ..Request::new(Work::Nothing) };
        state.submit(call, stream, request)?;
    }
    let mut end = state.submit(call, stream, Request::new(Work::Nothing))?;
    for Node { work, accesses, copied, entry, label, .. } in nodes {
        let origin = Some((entry, label));
        end = state.submit(call, stream, Request { accesses, copied, origin, ..Request::new(work) })?;
    }
    if let (Some((point, stamp)), Some(exec)) = (end, state.execs.get_mut(&exec)) {
        exec.last = Some((point, stamp.clock.clone()));
    }
    Ok(())
}

pub(crate) fn upload(call: &Call, exec: usize, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    state.working_stream(call.driver, stream)?;
    state.execs.get(&exec).map(|_| ()).ok_or(Code::INVALID_VALUE)
}

pub(crate) fn destroy(call: &Call, graph: usize) -> Answer {
    call.driver.state.lock().graphs.remove(&graph).map(|_| ()).ok_or(Code::INVALID_VALUE)
}

pub(crate) fn destroy_exec(call: &Call, exec: usize) -> Answer {
    call.driver.state.lock().execs.remove(&exec).map(|_| ()).ok_or(Code::INVALID_VALUE)
}

/// The handles of a graph's nodes.
pub(crate) fn nodes(call: &Call, graph: usize) -> Answer<Vec<usize>> {
    let state = call.driver.state.lock();
    let graph = state.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?;
    Ok(graph.nodes.iter().map(|node| node.handle).collect())
}
