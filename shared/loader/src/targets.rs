//! What is measured: processes and threads named on the command line.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bpf::types::ThreadIds;
use libbpf_rs::{MapCore, MapFlags};
use symbolize::Process;

use crate::error::Context;
use crate::{Kernel, LoadedObject, OpenObject, Result, iterators, monotonic_ns};

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

    /// Whether nothing is left to measure: every target has ended. A process
    /// whose first thread ended lives on while another of its threads does.
    fn are_gone(&self) -> bool {
        !self.is_everything()
            && self.pids.iter().all(|pid| !process_lives(*pid))
            && self.tids.iter().all(|tid| !thread_lives(*tid))
    }
}

/// How often to look whether the targets live.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Watches for the end of all targets; cheap to ask often.
pub struct TargetWatch<'a> {
    targets: &'a Targets,
    looked: Instant,
}

impl<'a> TargetWatch<'a> {
    /// A watch over `targets`, which all live.
    pub fn new(targets: &'a Targets) -> Self {
        TargetWatch {
            targets,
            looked: Instant::now(),
        }
    }

    /// Whether there is still something to measure.
    pub fn lives(&mut self) -> bool {
        if self.looked.elapsed() < LOOK_INTERVAL {
            return true;
        }
        self.looked = Instant::now();
        !self.targets.are_gone()
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
    fs::read_to_string(folder.join("stat"))
        .ok()
        .and_then(|stat| {
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

    #[test]
    fn a_zombie_is_gone_and_this_process_is_not() {
        let this = Targets {
            pids: vec![std::process::id()],
            tids: vec![],
        };
        assert!(!this.are_gone());

        let mut child = Command::new("true").spawn().unwrap();
        let target = Targets {
            pids: vec![child.id()],
            tids: vec![],
        };
        while !target.are_gone() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(target.are_gone());
    }

    #[test]
    fn everything_is_never_gone() {
        assert!(!Targets::default().are_gone());
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
