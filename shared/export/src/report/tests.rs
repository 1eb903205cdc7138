#![allow(clippy::unwrap_used)]

use profile::merge::{Excess, Unseen};
use profile::{Clock, Lengths, Profile, Sample, Sampling, State, Thread, ThreadId, Unit, marker};

use super::*;
use crate::fixture::{sample, weight, written};

fn run() -> Run {
    Run {
        requested: Duration::from_secs(30),
        measured: Duration::from_secs(10),
        ending: Ending::Interrupted,
        frequency: 49,
        min_block_us: 1000,
        on_cpu_lost: Losses::default(),
        off_cpu_lost: Losses {
            events: 2,
            incomplete_user: 1,
            ..Losses::default()
        },
        unclocked: Unclocked::default(),
    }
}

/// Ran 2 s of 10, waited 0.5 s, blocked the rest: 7 s in one stack.
fn worker() -> (Profile, ThreadProfile) {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let user = ["start_thread", "run", "serve", "work", "g", "nanosleep"];
    let kernel = ["do_syscall_64", "do_nanosleep", "schedule", "__schedule"];
    let mut put = |user: &[&str], kernel: &[&str], state| {
        sample(&mut profile, "worker", user, kernel, Some(state))
    };
    let blocked = put(&user, &kernel, State::Blocked);
    let running = put(&["run", "f"], &[], State::Running);
    let mut below = |name, state| Sample {
        stack: profile.marker(name),
        state: Some(state),
        ..running
    };
    let runnable_below = below(marker::RUNNABLE_BELOW, State::Runnable);
    let blocked_below = below(marker::BLOCKED_BELOW, State::Blocked);
    let thread = ThreadProfile {
        thread: Thread {
            id: ThreadId { pid: 7, tid: 8 },
            comm: running.comm,
            clock: Clock {
                started_ns: 0,
                ended_ns: 10_000_000_000,
                running_ns: 2_000_000_000,
                runnable_ns: 500_000_000,
                blocked_ns: 7_500_000_000,
                voluntary: 70,
                involuntary: 30,
            },
        },
        lifetime_ns: 10_000_000_000,
        lives: 1,
        samples: 98,
        stacks: vec![
            (running, weight(2_000_000_000)),
            (runnable_below, weight(500_000_000)),
            (blocked_below, weight(500_000_000)),
            (blocked, weight(7_000_000_000)),
        ],
        unseen: Unseen {
            running_ns: 0,
            runnable_ns: 500_000_000,
            blocked_ns: 500_000_000,
        },
        unseen_blocked: blocked_below.stack,
        excess: Excess::default(),
    };
    (profile, thread)
}

#[test]
fn golden_thread() {
    let (profile, thread) = worker();
    let row = Row {
        profile: &profile,
        thread: &thread,
        role: "worker",
    };
    assert_eq!(
        written(|writer| write_thread(&run(), "/bin/server -x", &row, writer)),
        include_str!("golden/thread.txt")
    );
}

fn process<'a>(profile: &'a Profile, threads: &'a [ThreadProfile]) -> Process<'a> {
    let row = |thread| Row {
        profile,
        thread,
        role: "worker",
    };
    Process {
        pid: 7,
        command: "/bin/server -x",
        threads: threads.iter().map(row).collect(),
        with_files: 1,
    }
}

#[test]
fn golden_process() {
    let (profile, thread) = worker();
    let threads = [thread.clone(), thread];
    assert_eq!(
        written(|writer| write_process(&run(), &process(&profile, &threads), writer)),
        include_str!("golden/process.txt")
    );
}

#[test]
fn golden_table() {
    let (profile, thread) = worker();
    let threads = [thread.clone(), thread.clone(), thread];
    assert_eq!(
        written(|writer| write_table(&run(), &process(&profile, &threads), 2, writer)),
        include_str!("golden/table.txt")
    );
}

#[test]
fn everything_that_went_wrong_is_told() {
    let (profile, mut thread) = worker();
    thread.lives = 2;
    thread.unseen.running_ns = 250_000_000;
    thread.excess = Excess {
        samples: 1,
        off_cpu_ns: 2_000_000_000,
    };
    let mut run = run();
    run.ending = Ending::TargetGone;
    run.unclocked = Unclocked {
        threads: 3,
        samples: 4,
        off_cpu_ns: 5_000_000,
    };
    run.off_cpu_lost.threads = 6;
    let text = written(|writer| write_process(&run, &process(&profile, &[thread]), writer));
    for said in [
        "10.000 s measured of 30.000 s asked for, since every process had ended",
        "1 ID of several threads, one after another",
        "0.250 s running that no sample hit",
        "In 1 thread the stacks exceed the clock by 2.000 s off CPU and 1 sample;",
        "3 threads without a clock, with 4 samples and 0.005 s off CPU",
        "off CPU 2 events, 0 stacks, 6 threads without a clock (1 user stack cut short)",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn a_run_is_what_the_merged_profiles_say() {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.meta.window.length_ns = 2_000_000_000;
    profile.meta.lengths = Some(Lengths {
        least: 5_000,
        most: u64::MAX,
    });
    profile.meta.sampling = Some(Sampling {
        event: "cpu-clock".to_owned(),
        rate: Rate::Period(10_000_000),
    });
    let run = Run::of(&Merged {
        profile,
        threads: Vec::new(),
        unclocked: Unclocked::default(),
        on_cpu_lost: Losses::default(),
        off_cpu_lost: Losses::default(),
    });
    // Nobody had said how long it was to be.
    let two_seconds = Duration::from_secs(2);
    assert_eq!((run.requested, run.measured), (two_seconds, two_seconds));
    // 5,000 ns; a second has 100 periods of 10 ms.
    assert_eq!((run.min_block_us, run.frequency), (5, 100));
}

#[test]
fn only_what_has_a_stack_is_covered() {
    let (_, mut thread) = worker();
    let names = columns::COLUMNS.map(|column| column.name);
    let place = names.iter().position(|name| *name == "covered").unwrap();
    let covered = |thread: &ThreadProfile| columns::cells(thread, "worker")[place].clone();
    // 2 s running and 0.5 s runnable, of 10 s.
    thread.stacks.truncate(2);
    assert_eq!(covered(&thread), "25.0");
    thread.lifetime_ns = 0;
    assert_eq!(covered(&thread), "-");
}

#[test]
fn where_one_thread_is_all_there_are_no_sums_and_nothing_is_left_out() {
    let (profile, thread) = worker();
    let threads = [thread];
    let process = process(&profile, &threads);
    let table = written(|writer| write_table(&run(), &process, 1, writer));
    assert!(!table.contains("1 thread"), "{table}");
    assert!(!table.contains("more thread"), "{table}");
    let analysis = written(|writer| write_process(&run(), &process, writer));
    assert!(!analysis.contains("Files of their own"), "{analysis}");
}

#[test]
fn a_thread_that_left_nothing_still_has_a_report() {
    let (profile, mut thread) = worker();
    thread.lifetime_ns = 0;
    thread.thread.clock = Clock::default();
    thread.stacks.clear();
    let row = Row {
        profile: &profile,
        thread: &thread,
        role: "worker",
    };
    let text = written(|writer| write_thread(&run(), "", &row, writer));
    assert!(text.contains("Never blocked.") && text.contains("life           0.000000       -"));
}
