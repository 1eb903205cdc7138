//! Diagnostics of a run: what the tool left out, lost or could not name. The `cli` crate turns
//! these counts into text.

use std::sync::Arc;

use profile::WalkEnds;

use crate::record::LeftOut;

/// Diagnostics of a profile, without facts that the profile itself has, such as its losses.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// Number of intervals or samples that were counted.
    pub events: u64,
    /// Number of intervals or samples by the end of their user stack's unwind.
    pub walk_ends: WalkEnds,
    /// Files in which unwinds were cut short, each with its number of intervals or samples. The
    /// largest number comes first.
    pub cut_short_in: Vec<(Arc<str>, u64)>,
    /// Number of wake-ups whose waker no program saw.
    pub missed_wakers: u64,
    /// Counts of data that exceeded a limit of capacity.
    pub left_out: LeftOut,
    /// Lines about the ends of stacks with functions of languages, if there are such stacks.
    pub languages: Vec<String>,
    /// Counts of addresses and files that could not be located or named.
    pub unnamed: symbolize::Losses,
    /// Number of different user and kernel stacks that programs sent.
    pub stacks_sent: usize,
    /// Number of times that user space drained the counts.
    pub drains: u64,
    /// Notes on unwind tables and on unknown reasons, which `-v` prints.
    pub notes: Vec<String>,
}
