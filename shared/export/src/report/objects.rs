//! What threads were blocked on: locks with who held them, files, sockets, children.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::State;

use super::Row;
use super::numbers::{count, cut, percent, seconds};

/// So many objects have a line of their own.
const LISTED: usize = 12;
/// Holders of a lock that are named.
const MOST_HOLDERS: usize = 3;
/// Characters of what is waited on: a path may be long.
const LONGEST: usize = 120;

/// Time blocked on one object.
#[derive(Default)]
struct Sum {
    time_ns: u64,
    /// Those that were not sampled, and the longest of them.
    waits: u64,
    longest_ns: u64,
    /// The time in which each thread held it, by its name.
    holders: BTreeMap<String, u64>,
}

/// Writes what these threads were blocked on longest; nothing if no object is known.
pub(super) fn write<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut blocked = 0;
    for row in rows {
        let profile = row.profile;
        blocked += row.thread.thread.clock.blocked_ns;
        for (sample, weight) in &row.thread.stacks {
            let why = (sample.state == Some(State::Blocked))
                .then(|| profile.why(sample))
                .flatten();
            let Some((why, object)) = why.and_then(|why| Some((why, why.object?))) else {
                continue;
            };
            let what = format!("{}, {}", profile.kind_told(why), profile.names[object]);
            let sum = sums.entry(what).or_default();
            sum.time_ns += weight.value;
            // One that was sampled stands for others, nobody knows how many.
            if !profile.is_sampled(sample) {
                sum.waits += weight.events;
                sum.longest_ns = sum.longest_ns.max(weight.longest);
            }
            if let Some(holder) = why.holder {
                let holder = profile.names[holder].to_string();
                *sum.holders.entry(holder).or_default() += weight.value;
            }
        }
    }
    if sums.is_empty() {
        return Ok(());
    }
    let mut sums: Vec<(String, Sum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| Reverse(sum.time_ns));
    let others = sums.split_off(LISTED.min(sums.len()));
    writeln!(
        writer,
        "\nWhat it was blocked on: seconds, % of all blocked time, waits from -m on, the longest (s), what"
    )?;
    for (what, sum) in &sums {
        write_row(sum, blocked, &told(what, sum), writer)?;
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

/// What was waited on, and for how much of the time who held it.
fn told(what: &str, sum: &Sum) -> String {
    let mut told = cut(what, LONGEST).into_owned();
    let mut holders: Vec<_> = sum.holders.iter().collect();
    holders.sort_by_key(|(_, time)| Reverse(**time));
    for (at, (holder, time)) in holders.iter().take(MOST_HOLDERS).enumerate() {
        let before = if at == 0 { "; held by " } else { ", " };
        let share = percent(**time, sum.time_ns);
        told.push_str(&format!("{before}{holder} ({share} %)"));
    }
    if holders.len() > MOST_HOLDERS {
        told.push_str(", …");
    }
    told
}

#[cfg(test)]
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
            told("lock: mutex, ledger", &sum),
            "lock: mutex, ledger; held by b (25.0 %), c (15.0 %), a (5.0 %), …"
        );
        assert_eq!(
            told("events: epoll, x", &Sum::default()),
            "events: epoll, x"
        );
    }
}
