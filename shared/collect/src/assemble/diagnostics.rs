//! Diagnostics: what a run left out, lost and could not name. They are data; the `cli` crate
//! writes them in words.

use std::sync::Arc;

use profile::WalkEnds;

use crate::record::LeftOut;

/// What a profile is worth. What is in the profile itself, such as its losses, is not repeated.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// Intervals or samples that were counted.
    pub events: u64,
    /// How the walks along user stacks ended.
    pub walk_ends: WalkEnds,
    /// Files in which walks were cut short, with how many intervals or samples, the most first.
    pub cut_short_in: Vec<(Arc<str>, u64)>,
    /// Wake-ups whose waker was not seen.
    pub missed_wakers: u64,
    /// What exceeded a limit of capacity.
    pub left_out: LeftOut,
    /// How stacks with functions of languages ended, if there were any, in words.
    pub languages: Vec<String>,
    /// What could not be located or named.
    pub unnamed: symbolize::Losses,
    /// Different user and kernel stacks that programs sent.
    pub stacks_sent: usize,
    /// How often the counts were drained.
    pub drains: u64,
    /// Notes on unwind tables and unknown reasons, for `-v`.
    pub notes: Vec<String>,
}
