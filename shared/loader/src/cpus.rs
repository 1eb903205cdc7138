//! The machine's CPUs, and running a program on each.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use libbpf_rs::{ProgramInput, ProgramMut};

use crate::Result;
use crate::error::Context;
use crate::kernel::lossy;

/// `BPF_F_TEST_RUN_ON_CPU` of include/uapi/linux/bpf.h.
const TEST_RUN_ON_CPU: u32 = 1;

/// Between two looks at a CPU.
const PAUSE: Duration = Duration::from_micros(50);

/// Runs `program` on each CPU, one after the other, in an interrupt: whatever
/// ran there before with interrupts off has ended then. Where it returns
/// something but 0 it is run again in a moment.
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
                // One that has gone offline meanwhile runs nothing.
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

/// Runs `program` once, here, with these arguments: what it returns. Nobody takes the CPU
/// away from it.
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

/// The CPUs that are online.
pub fn online_cpus() -> Result<Vec<u32>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(ONLINE).context(format!("read {ONLINE}"))?;
    Ok(parse_cpus(&text))
}

/// A list of CPUs as the kernel writes it: `0-3,8`.
fn parse_cpus(text: &str) -> Vec<u32> {
    /// More than any kernel is built for (NR_CPUS is 8192 at most).
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
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use libbpf_rs::{MapCore, MapFlags, MapHandle, num_possible_cpus};

    use super::*;
    use crate::LoadedObject;

    const KEY: [u8; 4] = [0; 4];

    #[test]
    fn parses_the_kernels_cpu_lists() {
        assert_eq!(parse_cpus("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_cpus("0\n"), [0]);
        assert_eq!(parse_cpus("\n"), [] as [u32; 0]);
    }

    #[test]
    fn what_is_online_is_what_the_kernel_describes() {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap();
        let lines = text.lines().filter(|line| line.starts_with("processor"));
        let described: Vec<u32> = lines
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(online_cpus().unwrap(), described);
    }

    #[test]
    fn a_program_is_run_on_each_cpu() {
        let object = LoadedObject::of_tests(&bpf::cpudist::OBJECT, |_| Ok(()));
        let start = 1_u64;
        object.variable("window_start").unwrap().set(start);
        object.variable("interval").unwrap().set(u64::MAX);
        run_on_each(&object.program("visit_cpu").unwrap()).unwrap();
        // What it notes of its CPU begins with since when that is.
        let running = object.map("running").unwrap();
        let noted = running.lookup_percpu(&KEY, MapFlags::ANY).unwrap().unwrap();
        for cpu in online_cpus().unwrap() {
            assert_eq!(noted[cpu as usize][..8], start.to_ne_bytes(), "CPU {cpu}");
        }
    }

    #[test]
    fn a_program_is_run_until_it_returns_0() {
        let object = LoadedObject::of_tests(&bpf::oncputime::OBJECT, |_| Ok(()));
        // It returns what is there of its CPU.
        let counting = MapHandle::try_from(&object.map("counting").unwrap()).unwrap();
        let set = |value: u32| {
            let values = vec![value.to_ne_bytes().to_vec(); num_possible_cpus().unwrap()];
            counting
                .update_percpu(&KEY, &values, MapFlags::ANY)
                .unwrap();
        };
        set(1);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(Duration::from_millis(100));
                is_over.store(true, Ordering::SeqCst);
                set(0);
            });
            run_on_each(&object.program("visit_cpu").unwrap()).unwrap();
            assert!(is_over.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn a_program_that_cannot_be_run_is_told() {
        let object = LoadedObject::of_tests(&bpf::oncputime::OBJECT, |_| Ok(()));
        let error = run_on_each(&object.program("list_threads").unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("run list_threads on CPU"),
            "{error}"
        );
    }
}
