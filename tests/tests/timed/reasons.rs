//! Reasons of waits. A program has one thread for each reason.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use systemscope_tests::printed::folded;
use systemscope_tests::programs::cgroup;
use systemscope_tests::programs::process::Running;
use systemscope_tests::programs::quota::Quota;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::tries::patiently;
use systemscope_tests::{Cgroup, Folded, Line, Tool, Turn, Workload, WorkloadBuilder};

/// Name of each thread and reason of its waits.
const WAITS: [(&str, &str); 27] = [
    ("r_mutex", "lock: mutex"),
    ("r_pi", "lock: priority-inheritance mutex"),
    ("r_rwlock", "lock: rwlock"),
    ("r_cond", "condition: condition variable"),
    ("r_sem", "condition: semaphore"),
    ("r_barrier", "condition: barrier"),
    ("r_join", "child: thread"),
    ("r_child", "child: process"),
    ("r_waitid", "child: process"),
    ("r_vfork", "child: vfork"),
    ("r_pipe", "local IPC: pipe, read"),
    ("r_unix", "local IPC: receive"),
    ("r_dgram", "local IPC: receive"),
    ("r_tcp", "network: receive"),
    ("r_udp", "network: receive"),
    ("r_accept", "network: accept"),
    ("r_poll", "events: poll"),
    ("r_pidfd", "events: poll"),
    ("r_both", "events: poll"),
    ("r_signalfd", "events: poll"),
    ("r_select", "events: select"),
    ("r_epoll", "events: epoll"),
    ("r_eventfd", "local IPC: eventfd"),
    ("r_message", "local IPC: message queue"),
    ("r_sleep", "sleep: for a time"),
    ("r_timerfd", "sleep: timerfd"),
    ("r_signal", "stopped: until a signal"),
];
const RING_WAITS: [(&str, &str); 3] = [
    ("r_connect", "network: connect"),
    ("r_peer", "local IPC: connect"),
    ("r_uring", "events: io_uring"),
];
const DISK_WAITS: [(&str, &str); 4] = [
    ("r_flock", "lock: file"),
    ("r_fsync", "disk write"),
    ("r_read", "disk read: page cache"),
    ("r_fault", "page fault: file"),
];

/// Thread that waits in a function to which glibc jumps, and which glibc does not export. If glibc
/// is stripped, nothing identifies the futex.
const JUMPING: &str = "r_sem";
const NOT_TOLD: &str = "unknown: futex";

/// Minimum share of a thread's blocked time that has the right reason.
const LEAST_SHARE: f64 = 0.99;
/// Other waits of threads that map files. Other threads fork the address space, and hold its lock
/// meanwhile. A work queue moves pages to the LRU lists before the pages can be dropped.
const ON_THE_WAY: [&str; 2] = ["kernel lock: rwsem", "kernel: work queue"];

/// Returns a temporary folder on a disk if possible, because `/tmp` may be in memory.
fn on_disk() -> tempfile::TempDir {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tempfile::tempdir_in(target).unwrap_or_else(|_| scratch())
}

/// Returns the reason in a line's leaf, and the line's blocked time.
fn reason(line: &Line) -> Option<(&str, u64)> {
    let leaf = line.frames.last()?;
    let is_blocked = leaf.ends_with("_[o]");
    is_blocked.then(|| (folded::reason(leaf).unwrap_or("nothing"), line.value))
}

fn measure(workload: &Workload, seconds: f32) -> Folded {
    let tool = Tool::new("offcputime").args("-m 0 --reasons --states --nanoseconds");
    tool.pid(workload.pid()).folded(seconds)
}

/// Returns the resource on which each thread waits, as the program reports it. A name that ends in
/// `…` is a prefix.
fn objects(workload: &Workload) -> Vec<(&'static str, String)> {
    let pid = workload.pid();
    let pipe = |name| {
        let fd = workload.told(name);
        let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
        link.expect("a descriptor").display().to_string()
    };
    let pipes =
        ["r_pipe", "r_poll", "r_both", "r_select", "r_epoll"].map(|name| (name, pipe(name)));
    let port = |name| workload.told(name);
    let ports = [
        (
            "r_accept",
            format!("tcp listening on 127.0.0.1:{}", port("r_accept")),
        ),
        (
            "r_tcp",
            format!("tcp 127.0.0.1:{} to 127.0.0.1:…", port("r_tcp")),
        ),
        ("r_udp", format!("udp on 127.0.0.1:{}", port("r_udp"))),
        (
            "r_pidfd",
            format!("pidfd of process {} (k_lasting)", workload.told("r_pidfd")),
        ),
    ];
    let known = [
        ("r_mutex", "mutex, held by k_holder"),
        ("r_pi", "pi_mutex, held by k_holder"),
        ("r_rwlock", "rwlock"),
        ("r_cond", "cond"),
        ("r_sem", "semaphore"),
        ("r_barrier", "barrier"),
        ("r_join", "k_joined"),
        ("r_child", "k_child"),
        ("r_waitid", "k_child"),
        ("r_unix", "unix of process …"),
        ("r_eventfd", "eventfd"),
        ("r_timerfd", "timerfd"),
        ("r_signalfd", "signalfd"),
    ];
    let known = known.map(|(name, object)| (name, object.to_owned()));
    pipes.into_iter().chain(ports).chain(known).collect()
}

/// Checks that nearly all blocked time with a thread's reason is on the thread's resource.
#[track_caller]
fn assert_objects(folded: &Folded, objects: &[(&str, String)]) {
    let all = WAITS.iter().chain(&DISK_WAITS).chain(&RING_WAITS);
    let reasons: BTreeMap<&str, &str> = all.copied().collect();
    let mut wrong = Vec::new();
    for (name, object) in objects {
        let (mut right, mut all) = (0, 0);
        let lines = folded.lines.iter().filter(|line| line.comm == *name);
        for (said, time) in lines.filter_map(reason) {
            let for_it = said.strip_prefix(reasons[name]);
            let not_told = || said.strip_prefix(NOT_TOLD).filter(|_| *name == JUMPING);
            let Some(said) = for_it.or_else(not_told) else {
                continue;
            };
            let is_right = match object.strip_suffix('…') {
                Some(start) => said.contains(&format!(", {start}")),
                None => said.ends_with(&format!(", {object}")),
            };
            all += time;
            right += if is_right { time } else { 0 };
        }
        if all == 0 || (right as f64) < all as f64 * LEAST_SHARE {
            wrong.push(format!("{name}: {right} of {all} ns are on {object}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{folded}", wrong.join("\n"));
}

#[track_caller]
fn assert_reasons(folded: &Folded, waits: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (name, expected) in waits {
        let lines = folded.lines.iter().filter(|line| line.comm == *name);
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (said, time) in lines.filter_map(reason) {
            if !ON_THE_WAY.contains(&said) {
                *sums.entry(said).or_default() += time;
            }
        }
        let all: u64 = sums.values().sum();
        let is_right = |said: &str| {
            said.starts_with(expected) || (*name == JUMPING && said.starts_with(NOT_TOLD))
        };
        let right = sums.iter().filter(|(said, _)| is_right(said));
        let right: u64 = right.map(|(_, time)| time).sum();
        if all == 0 || (right as f64) < all as f64 * LEAST_SHARE {
            wrong.push(format!("{name}: {expected} is {right} ns of {sums:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{folded}", wrong.join("\n"));
}

#[test]
fn each_wait_has_its_reason() {
    let _turn = Turn::share();
    let reasons = Workload::plain("reasons");
    let objects = objects(&reasons);
    // The window's end cuts a wait for several files, which no file has ended.
    patiently(|| {
        let folded = measure(&reasons, 3.0);
        assert_reasons(&folded, &WAITS);
        assert_objects(&folded, &objects);
    });
}

#[test]
fn connecting_and_rings_have_theirs() {
    let _turn = Turn::share();
    let rings = Workload::plain("rings");
    let port = rings.told("r_connect");
    let objects = [("r_connect", format!("tcp to 127.0.0.1:{port}"))];
    patiently(|| {
        let folded = measure(&rings, 3.0);
        assert_reasons(&folded, &RING_WAITS);
        assert_objects(&folded, &objects);
    });
}

#[test]
#[ignore = "makes a disk image and writes to it slowly"]
fn waits_for_a_disk_have_theirs() {
    let _turn = Turn::share();
    let folder = on_disk();
    let reasons = Workload::start("reasons", &[folder.path().display()]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let objects = [
        ("r_flock", path("locked")),
        ("r_fsync", path("synced")),
        ("r_read", path("read")),
        ("r_fault", path("mapped")),
    ];
    patiently(|| {
        let folded = measure(&reasons, 5.0);
        assert_reasons(&folded, &DISK_WAITS);
        assert_objects(&folded, &objects);
    });
}

/// A stripped program has only the names of functions that libraries export.
#[test]
#[ignore = "compiles the waits again, optimized"]
fn optimized_programs_wait_for_the_same() {
    let _turn = Turn::share();
    let reasons = WorkloadBuilder::new("reasons")
        .without_frame_pointers()
        .flag("-s");
    let reasons = reasons.start();
    patiently(|| assert_reasons(&measure(&reasons, 3.0), &WAITS));
}

#[test]
fn only_the_reasons_that_are_asked_for_are_shown() {
    let _turn = Turn::share();
    let reasons = Workload::plain("reasons");
    let tool = Tool::new("offwaketime").args("--reason lock,child --reasons --states");
    let folded = tool.pid(reasons.pid()).folded(1.0);
    let comms = folded.comms();
    for name in ["r_mutex", "r_rwlock", "r_pi", "r_child", "r_vfork"] {
        assert!(comms.contains(name), "{name}: {folded}");
    }
    assert!(!comms.contains("r_sleep"), "{folded}");
    let is_asked_for = |line: &Line| {
        let said = line.frames.iter().find(|frame| frame.ends_with("]_[o]"));
        said.is_some_and(|said| said.starts_with("[lock: ") || said.starts_with("[child: "))
    };
    assert!(folded.lines.iter().all(is_asked_for), "{folded}");
}

/// A thread with a CPU quota waits for the quota as long as the kernel's account says. wallclock's
/// first sentence names the quota.
#[test]
fn a_used_up_cpu_quota_is_told_from_waiting_for_a_cpu() {
    let _turn = Turn::share();
    patiently(|| {
        let mut spinner = Workload::start("spinners", &[1, 60]);
        // The quota is so small that it holds the thread up even if many other threads compute.
        let quota = Quota::of_percent(5);
        quota.take(spinner.pid());
        spinner.go();
        let tool = Tool::new("offcputime").args("--reasons --states --nanoseconds");
        let tool = tool.pid(spinner.pid()).arg("2").start_measuring();
        let (since, before) = (Instant::now(), quota.used_up_ns());
        let measured = tool.finish_within(PATIENCE).succeeded();
        let share = (quota.used_up_ns() - before) as f64 / since.elapsed().as_nanos() as f64;
        let folded = Folded::parse(&measured.stdout);
        let folder = scratch();
        let tool = Tool::new("wallclock")
            .args("-d 1 -o out")
            .in_folder(folder.path());
        let report = tool.arg(spinner.pid().to_string()).run().succeeded();
        let report = String::from_utf8(report.stdout).unwrap();
        spinner.kill();
        while spinner.is_running() {
            sleep(Duration::from_millis(1));
        }

        let is_quota = |line: &Line| {
            let leaf = line.leaf();
            leaf.ends_with("_[r]") && folded::reason(leaf) == Some("throttle: CPU quota")
        };
        let shown = folded.only(is_quota).total() as f64 / 2e9;
        assert!((shown - share).abs() < 0.05, "{shown} of {share}: {folded}");
        assert!(report.contains("held up most by\n  CPU quota "), "{report}");
    });
}

/// A thread may run for 10 ms in each 100 ms. The other 90 ms have a reason: the thread used up its
/// budget, or it gave the rest of the budget back.
#[test]
fn a_deadline_budget_is_told_from_waiting_for_a_cpu() {
    let _turn = Turn::share();
    for (how, reason) in [
        ("compute", "throttle: deadline budget"),
        ("yield", "sleep: until its next period"),
    ] {
        patiently(|| {
            let deadline = Workload::start("deadline", &[how]);
            let folded = measure(&deadline, 1.2);
            let has_reason = |line: &Line| {
                line.leaf().ends_with("_[r]") && folded::reason(line.leaf()) == Some(reason)
            };
            let shown = folded.only(has_reason).total();
            assert!(shown > 1_000_000_000, "{shown} ns are {reason}\n{folded}");
        });
    }
}

/// Freezes a process for 400 ms in the middle of the window, and again until the window's end.
fn freeze_twice(tool: Tool, mut freeze: impl FnMut(bool)) -> Folded {
    let running = tool.arg("1.5").start_measuring();
    for (begins, lasts) in [(200, 400), (300, 0)] {
        sleep(Duration::from_millis(begins));
        freeze(true);
        sleep(Duration::from_millis(lasts));
        if lasts > 0 {
            freeze(false);
        }
    }
    let measured = running.finish_within(PATIENCE).succeeded();
    freeze(false);
    Folded::parse(&measured.stdout)
}

/// Checks that all frozen or stopped time of a thread has this reason. This is most of a second.
#[track_caller]
fn assert_stands_still(folded: &Folded, expected: &str) {
    let blocked = folded.marked("_[o]");
    let has_reason = |line: &Line| folded::reason(line.leaf()) == Some(expected);
    let (shown, all) = (blocked.only(has_reason).total(), blocked.total());
    assert!(all > 700_000_000, "{folded}");
    let share = shown as f64 / all as f64;
    assert!(
        share > LEAST_SHARE,
        "{expected} is {shown} ns of {all}\n{folded}"
    );
}

/// Frozen and stopped threads wait in the same function if compilers inline the function for
/// cgroups into its caller.
#[test]
fn who_is_frozen_is_told_from_who_is_stopped() {
    let _turn = Turn::share();
    let mut spinner = Workload::start("spinners", &[1, 600]);
    let cgroup = Cgroup::new("frozen");
    cgroup.take(spinner.pid());
    spinner.go();
    let pid = spinner.pid();
    let tool = || {
        let tool = Tool::new("offcputime").args("--reasons --states --nanoseconds");
        tool.args("--thread-name ^spinner$").pid(pid)
    };
    let file = cgroup.folder().join("cgroup.freeze");
    patiently(|| {
        let frozen = freeze_twice(tool(), |is_frozen| {
            std::fs::write(&file, if is_frozen { "1" } else { "0" }).expect("cgroup.freeze");
        });
        assert_stands_still(&frozen, "stopped: frozen");
        let stopped = freeze_twice(tool(), |is_stopped| {
            let signal = if is_stopped {
                Signal::STOP
            } else {
                Signal::CONT
            };
            kill_process(Pid::from_raw(pid as i32).unwrap(), signal).expect("a signal");
        });
        assert_stands_still(&stopped, "stopped: by a signal");
    });
}

/// After a stop the kernel continues the sleep in another system call, and no stack names that
/// call.
#[test]
fn a_sleep_goes_on_after_a_stop() {
    let _turn = Turn::share();
    let sleeper = Running::asleep();
    let pid = Pid::from_raw(sleeper.pid() as i32).unwrap();
    for signal in [Signal::STOP, Signal::CONT] {
        kill_process(pid, signal).expect("a signal");
        sleep(Duration::from_millis(100));
    }
    let tool = Tool::new("offcputime").args("--reasons --states --nanoseconds");
    let folded = tool.pid(sleeper.pid()).folded(0.5);
    let slept = folded.only(|line| folded::reason(line.leaf()) == Some("sleep: for a time"));
    assert_eq!(slept.total(), 500_000_000, "{folded}");
}

/// The freezer of cgroup v1 does not wake sleeping threads, so they stay in their functions.
#[test]
#[ignore = "needs the freezer controller of cgroup v1"]
fn who_is_frozen_asleep_is_frozen() {
    let _turn = Turn::share();
    let sleeper = Workload::start("spinners", &[1, 1]);
    let folder = freezer().join(format!("systemscope-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a cgroup of version 1");
    let freeze = |is_frozen: bool| {
        let state = if is_frozen { "FROZEN" } else { "THAWED" };
        std::fs::write(folder.join("freezer.state"), state).expect("freezer.state");
    };
    std::fs::write(folder.join("cgroup.procs"), sleeper.pid().to_string()).expect("a process");
    freeze(true);
    let folded = measure(&sleeper, 1.0);
    freeze(false);
    drop(sleeper);
    while std::fs::remove_dir(&folder).is_err() {
        sleep(Duration::from_millis(10));
    }
    let frozen = folded.only(|line| folded::reason(line.leaf()) == Some("stopped: frozen"));
    assert_eq!(frozen.total(), folded.total(), "{folded}");
    assert!(folded.total() >= 1_000_000_000, "{folded}");
}

fn freezer() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    let mount = mounts
        .lines()
        .find(|line| line.contains(" - cgroup ") && line.rsplit(',').next() == Some("freezer"));
    let folder = mount.and_then(|line| line.split(' ').nth(4));
    folder.expect("a freezer of version 1").into()
}

/// Kernel workers have only a kernel stack, and no stack is missing. With `-m 1000` user stacks are
/// captured at the end of a wait.
#[test]
fn workers_of_the_kernels_have_no_user_stack() {
    let _turn = Turn::share();
    for flags in ["-m 0", "-m 1000"] {
        patiently(|| {
            let mut workers = Workload::plain("workers");
            let told = |name| workers.told(name);
            let [idle, busy, late, queue] = ["idle", "busy", "late", "queue"].map(told);
            let tool = Tool::new("offcputime").args("--reasons --states --nanoseconds");
            let tool = tool.args(flags).pid(workers.pid());
            let running = tool.arg("1.5").start_measuring();
            workers.go();
            let measured = running.finish_within(PATIENCE).succeeded();
            let folded = Folded::parse(&measured.stdout);
            for (comm, mark) in [
                (format!("iou-wrk-{idle}"), " (dormant)]_[o]"),
                (format!("iou-wrk-{busy}"), " (idle)]_[o]"),
                (format!("iou-wrk-{late}"), " (idle)]_[o]"),
                (format!("iou-sqp-{queue}"), " (idle)]_[o]"),
            ] {
                assert_is_worker(&folded, &comm, mark);
            }
        });
    }
}

/// Checks that a thread was blocked only to wait for new work, and has no user frames.
#[track_caller]
fn assert_is_worker(folded: &Folded, comm: &str, mark: &str) {
    let lines = folded.only(|line| line.comm == comm);
    let blocked = lines.marked("_[o]");
    let has_reason = |line: &Line| {
        line.leaf().ends_with(mark)
            && folded::reason(line.leaf()) == Some("kernel: io_uring worker")
    };
    let (shown, all) = (blocked.only(has_reason).total(), blocked.total());
    assert!(all > 500_000_000, "{comm}: {folded}");
    let share = shown as f64 / all as f64;
    assert!(share > LEAST_SHARE, "{comm}: {shown} ns of {all}\n{folded}");
    // If the machine hid a switch, there is no kernel stack either.
    let roots = lines.lines.iter().map(|line| &*line.frames[0]);
    let mut others =
        roots.filter(|root| !root.starts_with("ret_from_fork") && *root != "[Missed Kernel Stack]");
    assert_eq!(others.next(), None, "{comm}: {folded}");
}

/// The kernel puts a process that exceeds its cgroup's `memory.high` to sleep when the process
/// returns to user mode.
#[test]
#[ignore = "needs the memory controller of cgroup v2, as `make test-kernels` has it"]
fn who_takes_too_much_memory_is_throttled() {
    let _turn = Turn::share();
    let controllers = cgroup::mount().join("cgroup.subtree_control");
    std::fs::write(controllers, "+memory").expect("the memory controller");
    let cgroup = Cgroup::new("memory");
    std::fs::write(cgroup.folder().join("memory.high"), "8M").expect("its limit");
    let mut hog = Workload::plain("hog");
    cgroup.take(hog.pid());
    hog.go();
    // After this time the process has reached its limit.
    sleep(Duration::from_secs(1));
    let folded = measure(&hog, 3.0);
    assert_reasons(&folded, &[("h_memory", "throttle: memory.high")]);
}

/// Rows of reasons add up to all blocked time, and the stacks name the reasons.
#[test]
fn wallclock_splits_blocked_time_by_reason() {
    let _turn = Turn::share();
    let reasons = Workload::plain("reasons");
    let folder = scratch();
    let tool = Tool::new("wallclock").args("-d 2 --reasons -o out");
    let tool = tool.arg(reasons.pid().to_string()).in_folder(folder.path());
    tool.run().succeeded();
    let report =
        std::fs::read_to_string(folder.path().join("out/files/out_thread_analysis.txt")).unwrap();
    let milliseconds = |text: &str| (text.parse::<f64>().unwrap() * 1e3).round() as i64;

    let all = report
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("all "));
    let blocked = all.and_then(|line| line.split_whitespace().nth(8));
    let blocked = milliseconds(blocked.expect("a row for all threads"));
    let rows_of = |heading: &str| -> Vec<&str> {
        let (_, rows) = report.split_once(heading).unwrap();
        let rows = rows.lines().skip(1).take_while(|line| !line.is_empty());
        rows.collect()
    };
    for heading in ["Blocked time by reason ", "Blocked time by idleness "] {
        let rows = rows_of(heading);
        let times = rows.iter().filter_map(|row| row.split_whitespace().next());
        let off = times.map(milliseconds).sum::<i64>() - blocked;
        // Each row is rounded separately.
        assert!(off.abs() <= rows.len() as i64, "off by {off} ms\n{report}");
    }
    let rows = rows_of("Blocked time by reason ");
    assert!(
        rows.iter().any(|row| row.ends_with("  network: receive")),
        "{report}"
    );

    let folded = std::fs::read(folder.path().join("out/files/combined.folded")).unwrap();
    let folded = Folded::parse_per_thread(&folded);
    let has_leaf = |name: &str, reason: &str| {
        let lines = folded.lines.iter().filter(|line| line.comm == name);
        lines.filter(|line| line.leaf().starts_with(reason)).count() > 0
    };
    for (name, reason) in [
        ("r_tcp", "[network: receive, tcp 127.0.0.1:"),
        ("r_rwlock", "[lock: rwlock, rwlock]"),
    ] {
        assert!(has_leaf(name, reason), "{name}: {folded}");
    }
}
