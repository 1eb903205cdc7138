//! What the machine's CPUs did over the window.

use std::io::{self, Write};
use std::time::Duration;

use super::Run;
use super::numbers::{count, percent, seconds};

/// What each CPU did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// How long that was, nanoseconds: from one look at them to the other.
    pub length_ns: u64,
    /// How long all threads ran in the window by their own clocks, nanoseconds.
    pub ran_ns: u64,
    /// Those that were online at both, by number.
    pub each: Vec<Cpu>,
    /// How many were at one of the two alone.
    pub left_out: u64,
}

/// What a CPU did: nanoseconds, by the kernel's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: u32,
    /// With nothing to do, or waiting for I/O.
    pub idle_ns: u64,
    /// In interrupts, where the kernel accounts these.
    pub interrupts_ns: u64,
    /// Taken by the hypervisor.
    pub stolen_ns: u64,
}

const MEANINGS: [&str; 4] = [
    "busy      all but idle: threads and what interrupts them",
    "idle      with nothing to run; also while a thread waits for I/O",
    "irq       in interrupts: a part of busy; 0 where the kernel does not account it",
    "steal     taken by the hypervisor: a part of busy",
];

/// Writes what each CPU did, and how far that and the threads' clocks add up.
///
/// # Errors
/// Those of the writer.
pub fn write(run: &Run, cpus: &Cpus, writer: &mut dyn Write) -> io::Result<()> {
    let length = cpus.length_ns;
    writeln!(
        writer,
        "What the CPUs did: of {} s each, by the kernel's account, which is kept in 10 ms\n",
        seconds(length)
    )?;
    let names = ["CPU", "busy", "%", "idle", "%", "irq", "%", "steal", "%"];
    write_line(&names.map(str::to_owned), writer)?;
    for cpu in &cpus.each {
        write_line(&cells(cpu.number.to_string(), cpu, length), writer)?;
    }
    let sum = |of: fn(&Cpu) -> u64| cpus.each.iter().map(of).sum::<u64>();
    let all = Cpu {
        number: 0,
        idle_ns: sum(|cpu| cpu.idle_ns),
        interrupts_ns: sum(|cpu| cpu.interrupts_ns),
        stolen_ns: sum(|cpu| cpu.stolen_ns),
    };
    let whole = length.saturating_mul(cpus.each.len() as u64);
    write_line(&cells("all".to_owned(), &all, whole), writer)?;
    writeln!(writer)?;
    for meaning in MEANINGS {
        writeln!(writer, "{meaning}")?;
    }
    if cpus.left_out > 0 {
        writeln!(
            writer,
            "Left out: {} that came or went meanwhile.",
            count(cpus.left_out, "CPU")
        )?;
    }
    // The looks may have come late, so shares are added up.
    let clocked = nanoseconds(run.measured).saturating_mul(cpus.each.len() as u64);
    let share = |time: u64, whole: u64| time as f64 / whole.max(1) as f64 * 100.0;
    writeln!(
        writer,
        "By their clocks, threads ran for {} s, {} % of {} × {} s; with what was idle that is {:.1} %.",
        seconds(cpus.ran_ns),
        percent(cpus.ran_ns, clocked),
        count(cpus.each.len() as u64, "CPU"),
        seconds(nanoseconds(run.measured)),
        share(cpus.ran_ns, clocked) + share(all.idle_ns, whole)
    )
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn cells(name: String, cpu: &Cpu, length: u64) -> [String; 9] {
    let busy = length.saturating_sub(cpu.idle_ns);
    let both = |time| [seconds(time), percent(time, length)];
    let [
        [busy, was_busy],
        [idle, was_idle],
        [irq, was_irq],
        [steal, was_stolen],
    ] = [busy, cpu.idle_ns, cpu.interrupts_ns, cpu.stolen_ns].map(both);
    [
        name, busy, was_busy, idle, was_idle, irq, was_irq, steal, was_stolen,
    ]
}

fn write_line(cells: &[String; 9], writer: &mut dyn Write) -> io::Result<()> {
    let widths = [8, 9, 5, 9, 5, 9, 5, 9, 5];
    let padded = cells.iter().zip(widths);
    let padded: Vec<String> = padded
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect();
    writeln!(writer, "{}", padded.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::written;
    use crate::report::tests::run;

    #[test]
    fn golden() {
        let cpu = |number, idle_ns, interrupts_ns, stolen_ns| Cpu {
            number,
            idle_ns,
            interrupts_ns,
            stolen_ns,
        };
        let cpus = Cpus {
            length_ns: 2_000_000_000,
            ran_ns: 7_480_000_000,
            each: vec![
                cpu(0, 500_000_000, 20_000_000, 0),
                // More than there was: it is counted in ticks.
                cpu(3, 2_004_000_000, 0, 100_000_000),
            ],
            left_out: 1,
        };
        assert_eq!(
            written(|writer| write(&run(), &cpus, writer)),
            include_str!("golden/cpus.txt")
        );
    }
}
