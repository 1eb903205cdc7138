//! Counts of the files that a run asked for.

/// Counts of the files that a run asked for, and reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were in the cache.
    pub cached: u64,
    /// Files that servers sent.
    pub fetched: u64,
    /// Size of these files, in bytes.
    pub bytes: u64,
    /// Files that no server has.
    pub absent: u64,
    /// Files that were refused: too large, or of another build.
    pub refused: u64,
    /// Files that could not be fetched, because servers or the cache failed.
    pub failed: u64,
    /// Files that did not arrive within the time for them.
    pub late: u64,
    /// First reasons.
    pub notes: Vec<String>,
}
