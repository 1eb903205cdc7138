//! Counts of data that exceeded a limit of capacity.

/// Counts of data that exceeded a limit of capacity. docs/internals/limits.md has a table of the
/// limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events that were not counted, because the maps of counts were full.
    pub counts: u64,
    /// Events of threads for which the map of clocks was full.
    pub clocks: u64,
    /// Processes or cgroups for which the maps of targets were full.
    pub targets: u64,
    /// Cgroups that are too deep in the tree to be measured.
    pub deep_cgroups: u64,
    /// Processes whose mappings did not fit into the unwind tables.
    pub crowded_processes: u64,
    /// Files whose rows did not fit into the unwind tables.
    pub crowded_files: u64,
    /// Files that user space could not read for unwind tables.
    pub unread_files: u64,
    /// Moves between cgroups whose times were overwritten before user space followed them.
    pub moves: u64,
    /// Resources beyond the maximum number of distinguished resources.
    pub objects: u64,
    /// Processes beyond the maximum number of described processes.
    pub processes: u64,
}

impl LeftOut {
    /// Returns these counts, with the counts that the programs keep set from `lost`.
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
