//! Targets: processes, threads and cgroups that the user names, and the processes that targets
//! fork.

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

/// Kernel's IDs of processes or threads. Each has its start time, in ns of CLOCK_MONOTONIC.
type Started = Vec<(u32, u64)>;

/// Processes and threads, by their IDs in the caller's PID namespace, or cgroups. If the user names
/// none, the target is the whole machine. In a container it is everything that the container shows.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Processes, of which all threads are targets.
    pub pids: Vec<u32>,
    /// Single threads.
    pub tids: Vec<u32>,
    /// True to add all existing and future descendants of the processes.
    pub children: bool,
    /// Processes that never become targets as descendants, nor do their own descendants. They are
    /// this process, and programs that run it as a part of themselves. If a shell is a target, they
    /// are descendants of it.
    pub bystanders: Vec<u32>,
    /// Names of awaited programs, which no process runs yet. A process that executes such a program
    /// becomes a target.
    pub awaited: Vec<String>,
    /// Cgroups. A thread in or below one of them is a target as long as it stays there.
    pub cgroups: Vec<Cgroup>,
    /// Awaited cgroups, which become targets when a process makes them.
    pub awaited_cgroups: Vec<AwaitedCgroup>,
    /// True if the cgroups are empty, and their first thread is awaited.
    pub await_members: bool,
    /// Path of a pinned BPF map with cgroups. Only threads in these cgroups are targets.
    pub cgroup_map: Option<PathBuf>,
    /// Path of a pinned BPF map with mount namespaces. Only threads in these namespaces are
    /// targets.
    pub mount_namespace_map: Option<PathBuf>,
    /// Time at which the user named the IDs, in ns of CLOCK_MONOTONIC. A process or thread that
    /// started later uses an ID again, and is no target.
    pub named_ns: u64,
}

impl Targets {
    /// Maximum length of the name of an awaited program, in bytes.
    pub const LONGEST_AWAITED: usize = size_of::<AwaitedProgramName>() - 1;

    /// Makes targets of existing processes and threads, by their IDs.
    pub fn new(pids: Vec<u32>, tids: Vec<u32>) -> Targets {
        Targets {
            pids,
            tids,
            bystanders: vec![std::process::id()],
            named_ns: monotonic_ns(),
            ..Targets::default()
        }
    }

    /// Returns whether every thread is a target.
    pub fn is_everything(&self) -> bool {
        !self.is_any_named() && !self.by_membership()
    }

    fn is_any_named(&self) -> bool {
        self.has_ids() || !self.awaited.is_empty() || self.has_cgroups()
    }

    /// Returns whether all targets exist already, and no others can appear.
    pub fn are_all_there(&self) -> bool {
        let may_come = self.children || !self.awaited.is_empty() || self.by_membership();
        self.has_ids() && !may_come
    }

    /// Returns whether the user named cgroups, existing or awaited.
    fn has_cgroups(&self) -> bool {
        !self.cgroups.is_empty() || !self.awaited_cgroups.is_empty()
    }

    /// Returns whether the user named processes or threads.
    fn has_ids(&self) -> bool {
        !self.pids.is_empty() || !self.tids.is_empty()
    }

    /// Returns whether all targets can end. A cgroup cannot, because threads can join it later.
    fn can_end(&self) -> bool {
        self.is_any_named() && !self.has_cgroups()
    }

    /// Returns whether no target exists yet.
    pub fn are_awaited(&self) -> bool {
        let names = !self.has_ids() && !self.awaited.is_empty();
        names && !self.has_cgroups() || self.await_members
    }

    /// Returns the variable with the time at which the first awaited target appeared, in ns of
    /// CLOCK_MONOTONIC; 0 before that.
    pub fn first_awaited<'a>(&self, object: &'a LoadedObject) -> Result<Variable<'a, u64>> {
        // The earlier search may have missed a cgroup that a process was making.
        self.look_for_cgroups(object)?;
        self.look_for_members(object)?;
        self.first_variable(object)
    }

    fn first_variable<'a>(&self, object: &'a LoadedObject) -> Result<Variable<'a, u64>> {
        object.variable(bpf::variables::FIRST_AWAITED_NS)
    }

    /// Configures how programs select the threads that they measure (`include/targets/filter.h`).
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

    /// Returns whether programs alone know all targets.
    fn is_judged_by_programs(&self) -> bool {
        self.is_any_named() && (self.children || !self.awaited.is_empty())
    }

    /// Returns the target process if no other target can exist and programs can compare its ID.
    fn only_pid(&self, kernel: &Kernel) -> Option<u32> {
        let is_changing = self.is_judged_by_programs() || self.by_membership();
        match (self.pids.as_slice(), self.tids.as_slice()) {
            ([pid], []) if !kernel.is_nested() && !is_changing => Some(*pid),
            _ => None,
        }
    }

    /// Configures how programs select the wakers that count (`include/wakers.h`).
    pub fn configure_wakers(&self, object: &mut OpenObject) -> Result<()> {
        let pids = bpf::constants::FILTER_WAKER_PIDS;
        let tids = bpf::constants::FILTER_WAKER_TIDS;
        self.configure_ids([pids, tids], WAKER_IDS, object)
    }

    /// Sets the constants that say whether the user named processes and threads. Sets the capacity
    /// of the maps of their IDs.
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

    /// Writes the targets to the maps. Programs add further targets as long as the links live.
    pub fn fill(&self, object: &LoadedObject, kernel: &Kernel) -> Result<Vec<Link>> {
        self.fill_cgroups(object)?;
        if self.only_pid(kernel).is_none() {
            self.fill_in(TARGET_IDS, object)?;
        }
        self.follow(object)
    }

    /// Writes the wakers that count to the maps.
    pub fn fill_wakers(&self, object: &LoadedObject) -> Result<()> {
        self.fill_in(WAKER_IDS, object)
    }

    /// Writes the kernel's IDs to the maps of processes and of threads.
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

    /// Returns the kernel's IDs of the target processes and of the target threads.
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

    /// Returns the target processes, each with the instance of its program.
    pub fn processes(&self, object: &LoadedObject) -> Result<Vec<Process>> {
        Ok(processes_of(&self.threads(object)?))
    }

    /// Returns the target threads that have not ended.
    fn threads(&self, object: &LoadedObject) -> Result<Vec<ThreadIds>> {
        let mut threads = living_threads(object)?;
        threads.retain(|ids| self.is_measured(ids));
        Ok(threads)
    }

    fn is_measured(&self, ids: &ThreadIds) -> bool {
        if self.is_judged_by_programs() || self.by_membership() {
            return ids.is_target != 0;
        }
        self.is_everything()
            || self.pids.contains(&ids.namespace_pid)
            || self.tids.contains(&ids.namespace_tid)
    }
}

/// Returns the processes of these threads. Leaves out kernel threads, and processes without an ID
/// in this namespace.
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

/// Returns every thread that the PID namespace of this process shows.
fn living_threads(object: &LoadedObject) -> Result<Vec<ThreadIds>> {
    iterators::run(&object.program(bpf::programs::LIST_THREADS)?)
}

fn is_process_alive(pid: u32) -> bool {
    living_thread(pid).is_some()
}

fn is_thread_alive(tid: u32) -> bool {
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
            // A later process, which uses the ID of a process that has ended.
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
