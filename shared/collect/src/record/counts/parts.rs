//! Parts of the window, and the counts in each part over all stacks.

use std::time::Duration;

use bpf::types::Tally;

use super::sums::add;

/// Minimum length of a part, as a multiple of the time that it takes to end a part.
const COST: u32 = 200;

/// Counts in each part of the window.
pub(crate) struct Parts {
    /// Length of a part, in ns.
    length: u64,
    /// Time at which the current part began, in ns of CLOCK_MONOTONIC.
    since: u64,
    current: Tally,
    ended: Vec<(u64, Tally)>,
}

impl Parts {
    /// Number of parts at which user space joins parts in pairs.
    pub(crate) const MOST: usize = 64;
    /// Initial length of a part, in ns.
    pub(crate) const SHORTEST_NS: u64 = 250_000_000;

    pub(crate) fn new() -> Parts {
        Parts {
            length: Parts::SHORTEST_NS,
            since: u64::MAX,
            current: Tally::default(),
            ended: Vec::new(),
        }
    }

    /// Begins the first part at `now`, in ns of CLOCK_MONOTONIC.
    pub(crate) fn begin(&mut self, now: u64) {
        self.since = now;
    }

    /// Returns whether the current part has its full length at `now`, in ns of CLOCK_MONOTONIC.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        now.saturating_sub(self.since) >= self.length
    }

    /// Adds counts to the current part.
    pub(crate) fn add(&mut self, tally: &Tally) {
        add(&mut self.current, tally);
    }

    /// Ends the current part at `now`. `took` is the time that the drain of its counts took. If it
    /// took too long, the following parts are longer, so that the cost stays negligible.
    pub(crate) fn end(&mut self, now: u64, took: Duration) {
        let length = now.saturating_sub(self.since);
        self.ended.push((length, std::mem::take(&mut self.current)));
        self.since = now;
        let most = Duration::from_nanos(self.length) / COST;
        if self.ended.len() >= Parts::MOST || took > most {
            self.length *= 2;
            let odd = self.ended.len() % 2;
            // If the number of parts is odd, the first part stays unpaired.
            let pairs = self.ended[odd..].chunks(2).map(joined).collect::<Vec<_>>();
            self.ended.splice(odd.., pairs);
        }
    }

    /// Returns the length, in ns, and the counts of each part that has ended.
    pub(crate) fn ended(self) -> Vec<(u64, Tally)> {
        self.ended
    }
}

fn joined(parts: &[(u64, Tally)]) -> (u64, Tally) {
    parts
        .iter()
        .fold((0, Tally::default()), |(length, mut sum), (more, tally)| {
            add(&mut sum, tally);
            (length + more, sum)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(events: u64) -> Tally {
        Tally {
            events,
            ..Tally::default()
        }
    }

    #[test]
    fn many_parts_become_half_as_many() {
        let mut parts = Parts::new();
        assert!(!parts.is_over(Parts::SHORTEST_NS));
        parts.begin(0);
        let mut now = 0;
        for turn in 1..=Parts::MOST as u64 {
            assert!(
                !parts.is_over(now + Parts::SHORTEST_NS - 1)
                    && parts.is_over(now + Parts::SHORTEST_NS)
            );
            now += Parts::SHORTEST_NS;
            parts.add(&tally(turn));
            parts.end(now, Duration::ZERO);
        }
        assert!(!parts.is_over(now + Parts::SHORTEST_NS));
        let ended = parts.ended();
        assert_eq!(ended.len(), Parts::MOST / 2);
        assert_eq!(
            (ended[1].0, ended[1].1.events),
            (2 * Parts::SHORTEST_NS, 3 + 4)
        );
    }

    #[test]
    fn what_is_dear_is_done_seldom() {
        const SHORTEST: Duration = Duration::from_nanos(Parts::SHORTEST_NS);
        let mut parts = Parts::new();
        parts.begin(0);
        for now in 1..=4 {
            // The end of each of these parts takes exactly the allowed time.
            parts.end(now * Parts::SHORTEST_NS, SHORTEST / COST);
        }
        parts.add(&tally(1));
        // A fiftieth of the part's length is too long. The first of five parts stays unpaired.
        parts.end(5 * Parts::SHORTEST_NS, SHORTEST / 50);
        assert!(
            !parts.is_over(7 * Parts::SHORTEST_NS - 1) && parts.is_over(7 * Parts::SHORTEST_NS)
        );
        parts.end(7 * Parts::SHORTEST_NS, SHORTEST / 50);
        assert!(
            !parts.is_over(11 * Parts::SHORTEST_NS - 1) && parts.is_over(11 * Parts::SHORTEST_NS)
        );
        let lengths: Vec<u64> = parts
            .ended
            .iter()
            .map(|(length, _)| length / Parts::SHORTEST_NS)
            .collect();
        assert_eq!(lengths, [3, 4]);
        assert_eq!(parts.ended[1].1.events, 1);
    }
}
