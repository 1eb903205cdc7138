//! Watches whether a target is still alive.

use std::fs;
use std::time::{Duration, Instant};

use super::{ProcessHandle, Targets, is_process_alive, is_thread_alive};
use crate::{LoadedObject, Result};

/// Interval between checks of the targets.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Watch for the end of all targets. Frequent queries cost little.
pub struct TargetWatch<'a> {
    /// Targets that have not ended; `None` if more targets can appear, as when everything is
    /// measured.
    alive: Option<Vec<Target>>,
    /// Function that returns the living processes of the tree, if the targets are a tree.
    tree: Option<Tree<'a>>,
    looked: Instant,
    /// Time of the last listing of the tree, which costs more than a check of `alive`.
    listed: Option<Instant>,
}

type Tree<'a> = Box<dyn Fn() -> Result<Vec<u32>> + 'a>;

/// A target that has not ended.
enum Target {
    Process(ProcessHandle),
    /// A process without a handle, for example because this process has too many open files.
    Unheld(u32),
    Thread(u32),
}

impl<'a> TargetWatch<'a> {
    /// Makes a watch of the targets that programs measure.
    pub fn new(targets: &'a Targets, object: &'a LoadedObject) -> Self {
        let tree = || {
            let threads = targets.threads(object)?.into_iter();
            let pids = threads.map(|ids| ids.namespace_pid);
            // The tree of a shell includes this process and its ancestors, which would keep the
            // tree alive.
            let waiting = this_and_its_ancestors();
            Ok(pids.filter(|pid| !waiting.contains(pid)).collect())
        };
        let tree: Option<Tree<'a>> = (targets.is_judged_by_programs()).then_some(Box::new(tree));
        TargetWatch::over(targets, tree)
    }

    fn over(targets: &Targets, tree: Option<Tree<'a>>) -> Self {
        let processes = targets.pids.iter().map(|&pid| Target::process(pid));
        let threads = targets.tids.iter().map(|&tid| Target::Thread(tid));
        TargetWatch {
            alive: targets
                .can_end()
                .then(|| processes.chain(threads).collect()),
            tree,
            looked: Instant::now(),
            listed: None,
        }
    }

    /// Returns whether a target is still alive. A process is alive while any of its threads is
    /// alive, and a tree while any of its processes is alive.
    ///
    /// # Errors
    /// The threads of a tree cannot be listed.
    pub fn lives(&mut self) -> Result<bool> {
        let Some(alive) = &mut self.alive else {
            return Ok(true);
        };
        // A check of a single handle costs next to nothing, so it needs no interval.
        if self.looked.elapsed() >= LOOK_INTERVAL || matches!(alive[..], [Target::Process(_)]) {
            self.looked = Instant::now();
            alive.retain(Target::lives);
        }
        if let (true, Some(tree)) = (alive.is_empty(), &self.tree) {
            let is_recent = |listed: Instant| listed.elapsed() < LOOK_INTERVAL;
            if self.listed.is_some_and(is_recent) {
                return Ok(true);
            }
            self.listed = Some(Instant::now());
            // One living process is enough to keep the tree alive.
            alive.extend(tree()?.first().map(|&pid| Target::process(pid)));
        }
        Ok(!alive.is_empty())
    }
}

/// Returns the IDs of this process, its parent, and all further ancestors.
fn this_and_its_ancestors() -> Vec<u32> {
    let parent_of = |pid: u32| -> Option<u32> {
        // The file is read as bytes, because the name of the process can contain any bytes.
        let status = fs::read(format!("/proc/{pid}/status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        parent.trim().parse().ok()
    };
    let mut line = vec![std::process::id()];
    while let Some(parent) = line.last().and_then(|&pid| parent_of(pid)) {
        // The parent of the first process is 0.
        if parent == 0 || line.contains(&parent) {
            break;
        }
        line.push(parent);
    }
    line
}

impl Target {
    fn process(pid: u32) -> Target {
        match ProcessHandle::open(pid) {
            Ok(handle) => Target::Process(handle),
            Err(_) => Target::Unheld(pid),
        }
    }

    fn lives(&self) -> bool {
        match self {
            Target::Process(handle) => !handle.has_ended(),
            Target::Unheld(pid) => is_process_alive(*pid),
            Target::Thread(tid) => is_thread_alive(*tid),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use super::*;

    fn start_watch(pids: Vec<u32>, tids: Vec<u32>) -> TargetWatch<'static> {
        over(pids, tids, None)
    }

    fn over(pids: Vec<u32>, tids: Vec<u32>, tree: Option<Tree<'_>>) -> TargetWatch<'_> {
        let mut watch = TargetWatch::over(&Targets::new(pids, tids), tree);
        watch.look_again();
        watch
    }

    impl TargetWatch<'_> {
        fn look_again(&mut self) {
            self.looked = Instant::now() - LOOK_INTERVAL;
            self.listed = self.listed.and(Some(self.looked));
        }
    }

    #[test]
    fn a_zombie_is_gone_and_this_process_is_not() {
        let ours = std::process::id();
        assert!(
            start_watch(vec![ours], vec![]).lives().unwrap()
                && start_watch(vec![], vec![ours]).lives().unwrap()
        );

        for by_tid in [false, true] {
            let mut child = Command::new("true").spawn().unwrap();
            let (pids, tids) = if by_tid {
                (vec![], vec![child.id()])
            } else {
                (vec![child.id()], vec![])
            };
            let mut watch = start_watch(pids.clone(), tids.clone());
            while watch.lives().unwrap() {
                watch.look_again();
            }
            // The same check for a target without a handle.
            assert!(!is_process_alive(child.id()));
            child.wait().unwrap();
            assert!(!start_watch(pids, tids).lives().unwrap());
        }
    }

    #[test]
    fn a_tree_lives_as_long_as_any_of_it() {
        let mut ended = Command::new("true").spawn().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        ended.wait().unwrap();
        let (ended, pid) = (ended.id(), child.id());
        let living = || Ok((is_process_alive(pid)).then_some(pid).into_iter().collect());
        let mut watch = over(vec![ended], vec![], Some(Box::new(living)));
        for _ in 0..2 {
            assert!(watch.lives().unwrap());
            watch.look_again();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        watch.look_again();
        assert!(!watch.lives().unwrap());
    }
}
