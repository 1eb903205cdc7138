//! Blocked time of threads, by reason.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use export::text::brief::brief;
use export::text::numbers::{count, percent, seconds};
use export::text::waits::{kind_text, wait_text};
use profile::merge::StackTime;
use profile::{Idleness, Profile, State, ThreadId};

use crate::Row;

/// Maximum number of reasons with a line of their own.
const LISTED: usize = 12;

/// Blocked time of one reason or idleness, with its threads.
#[derive(Default)]
struct Sum {
    time_ns: u64,
    threads: BTreeSet<ThreadId>,
}

impl Sum {
    fn add(&mut self, time_ns: u64, thread: ThreadId) {
        if time_ns > 0 {
            self.time_ns += time_ns;
            self.threads.insert(thread);
        }
    }

    fn write(&self, name: &str, blocked: u64, writer: &mut dyn Write) -> io::Result<()> {
        writeln!(
            writer,
            "{:>10} {:>6} {:>6}  {name}",
            seconds(self.time_ns),
            percent(self.time_ns, blocked),
            self.threads.len()
        )
    }
}

/// Writes the blocked time of these threads by reason. The times add up to all blocked time. Writes
/// nothing if no reason is known.
pub(crate) fn write<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut without = Sum::default();
    let mut by_idleness: BTreeMap<Idleness, Sum> = BTreeMap::new();
    let mut blocked = 0;
    for row in rows {
        let thread = row.thread.thread;
        let mut known = 0;
        for (sample, weight) in &row.thread.stacks {
            if sample.state == Some(State::Blocked)
                && let Some(wait) = row.profile.wait(sample)
            {
                let sum = sums.entry(kind_text(row.profile, wait.kind)).or_default();
                sum.add(weight.value, thread.id);
                let sum = by_idleness.entry(wait.idleness).or_default();
                sum.add(weight.value, thread.id);
                known += weight.value;
            }
        }
        let rest = thread.clock.blocked_ns.saturating_sub(known);
        without.add(rest, thread.id);
        let unknown = by_idleness.entry(Idleness::Unknown).or_default();
        unknown.add(rest, thread.id);
        blocked += thread.clock.blocked_ns.max(known);
    }
    if sums.is_empty() {
        return Ok(());
    }
    let mut sums: Vec<(String, Sum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| Reverse(sum.time_ns));
    let others = sums.split_off(LISTED.min(sums.len()));
    let others_name = count(others.len() as u64, "other reason");
    let others = others.into_iter().reduce(|(name, mut all), (_, sum)| {
        all.time_ns += sum.time_ns;
        all.threads.extend(sum.threads);
        (name, all)
    });
    sums.extend(others.map(|(_, sum)| (others_name, sum)));
    sums.push(("without a stack".to_owned(), without));
    writeln!(
        writer,
        "\nBlocked time by reason (seconds, % of blocked time, threads)"
    )?;
    for (name, sum) in &sums {
        sum.write(name, blocked, writer)?;
    }
    writeln!(
        writer,
        "\nBlocked time by idleness (seconds, % of blocked time, threads)"
    )?;
    for idleness in Idleness::ALL {
        let sum = by_idleness.remove(&idleness).unwrap_or_default();
        sum.write(meaning(idleness), blocked, writer)?;
    }
    Ok(())
}

/// Returns the label of an idleness.
fn meaning(idleness: Idleness) -> &'static str {
    match idleness {
        Idleness::Waiting => "waiting: with work to do",
        Idleness::Idle => "idle: without work",
        Idleness::Dormant => "dormant: blocked in the whole window, on nothing that holds up",
        Idleness::Unknown => "unknown",
    }
}

/// Returns the wait and the stack of a thread on one line: `[lock: mutex] futex_wait ← …`.
pub(crate) fn describe_stack(profile: &Profile, stack: &StackTime) -> String {
    let stack_text = brief(profile, stack.sample.stack);
    match stack.wait {
        Some(wait) => format!("[{}] {stack_text}", wait_text(profile, &wait)),
        None => stack_text,
    }
}
