//! Leftovers of a fault: BPF programs, maps and links, and processes.
//!
//! A perf event lives only as long as a process has it open, so the check for processes covers perf
//! events.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::truth::bpf_objects::{BpfObject, loaded, new_since};

/// Longest wait until leftovers are gone. The kernel frees BPF objects some time after their last
/// descriptor is closed.
const PATIENCE: Duration = Duration::from_secs(10);

/// BPF objects that existed before a fault.
pub(crate) struct Before(BTreeSet<BpfObject>);

impl Before {
    pub(crate) fn record() -> Before {
        Before(loaded())
    }

    /// Waits until nothing is left of the fault, and describes what remains after [`PATIENCE`]. A
    /// tool that its parent has not waited for remains, unless the parent `was_killed`.
    pub(crate) fn leftovers(&self, was_killed: bool) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut suspects: Option<BTreeSet<BpfObject>> = None;
        loop {
            collect_orphans(was_killed);
            let processes = children();
            let new = new_since(&self.0, &processes);
            let left: BTreeSet<BpfObject> = match suspects {
                None => new,
                Some(earlier) => earlier.intersection(&new).copied().collect(),
            };
            if (left.is_empty() && processes.is_empty()) || Instant::now() > deadline {
                let objects = left.iter().map(|(kind, id)| format!("{kind} {id}"));
                let named = processes.iter().map(|&pid| describe(pid));
                return objects.chain(named).collect();
            }
            suspects = Some(left);
            sleep(Duration::from_millis(50));
        }
    }
}

/// Makes this process the parent of orphaned descendants, so that the check covers all of them.
pub(crate) fn adopt_orphans() {
    // This option takes only numbers.
    let result = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    assert_eq!(result, 0, "become a subreaper");
}

/// Waits for orphans that have ended. Includes tools only if `also_tools` is set.
fn collect_orphans(also_tools: bool) {
    for pid in children() {
        if (also_tools || !is_tool(pid)) && state(pid) == Some('Z') {
            collect(pid);
        }
    }
}

/// Waits for the orphan `pid` if it has ended, because its own parent could not wait for it.
pub(crate) fn collect(pid: u32) {
    // The call stores no status.
    unsafe { libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), libc::WNOHANG) };
}

/// Returns the IDs of this process's children, including zombies.
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

fn describe(pid: u32) -> String {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match state(pid) {
        Some('Z') => format!("{} {pid}, a zombie", comm.trim()),
        _ => format!("process {} {pid}", comm.trim()),
    }
}
