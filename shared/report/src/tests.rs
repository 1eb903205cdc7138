#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use profile::merge::{Excess, Sampled, Unseen};
use profile::{
    Clock, Detail, Frame, FrameKind, Function, Idleness, LanguageName, Profile, Reason, Resource,
    Sample, Stack, StackId, State, Thread, ThreadId, Unit, Wait, WaitKind, marker,
};

use super::overview::{Bars, Look};
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
            times: 0,
            ..Losses::default()
        },
        unclocked: Unclocked::default(),
        cpus: 2,
        cpu_times: None,
        event_loops: Vec::new(),
        goroutines: Vec::new(),
        is_of_machine: false,
        command: None,
    }
}

/// Returns a profile with a thread that lived for 10 s. The thread ran for 2 s, was runnable for
/// 0.5 s, and was blocked for the rest, 7 s of it in one stack.
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
        name: "server",
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

fn overview(process: &Process<'_>, look: Look) -> String {
    written(|writer| overview::write_process(&run(), process, true, look, writer))
}

#[test]
fn golden_overview() {
    let (mut profile, thread) = worker();
    let lock = (
        State::Blocked,
        Reason::Lock,
        Detail::Mutex,
        Idleness::Waiting,
        6,
    );
    let disk = (
        State::Blocked,
        Reason::DiskWrite,
        Detail::Sync,
        Idleness::Unknown,
        3,
    );
    let mut idle = thread.clone();
    idle.thread.id.tid = 1234;
    idle.thread.clock.running_ns = 0;
    idle.thread.clock.runnable_ns = 0;
    idle.thread.clock.blocked_ns = 7_500_000_000;
    let threads = [
        thread.clone(),
        waiting(&mut profile, &thread, &[lock, disk]),
        idle.clone(),
        idle,
    ];
    let process = process(&profile, &threads);
    let bars = Look::on_terminal(Some(80), Bars::Plain);
    for (look, expected) in [
        (Look::default(), include_str!("golden/overview.txt")),
        (bars, include_str!("golden/overview_on_terminal.txt")),
    ] {
        let text = overview(&process, look);
        assert_eq!(text, expected, "{text}");
    }
}

#[test]
fn golden_overview_of_a_thread() {
    let (profile, thread) = worker();
    let threads = [thread];
    let text = overview(&process(&profile, &threads), Look::default());
    assert_eq!(
        text,
        include_str!("golden/overview_of_thread.txt"),
        "{text}"
    );
}

/// Lines fit with names of any length, and only bars are coloured.
#[test]
fn an_overview_is_as_wide_as_it_may_be() {
    let (mut profile, mut thread) = worker();
    let long = "a_function_with_a_long_name::".repeat(20);
    let waits = sample(
        &mut profile,
        &long,
        &[&*long, &*long],
        &[&*long],
        Some(State::Blocked),
    );
    let path = Resource::File(profile.names.text(&long));
    let wait = Wait {
        resource: Some(profile.resources.id(path)),
        idleness: Idleness::Waiting,
        ..Wait::new(WaitKind::new(Reason::DiskRead, Detail::File))
    };
    let waits = Sample {
        wait: Some(profile.waits.id(wait)),
        ..waits
    };
    thread.stacks.push((waits, weight(1_000_000_000)));
    let threads = [thread.clone(), thread];
    let mut process = process(&profile, &threads);
    process.name = &long;
    process.command = &long;
    let before = BTreeMap::new();
    let known = Known::new(&profile, &before);
    let mut other = process.clone();
    other.pid = 8;
    let processes = [process, other];
    for (columns, width) in [
        (Some(10), 80),
        (Some(99), 99),
        (Some(500), 120),
        (None, 120),
    ] {
        for bars in [Bars::None, Bars::Plain, Bars::Coloured] {
            let look = Look::on_terminal(columns, bars).with_details(true);
            let several = |writer: &mut dyn std::io::Write| {
                overview::write_processes(&run(), &known, &processes, 5, look, writer)
            };
            for text in [overview(&processes[0], look), written(several)] {
                let mut plain = text.clone();
                for colour in ["31", "33", "34", "2", "0"] {
                    plain = plain.replace(&format!("\u{1b}[{colour}m"), "");
                }
                assert!(!plain.contains('\u{1b}'), "{plain}");
                assert_eq!(text != plain, bars == Bars::Coloured);
                let widest = plain.lines().map(|line| line.chars().count()).max();
                assert_eq!(widest, Some(width), "{plain}");
            }
        }
    }
}

#[test]
fn shares_of_each_row_add_up_to_its_life() {
    let (mut profile, thread) = worker();
    let lock = (
        State::Blocked,
        Reason::Lock,
        Detail::Mutex,
        Idleness::Waiting,
    );
    let (state, reason, detail, idleness) = lock;
    let threads = [1, 2, 4].map(|time| {
        let waits = [(state, reason, detail, idleness, time)];
        waiting(&mut profile, &thread, &waits)
    });
    let text = overview(&process(&profile, &threads), Look::default());
    let rows = text
        .lines()
        .filter(|line| line.contains(" s ") && line.matches('%').count() == 5);
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 4, "{text}");
    for row in rows {
        let words: Vec<&str> = row.split_whitespace().collect();
        let shares = words.windows(2).filter(|pair| pair[1] == "%");
        let sum: u64 = shares.map(|pair| pair[0].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, 100, "{row}");
    }
}

#[test]
fn a_command_has_its_exit_status_in_the_first_line() {
    let (profile, thread) = worker();
    let threads = [thread];
    let process = process(&profile, &threads);
    for (ending, command, expected) in [
        (
            Ending::TargetGone,
            CommandEnd::Exited(3),
            "exit status 3 · 10.0 s · ",
        ),
        (
            Ending::TargetGone,
            CommandEnd::Killed(9),
            "killed by signal 9 · 10.0 s · ",
        ),
        (
            Ending::Elapsed,
            CommandEnd::Running,
            "still running · 10.0 s · ",
        ),
    ] {
        let run = Run {
            ending,
            command: Some(command),
            ..run()
        };
        let look = Look::default();
        let text = written(|writer| overview::write_process(&run, &process, true, look, writer));
        let first = format!("server (PID 7) · 1 thread · {expected}49 Hz · waits from 1 ms on\n");
        assert!(text.starts_with(&first), "{text}");
    }
}

#[test]
fn losses_are_said_with_what_to_do() {
    let (profile, thread) = worker();
    let threads = [thread];
    let process = process(&profile, &threads);
    let text = |off_cpu_lost, has_details| {
        let run = Run {
            off_cpu_lost,
            ..run()
        };
        let look = Look::default().with_details(has_details);
        written(|writer| overview::write_process(&run, &process, true, look, writer))
    };
    let nothing = text(Losses::default(), false);
    assert!(nothing.ends_with("\n\nNothing was lost.\n"), "{nothing}");
    let lost = Losses {
        events: 3,
        stacks: 1,
        threads: 2,
        incomplete_user: 9,
        times: 0,
    };
    let some = text(lost, false);
    let expected = "
Lost: 3 switches (the times around are less exact), 1 stack (the time is kept), 2 threads (in no sum).
To lose fewer, measure fewer processes, or waits from a longer time on (-m).
9 user stacks are cut short: the outermost functions are missing.
";
    assert!(some.ends_with(expected), "{some}");
    let details = text(lost, true);
    assert!(
        details.contains("Without a stack: 0.500 s blocked"),
        "{details}"
    );
    assert!(details.contains("off CPU 3 events, 1 stack"), "{details}");
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
    let analysis = |profile: &Profile, thread: &ThreadProfile| {
        let threads = [thread.clone()];
        let process = process(profile, &threads);
        written(|writer| write_process(&run(), &process, writer))
    };
    let text = analysis(&profile, &thread);
    assert!(!text.contains("GIL"), "{text}");
    let wait = Wait {
        idleness: Idleness::Waiting,
        ..Wait::new(WaitKind::new(Reason::Lock, Detail::Gil))
    };
    let wait = profile.waits.id(wait);
    if let Some((blocked, _)) = thread.stacks.last_mut() {
        blocked.wait = Some(wait);
    }
    let text = analysis(&profile, &thread);
    let mut lines = text
        .lines()
        .skip_while(|line| !line.ends_with("switches       GIL"));
    let row = lines.nth(1).unwrap_or_default();
    assert!(row.trim_end().ends_with("7.000"), "{text}");
}

#[test]
fn a_short_place_leaves_out_pythons_library() {
    let python = FrameKind::Interpreted(LanguageName::new("python").unwrap());
    let mut profile = Profile::new(Unit::Nanoseconds);
    let mut user = StackId::EMPTY;
    for (name, file) in [
        (
            "threading.py:Thread.run",
            "/usr/lib/python3.11/threading.py",
        ),
        ("work.py:run", "/srv/work.py"),
        ("queue.py:Queue.put", "/usr/lib/python3.11/queue.py"),
        ("work.py:take", "/srv/work.py"),
        ("queue.py:Queue.get", "/usr/lib/python3.11/queue.py"),
        (
            "threading.py:Condition.wait",
            "/usr/lib/python3.11/threading.py",
        ),
    ] {
        let [name, file] = [name, file].map(|text| profile.names.text(text));
        let function = profile.functions.id(Function {
            name,
            system_name: None,
            file: Some(file),
            line: None,
        });
        let frame = profile.frames.id(Frame {
            function: Some(function),
            ..Frame::named(name, python)
        });
        user = profile.stacks.called(user, frame);
    }
    let kernel = StackId::EMPTY;
    let place = |most| crate::place::place(&profile, Stack { user, kernel }, most);
    assert_eq!(
        place(200),
        "threading.py:Condition.wait ← queue.py:Queue.get ← work.py:take ← queue.py:Queue.put ← \
         work.py:run"
    );
    assert_eq!(
        place(70),
        "threading.py:Condition.wait ← work.py:take ← work.py:run"
    );
}

/// A wait as state, reason, idleness and seconds.
type Waits = (State, Reason, Detail, Idleness, u64);

/// Returns a thread that ran for a second and had these waits.
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

/// Returns the analysis of a process with one thread that had these waits.
fn of_waiting(waits: &[Waits]) -> String {
    let (mut profile, thread) = worker();
    let threads = [waiting(&mut profile, &thread, waits)];
    written(|writer| write_process(&run(), &process(&profile, &threads), writer))
}

#[test]
fn what_waits_for_somebody_who_is_measured_is_not_held_up_by_that() {
    let child = |detail| (State::Blocked, Reason::Child, detail, Idleness::Waiting, 8);
    let by_child = "  child                    8.00 s   89 %   process\n";
    let text = of_waiting(&[child(Detail::Process)]);
    assert!(text.contains(by_child), "{text}");
    let text = of_waiting(&[child(Detail::Thread)]);
    assert!(
        text.contains("had work for 1.00 s, and nothing held it up"),
        "{text}"
    );
    // With several processes, one process can be a child of the other.
    let (mut profile, thread) = worker();
    let threads = [waiting(&mut profile, &thread, &[child(Detail::Process)])];
    let mut other = process(&profile, &threads);
    other.pid = 9;
    let processes = [process(&profile, &threads), other];
    let before = BTreeMap::new();
    let known = Known::new(&profile, &before);
    let text = |processes| written(|writer| write_processes(&run(), &known, processes, 5, writer));
    assert!(text(&processes[..1]).contains(by_child));
    assert!(text(&processes).contains("had work for 2.00 s, and nothing held them up"));
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

/// Returns the only thread of a process. It runs for `running` seconds of its life and is blocked
/// for the rest. `life` has its start and end in seconds since the window's start.
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

/// Returns the sum of the threads of three processes with one PID. The threads lived a second
/// longer than they ran.
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

/// Returns a server of two threads with two children, an unrelated process, and two kernel threads.
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
    let cpu = |number, idle_ns| Cpu {
        number,
        idle_ns,
        ..Cpu::default()
    };
    let run = Run {
        is_of_machine: true,
        cpu_times: Some(Cpus {
            length_ns: 10_000_000_000,
            each: vec![cpu(0, 500_000_000), cpu(3, 1_500_000_000)],
            ..Cpus::default()
        }),
        ..run()
    };
    let look = Look::default();
    let text =
        written(|writer| overview::write_processes(&run, &known, &processes, 3, look, writer));
    assert_eq!(
        text,
        include_str!("golden/overview_of_processes.txt"),
        "{text}"
    );
}

/// Returns the cells of the rows whose commands begin with this text: running, runnable, blocked,
/// threads.
fn figures(text: &str, command: &str) -> [String; 4] {
    // The first line has the number of processes.
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
    // Each process is a child of the one before it.
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
    // Five processes, and 32 ancestors of the first of them.
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
