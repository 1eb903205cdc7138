//! Counts of what exceeded a limit of capacity.

/// Counts of what exceeded a limit of capacity. The table of limits is in
/// docs/internals/limits.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events without capacity to be counted.
    pub counts: u64,
    /// Events of threads without capacity for a clock.
    pub clocks: u64,
    /// Processes or cgroups that found no capacity among the targets.
    pub targets: u64,
    /// Cgroups that lie too deep to be measured.
    pub deep_cgroups: u64,
    /// Processes whose mappings found no capacity among the unwind tables.
    pub crowded_processes: u64,
    /// Files whose rows found no capacity among the unwind tables.
    pub crowded_files: u64,
    /// Files that could not be read for unwind tables.
    pub unread_files: u64,
    /// Moves between cgroups whose times were lost before they were followed.
    pub moves: u64,
    /// Resources beyond the number that is distinguished.
    pub objects: u64,
    /// Processes beyond the number that is described.
    pub processes: u64,
}

impl LeftOut {
    /// Adds the counts of a program.
    pub(crate) fn with_programs(self, lost: &bpf::types::Losses) -> LeftOut {
        LeftOut {
            counts: lost.counts,
            clocks: lost.clocks,
            targets: lost.children,
            deep_cgroups: lost.deep_cgroups,
            ..self
        }
    }
}

impl From<&bpf::types::Losses> for LeftOut {
    fn from(lost: &bpf::types::Losses) -> LeftOut {
        LeftOut::default().with_programs(lost)
    }
}

impl From<unwind_tables::Missing> for LeftOut {
    fn from(missing: unwind_tables::Missing) -> LeftOut {
        LeftOut {
            crowded_processes: missing.crowded_processes,
            crowded_files: missing.crowded_files,
            unread_files: missing.unread_files,
            ..LeftOut::default()
        }
    }
}
