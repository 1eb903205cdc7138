//! Limits of the figures: time that was sampled, left out, lost or contradictory.

use std::io::{self, Write};
use std::time::Duration;

use export::text::numbers::{count, seconds};
use profile::Losses;
use profile::merge::{Sampled, ThreadProfile};

use super::{Process, Run};

/// Writes a line for each kind of missing data, and the losses even if there are none.
pub(super) fn write(run: &Run, process: &Process<'_>, writer: &mut dyn Write) -> io::Result<()> {
    write_unseen(run, process.threads.iter().map(|row| row.thread), writer)?;
    write_losses(run, writer)
}

/// Writes the sampled off-CPU time, the time without stacks, and the excess of stacks over clocks.
pub(super) fn write_unseen<'a>(
    run: &Run,
    threads: impl Iterator<Item = &'a ThreadProfile>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let (mut running, mut runnable, mut blocked) = (0, 0, 0);
    let mut sampled = Sampled::default();
    let (mut reused, mut contradictory, mut excess_samples, mut excess_ns) = (0, 0, 0, 0);
    for thread in threads {
        running += thread.unseen.running_ns;
        runnable += thread.unseen.runnable_ns;
        blocked += thread.unseen.blocked_ns;
        sampled.runnable_ns += thread.sampled.runnable_ns;
        sampled.blocked_ns += thread.sampled.blocked_ns;
        sampled.intervals += thread.sampled.intervals;
        reused += u64::from(thread.lives > 1);
        contradictory += u64::from(thread.excess.is_significant());
        excess_samples += thread.excess.samples;
        excess_ns += thread.excess.off_cpu_ns;
    }
    if sampled.intervals > 0 {
        // The standard error of a count n of random events is √n.
        let periods = |n: u64| Duration::from_micros(run.min_block_us.saturating_mul(n));
        writeln!(
            writer,
            "Sampled: {} s blocked and {} s runnable, in intervals below -m ({} µs), by the stacks \
             of {}: of {:?} in one of these, {:?} are chance (one standard error).",
            seconds(sampled.blocked_ns),
            seconds(sampled.runnable_ns),
            run.min_block_us,
            count(sampled.intervals, "interval"),
            periods(100),
            periods(10),
        )?;
    }
    writeln!(
        writer,
        "Without a stack: {} s blocked and {} s runnable, in intervals below -m ({} µs); \
         {} s running that no sample hit.",
        seconds(blocked),
        seconds(runnable),
        run.min_block_us,
        seconds(running)
    )?;
    if reused > 0 {
        writeln!(
            writer,
            "{} of several threads, one after another: their times are added.",
            count(reused, "ID")
        )?;
    }
    if contradictory > 0 {
        writeln!(
            writer,
            "In {} the stacks exceed the clock by {} s off CPU and {}; scaled down to the clock.",
            count(contradictory, "thread"),
            seconds(excess_ns),
            count(excess_samples, "sample")
        )?;
    }
    Ok(())
}

/// Writes the losses of the whole run. Their threads are not known.
pub(super) fn write_losses(run: &Run, writer: &mut dyn Write) -> io::Result<()> {
    writeln!(
        writer,
        "Lost in the whole run: on CPU {}; off CPU {}.",
        losses(&run.on_cpu_lost, "sample"),
        losses(&run.off_cpu_lost, "event")
    )?;
    let unclocked = run.unclocked;
    if unclocked.threads > 0 {
        writeln!(
            writer,
            "Left out of every sum: {} without a clock, with {} and {} s off CPU.",
            count(unclocked.threads, "thread"),
            count(unclocked.samples, "sample"),
            seconds(unclocked.off_cpu_ns)
        )?;
    }
    Ok(())
}

fn losses(losses: &Losses, noun: &str) -> String {
    let mut text = format!(
        "{}, {}",
        count(losses.events, noun),
        count(losses.stacks, "stack")
    );
    if losses.threads > 0 {
        text.push_str(&format!(
            ", {} without a clock",
            count(losses.threads, "thread")
        ));
    }
    if losses.incomplete_user > 0 {
        text.push_str(&format!(
            " ({} cut short)",
            count(losses.incomplete_user, "user stack")
        ));
    }
    text
}
