//! Times of the machine's CPUs in the window.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use export::text::numbers::{count, percent, seconds};

use super::Run;

/// Times of the machine's CPUs in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Time from the first reading to the second, in ns.
    pub length_ns: u64,
    /// Time that all threads ran in the window, in ns, by the threads' clocks.
    pub ran_ns: u64,
    /// CPUs that were online at both readings, by number.
    pub each: Vec<Cpu>,
    /// Number of CPUs that were online at only one of the readings.
    pub left_out: u64,
}

/// Times of one CPU in ns, by the kernel's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Number of the CPU.
    pub number: u32,
    /// Time idle or waiting for I/O.
    pub idle_ns: u64,
    /// Time in interrupts; 0 if the kernel does not account it.
    pub interrupts_ns: u64,
    /// Time taken by the hypervisor.
    pub stolen_ns: u64,
}

/// Use of the machine's CPUs by programs, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuUse {
    /// Number of CPUs; 0 if it is not known.
    cpus: u64,
    /// Per cent of all CPU time: the busy part, and within it the part that the hypervisor took.
    busy: Option<[u64; 2]>,
    /// Programs by name with their per cent of all CPU time, largest first.
    programs: Vec<(String, u64)>,
}

impl CpuUse {
    /// Maximum number of programs named.
    const NAMED: usize = 2;

    /// Computes shares of the CPUs from `programs`: names with running time in ns.
    pub(super) fn new<'a>(run: &Run, programs: impl Iterator<Item = (&'a str, u64)>) -> CpuUse {
        let percent = |time: u64, whole: u64| {
            let share = u128::from(time) * 100 + u128::from(whole) / 2;
            u64::try_from(share / u128::from(whole.max(1))).unwrap_or(100)
        };
        let busy = run.cpu_times.as_ref().map(|cpus| {
            let number = cpus.each.len() as u64;
            let whole = cpus.length_ns.saturating_mul(number);
            let sum =
                |part: fn(&Cpu) -> u64| (cpus.each.iter().map(part)).fold(0, u64::saturating_add);
            let busy = whole.saturating_sub(sum(|cpu| cpu.idle_ns));
            [
                percent(busy, whole),
                percent(sum(|cpu| cpu.stolen_ns), whole),
            ]
        });
        let cpus =
            (run.cpu_times.as_ref()).map_or(u64::from(run.cpus), |cpus| cpus.each.len() as u64);
        let whole = nanoseconds(run.measured).saturating_mul(cpus);
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, ran) in programs {
            let sum = by_name.entry(name).or_default();
            *sum = sum.saturating_add(ran);
        }
        let shares = by_name.into_iter();
        let shares = shares.map(|(name, ran)| (name.to_owned(), percent(ran, whole)));
        let mut programs: Vec<(String, u64)> = shares.filter(|(_, share)| *share > 0).collect();
        programs.sort_by_key(|(_, share)| Reverse(*share));
        programs.truncate(CpuUse::NAMED);
        CpuUse {
            cpus,
            busy,
            programs,
        }
    }

    /// Describes the use: `2 CPUs, 100 % busy: mariadbd 44 %, others 56 %`. If the times are
    /// unknown, the text has only the number. If the number is unknown, the text is empty.
    pub(super) fn describe(&self) -> String {
        if self.cpus == 0 {
            return String::new();
        }
        let cpus = count(self.cpus, "CPU");
        let Some([busy, stolen]) = self.busy else {
            return cpus;
        };
        let named: u64 = self.programs.iter().map(|(_, share)| *share).sum();
        let others = busy.saturating_sub(named).saturating_sub(stolen);
        let programs = self.programs.iter().map(|(name, share)| (&**name, *share));
        let rest = [("others", others), ("the hypervisor", stolen)];
        let parts = programs.chain(rest).filter(|(_, share)| *share > 0);
        let parts: Vec<String> = parts
            .map(|(name, share)| format!("{name} {share} %"))
            .collect();
        if parts.is_empty() {
            format!("{cpus}, {busy} % busy")
        } else {
            format!("{cpus}, {busy} % busy: {}", parts.join(", "))
        }
    }
}

/// Writes the times of each CPU, and their sum with the threads' clocks.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(run: &Run, cpus: &Cpus, writer: &mut dyn Write) -> io::Result<()> {
    let length = cpus.length_ns;
    writeln!(
        writer,
        "CPUs, by the kernel's account in steps of 10 ms: {} s each\n",
        seconds(length)
    )?;
    let names = ["CPU", "busy", "%", "idle", "%", "irq", "%", "steal", "%"];
    write_line(&names.map(str::to_owned), writer)?;
    for cpu in &cpus.each {
        write_line(&cells(cpu.number.to_string(), cpu, length), writer)?;
    }
    let sum = |part: fn(&Cpu) -> u64| cpus.each.iter().map(part).sum::<u64>();
    let all = Cpu {
        number: 0,
        idle_ns: sum(|cpu| cpu.idle_ns),
        interrupts_ns: sum(|cpu| cpu.interrupts_ns),
        stolen_ns: sum(|cpu| cpu.stolen_ns),
    };
    let whole = length.saturating_mul(cpus.each.len() as u64);
    write_line(&cells("all".to_owned(), &all, whole), writer)?;
    if cpus.left_out > 0 {
        writeln!(
            writer,
            "Left out: {} that came or went in the window.",
            count(cpus.left_out, "CPU")
        )?;
    }
    // The readings can be late, so the sum is of shares, not of times.
    let clocked = nanoseconds(run.measured).saturating_mul(cpus.each.len() as u64);
    let share = |time: u64, whole: u64| time as f64 / whole.max(1) as f64 * 100.0;
    writeln!(
        writer,
        "By their clocks, threads ran for {} s, {} % of {} × {} s; with idle time that is {:.1} %.",
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
    use crate::tests::run;

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
                // This idle time is longer than the window, because the kernel counts in ticks.
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
