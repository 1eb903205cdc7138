//! What is measured: processes and threads named on the command line.

mod names;
mod process_handle;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bpf::types::ThreadIds;
use libbpf_rs::{MapCore, MapFlags};
use symbolize::Process;

use crate::error::Context;
use crate::{Kernel, LoadedObject, OpenObject, Result, iterators, monotonic_ns};

pub use names::ProcessNames;
pub use process_handle::ProcessHandle;

/// Processes and threads, as the caller's PID namespace names them. Both empty
/// means the whole machine, or in a container all that it shows.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Processes: all their threads.
    pub pids: Vec<u32>,
    /// Single threads.
    pub tids: Vec<u32>,
}

impl Targets {
    /// Whether everything is measured.
    pub fn is_everything(&self) -> bool {
        self.pids.is_empty() && self.tids.is_empty()
    }

    /// Tells programs how to choose whom they measure: `include/filter.h`.
    pub fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        if let ([pid], []) = (self.pids.as_slice(), self.tids.as_slice())
            && !kernel.is_nested()
        {
            object.set("only_pid", *pid)?;
        }
        object.set("targets_named_ns", monotonic_ns())?;
        self.configure_as("filter", "target", object)
    }

    /// Tells programs how to choose the wakers that count: `include/wakers.h`.
    pub fn configure_wakers(&self, object: &mut OpenObject) -> Result<()> {
        self.configure_as("filter_waker", "waker", object)
    }

    /// Sets the constants that begin with `filter`, and makes room in the maps that
    /// begin with `maps`.
    fn configure_as(&self, filter: &str, maps: &str, object: &mut OpenObject) -> Result<()> {
        for (kind, ids) in [("pids", &self.pids), ("tids", &self.tids)] {
            object.set(&format!("{filter}_{kind}"), !ids.is_empty())?;
            let room = u32::try_from(ids.len().max(1)).unwrap_or(u32::MAX);
            object.make_room(&format!("{maps}_{kind}"), room)?;
        }
        Ok(())
    }

    /// Whether a thread, by the IDs of the caller's PID namespace, is measured.
    pub fn includes(&self, pid: u32, tid: u32) -> bool {
        self.is_everything() || self.pids.contains(&pid) || self.tids.contains(&tid)
    }

    /// Names to programs whom they measure.
    pub fn fill(&self, object: &LoadedObject, kernel: &Kernel) -> Result<()> {
        self.fill_in("target", object, kernel)
    }

    /// Names to programs the wakers that count.
    pub fn fill_wakers(&self, object: &LoadedObject, kernel: &Kernel) -> Result<()> {
        self.fill_in("waker", object, kernel)
    }

    /// Puts the kernel's own IDs into the maps that begin with `maps`.
    fn fill_in(&self, maps: &str, object: &LoadedObject, kernel: &Kernel) -> Result<()> {
        let (pids, tids) = if kernel.is_nested() && !self.is_everything() {
            let list_threads = object.program("list_threads")?;
            self.translated(&iterators::run::<ThreadIds>(&list_threads)?)
        } else {
            (self.pids.clone(), self.tids.clone())
        };
        for (kind, ids) in [("pids", pids), ("tids", tids)] {
            let map = object.map(&format!("{maps}_{kind}"))?;
            for id in ids {
                map.update(&id.to_ne_bytes(), &[1], MapFlags::ANY)
                    .context(format!("make {id} a target"))?;
            }
        }
        Ok(())
    }

    /// The processes that are measured, each with the program that it runs.
    pub fn processes(&self, object: &LoadedObject) -> Result<Vec<Process>> {
        let list_threads = object.program("list_threads")?;
        let mut processes: Vec<Process> = iterators::run::<ThreadIds>(&list_threads)?
            .iter()
            .filter(|ids| self.includes(ids.namespace_pid, ids.namespace_tid))
            .filter(|ids| ids.instance != 0 && ids.namespace_pid != 0)
            .map(|ids| Process {
                pid: ids.namespace_pid,
                instance: ids.instance,
            })
            .collect();
        processes.sort_unstable();
        processes.dedup();
        Ok(processes)
    }

    fn translated(&self, threads: &[ThreadIds]) -> (Vec<u32>, Vec<u32>) {
        let mut pids: Vec<u32> = threads
            .iter()
            .filter(|ids| self.pids.contains(&ids.namespace_pid))
            .map(|ids| ids.pid)
            .collect();
        pids.dedup();
        pids.sort_unstable();
        pids.dedup();
        let tids = threads
            .iter()
            .filter(|ids| self.tids.contains(&ids.namespace_tid))
            .map(|ids| ids.tid)
            .collect();
        (pids, tids)
    }
}

/// How often to look whether the targets live.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Watches for the end of all targets; cheap to ask often.
pub struct TargetWatch {
    /// Those that have not ended; `None` where everything is measured, which never ends.
    alive: Option<Vec<Target>>,
    looked: Instant,
}

/// A target that has not ended.
enum Target {
    Process(ProcessHandle),
    /// One that could not be taken hold of, as where too many files are open.
    Unheld(u32),
    Thread(u32),
}

impl TargetWatch {
    /// A watch over targets, which all live.
    pub fn new(targets: &Targets) -> Self {
        let process = |&pid: &u32| match ProcessHandle::open(pid) {
            Ok(handle) => Target::Process(handle),
            Err(_) => Target::Unheld(pid),
        };
        let processes = targets.pids.iter().map(process);
        let threads = targets.tids.iter().map(|&tid| Target::Thread(tid));
        TargetWatch {
            alive: (!targets.is_everything()).then(|| processes.chain(threads).collect()),
            looked: Instant::now(),
        }
    }

    /// Whether there is still something to measure. A process whose first thread ended
    /// lives on while another of its threads does.
    pub fn lives(&mut self) -> bool {
        let Some(alive) = &mut self.alive else {
            return true;
        };
        if self.looked.elapsed() >= LOOK_INTERVAL {
            self.looked = Instant::now();
            alive.retain(Target::lives);
        }
        !alive.is_empty()
    }
}

impl Target {
    fn lives(&self) -> bool {
        match self {
            Target::Process(handle) => !handle.has_ended(),
            Target::Unheld(pid) => process_lives(*pid),
            Target::Thread(tid) => thread_lives(*tid),
        }
    }
}

fn process_lives(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| is_alive(&thread.path()))
}

fn thread_lives(tid: u32) -> bool {
    is_alive(Path::new(&format!("/proc/{tid}/task/{tid}")))
}

/// Whether the thread with this folder in /proc exists and is no zombie: the
/// state follows the name, which ends at the last `)`.
fn is_alive(folder: &Path) -> bool {
    // Not text: the name is any bytes.
    fs::read(folder.join("stat"))
        .ok()
        .and_then(|stat| {
            let stat = String::from_utf8_lossy(&stat);
            stat.rsplit_once(") ")
                .map(|(_, rest)| !rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use super::*;

    fn of(pids: Vec<u32>, tids: Vec<u32>) -> TargetWatch {
        let mut watch = TargetWatch::new(&Targets { pids, tids });
        watch.looked = Instant::now() - LOOK_INTERVAL;
        watch
    }

    #[test]
    fn a_zombie_is_gone_and_this_process_is_not() {
        let ours = std::process::id();
        assert!(of(vec![ours], vec![]).lives() && of(vec![], vec![ours]).lives());

        for by_tid in [false, true] {
            let mut child = Command::new("true").spawn().unwrap();
            let (pids, tids) = match by_tid {
                false => (vec![child.id()], vec![]),
                true => (vec![], vec![child.id()]),
            };
            let mut watch = of(pids.clone(), tids.clone());
            while watch.lives() {
                watch.looked = Instant::now() - LOOK_INTERVAL;
            }
            // And to those who cannot take hold of it.
            assert!(!process_lives(child.id()));
            child.wait().unwrap();
            assert!(!of(pids, tids).lives());
        }
    }

    #[test]
    fn one_that_lives_is_enough() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ours = std::process::id();
        assert!(of(vec![child.id(), ours], vec![]).lives());
        assert!(of(vec![child.id()], vec![ours]).lives());
    }

    #[test]
    fn everything_is_never_gone() {
        assert!(of(vec![], vec![]).lives());
    }

    #[test]
    fn translates_a_containers_ids() {
        let ids = |pid, tid, namespace_pid, namespace_tid| ThreadIds {
            pid,
            tid,
            namespace_pid,
            namespace_tid,
            instance: 1,
        };
        let threads = [
            ids(900, 900, 5, 5),
            ids(900, 901, 5, 6),
            ids(950, 950, 7, 7),
        ];
        let targets = Targets {
            pids: vec![5],
            tids: vec![7],
        };
        assert_eq!(targets.translated(&threads), (vec![900], vec![950]));
    }
}
