//! Executable graphs: the nodes run one after another in the order of their capture, on the stream of the launch, which
//! is an order that every graph allows. To the detector each branch is a lane of its own, so an edge that is missing
//! between two branches is found. Two launches of one executable graph run one after the other.

use std::collections::HashMap;

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::detector::clock::Clock;
use crate::graph::{Node, supported};
use crate::operation::{Origin, Request, Work};
use crate::state::State;
use crate::stream::Point;

/// See the module.
pub(crate) struct Exec {
    pub(crate) nodes: Vec<Node>,
    /// The last launch.
    last: Option<(Point, Clock)>,
    /// Of each branch, with how far it is; none for a graph with one branch, which is in the lane of its stream.
    lanes: HashMap<usize, (usize, u64)>,
}

impl State {
    /// The lanes that nodes need which the executable graph has not.
    fn lanes_for(&mut self, nodes: &[Node], lanes: &mut HashMap<usize, (usize, u64)>) {
        let is_one = nodes.iter().all(|node| node.branch == nodes[0].branch);
        for node in nodes.iter().filter(|_| !is_one) {
            lanes.entry(node.branch).or_insert_with(|| self.detector.new_lane());
        }
    }
}

pub(crate) fn instantiate(call: &Call, graph: usize) -> Answer<usize> {
    supported(call)?;
    let (mut state, _) = crate::context::enter(call)?;
    let nodes = state.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?.nodes.clone();
    let handle = call.driver.new_handle();
    let mut lanes = HashMap::new();
    state.lanes_for(&nodes, &mut lanes);
    state.execs.insert(handle, Exec { nodes, last: None, lanes });
    Ok(handle)
}

/// CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED and _NODE_TYPE_CHANGED.
const TOPOLOGY_CHANGED: u32 = 2;
const NODE_TYPE_CHANGED: u32 = 3;

/// The executable graph does what that graph does. Otherwise the reason, and the node.
pub(crate) fn update(call: &Call, handle: usize, graph: usize) -> Answer<Result<(), (u32, usize)>> {
    let (mut state, _) = crate::context::enter(call)?;
    let nodes = state.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?.nodes.clone();
    let exec = state.execs.get_mut(&handle).ok_or(Code::INVALID_VALUE)?;
    if exec.nodes.len() != nodes.len() {
        return Ok(Err((TOPOLOGY_CHANGED, 0)));
    }
    let kind = |node: &Node| std::mem::discriminant(&node.work);
    if let Some((_, new)) = exec.nodes.iter().zip(&nodes).find(|(old, new)| kind(old) != kind(new)) {
        return Ok(Err((NODE_TYPE_CHANGED, new.handle)));
    }
    let mut lanes = std::mem::take(&mut exec.lanes);
    // The nodes keep the handles that they were made with.
    for (old, new) in exec.nodes.iter_mut().zip(nodes.iter().cloned()) {
        *old = Node { handle: old.handle, ..new };
    }
    state.lanes_for(&nodes, &mut lanes);
    state.execs.entry(handle).and_modify(|exec| exec.lanes = lanes);
    Ok(Ok(()))
}

/// Runs the nodes on the stream, behind the last launch of the same graph.
pub(crate) fn launch(call: &Call, handle: usize, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    let Exec { nodes, last, lanes } = state.execs.get(&handle).ok_or(Code::INVALID_VALUE)?;
    let (nodes, last, mut lanes) = (nodes.clone(), last.clone(), lanes.clone());
    let (waits, clock) = last.map_or((Vec::new(), None), |(point, clock)| (vec![point], Some(clock)));
    let begin = state.submit(call, stream, Request { waits, clock, ..Request::new(Work::Nothing) })?;
    let mut clocks = Clocks::new(begin.map(|(_, stamp)| stamp.clock.clone()).unwrap_or_default());
    for node in nodes {
        let (branch, after) = (node.branch, node.after);
        let place = lanes.get_mut(&branch).map(|(lane, sequence)| {
            *sequence += 1;
            (*lane, *sequence, clocks.of(branch, &after))
        });
        let origin = Some(Origin { entry: node.entry, label: node.label, place });
        let (accesses, copied) = (node.accesses, node.copied);
        let run = state.submit(call, stream, Request { accesses, copied, origin, ..Request::new(node.work) })?;
        clocks.add(branch, run.map(|(_, stamp)| stamp.clock.clone()).unwrap_or_default());
    }
    let clock = Some(clocks.all());
    let end = state.submit(call, stream, Request { clock, ..Request::new(Work::Nothing) })?;
    if let (Some((point, stamp)), Some(exec)) = (end, state.execs.get_mut(&handle)) {
        exec.last = Some((point, stamp.clock.clone()));
        exec.lanes = lanes;
    }
    Ok(())
}

/// The clocks of a launch: those of each branch after each of its nodes.
struct Clocks {
    begin: Clock,
    branches: HashMap<usize, Vec<Clock>>,
}

impl Clocks {
    fn new(begin: Clock) -> Self {
        Self { begin, branches: HashMap::new() }
    }

    /// What the next node of a branch comes after.
    fn of(&self, branch: usize, after: &[(usize, usize)]) -> Clock {
        let mut clock = self.begin.clone();
        let of = |branch: usize| self.branches.get(&branch);
        of(branch).and_then(|clocks| clocks.last()).iter().for_each(|last| clock.join(last));
        let others = after.iter().filter_map(|(other, count)| of(*other)?.get(count.checked_sub(1)?));
        others.for_each(|other| clock.join(other));
        clock
    }

    fn add(&mut self, branch: usize, clock: Clock) {
        self.branches.entry(branch).or_default().push(clock);
    }

    fn all(&self) -> Clock {
        let mut clock = self.begin.clone();
        self.branches.values().filter_map(|clocks| clocks.last()).for_each(|last| clock.join(last));
        clock
    }
}

pub(crate) fn upload(call: &Call, exec: usize, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    state.working_stream(call.driver, stream)?;
    state.execs.get(&exec).map(|_| ()).ok_or(Code::INVALID_VALUE)
}

pub(crate) fn destroy(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let exec = state.execs.remove(&handle).ok_or(Code::INVALID_VALUE)?;
    exec.lanes.values().for_each(|(lane, last)| state.detector.end_lane(*lane, *last));
    Ok(())
}
