//! BPF programs, maps and links that the kernel has, and who holds them.

use std::collections::BTreeSet;
use std::fs;

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

/// A kind of BPF object, as `/proc/PID/fdinfo` names it, and an ID.
pub type BpfObject = (&'static str, u32);

/// Those that there are.
pub fn loaded() -> BTreeSet<BpfObject> {
    let programs = ProgInfoIter::default().map(|found| ("prog_id", found.id));
    let maps = MapInfoIter::default().map(|found| ("map_id", found.id));
    let links = LinkInfoIter::default().map(|found| ("link_id", found.id));
    programs.chain(maps).chain(links).collect()
}

/// Those that there were not before and that nobody holds but `ours`, processes by ID.
///
/// An object in the making is nobody's either: what is left over is there when asked again.
pub fn new_since(before: &BTreeSet<BpfObject>, ours: &[u32]) -> BTreeSet<BpfObject> {
    // What others load meanwhile, on a machine that is not ours alone.
    let theirs = held_by_others(ours);
    let mut new: BTreeSet<BpfObject> = loaded().difference(before).copied().collect();
    new.retain(|object| !theirs.contains(object));
    if theirs.iter().any(|(kind, _)| *kind == "prog_id") {
        // A map inside a map has no descriptor to know its owner by.
        new.retain(|(kind, _)| *kind != "map_id");
    }
    new
}

/// The objects that processes hold which are not ours.
fn held_by_others(ours: &[u32]) -> BTreeSet<BpfObject> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| !ours.contains(pid))
        .flat_map(held_by)
        .collect()
}

/// The BPF objects that a process has descriptors of.
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
