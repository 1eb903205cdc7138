//! Processes that become targets while programs run: descendants of targets, and processes that
//! execute an awaited program.

use std::collections::HashSet;

use bpf::types::{AwaitedName, AwaitedProgramName, COMM_LENGTH, ThreadIds};
use bpf::{ProgramName, programs};
use libbpf_rs::{Link, MapCore, MapFlags};

use super::{ProcessNames, Targets, living_threads};
use crate::error::Context;
use crate::{LoadedObject, OpenObject, Result, monotonic_ns};

/// Programs that add targets (`include/targets/children.h`, `include/targets/awaited_cgroups.h`).
/// Programs for awaited targets come first, so that DESCRIBE_PROGRAM also describes the programs
/// that these targets execute.
const FOLLOWERS: [ProgramName; 7] = [
    programs::AWAIT_CGROUP,
    programs::AWAIT_MEMBER,
    programs::AWAIT_BIRTH,
    programs::AWAIT_PROGRAM,
    programs::FOLLOW_FORK,
    programs::DESCRIBE_PROGRAM,
    programs::FORGET_PROCESS,
];

impl Targets {
    /// Chooses the programs to load, and sets the capacity of their maps.
    pub(super) fn configure_followers(&self, object: &mut OpenObject) -> Result<()> {
        let followers = self.followers();
        for follower in FOLLOWERS {
            object.choose(follower, followers.contains(&follower))?;
        }
        if self.is_judged_by_programs() {
            object.set(bpf::constants::FILTER_PIDS, true)?;
            object.make_room_for_threads(bpf::maps::TARGET_PIDS)?;
            // A name that is longer than a thread's name needs two entries: the whole name, and its
            // start.
            let names = u32::try_from(2 * self.awaited.len().max(1)).unwrap_or(u32::MAX);
            object.make_room(bpf::maps::AWAITED_PROGRAMS, names)?;
        }
        Ok(())
    }

    /// Returns the programs that these targets need.
    fn followers(&self) -> Vec<ProgramName> {
        let cgroups_are_awaited = !self.awaited_cgroups.is_empty();
        let needed = |follower: &ProgramName| match *follower {
            programs::AWAIT_CGROUP => cgroups_are_awaited,
            programs::AWAIT_MEMBER | programs::AWAIT_BIRTH => self.await_members,
            programs::AWAIT_PROGRAM => !self.awaited.is_empty(),
            programs::FOLLOW_FORK => self.is_any_named() && self.children,
            programs::DESCRIBE_PROGRAM => self.is_judged_by_programs() || cgroups_are_awaited,
            _ => self.is_judged_by_programs(),
        };
        FOLLOWERS.into_iter().filter(needed).collect()
    }

    /// Attaches the programs and adds the targets that appeared earlier. The programs are attached
    /// as long as the links live.
    pub(super) fn follow(&self, object: &LoadedObject) -> Result<Vec<Link>> {
        for name in &self.awaited {
            wait_for(name, object)?;
        }
        self.fill_awaited_cgroups(object)?;
        let links = object.attach(&self.followers())?;
        self.add_awaited_processes(object)?;
        self.look_for_cgroups(object)?;
        // The kernel does not record which thread of a process forked a child.
        if self.children && self.tids.is_empty() && self.is_any_named() {
            self.add_descendants(object)?;
        }
        Ok(links)
    }

    /// Makes targets of the existing descendants of targets. Programs add the children that these
    /// descendants fork meanwhile.
    fn add_descendants(&self, object: &LoadedObject) -> Result<()> {
        let mut added = HashSet::new();
        loop {
            let known = added.len();
            for ids in descendants(&living_threads(object)?, &self.bystanders) {
                if added.insert((ids.pid, ids.process_started)) {
                    make_target(ids, object)?;
                }
            }
            // A process that was no target yet may have forked a child during this round.
            if added.len() == known {
                return Ok(());
            }
        }
    }

    /// Makes targets of awaited processes that started before the programs were attached.
    fn add_awaited_processes(&self, object: &LoadedObject) -> Result<()> {
        if self.awaited.is_empty() {
            return Ok(());
        }
        let all = ProcessNames::of_all().context("list the processes")?;
        let came = (all.iter()).filter(|names| self.awaited.iter().any(|name| names.has(name)));
        let came: HashSet<u32> = came.map(|names| names.pid).collect();
        let first = self.first_variable(object)?;
        let mut threads = living_threads(object)?;
        threads.retain(|ids| came.contains(&ids.namespace_pid));
        for ids in &threads {
            make_target(ids, object)?;
            if first.get() == 0 {
                first.set(monotonic_ns());
            }
        }
        Ok(())
    }
}

/// Writes the name of an awaited program to the map.
fn wait_for(name: &str, object: &LoadedObject) -> Result<()> {
    let awaited = object.map(bpf::maps::AWAITED_PROGRAMS)?;
    for (text, kind) in awaited_names(name) {
        let mut key = AwaitedProgramName::default();
        let text = text.iter().take(Targets::LONGEST_AWAITED);
        for (to, from) in key.text.iter_mut().zip(text) {
            *to = from.cast_signed();
        }
        // SAFETY: the value consists of bytes alone.
        let key = unsafe { plain::as_bytes(&key) };
        awaited
            .update(key, &[kind.0 as u8], MapFlags::ANY)
            .context(format!("wait for {name}"))?;
    }
    Ok(())
}

/// Returns the names that a thread of the program may have.
fn awaited_names(name: &str) -> Vec<(&[u8], AwaitedName)> {
    let mut names = vec![(name.as_bytes(), AwaitedName::AWAITED_NAME)];
    if let Some(start) = name.as_bytes().get(..COMM_LENGTH - 1)
        && name.len() >= COMM_LENGTH
    {
        names.push((start, AwaitedName::AWAITED_NAME_CUT));
    }
    names
}

/// Makes the process of a thread a target.
fn make_target(ids: &ThreadIds, object: &LoadedObject) -> Result<()> {
    let (pid, started) = (ids.pid.to_ne_bytes(), ids.process_started.to_ne_bytes());
    object
        .map(bpf::maps::TARGET_PIDS)?
        .update(&pid, &started, MapFlags::ANY)
        .context(format!("make {} a target", ids.pid))
}

/// Returns one thread of each descendant of a target that is no target itself. Leaves out
/// bystanders and their descendants.
fn descendants<'a>(threads: &'a [ThreadIds], bystanders: &[u32]) -> Vec<&'a ThreadIds> {
    let targets = threads.iter().filter(|ids| ids.is_target != 0);
    let mut family: HashSet<u32> = targets.map(|ids| ids.pid).collect();
    let mut found = Vec::new();
    loop {
        let known = found.len();
        for ids in threads {
            let is_of_it = family.contains(&ids.parent) && !bystanders.contains(&ids.namespace_pid);
            if is_of_it && family.insert(ids.pid) {
                found.push(ids);
            }
        }
        if found.len() == known {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_whatever_their_order() {
        let ids = |pid, parent, is_target| ThreadIds {
            pid,
            namespace_pid: pid + 1000,
            parent,
            is_target,
            ..ThreadIds::default()
        };
        // IDs wrap around, so a child's ID may be below its parent's.
        let threads = [
            ids(1, 0, 0),
            ids(20, 30, 0),
            ids(25, 1, 0),
            ids(30, 40, 0),
            ids(30, 40, 0),
            ids(40, 1, 1),
            ids(41, 40, 1),
            // A tool that a target runs, and the tool's child.
            ids(50, 40, 0),
            ids(51, 50, 0),
        ];
        let found = descendants(&threads, &[1050]);
        let pids: Vec<u32> = found.iter().map(|ids| ids.pid).collect();
        assert_eq!(pids, [30, 20]);
    }
}
