//! Restricts what was collected to the time that a recorder kept.

use std::collections::HashMap;
use std::ops::Range;

use bpf::types::{LONGEST_SQUARED, SQUARE_SHIFT, Tally};
use capture::LanePart;
use profile::{RowMap, ThreadId};

use crate::record::KernelName;
use crate::record::account::Account;
use crate::record::collector::Collected;
use crate::record::counts::Parts;
use crate::record::sums::{Key, add};
use crate::record::timeline::{Rows, Timeline};

impl Collected {
    /// Keeps only what passed from the recorder's start on, if there is a recorder. Sums and
    /// accounts then are those of the timeline's rows. `window` is what was measured, in ns of
    /// CLOCK_MONOTONIC.
    pub(crate) fn keep_recorded(&mut self, window: Range<u64>) {
        self.settle();
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        let counts_runnable = timeline.counts_runnable();
        let Some(start_ns) = timeline.cut(window.clone()) else {
            return;
        };
        self.start_ns = Some(start_ns);
        let mut parts = WindowParts::new(start_ns..window.end);
        let mut sums: RowMap<Key, Tally> = RowMap::default();
        for (end_ns, key, tally) in tallies(&timeline.rows, counts_runnable) {
            let KernelName { comm, thread } = self.sums.comm(&key);
            let own = thread.and_then(|thread| self.stores.names.get(thread, comm));
            if self.thread_names.include(comm, own) {
                add(sums.entry(key), &tally);
                parts.add(end_ns, &tally);
            }
        }
        self.sums.replace(sums);
        (self.parts, self.open) = (parts.ended, parts.open);
        cut_accounts(&mut self.accounts, start_ns, &timeline.rows.parts);
    }
}

/// Cuts accounts at `start_ns`. `parts` are the parts of all lanes from then on.
fn cut_accounts(accounts: &mut Vec<Account>, start_ns: u64, parts: &[LanePart]) {
    accounts.retain(|account| account.clock.ended_ns > start_ns);
    let mut places: HashMap<ThreadId, Vec<usize>> = HashMap::new();
    for (place, account) in accounts.iter_mut().enumerate() {
        account.restart(start_ns);
        places.entry(account.id()).or_default().push(place);
    }
    for part in parts {
        // A thread that left the targets and came back has several accounts.
        let of_thread = places.get(&part.thread).into_iter().flatten();
        let is_later = |place: &&usize| part.start_ns < accounts[**place].clock.ended_ns;
        let place = of_thread.copied().find(|place| is_later(&place));
        if let Some(place) = place {
            accounts[place].add_part(part);
        }
    }
    accounts.iter_mut().for_each(Account::end);
}

/// Returns the counts of each row: the end of its interval in ns of CLOCK_MONOTONIC, the key, and
/// the tally.
fn tallies(rows: &Rows, counts_runnable: bool) -> impl Iterator<Item = (u64, Key, Tally)> {
    let parts = rows.parts.iter().filter_map(move |part| {
        let length = part.blocked_ns + if counts_runnable { part.runnable_ns } else { 0 };
        let off_ns = part.blocked_ns + part.runnable_ns;
        let tally = Tally {
            events: 1,
            blocked: part.blocked_ns,
            runnable: part.runnable_ns,
            longest: length,
            shortest: length,
            squares: square_of(length),
        };
        let key = rows.keys.get(part.key?)?;
        let end_ns = part.start_ns + part.stretch.total_ns() + off_ns;
        (off_ns > 0).then_some((end_ns, key, tally))
    });
    let samples = rows.samples.iter().filter_map(|sample| {
        let tally = Tally {
            events: 1,
            ..Tally::default()
        };
        Some((sample.time_ns, rows.keys.get(sample.key)?, tally))
    });
    parts.chain(samples)
}

/// Returns the sums of a thread's rows that a recorder has. Rows whose keys have not settled are
/// left out.
pub(crate) fn sums_of(timeline: &Timeline, thread: ThreadId) -> RowMap<Key, Tally> {
    let mut sums = RowMap::default();
    for rows in timeline.all_rows() {
        let tallies = tallies(rows, timeline.counts_runnable());
        for (_, key, tally) in tallies.filter(|(_, key, _)| key.thread == thread) {
            add(sums.entry(key), &tally);
        }
    }
    sums
}

/// Returns the square of a length, in the unit of [`Tally::squares`] (square_of() of
/// `include/counts.h`).
fn square_of(length_ns: u64) -> u64 {
    let root = (length_ns >> SQUARE_SHIFT).min(LONGEST_SQUARED);
    root * root
}

/// Counts in equal parts of a window, as [`Parts`] has them.
struct WindowParts {
    window: Range<u64>,
    length_ns: u64,
    ended: Vec<(u64, Tally)>,
    /// Intervals that were open at the end.
    open: Vec<Tally>,
}

impl WindowParts {
    fn new(window: Range<u64>) -> WindowParts {
        let all_ns = window.end.saturating_sub(window.start);
        let length_ns = Parts::SHORTEST_NS.max(all_ns.div_ceil(Parts::MOST as u64));
        let count = all_ns / length_ns;
        WindowParts {
            window,
            length_ns,
            ended: vec![(length_ns, Tally::default()); count as usize],
            open: Vec::new(),
        }
    }

    /// Adds an interval that ended at `end_ns`.
    fn add(&mut self, end_ns: u64, tally: &Tally) {
        if end_ns >= self.window.end {
            self.open.push(*tally);
            return;
        }
        let place = end_ns.saturating_sub(self.window.start) / self.length_ns;
        if let Some((_, sum)) = self.ended.get_mut(place as usize) {
            add(sum, tally);
        }
    }
}
