//! BPF programs, maps and links in the kernel, and the processes that hold them.

use std::collections::BTreeSet;
use std::fs;

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

/// Type of a BPF object, named as in `/proc/PID/fdinfo`, and its ID.
pub type BpfObject = (&'static str, u32);

/// Returns all BPF objects.
pub fn loaded() -> BTreeSet<BpfObject> {
    let programs = ProgInfoIter::default().map(|found| ("prog_id", found.id));
    let maps = MapInfoIter::default().map(|found| ("map_id", found.id));
    let links = LinkInfoIter::default().map(|found| ("link_id", found.id));
    programs.chain(maps).chain(links).collect()
}

/// Returns the BPF objects that are not in `before`, and that no process outside `ours` holds.
///
/// No process holds an object while it is being created. Such an object is not in the result of a
/// second call, but a leftover is.
pub fn new_since(before: &BTreeSet<BpfObject>, ours: &[u32]) -> BTreeSet<BpfObject> {
    // Other processes of this machine may load objects meanwhile.
    let theirs = held_by_others(ours);
    let mut new: BTreeSet<BpfObject> = loaded().difference(before).copied().collect();
    new.retain(|object| !theirs.contains(object));
    if theirs.iter().any(|(kind, _)| *kind == "prog_id") {
        // A map inside another map has no descriptor that names its owner.
        new.retain(|(kind, _)| *kind != "map_id");
    }
    new
}

/// Returns the objects that processes outside `ours` hold.
fn held_by_others(ours: &[u32]) -> BTreeSet<BpfObject> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| !ours.contains(pid))
        .flat_map(held_by)
        .collect()
}

/// Returns the BPF objects for which a process has descriptors.
pub fn held_by(pid: u32) -> Vec<BpfObject> {
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
