//! Lists the machine's CPUs, and runs programs on them.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use libbpf_rs::{ProgramInput, ProgramMut};

use crate::Result;
use crate::error::{Context, lossy};

/// `BPF_F_TEST_RUN_ON_CPU` of include/uapi/linux/bpf.h.
const TEST_RUN_ON_CPU: u32 = 1;

/// Pause between two runs on a CPU.
const PAUSE: Duration = Duration::from_micros(50);

/// Runs `program` in an interrupt on each CPU, one CPU after the other. When this function returns,
/// code that ran on a CPU before with interrupts off has ended. Repeats the run on a CPU after a
/// short pause until `program` returns 0.
pub fn run_on_each(program: &ProgramMut<'_>) -> Result<()> {
    for cpu in online_cpus()? {
        loop {
            let input = ProgramInput {
                cpu,
                flags: TEST_RUN_ON_CPU,
                ..ProgramInput::default()
            };
            match program.test_run(input) {
                Ok(ran) if ran.return_value == 0 => break,
                Ok(_) => sleep(PAUSE),
                // A CPU that has gone offline since the list was read runs nothing.
                Err(_) if !online_cpus()?.contains(&cpu) => break,
                Err(error) => {
                    let what = format!("run {} on CPU {cpu}", lossy(program.name()));
                    return Err(error).context(what);
                }
            }
        }
    }
    Ok(())
}

/// Runs `program` once on the current CPU with these arguments, and returns its result. Nothing
/// preempts the program.
pub fn run_here(program: &ProgramMut<'_>, arguments: &[u64]) -> Result<u32> {
    let mut bytes: Vec<u8> = arguments
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let input = ProgramInput {
        context_in: Some(&mut bytes),
        ..ProgramInput::default()
    };
    let ran = program
        .test_run(input)
        .context(format!("run {}", lossy(program.name())))?;
    Ok(ran.return_value)
}

/// Returns the CPUs that are online.
pub fn online_cpus() -> Result<Vec<u32>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(ONLINE).context(format!("read {ONLINE}"))?;
    Ok(parse_cpus(&text))
}

/// Parses a list of CPUs in the kernel's format: `0-3,8`.
fn parse_cpus(text: &str) -> Vec<u32> {
    /// Bound on the number of CPUs. No kernel supports more (NR_CPUS is 8192 at most).
    const MOST: u32 = 65536;
    text.trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse().ok()?, last.parse::<u32>().ok()?.min(MOST)))
        })
        .flat_map(|(first, last)| first..=last)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_kernels_cpu_lists() {
        assert_eq!(parse_cpus("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_cpus("0\n"), [0]);
        assert_eq!(parse_cpus("\n"), [] as [u32; 0]);
    }
}
