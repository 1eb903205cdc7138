//! What a fault left behind: BPF programs, maps and links, processes.
//!
//! A perf event lives as long as a descriptor of it, and so needs no look of
//! its own: no process, no event.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

/// The kernel frees BPF objects some time after the last descriptor is closed.
const PATIENCE: Duration = Duration::from_secs(10);

type Object = (&'static str, u32);

/// What there was before a fault.
pub(crate) struct Before(BTreeSet<Object>);

impl Before {
    pub(crate) fn look() -> Before {
        Before(loaded())
    }

    /// Waits until nothing is left of the fault, and names what is. A tool that
    /// ended without its parent's knowing is left, unless the parent `was_killed`.
    pub(crate) fn what_is_left(&self, was_killed: bool) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut suspects: Option<BTreeSet<Object>> = None;
        loop {
            collect_orphans(was_killed);
            let processes = children();
            // What others load meanwhile, on a machine that is not ours alone.
            let theirs = held_by_others(&processes);
            let mut new: BTreeSet<Object> = loaded().difference(&self.0).copied().collect();
            new.retain(|object| !theirs.contains(object));
            if theirs.iter().any(|(kind, _)| *kind == "prog_id") {
                // A map inside a map has no descriptor to know its owner by.
                new.retain(|(kind, _)| *kind != "map_id");
            }
            let left: BTreeSet<Object> = match suspects {
                None => new,
                Some(earlier) => earlier.intersection(&new).copied().collect(),
            };
            if (left.is_empty() && processes.is_empty()) || Instant::now() > deadline {
                let objects = left.iter().map(|(kind, id)| format!("{kind} {id}"));
                let named = processes.iter().map(|&pid| described(pid));
                return objects.chain(named).collect();
            }
            suspects = Some(left);
            sleep(Duration::from_millis(50));
        }
    }
}

/// Has orphans become our children, so that none gets away unseen.
pub(crate) fn adopt_orphans() {
    // SAFETY: this option takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    assert_eq!(result, 0, "become a subreaper");
}

/// Collects the orphans that have ended.
fn collect_orphans(also_tools: bool) {
    for pid in children() {
        if (also_tools || !is_tool(pid)) && state(pid) == Some('Z') {
            collect(pid);
        }
    }
}

/// Collects an orphan, if it has ended, whose parent could not.
pub(crate) fn collect(pid: u32) {
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), libc::WNOHANG) };
}

/// Our children, zombies included.
fn children() -> Vec<u32> {
    let mut found = Vec::new();
    for task in fs::read_dir("/proc/self/task")
        .expect("our threads")
        .flatten()
    {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

fn is_tool(pid: u32) -> bool {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    crate::run::TOOLS.contains(&comm.trim())
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn described(pid: u32) -> String {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match state(pid) {
        Some('Z') => format!("{} {pid}, a zombie", comm.trim()),
        _ => format!("process {} {pid}", comm.trim()),
    }
}

fn loaded() -> BTreeSet<Object> {
    let programs = ProgInfoIter::default().map(|found| ("prog_id", found.id));
    let maps = MapInfoIter::default().map(|found| ("map_id", found.id));
    let links = LinkInfoIter::default().map(|found| ("link_id", found.id));
    programs.chain(maps).chain(links).collect()
}

/// The objects that processes hold which are not ours.
fn held_by_others(ours: &[u32]) -> BTreeSet<Object> {
    let mut held = BTreeSet::new();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids.filter(|pid| !ours.contains(pid)) {
        held.extend(held_by(pid));
    }
    held
}

/// The BPF objects that a process has descriptors of.
pub(crate) fn held_by(pid: u32) -> Vec<Object> {
    let mut held = Vec::new();
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return held;
    };
    for descriptor in descriptors.flatten() {
        let leads_to = fs::read_link(descriptor.path()).unwrap_or_default();
        if !leads_to.to_string_lossy().starts_with("anon_inode:bpf") {
            continue;
        }
        let number = descriptor.file_name();
        let info = format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy());
        for line in fs::read_to_string(info).unwrap_or_default().lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let kind = ["prog_id", "map_id", "link_id"]
                .into_iter()
                .find(|kind| *kind == name);
            held.extend(kind.zip(value.trim().parse().ok()));
        }
    }
    held
}
