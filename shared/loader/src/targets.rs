//! What is measured: processes, threads and cgroups named on the command line, and what
//! processes fork.

mod awaited_cgroups;
mod cgroups;
mod containers;
mod followers;
mod membership;
mod names;
mod pinned_maps;
mod process_handle;
mod units;
mod watch;

use std::path::{Path, PathBuf};

use bpf::types::{AwaitedProgramName, ThreadIds};
use bpf::{ConstantName, MapName, maps};
use libbpf_rs::{Link, MapCore, MapFlags};
use process::Process;
use process::{is_alive, living_thread};

use crate::error::Context;
use crate::{Kernel, LoadedObject, OpenObject, Result, Variable, iterators, monotonic_ns};

pub use awaited_cgroups::AwaitedCgroup;
pub use cgroups::{Cgroup, CgroupList, CgroupMount};
pub use containers::{Container, containers, ids_of_name, is_hexadecimal, is_whole_id};
pub use names::ProcessNames;
pub use process_handle::ProcessHandle;
pub use units::{is_unit_of_system, unit_name, units};
pub use watch::TargetWatch;

/// Maps of the processes and the threads that are targets.
const TARGET_IDS: [MapName; 2] = [maps::TARGET_PIDS, maps::TARGET_TIDS];
/// Maps of the processes and the threads whose wake-ups count.
const WAKER_IDS: [MapName; 2] = [maps::WAKER_PIDS, maps::WAKER_TIDS];

/// The kernel's IDs of processes or threads, each with when that started, CLOCK_MONOTONIC.
type Started = Vec<(u32, u64)>;

/// Processes and threads, as the caller's PID namespace names them, or cgroups. None of
/// these means the whole machine, or in a container all that it shows.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Processes: all their threads.
    pub pids: Vec<u32>,
    /// Single threads.
    pub tids: Vec<u32>,
    /// The processes that they fork, and have forked, and those that these fork.
    pub children: bool,
    /// Processes that are in no tree, with what they forked: this one, and who runs it as a
    /// part of itself. A shell that is measured has forked them, too.
    pub bystanders: Vec<u32>,
    /// Names of programs that nobody runs yet: whoever executes one of them.
    pub awaited: Vec<String>,
    /// Whatever is in these or below them at the time.
    pub cgroups: Vec<Cgroup>,
    /// The same of those that come while programs run.
    pub awaited_cgroups: Vec<AwaitedCgroup>,
    /// Nobody is in any of these, and the first is waited for.
    pub await_members: bool,
    /// Where a BPF map is pinned: of all these, only what is in cgroups that it has.
    pub cgroup_map: Option<PathBuf>,
    /// The same of mount namespaces.
    pub mount_namespace_map: Option<PathBuf>,
    /// When they were named, CLOCK_MONOTONIC, nanoseconds: whoever is younger has an ID
    /// that is used again.
    pub named_ns: u64,
}

impl Targets {
    /// The longest name of a program that can be waited for, in bytes.
    pub const LONGEST_AWAITED: usize = size_of::<AwaitedProgramName>() - 1;

    /// Processes and threads that there are now, by their IDs.
    pub fn new(pids: Vec<u32>, tids: Vec<u32>) -> Targets {
        Targets {
            pids,
            tids,
            bystanders: vec![std::process::id()],
            named_ns: monotonic_ns(),
            ..Targets::default()
        }
    }

    /// Whether everything is measured.
    pub fn is_everything(&self) -> bool {
        !self.are_named() && !self.by_membership()
    }

    /// Whether somebody is named.
    fn are_named(&self) -> bool {
        self.has_ids() || !self.awaited.is_empty() || self.has_cgroups()
    }

    /// Whether none comes that is not there yet.
    pub fn are_all_there(&self) -> bool {
        let may_come = self.children || !self.awaited.is_empty() || self.by_membership();
        self.has_ids() && !may_come
    }

    /// Whether cgroups are, be they there or not.
    fn has_cgroups(&self) -> bool {
        !self.cgroups.is_empty() || !self.awaited_cgroups.is_empty()
    }

    /// Whether processes or threads are.
    fn has_ids(&self) -> bool {
        !self.pids.is_empty() || !self.tids.is_empty()
    }

    /// Whether there can be nobody left: in a cgroup there may be others later.
    fn can_end(&self) -> bool {
        self.are_named() && !self.has_cgroups()
    }

    /// Whether there is nobody to measure yet.
    pub fn are_awaited(&self) -> bool {
        let names = !self.has_ids() && !self.awaited.is_empty();
        names && !self.has_cgroups() || self.await_members
    }

    /// When the first of those that were waited for came, CLOCK_MONOTONIC, nanoseconds; 0
    /// before.
    pub fn first_awaited<'a>(&self, object: &'a LoadedObject) -> Result<Variable<'a, u64>> {
        // Once more: a cgroup just made is not seen before programs can have been told.
        self.look_for_cgroups(object)?;
        self.look_for_members(object)?;
        self.first_variable(object)
    }

    fn first_variable<'a>(&self, object: &'a LoadedObject) -> Result<Variable<'a, u64>> {
        object.variable(bpf::variables::FIRST_AWAITED_NS)
    }

    /// Tells programs how to choose whom they measure: `include/targets/filter.h`.
    pub fn configure(&self, object: &mut OpenObject, kernel: &Kernel) -> Result<()> {
        if let Some(pid) = self.only_pid(kernel) {
            object.set(bpf::constants::ONLY_PID, pid)?;
        }
        object.set(bpf::constants::TARGETS_NAMED_NS, self.named_ns)?;
        self.configure_membership(object)?;
        self.configure_awaited_cgroups(object)?;
        let [pids, tids] = [bpf::constants::FILTER_PIDS, bpf::constants::FILTER_TIDS];
        self.configure_ids([pids, tids], TARGET_IDS, object)?;
        self.configure_followers(object)
    }

    /// Whether programs alone know who is measured.
    fn are_judged_by_programs(&self) -> bool {
        self.are_named() && (self.children || !self.awaited.is_empty())
    }

    /// The one process, where programs can compare with its ID.
    fn only_pid(&self, kernel: &Kernel) -> Option<u32> {
        let is_told = self.are_judged_by_programs() || self.by_membership();
        match (self.pids.as_slice(), self.tids.as_slice()) {
            ([pid], []) if !kernel.is_nested() && !is_told => Some(*pid),
            _ => None,
        }
    }

    /// Tells programs how to choose the wakers that count: `include/wakers.h`.
    pub fn configure_wakers(&self, object: &mut OpenObject) -> Result<()> {
        let pids = bpf::constants::FILTER_WAKER_PIDS;
        let tids = bpf::constants::FILTER_WAKER_TIDS;
        self.configure_ids([pids, tids], WAKER_IDS, object)
    }

    /// Sets the constants that say whether processes and threads are named, and makes room
    /// for the IDs of both.
    fn configure_ids(
        &self,
        are_named: [ConstantName<bool>; 2],
        maps: [MapName; 2],
        object: &mut OpenObject,
    ) -> Result<()> {
        let ids = [&self.pids, &self.tids].into_iter();
        for ((ids, named), map) in ids.zip(are_named).zip(maps) {
            object.set(named, !ids.is_empty())?;
            let room = u32::try_from(ids.len().max(1)).unwrap_or(u32::MAX);
            object.make_room(map, room)?;
        }
        Ok(())
    }

    /// Names to programs whom they measure. Others become targets as long as the links
    /// live.
    pub fn fill(&self, object: &LoadedObject, kernel: &Kernel) -> Result<Vec<Link>> {
        self.fill_cgroups(object)?;
        if self.only_pid(kernel).is_none() {
            self.fill_in(TARGET_IDS, object)?;
        }
        self.follow(object)
    }

    /// Names to programs the wakers that count.
    pub fn fill_wakers(&self, object: &LoadedObject) -> Result<()> {
        self.fill_in(WAKER_IDS, object)
    }

    /// Puts the kernel's own IDs into the maps of processes and threads.
    fn fill_in(&self, maps: [MapName; 2], object: &LoadedObject) -> Result<()> {
        if !self.has_ids() {
            return Ok(());
        }
        let (pids, tids) = self.translated(&living_threads(object)?);
        for (ids, map) in [pids, tids].into_iter().zip(maps) {
            let map = object.map(map)?;
            for (id, started) in ids {
                map.update(&id.to_ne_bytes(), &started.to_ne_bytes(), MapFlags::ANY)
                    .context(format!("make {id} a target"))?;
            }
        }
        Ok(())
    }

    /// The kernel's IDs of the processes and threads, each with its start.
    fn translated(&self, threads: &[ThreadIds]) -> (Started, Started) {
        let was_there = |started| started <= self.named_ns;
        let mut pids: Started = (threads.iter())
            .filter(|ids| self.pids.contains(&ids.namespace_pid))
            .filter(|ids| was_there(ids.process_started))
            .map(|ids| (ids.pid, ids.process_started))
            .collect();
        pids.sort_unstable();
        pids.dedup();
        let tids = (threads.iter())
            .filter(|ids| self.tids.contains(&ids.namespace_tid) && was_there(ids.started))
            .map(|ids| (ids.tid, ids.started))
            .collect();
        (pids, tids)
    }

    /// The processes that are measured, each with the program that it runs.
    pub fn processes(&self, object: &LoadedObject) -> Result<Vec<Process>> {
        Ok(processes_of(&self.threads(object)?))
    }

    /// The threads that are measured and have not ended.
    fn threads(&self, object: &LoadedObject) -> Result<Vec<ThreadIds>> {
        let mut threads = living_threads(object)?;
        threads.retain(|ids| self.are_of(ids));
        Ok(threads)
    }

    /// Whether a thread is measured.
    fn are_of(&self, ids: &ThreadIds) -> bool {
        match self.are_judged_by_programs() || self.by_membership() {
            true => ids.is_target != 0,
            false => {
                self.is_everything()
                    || self.pids.contains(&ids.namespace_pid)
                    || self.tids.contains(&ids.namespace_tid)
            }
        }
    }
}

/// The processes of threads, but for the kernel's and those that have no ID here.
fn processes_of(threads: &[ThreadIds]) -> Vec<Process> {
    let mut processes: Vec<Process> = (threads.iter())
        .filter(|ids| ids.instance != 0 && ids.namespace_pid != 0)
        .map(|ids| Process {
            pid: ids.namespace_pid,
            instance: ids.instance,
        })
        .collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// Every thread that our PID namespace shows.
fn living_threads(object: &LoadedObject) -> Result<Vec<ThreadIds>> {
    iterators::run(&object.program(bpf::programs::LIST_THREADS)?)
}

fn process_lives(pid: u32) -> bool {
    living_thread(pid).is_some()
}

fn thread_lives(tid: u32) -> bool {
    is_alive(Path::new(&format!("/proc/{tid}/task/{tid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translates_a_containers_ids() {
        let ids = |pid, tid, namespace_pid, namespace_tid, started| ThreadIds {
            pid,
            tid,
            namespace_pid,
            namespace_tid,
            started,
            process_started: started - u64::from(tid - pid),
            ..ThreadIds::default()
        };
        let threads = [
            ids(900, 900, 5, 5, 30),
            ids(900, 901, 5, 6, 31),
            ids(950, 950, 7, 7, 40),
            // It has the ID of one that has ended.
            ids(960, 960, 8, 8, 90),
        ];
        let targets = Targets {
            pids: vec![5, 8],
            tids: vec![7, 8],
            named_ns: 50,
            ..Targets::default()
        };
        let translated = targets.translated(&threads);
        assert_eq!(translated, (vec![(900, 30)], vec![(950, 40)]));
    }
}
