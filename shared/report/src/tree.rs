//! Choice and order of the processes in a table: the busiest processes and their ancestors, as a
//! tree.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Maximum number of ancestors listed per process. A file can name any number of ancestors.
const MAX_ANCESTORS: usize = 32;

/// A candidate for the list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Node {
    pub(super) pid: u32,
    pub(super) parent: u32,
    /// Time that ranks the processes, in ns: running and runnable time, or time with work.
    pub(super) busy_ns: u64,
    /// Start of its first thread, in ns of CLOCK_MONOTONIC.
    pub(super) started_ns: u64,
    /// Start of the process, in clock ticks since boot.
    pub(super) start_ticks: u64,
}

/// A listed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Index of the process among all nodes.
    pub(super) place: usize,
    /// Number of listed ancestors.
    pub(super) depth: usize,
}

/// Lists the busiest `limit` processes and their ancestors: parents before their children, siblings
/// by their starts. A process without a listed parent is a root. The PIDs of `nodes` differ.
pub(super) fn listed(nodes: &[Node], limit: usize) -> Vec<Listed> {
    let places: HashMap<u32, usize> = nodes.iter().map(|node| node.pid).zip(0..).collect();
    let parent = |place: usize| {
        let parent = places.get(&nodes[place].parent).copied();
        parent.filter(|parent| *parent != place)
    };
    let mut chosen: HashSet<usize> = HashSet::new();
    for place in busiest(nodes, limit) {
        let ancestors = std::iter::successors(Some(place), |place| parent(*place));
        chosen.extend(ancestors.take(1 + MAX_ANCESTORS));
    }

    let mut by_start: Vec<usize> = chosen.iter().copied().collect();
    by_start.sort_unstable_by_key(|place| {
        let node = nodes[*place];
        (node.started_ns, node.start_ticks, node.pid)
    });
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let (mut roots, mut others) = (Vec::new(), Vec::new());
    for &place in &by_start {
        match parent(place).filter(|parent| chosen.contains(parent)) {
            None => roots.push(place),
            Some(parent) => {
                children.entry(parent).or_default().push(place);
                others.push(place);
            }
        }
    }
    let mut listed = Vec::with_capacity(by_start.len());
    // Processes that are each other's ancestors come last. The first of them is a root, too.
    for root in roots.into_iter().chain(others) {
        let mut next = vec![Listed {
            place: root,
            depth: 0,
        }];
        while let Some(process) = next.pop() {
            // Each process is listed once.
            if !chosen.remove(&process.place) {
                continue;
            }
            listed.push(process);
            let children = children.get(&process.place).into_iter().flatten();
            next.extend(children.rev().map(|&place| Listed {
                place,
                depth: process.depth + 1,
            }));
        }
    }
    listed
}

/// Returns the indexes of the `limit` busiest processes. If two are equally busy, the lower PID
/// comes first.
pub(super) fn busiest(nodes: &[Node], limit: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..nodes.len()).collect();
    places.sort_unstable_by_key(|place| (Reverse(nodes[*place].busy_ns), nodes[*place].pid));
    places.truncate(limit);
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds nodes from PID, parent, start and busy time.
    fn nodes(rows: &[(u32, u32, u64, u64)]) -> Vec<Node> {
        let node = |&(pid, parent, started_ns, busy_ns)| Node {
            pid,
            parent,
            busy_ns,
            started_ns,
            start_ticks: 0,
        };
        rows.iter().map(node).collect()
    }

    proptest! {
        #[test]
        fn each_is_listed_once_whatever_is_said_of_parents(
            parents in prop::collection::vec((0_u32..40, 0_u64..9), 0..40),
            limit in 0_usize..50,
        ) {
            let rows: Vec<_> = (1..).zip(&parents).map(|(pid, &(parent, busy))| {
                (pid, parent, 0, busy)
            }).collect();
            let nodes = nodes(&rows);
            let listed = listed(&nodes, limit);
            let places: HashSet<usize> = listed.iter().map(|listed| listed.place).collect();
            prop_assert_eq!(places.len(), listed.len());
            let busiest = busiest(&nodes, limit);
            prop_assert!(busiest.iter().all(|place| places.contains(place)));
            prop_assert!(limit < nodes.len() || listed.len() == nodes.len());
            // Every process except a root stands below its parent: the last process before it with
            // a smaller depth.
            for (index, process) in listed.iter().enumerate().filter(|(_, it)| it.depth > 0) {
                let above = listed[..index].iter().rev();
                let above = above.copied().find(|above| above.depth < process.depth);
                let parent = above.map(|above| nodes[above.place].pid);
                prop_assert_eq!(parent, Some(nodes[process.place].parent));
            }
        }
    }
}
