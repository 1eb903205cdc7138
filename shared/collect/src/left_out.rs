//! Counts of what exceeded a limit of capacity. Each run ends with them, in words that tell
//! what to do. The table of limits is in docs/architecture.md.

use bpf::types::Losses;

/// Counts of what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Processes whose mappings found no room among the unwind tables.
    pub(crate) crowded_processes: u64,
    /// Files whose rows found no room among the unwind tables.
    pub(crate) crowded_files: u64,
    /// Files that could not be read for unwind tables.
    pub(crate) unread_files: u64,
    /// Moves between cgroups whose times were not kept until they were followed.
    pub(crate) moves: u64,
    /// Objects that threads waited on, beyond those that are told apart.
    pub(crate) objects: u64,
    /// Processes beyond those that are described.
    pub(crate) processes: u64,
}

/// Describes what BPF programs could not keep.
pub fn lost_in_words(lost: &Losses) -> String {
    in_words(&[
        (
            lost.counts,
            "events found no room to be counted (choose fewer processes with -p)",
        ),
        (
            lost.clocks,
            "events were of threads without room for a clock (choose fewer processes with -p)",
        ),
        (
            lost.children,
            "processes or cgroups found no room among the targets (choose fewer)",
        ),
        (
            lost.deep_cgroups,
            "cgroups lie more than 1024 levels deep and are not measured (give them with --cgroup)",
        ),
    ])
}

impl LeftOut {
    /// Describes what was left out.
    pub(crate) fn in_words(&self) -> String {
        in_words(&[
            (
                self.moves,
                "moves between cgroups came too fast to be timed",
            ),
            (
                self.crowded_processes,
                "processes had no room for their unwind tables \
                 (choose fewer with -p; -v names them)",
            ),
            (
                self.crowded_files,
                "mapped files had no room for their unwind tables \
                 (choose fewer processes with -p; -v names them)",
            ),
            (
                self.unread_files,
                "mapped files gave no unwind tables (-v says why)",
            ),
            (
                self.objects,
                "objects that threads waited on found no room and are told as `other`",
            ),
            (
                self.processes,
                "processes found no room to be described: their command lines are not known",
            ),
        ])
    }
}

/// Each count that is not 0, after a semicolon, with what it counts.
fn in_words(counts: &[(u64, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts
        .map(|(count, what)| format!("; {count} {what}"))
        .collect()
}
