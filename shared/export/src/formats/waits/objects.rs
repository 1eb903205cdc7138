//! Resources that threads were blocked on: locks with their holders, files, sockets, children. If
//! wakers are known, each resource has the threads that ended the waits, and their functions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::{Profile, Reason, Sample, Weight};

use crate::text::brief::waker_text;
use crate::text::cut::cut;
use crate::text::frames::wakers;
use crate::text::numbers::{count, percent, seconds};
use crate::text::waits::{ended_by_text, holder_text, kind_text, resource_text};

/// Maximum number of resources with a line of their own.
const LISTED: usize = 12;
/// Maximum number of holders named per resource.
const MAX_HOLDERS: usize = 3;
/// Maximum number of wakers listed per resource.
const MAX_WAKERS: usize = 3;
/// Maximum characters of a resource's text: a path can be long.
const LONGEST: usize = 120;

/// Time blocked on one resource.
#[derive(Default)]
struct Sum {
    time_ns: u64,
    /// The idle part of the time.
    idle_ns: u64,
    /// Number of waits that were measured one by one. `longest_ns` is the longest of them.
    waits: u64,
    longest_ns: u64,
    /// Time by holder.
    holders: BTreeMap<String, u64>,
    /// Time of the waits that each waker ended, by the waker's name and stack.
    wakers: BTreeMap<String, u64>,
}

/// Blocked time by resource.
#[derive(Default)]
pub struct Objects {
    sums: BTreeMap<String, Sum>,
    /// All blocked time, on known resources or not.
    blocked_ns: u64,
}

impl Objects {
    /// Adds blocked time, whether or not [`add`](Objects::add) gets its samples.
    pub fn add_blocked(&mut self, nanoseconds: u64) {
        self.blocked_ns += nanoseconds;
    }

    /// Adds a sample of blocked time if its resource is known.
    pub fn add(&mut self, profile: &Profile, sample: &Sample, weight: &Weight) {
        let Some(wait) = profile.wait(sample) else {
            return;
        };
        let Some(resource) = wait.resource else {
            return;
        };
        let resource = resource_text(profile, &profile.resources[resource]);
        let what = format!("{}, {resource}", kind_text(profile, wait.kind));
        let sum = self.sums.entry(what).or_default();
        sum.time_ns += weight.value;
        if wait.idleness.is_idle() {
            sum.idle_ns += weight.value;
        }
        // A sampled interval stands for an unknown number of intervals.
        if !sample.is_sampled {
            sum.waits += weight.events;
            sum.longest_ns = sum.longest_ns.max(weight.longest);
        }
        if let Some(holder) = wait.holder {
            let holder = holder_text(profile, holder);
            *sum.holders.entry(holder).or_default() += weight.value;
        }
        let by = |by: &str| format!("{} by {by}", ending_verb(wait.kind.reason));
        let waker = match wakers(profile, sample).first() {
            Some(waker) if waker.thread.is_none() => Some(waker_text(profile, waker)),
            Some(waker) => Some(by(&waker_text(profile, waker))),
            None => (wait.ended_by).map(|ended_by| by(&ended_by_text(profile, ended_by))),
        };
        if let Some(waker) = waker {
            *sum.wakers.entry(waker).or_default() += weight.value;
        }
    }

    /// Returns whether no resource is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Writes the resources with most time that was not idle, then the other resources as one row.
    ///
    /// # Errors
    /// Returns the errors of `writer`.
    pub fn write(self, writer: &mut dyn Write) -> io::Result<()> {
        let blocked = self.blocked_ns;
        let mut sums: Vec<(String, Sum)> = self.sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| Reverse((sum.time_ns - sum.idle_ns, sum.time_ns)));
        let others = sums.split_off(LISTED.min(sums.len()));
        writeln!(
            writer,
            "Blocked time by resource, idle last (seconds, % of blocked time, waits from -m on, the longest in seconds)"
        )?;
        for (what, sum) in &sums {
            write_row(sum, blocked, &describe(what, sum), writer)?;
            for (waker, time) in longest(&sum.wakers).take(MAX_WAKERS) {
                let share = percent(*time, sum.time_ns);
                writeln!(writer, "{:>38}  {share} % {waker}", "")?;
            }
        }
        if !others.is_empty() {
            let what = count(others.len() as u64, "other object");
            let all = others
                .into_iter()
                .fold(Sum::default(), |all, (_, sum)| Sum {
                    time_ns: all.time_ns + sum.time_ns,
                    waits: all.waits + sum.waits,
                    longest_ns: all.longest_ns.max(sum.longest_ns),
                    ..all
                });
            write_row(&all, blocked, &what, writer)?;
        }
        Ok(())
    }
}

fn write_row(sum: &Sum, blocked: u64, what: &str, writer: &mut dyn Write) -> io::Result<()> {
    writeln!(
        writer,
        "{:>10} {:>6} {:>9} {:>9}  {what}",
        seconds(sum.time_ns),
        percent(sum.time_ns, blocked),
        sum.waits,
        seconds(sum.longest_ns),
    )
}

/// Iterates over times, longest first.
fn longest(times: &BTreeMap<String, u64>) -> impl ExactSizeIterator<Item = (&String, &u64)> {
    let mut times: Vec<_> = times.iter().collect();
    times.sort_by_key(|(_, time)| Reverse(**time));
    times.into_iter()
}

fn ending_verb(reason: Reason) -> &'static str {
    match reason {
        Reason::Lock | Reason::KernelLock => "released",
        _ => "ended",
    }
}

/// Describes a resource with its idle share and its holders.
fn describe(what: &str, sum: &Sum) -> String {
    let mut text = cut(what, LONGEST).into_owned();
    if sum.idle_ns == sum.time_ns && sum.idle_ns > 0 {
        text.push_str(" (idle)");
    } else if sum.idle_ns > 0 {
        let share = percent(sum.idle_ns, sum.time_ns);
        text.push_str(&format!(" (idle: {share} %)"));
    }
    let holders = longest(&sum.holders);
    let has_more = holders.len() > MAX_HOLDERS;
    for (at, (holder, time)) in holders.take(MAX_HOLDERS).enumerate() {
        let before = if at == 0 { "; held by " } else { ", " };
        let share = percent(*time, sum.time_ns);
        text.push_str(&format!("{before}{holder} ({share} %)"));
    }
    if has_more {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn those_who_held_it_longest_are_named() {
        let held = [("a", 1), ("b", 5), ("c", 3), ("d", 1)];
        let sum = Sum {
            time_ns: 20,
            holders: held
                .map(|(name, time)| (name.to_owned(), time))
                .into_iter()
                .collect(),
            ..Sum::default()
        };
        assert_eq!(
            describe("lock: mutex, ledger", &sum),
            "lock: mutex, ledger; held by b (25.0 %), c (15.0 %), a (5.0 %), …"
        );
    }

    #[test]
    fn what_held_up_is_before_what_was_idle() {
        let sum = |time_ns: u64, idle_ns: u64| Sum {
            time_ns: time_ns * 1_000_000_000,
            idle_ns: idle_ns * 1_000_000_000,
            ..Sum::default()
        };
        let sums = [
            ("pool", 9, 9),
            ("lock", 1, 0),
            ("queue", 8, 6),
            ("socket", 20, 20),
        ];
        let objects = Objects {
            sums: sums
                .map(|(name, time, idle)| (name.to_owned(), sum(time, idle)))
                .into(),
            blocked_ns: 38_000_000_000,
        };
        let mut text = Vec::new();
        objects.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let names: Vec<&str> = (text.lines().skip(1))
            .filter_map(|line| line.rsplit_once("  ")?.1.split(' ').next())
            .collect();
        assert_eq!(names, ["queue", "lock", "socket", "pool"]);
    }
}
