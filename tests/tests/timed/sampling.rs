//! Rate and event of oncputime's samples: `-F`, `-c`, `-e`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::samples::Sampled;
use systemscope_tests::programs::simple::on;
use systemscope_tests::{Account, Folded, Turn, Watch, Workload, cpus_online, patiently};

#[test]
fn frequency_sets_the_number_of_samples() {
    let _turn = Turn::share();
    let mut spinners = Workload::start("spinners", &[cpus_online(), 60]);
    spinners.go();
    for (flags, hertz) in [
        ("", 49),
        ("-F 49", 49),
        ("-F 499", 499),
        ("--frequency 199", 199),
    ] {
        patiently(|| assert_samples(spinners.pid(), flags, hertz));
    }
}

#[test]
fn a_period_counts_events_instead() {
    let _turn = Turn::share();
    let mut spinners = Workload::start("spinners", &[cpus_online(), 60]);
    spinners.go();
    // A period of the CPU clock is in nanoseconds: one sample per 10 ms.
    patiently(|| assert_samples(spinners.pid(), "-e cpu-clock -c 10000000", 100));
}

#[test]
#[ignore = "needs seconds of samples on a quiet machine"]
fn a_program_in_step_with_the_samples_is_seen_for_what_it_runs() {
    const HERTZ: u64 = 49;
    let _turn = Turn::share();
    patiently(|| {
        // Each burst takes a quarter of the sampling period. A sampler with a constant phase would
        // hit every burst, or no burst.
        let mut shares = Workload::start("shares", &[6, 1_000_000 / HERTZ]);
        let watch = Watch::oncputime(shares.pid(), "-e cpu-clock -F 49");
        let sampled = Sampled::open(shares.pid(), watch);
        shares.go();
        shares.wait_done();
        let (seen, cpu_time) = sampled.close();
        cpu_time.assert_sampled("samples", seen.folded.total(), HERTZ);
    });
}

/// On an idle CPU the tool's wake-ups cost more than the rest of its work.
#[test]
fn a_sampler_looks_seldom_while_nobody_is_new() {
    const WATCHED: Duration = Duration::from_secs(2);
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    // Only one CPU is sampled. On a machine with many CPUs there could be too many samples in new
    // code.
    let mut watch = Watch::oncputime(simple.pid(), "--children -C 0");
    watch.open();
    // After this time the tool itself is not new any more.
    sleep(Duration::from_millis(600));
    let tool = watch.pid();
    let before = Account::read(tool, tool).unwrap();
    sleep(WATCHED);
    let slept = Account::read(tool, tool).unwrap().since(before).voluntary;
    let looks = WATCHED.as_millis() as u64 / 50;
    assert!(slept <= looks * 2, "{slept} times awake for {looks} looks");
}

/// The mappings of a process can be read only while it lives.
#[test]
#[ignore = "repeats a short life for seconds"]
fn a_program_that_runs_for_25_ms_is_looked_at_in_time() {
    const CHILDREN: u64 = 6;
    let _turn = Turn::share();
    patiently(|| {
        // The pause after the fork is so long that no process is new any more.
        let mut brief = Workload::start("brief", &[CHILDREN, 25, 600]);
        let mut watch = Watch::oncputime(brief.pid(), "--children");
        watch.open();
        brief.go();
        brief.wait_done();
        let seen = watch.close();
        let lives = seen.folded.under("brief_life");
        let lives: BTreeSet<_> = lives.lines.iter().map(|line| line.thread).collect();
        assert!(lives.len() as u64 >= CHILDREN / 2, "{}", seen.folded);
        let late = "ended before their mappings could be read";
        assert!(!seen.stderr.contains(late), "{}", seen.stderr);
    });
}

/// Checks that the number of samples fits the process's CPU time in a window. Other programs may
/// use the CPUs, too.
fn assert_samples(pid: u32, flags: &str, hertz: u64) {
    let sampled = Sampled::open(pid, Watch::oncputime(pid, flags));
    sleep(Duration::from_millis(1500));
    let (seen, cpu_time) = sampled.close();
    let samples = seen.folded.under("spin").total();
    cpu_time.assert_sampled(&format!("samples with {flags:?}"), samples, hertz);
}

#[test]
#[ignore = "measures once for each event"]
fn events_are_called_by_perfs_names() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for event in ["cpu-clock", "task-clock"] {
        let folded = on("oncputime", &simple).arg("-e").arg(event).folded(1.5);
        assert!(
            folded.under("known_burn").total() > 0,
            "{event}: {folded:#?}"
        );
    }
    // With a period of 1 each context switch in the window is a sample. Most switches happen where
    // the program goes to sleep, and few where it computes.
    let pid = simple.pid();
    let switches = |account: Account| account.voluntary + account.involuntary;
    let before = Account::read(pid, pid).unwrap();
    let mut watch = Watch::oncputime(pid, "-e context-switches -c 1");
    watch.open();
    sleep(Duration::from_millis(500));
    let seen = watch.close();
    let booked = Account::read(pid, pid).unwrap().since(before);
    let (sampled, asleep) = (
        seen.folded.total(),
        seen.folded.under("known_sleep").total(),
    );
    assert!(
        asleep > 0 && sampled <= switches(booked) && sampled - asleep <= booked.involuntary,
        "{booked:?}: {}",
        seen.folded
    );
    let hardware = on("oncputime", &simple)
        .args("-e instructions --duration 1")
        .run();
    if hardware.code == Some(0) {
        assert!(Folded::parse(&hardware.stdout).under("known_burn").total() > 0);
    } else {
        assert_eq!(hardware.code, Some(1));
        assert!(
            hardware.stderr.contains("instructions"),
            "{}",
            hardware.stderr
        );
        assert_eq!(hardware.stderr.lines().count(), 1, "{}", hardware.stderr);
    }
}
