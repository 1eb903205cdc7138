#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use profile::merge::{Excess, Sampled, Unseen};
use profile::{
    Clock, Detail, Idleness, Profile, Reason, Resource, Sample, State, Thread, ThreadId, Unit,
    Wait, WaitKind, marker,
};

use super::*;
use crate::fixture::{sample, weight, written};

pub(super) fn run() -> Run {
    Run {
        requested: Duration::from_secs(30),
        measured: Duration::from_secs(10),
        ending: Ending::Interrupted,
        frequency: 49,
        min_block_us: 1000,
        short_are_sampled: false,
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
    let mut blocked = put(&user, &kernel, State::Blocked);
    let running = put(&["run", "f"], &[], State::Running);
    let mut below = |name, state| Sample {
        stack: profile.marker(name),
        state: Some(state),
        ..running
    };
    let runnable_below = below(marker::RUNNABLE_BELOW, State::Runnable);
    let blocked_below = below(marker::BLOCKED_BELOW, State::Blocked);
    let timerfd = profile.names.text("timerfd");
    let wait = Wait {
        resource: Some(profile.resources.id(Resource::Anonymous(timerfd))),
        idleness: Idleness::Idle,
        ..Wait::new(WaitKind::new(Reason::Sleep, Detail::ForTime))
    };
    blocked.wait = Some(profile.waits.id(wait));
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
        sampled: Sampled::default(),
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
fn waiting_for_pythons_lock_has_a_column_where_anybody_did() {
    let (mut profile, mut thread) = worker();
    let columns = |profile: &Profile, thread: &ThreadProfile| {
        let threads = [thread.clone()];
        let process = process(profile, &threads);
        let table = written(|writer| write_table(&run(), &process, 1, writer));
        let analysis = written(|writer| write_process(&run(), &process, writer));
        [table, analysis]
    };
    for text in columns(&profile, &thread) {
        assert!(!text.contains("GIL"), "{text}");
    }
    let wait = Wait {
        idleness: Idleness::Waiting,
        ..Wait::new(WaitKind::new(Reason::Lock, Detail::Gil))
    };
    let wait = profile.waits.id(wait);
    if let Some((blocked, _)) = thread.stacks.last_mut() {
        blocked.wait = Some(wait);
    }
    for text in columns(&profile, &thread) {
        let mut lines = text.lines().skip_while(|line| !line.ends_with("GIL"));
        let row = lines.nth(1).unwrap_or_default();
        assert!(row.trim_end().ends_with("7.000"), "{text}");
        assert!(text.contains("GIL       seconds of these"), "{text}");
    }
}

/// A wait: in which state, for which reason, whether there was work, and for how many seconds.
type Waits = (State, Reason, Detail, Idleness, u64);

/// A thread that ran for a second, and waited so.
fn waiting(profile: &mut Profile, like: &ThreadProfile, waits: &[Waits]) -> ThreadProfile {
    let second = 1_000_000_000;
    let mut thread = like.clone();
    thread.unseen = Unseen::default();
    thread.stacks.clear();
    let clock = &mut thread.thread.clock;
    *clock = Clock {
        running_ns: second,
        ..Clock::default()
    };
    for &(state, reason, detail, idleness, time) in waits {
        let wait = Wait {
            idleness,
            ..Wait::new(WaitKind::new(reason, detail))
        };
        let waits = Sample {
            state: Some(state),
            wait: Some(profile.waits.id(wait)),
            ..like.stacks[0].0
        };
        thread.stacks.push((waits, weight(time * second)));
        match state {
            State::Running => clock.running_ns += time * second,
            State::Runnable => clock.runnable_ns += time * second,
            State::Blocked => clock.blocked_ns += time * second,
        }
    }
    thread
}

/// The analysis of a process of one such thread.
fn of_waiting(waits: &[Waits]) -> String {
    let (mut profile, thread) = worker();
    let threads = [waiting(&mut profile, &thread, waits)];
    written(|writer| write_process(&run(), &process(&profile, &threads), writer))
}

#[test]
fn what_waits_for_somebody_who_is_measured_is_not_held_up_by_that() {
    let child = |detail| (State::Blocked, Reason::Child, detail, Idleness::Waiting, 8);
    let by_child = "Held up most by child: process: 8.000 s";
    assert!(of_waiting(&[child(Detail::Process)]).contains(by_child));
    let text = of_waiting(&[child(Detail::Thread)]);
    assert!(text.contains("Nothing held it up"), "{text}");
    // Of several processes one may be the other's child.
    let (mut profile, thread) = worker();
    let threads = [waiting(&mut profile, &thread, &[child(Detail::Process)])];
    let mut other = process(&profile, &threads);
    other.pid = 9;
    let processes = [process(&profile, &threads), other];
    let before = BTreeMap::new();
    let known = Known::new(&profile, &before);
    let text = |processes| written(|writer| write_processes(&run(), &known, processes, 5, writer));
    assert!(text(&processes[..1]).contains(by_child));
    assert!(text(&processes).contains("Nothing held it up"));
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

/// A process of one thread, which runs for so many seconds of its life, given in seconds
/// since the window's start, and is blocked for the rest.
fn living(like: &ThreadProfile, pid: u32, life: (u64, u64), running: u64) -> ThreadProfile {
    let second = 1_000_000_000;
    let mut thread = like.clone();
    let (started, ended) = life;
    thread.thread.id = ThreadId { pid, tid: pid };
    thread.lifetime_ns = (ended - started) * second;
    thread.thread.clock = Clock {
        started_ns: started * second,
        ended_ns: ended * second,
        running_ns: running * second,
        blocked_ns: (ended - started - running) * second,
        ..Clock::default()
    };
    thread.stacks = vec![(like.stacks[0].0, weight(running * second))];
    thread.unseen = Unseen::default();
    thread
}

/// Three with one ID, which lived a second longer than they ran.
fn living_in_turn(like: &ThreadProfile, pid: u32, life: (u64, u64), running: u64) -> ThreadProfile {
    let mut thread = living(like, pid, life, running);
    thread.lives = 3;
    thread.lifetime_ns = (running + 1) * 1_000_000_000;
    thread.thread.clock.blocked_ns = 1_000_000_000;
    thread
}

fn process_of<'a>(
    profile: &'a Profile,
    command: &'a str,
    threads: &'a [ThreadProfile],
) -> Process<'a> {
    Process {
        pid: threads[0].thread.id.pid,
        command,
        ..process(profile, threads)
    }
}

/// A server of two threads, its child and another one; one that has nothing to do with them;
/// and two of the kernel's threads.
fn machine<'a>(profile: &'a Profile, threads: &'a [Vec<ThreadProfile>; 6]) -> Vec<Process<'a>> {
    let commands = [
        "/bin/server -x",
        "/bin/server --worker=with-a-command-line-that-is-longer-than-what-is-shown",
        "true",
        "idle",
        "[kworker/0:1]",
        "[kthreadd]",
    ];
    let processes = commands.iter().zip(threads);
    processes
        .map(|(command, threads)| process_of(profile, command, threads))
        .collect()
}

fn threads_of_machine(worker: &ThreadProfile) -> [Vec<ThreadProfile>; 6] {
    [
        vec![worker.clone(), living(worker, 7, (0, 10), 1)],
        vec![living(worker, 9, (2, 8), 5)],
        vec![living_in_turn(worker, 11, (1, 9), 2)],
        vec![living(worker, 20, (0, 10), 0)],
        vec![living(worker, 31, (0, 10), 4)],
        vec![living(worker, 2, (0, 10), 0)],
    ]
}

fn known_of_machine(profile: &mut Profile) {
    for (pid, parent, is_kernel_thread) in [
        (7, 1, false),
        (9, 7, false),
        (11, 7, false),
        (20, 1, false),
        (2, 0, true),
        (31, 2, true),
    ] {
        profile.processes.push(profile::Process {
            pid,
            parent,
            start_ticks: u64::from(pid),
            is_kernel_thread,
            ..profile::Process::default()
        });
    }
}

#[test]
fn golden_processes() {
    let (mut profile, worker) = worker();
    known_of_machine(&mut profile);
    let threads = threads_of_machine(&worker);
    let processes = machine(&profile, &threads);
    let before = BTreeMap::new();
    let known = Known::new(&profile, &before);
    assert_eq!(
        written(|writer| write_processes(&run(), &known, &processes, 3, writer)),
        include_str!("golden/processes.txt")
    );
}

/// The cells of the rows whose commands begin so: running, runnable, blocked, threads.
fn figures(text: &str, command: &str) -> [String; 4] {
    // The first line says how many there are.
    let mut lines = text.lines().skip(1);
    let cells = lines.find_map(|line| Some(line.split_once(command)?.0));
    let cells = cells.unwrap();
    let cells: Vec<&str> = cells.split_whitespace().collect();
    [3, 5, 7, 10].map(|cell| cells[cell].to_owned())
}

#[test]
fn of_a_hundred_thousand_processes_the_rest_is_one_row_with_their_sums() {
    let (mut profile, worker) = worker();
    let count = 100_000_u32;
    let threads: Vec<[ThreadProfile; 1]> = (1..=count)
        .map(|pid| {
            let running = u64::from(pid > count - 5);
            [living(&worker, pid, (0, 2), running)]
        })
        .collect();
    // Each is a child of the one before it.
    profile.processes = (1..=count)
        .map(|pid| profile::Process {
            pid,
            parent: pid - 1,
            ..profile::Process::default()
        })
        .collect();
    let processes = threads
        .iter()
        .map(|threads| process_of(&profile, "x", threads));
    let processes: Vec<_> = processes.collect();
    let before = BTreeMap::new();
    let known = Known::new(&profile, &before);
    let text = written(|writer| write_processes(&run(), &known, &processes, 5, writer));
    // Five, and 32 ancestors of the first of them.
    assert_eq!(text.matches("  x\n").count(), 5 + 32, "{text}");
    assert_eq!(
        figures(&text, "99963 other processes"),
        ["0.000", "0.000", "199926.000", "99963"]
    );
    assert_eq!(
        figures(&text, "100000 processes"),
        ["5.000", "0.000", "199995.000", "100000"]
    );
}
