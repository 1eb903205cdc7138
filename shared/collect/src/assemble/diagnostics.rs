//! Diagnostics of a run: what was left out, lost or could not be named. They are data; the `cli`
//! crate writes them in words.

use std::sync::Arc;

use profile::WalkEnds;

use crate::record::LeftOut;

/// Diagnostics of a profile. Facts in the profile itself, such as its losses, are not repeated.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// Intervals or samples that were counted.
    pub events: u64,
    /// Counts of the ends of user stacks' unwinds.
    pub walk_ends: WalkEnds,
    /// Files in which unwinds were cut short, with the number of intervals or samples, the most
    /// first.
    pub cut_short_in: Vec<(Arc<str>, u64)>,
    /// Wake-ups whose waker was not seen.
    pub missed_wakers: u64,
    /// Counts of what exceeded a limit of capacity.
    pub left_out: LeftOut,
    /// Lines on how stacks with functions of languages ended, if there were any.
    pub languages: Vec<String>,
    /// Counts of what could not be located or named.
    pub unnamed: symbolize::Losses,
    /// Different user and kernel stacks that programs sent.
    pub stacks_sent: usize,
    /// Number of drains of the counts.
    pub drains: u64,
    /// Notes on unwind tables and unknown reasons, for `-v`.
    pub notes: Vec<String>,
}
