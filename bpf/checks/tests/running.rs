//! Tests spans on a CPU at a period's end, where cpudist's `visit_cpu` splits the span of the
//! running thread. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::mem::MaybeUninit;
use std::thread::sleep;
use std::time::Duration;

use bpf::cpudist::{CpudistSkel, CpudistSkelBuilder};
use checks::{be_preferred, run, stay_on_a_cpu, time_run};
use cli::monotonic_ns;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject};

/// Fields `since` and `task` of `struct running`.
type Running = (u64, u64);

struct Cpu<'a> {
    programs: CpudistSkel<'a>,
    cpu: usize,
}

impl Cpu<'_> {
    /// Loads cpudist for the spans of one process, or of all processes.
    fn new(object: &mut MaybeUninit<OpenObject>, pid: Option<u32>) -> Cpu<'_> {
        let cpu = stay_on_a_cpu();
        let mut open = CpudistSkelBuilder::default().open(object).unwrap();
        if let Some(pid) = pid {
            let config = open.maps.rodata_data.as_deref_mut().unwrap();
            config.only_pid = pid;
            config.targets_named_ns = monotonic_ns();
        }
        let programs = open.load().expect("load, as root");
        Cpu { programs, cpu }
    }

    fn open_window(&mut self, start: u64, interval_end: u64) {
        let shared = self.programs.maps.bss_data.as_deref_mut().unwrap();
        // The lowest bit of the word is the slot: 0.
        (shared.interval_start, shared.interval) = (start, interval_end << 1);
        shared.window_start = start;
    }

    fn set(&self, (since, task): Running) {
        let value: Vec<u8> = [since, task, 0]
            .into_iter()
            .flat_map(u64::to_ne_bytes)
            .collect();
        let cpus = libbpf_rs::num_possible_cpus().unwrap();
        let map = &self.programs.maps.running;
        map.update_percpu(&[0; 4], &vec![value; cpus], MapFlags::ANY)
            .unwrap();
    }

    /// Runs `visit_cpu`, and returns the CPU's `struct running`.
    fn visited(&self) -> Running {
        run(&self.programs.progs.visit_cpu);
        let values = self
            .programs
            .maps
            .running
            .lookup_percpu(&[0; 4], MapFlags::ANY);
        let value = &values.unwrap().unwrap()[self.cpu];
        let word = |index: usize| u64::from_ne_bytes(value[8 * index..][..8].try_into().unwrap());
        (word(0), word(1))
    }

    fn hidden(&self) -> u64 {
        let shared = self.programs.maps.bss_data.as_deref().unwrap();
        shared.lost.switches
    }
}

const NOBODY: Running = (0, 0);
/// Address at which no task is, so that the scheduler's account of it is 0.
const SOMEBODY: u64 = 0x1000;
const SECOND: u64 = 1_000_000_000;

#[test]
fn nobody_who_is_measured_runs_since_the_window_opened() {
    let mut object = MaybeUninit::uninit();
    let mut cpu = Cpu::new(&mut object, Some(1));
    let start = monotonic_ns();
    cpu.open_window(start, start + 1000 * SECOND);
    cpu.set(NOBODY);
    assert_eq!(cpu.visited(), (start, 0));
}

/// Returns the number of times that this thread has left its CPU.
fn switches() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is valid for what the kernel writes, and the kernel has written it if
    // the result is 0.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    usage.ru_nvcsw + usage.ru_nivcsw
}

/// The scheduler's account tells how long the thread has run since its switch-in. If another
/// task takes the CPU meanwhile, the thread cannot tell when it got the CPU, and the test
/// repeats the turn.
#[test]
fn a_hidden_arrival_was_when_the_thread_got_its_cpu() {
    let mut object = MaybeUninit::uninit();
    let mut cpu = Cpu::new(&mut object, Some(std::process::id()));
    be_preferred();
    let undisturbed = (1..400).any(|turn| {
        let (departures, before) = (switches(), time_run());
        let asleep = monotonic_ns();
        // The period ends while this thread sleeps and another task runs.
        cpu.open_window(asleep - SECOND, asleep + 1_000_000);
        cpu.set((asleep, SOMEBODY));
        sleep(Duration::from_millis(5));
        let (awake, woken) = (time_run(), monotonic_ns());
        // Runs for less than the scheduler's shortest time slice. The loop does not call
        // time_run(), because the call would make the scheduler choose the next task.
        while monotonic_ns() < woken + 500_000 {}
        let (now, ran_at_least) = (monotonic_ns(), time_run() - awake);
        let (since, task) = cpu.visited();
        let (later, ran_at_most) = (monotonic_ns(), time_run() - before);
        assert_ne!(task, SOMEBODY);
        assert!(since >= asleep + 5_000_000, "{since}, asleep from {asleep}");
        assert_eq!(cpu.hidden(), turn);
        let undisturbed = switches() == departures + 1;
        let (earliest, latest) = (now - ran_at_most, later - ran_at_least);
        assert!(
            !undisturbed || (earliest..=latest).contains(&since),
            "{since}, {earliest} to {latest}"
        );
        undisturbed
    });
    assert!(undisturbed);
}
