//! Which thread or event waits for which, as a graph, and its cycles.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::event::{Debt, Pending, Sleeper};
use crate::task::census::Occupation;

/// Something that can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Node {
    /// An event, by address.
    Event(usize),
    /// A task, by number.
    Task(usize),
}

/// From each node, what it waits for and in which words: "A (words) B".
pub(super) type Graph = BTreeMap<Node, Vec<(&'static str, Node)>>;

pub(super) fn graph(events: &[Pending], sleepers: &[Sleeper], executors: &[Occupation]) -> Graph {
    let mut graph = Graph::new();
    for event in events {
        let edges: Vec<_> = match event.debt {
            Debt::Task(task) => vec![("is owed by", Node::Task(task))],
            ref debt => debt.events().iter().map(|&source| ("follows", Node::Event(source))).collect(),
        };
        if !edges.is_empty() {
            graph.entry(Node::Event(event.address)).or_default().extend(edges);
        }
    }
    for sleeper in sleepers {
        for (task, _label) in &sleeper.tasks {
            graph.entry(Node::Task(*task)).or_default().push(("waits for", Node::Event(sleeper.event)));
        }
    }
    for Occupation { running, queued, .. } in executors {
        let Some(running) = running else { continue };
        for task in queued {
            graph.entry(Node::Task(*task)).or_default().push(("is queued behind", Node::Task(*running)));
        }
    }
    for executor in executors {
        let edges = edges_of_standstill(&graph, sleepers, executor);
        for (task, behind) in edges {
            let edge = ("is queued, in a pool that gets no further thread, behind", Node::Task(behind));
            graph.entry(Node::Task(task)).or_default().push(edge);
        }
    }
    graph
}

/// Of a pool that stands still, if each wait of its threads is for what a task owes that is queued there: those tasks,
/// and those that wait for them. A queued task waits for any of the threads, so it is no cycle if but one of them waits
/// for something else.
fn edges_of_standstill(graph: &Graph, sleepers: &[Sleeper], executor: &Occupation) -> Vec<(usize, usize)> {
    let Some((pool, threads)) = executor.standstill else { return Vec::new() };
    let queued: BTreeSet<_> = executor.queued.iter().copied().collect();
    let waits = sleepers.iter().filter(|sleeper| sleeper.pool == pool);
    let edges: Option<Vec<_>> = waits
        .map(|sleeper| {
            let (behind, _) = *sleeper.tasks.first()?;
            Some((reached(graph, Node::Event(sleeper.event), &queued)?, behind))
        })
        .collect();
    // A thread that is awake for a moment is not among the sleepers.
    edges.filter(|edges| edges.len() >= threads).unwrap_or_default()
}

/// The first of `tasks` to which the graph leads from `start`.
fn reached(graph: &Graph, start: Node, tasks: &BTreeSet<usize>) -> Option<usize> {
    let (mut open, mut known) = (vec![start], BTreeSet::from([start]));
    while let Some(node) = open.pop() {
        if let Node::Task(task) = node
            && tasks.contains(&task)
        {
            return Some(task);
        }
        open.extend(graph.get(&node).into_iter().flatten().map(|&(_, next)| next).filter(|&next| known.insert(next)));
    }
    None
}

/// Cycles, each once, beginning with its smallest node. Of cycles that share nodes, at least one.
pub(super) fn cycles(graph: &Graph) -> Vec<Vec<(Node, &'static str)>> {
    let mut finished = BTreeSet::new();
    let mut found = Vec::new();
    for &start in graph.keys() {
        // Depth first, without recursion: the path, and for each node of it which of its edges is next.
        let mut path: Vec<(Node, usize)> = vec![(start, 0)];
        let mut places = HashMap::from([(start, 0)]);
        while let Some((node, edge)) = path.last_mut() {
            let node = *node;
            let next =
                if finished.contains(&node) { None } else { graph.get(&node).and_then(|edges| edges.get(*edge)) };
            *edge += 1;
            match next {
                None => {
                    finished.insert(node);
                    places.remove(&node);
                    path.pop();
                }
                Some(&(_, target)) => match places.get(&target) {
                    None => {
                        places.insert(target, path.len());
                        path.push((target, 0));
                    }
                    Some(&at) => {
                        found.push(path[at..].iter().map(|&(node, edge)| (node, graph[&node][edge - 1].0)).collect());
                    }
                },
            }
        }
    }
    found.into_iter().map(smallest_first).collect()
}

fn smallest_first(mut cycle: Vec<(Node, &'static str)>) -> Vec<(Node, &'static str)> {
    let smallest = cycle.iter().enumerate().min_by_key(|(_, (node, _))| *node).map_or(0, |(at, _)| at);
    cycle.rotate_left(smallest);
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(edges: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(Node::Event(*from)).or_default().push(("follows", Node::Event(*to)));
        }
        graph
    }

    #[test]
    fn a_chain_has_no_cycle() {
        assert!(cycles(&of(&[(1, 2), (2, 3), (1, 3), (4, 3)])).is_empty());
    }

    #[test]
    fn each_cycle_is_found_once() {
        let found = cycles(&of(&[(1, 2), (2, 3), (3, 2), (5, 5), (4, 1)]));
        let nodes: Vec<Vec<Node>> = found.iter().map(|cycle| cycle.iter().map(|(node, _)| *node).collect()).collect();
        assert_eq!(nodes, [vec![Node::Event(2), Node::Event(3)], vec![Node::Event(5)]]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Vec<_> = (0..100_000).map(|node| (node, node + 1)).collect();
        assert!(cycles(&of(&edges)).is_empty());
    }
}
