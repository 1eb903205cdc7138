//! Choice of threads and CPUs: `-p`, `-t`, `-L`, `-u`, `-k`, `--state`, `-C`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::refusal::FOLDING;
use systemscope_tests::printed::samples::Sampled;
use systemscope_tests::printed::user_stacks::starts_a_thread;
use systemscope_tests::programs::simple::known;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::threads_of;
use systemscope_tests::{
    Folded, Line, Running, Tool, Turn, UserStacks, Watch, Workload, WorkloadBuilder, cpus_online,
    now_ns,
};

#[test]
fn p_takes_several_processes_and_no_others() {
    let _turn = Turn::share();
    let (first, second, other) = (
        Workload::plain("simple"),
        Workload::plain("simple"),
        Workload::plain("simple"),
    );
    for tool in FOLDING {
        let pids = format!("{},{}", first.pid(), second.pid());
        let folded = Tool::attentive(tool)
            .args("-p")
            .arg(pids)
            .folded_per_thread(2.0);
        let seen: HashSet<u32> = folded
            .lines
            .iter()
            .map(|line| line.thread.unwrap().0)
            .collect();
        assert_eq!(
            seen,
            HashSet::from([first.pid(), second.pid()]),
            "{tool}, beside {}",
            other.pid()
        );
    }
}

#[test]
#[ignore = "runs every tool for each way to name a process"]
fn names_are_as_good_as_ids() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let other = Workload::start("phases", &[60, 3]);
    for tool in FOLDING {
        for chosen in ["-p simple", "-n simple", "--name-regex ^simple$"] {
            let folded = Tool::attentive(tool).args(chosen).folded_per_thread(1.0);
            let seen: HashSet<u32> = folded
                .lines
                .iter()
                .map(|line| line.thread.unwrap().0)
                .collect();
            // Other tests may run a process of the same name.
            assert!(seen.contains(&simple.pid()), "{tool} {chosen}: {folded}");
            assert!(!seen.contains(&other.pid()), "{tool} {chosen}: {folded}");
            assert!(
                folded.lines.iter().all(|line| line.comm == "simple"),
                "{folded}"
            );
        }
    }
}

#[test]
fn a_process_without_its_leader_has_its_name() {
    let _turn = Turn::share();
    let program = "
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
open('/proc/self/comm', 'w').write('left-by-leader')
ctypes.CDLL(None).pthread_exit(0)
";
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", program]);
    let python = Running::spawn(python, true);
    let stat = format!("/proc/{}/stat", python.pid());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        sleep(Duration::from_millis(1));
    }
    let tool = Tool::new("offcputime").args("-n left-by-leader");
    let folded = tool.folded_per_thread(0.3);
    let pids: HashSet<u32> = folded
        .lines
        .iter()
        .map(|line| line.thread.unwrap().0)
        .collect();
    assert_eq!(pids, HashSet::from([python.pid()]), "{folded}");
}

/// The memory, files and command line of a process exist until its last thread ends. Once the
/// leader has ended, `/proc` does not show them under the leader's ID. One thread sleeps from
/// before the window until after it.
#[test]
fn a_process_whose_leader_has_ended_is_shown_as_any_other() {
    let _turn = Turn::share();
    let folder = scratch();
    let path = folder.path().join("fifo").display().to_string();
    let workload = Workload::start("left_by_leader", std::slice::from_ref(&path));
    let stat = format!("/proc/{}/stat", workload.pid());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        sleep(Duration::from_millis(1));
    }
    let tool = Tool::new("offcputime").pid(workload.pid());
    let finished = tool.args("-v --reasons --duration 1").run().succeeded();
    let folded = Folded::parse(&finished.stdout);
    let sleeper = folded.only(|line| line.comm == "sleeper");
    let [asleep] = &sleeper.lines[..] else {
        panic!("{folded}");
    };
    assert!(starts_a_thread(asleep), "{asleep:?}");
    assert!(
        asleep.has("outer_sleep") && asleep.has("inner_sleep"),
        "{asleep:?}"
    );
    UserStacks::read(&finished.stderr).assert_reached(1000);
    let object = format!("pipe, read, {path}");
    let reads = folded.only(|line| line.frames.iter().any(|frame| frame.contains(&object)));
    assert!(reads.total() > 500_000, "{folded}");

    let wallclock = Tool::new("wallclock")
        .arg(workload.pid().to_string())
        .args("-d 0.5")
        .in_folder(workload.folder());
    wallclock.args("-o out").run().succeeded();
    let analysis = fs::read_to_string(workload.folder().join("out/files/out_thread_analysis.txt"));
    let (analysis, command_line) = (analysis.unwrap(), format!("left_by_leader {path}"));
    assert!(analysis.contains(&command_line), "{analysis}");
}

#[test]
fn processes_of_one_name_are_told_apart_where_that_is_asked() {
    let _turn = Turn::share();
    let (first, second) = (Workload::plain("simple"), Workload::plain("simple"));
    for tool in FOLDING {
        let pids = format!("{},{}", first.pid(), second.pid());
        let run = Tool::attentive(tool).args("--per-process -p").arg(pids);
        let folded = run.folded(2.0);
        let expected = [&first, &second].map(|simple| format!("simple-{}", simple.pid()));
        let expected: HashSet<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!(folded.comms(), expected, "{tool}");
    }
}

#[test]
fn t_and_l_take_threads() {
    let _turn = Turn::share();
    let mut spinners = Workload::start("spinners", &[4, 60]);
    spinners.go();
    let mut threads = threads_of(spinners.pid());
    threads.sort_unstable();
    let chosen = &threads[1..3];
    for (tool, flag) in [
        ("oncputime", "-t"),
        ("oncputime", "-L"),
        ("offcputime", "-t"),
        ("offcputime", "--tid"),
    ] {
        let list = format!("{},{}", chosen[0], chosen[1]);
        let folded = Tool::attentive(tool)
            .arg(flag)
            .arg(list)
            .folded_per_thread(2.0);
        let seen: HashSet<u32> = folded
            .lines
            .iter()
            .map(|line| line.thread.unwrap().1)
            .collect();
        assert_eq!(seen, chosen.iter().copied().collect(), "{tool} {flag}");
    }
}

#[test]
fn without_a_target_all_of_the_machine_is_traced() {
    let _turn = Turn::share();
    let (first, second) = (Workload::plain("simple"), Workload::plain("simple"));
    for tool in FOLDING {
        let folded = Tool::attentive(tool).folded_per_thread(2.0);
        for simple in [&first, &second] {
            assert!(
                folded.of_thread(simple.pid()).under(known(tool)).total() > 0,
                "{tool} {}",
                simple.pid()
            );
        }
    }
}

#[test]
fn user_threads_and_kernel_threads() {
    let _turn = Turn::share();
    let _simple = Workload::plain("simple");
    let is_kernel_thread = |comm: &str| {
        comm == "kthreadd"
            // A program of other tests has a thread called kworker/u:1.
            || comm.starts_with("kworker/") && comm != "kworker/u:1"
            || comm.starts_with("rcu_")
            || comm.starts_with("ksoftirqd/")
    };
    for tool in ["offcputime", "offwaketime"] {
        let user = Tool::new(tool).args("-u").folded(0.5);
        assert!(user.comms().contains("simple"));
        assert!(
            !user.comms().iter().any(|comm| is_kernel_thread(comm)),
            "{tool}: {:?}",
            user.comms()
        );
        let kernel = Tool::new(tool).args("-k").folded(0.5);
        assert!(
            !kernel.comms().contains("simple"),
            "{tool}: {:?}",
            kernel.comms()
        );
        assert!(
            kernel.comms().iter().any(|comm| is_kernel_thread(comm)),
            "{tool}: {:?}",
            kernel.comms()
        );
        let both = Tool::new(tool).args("-u -k --duration 1").run();
        assert_eq!(both.code, Some(2), "{tool}: {}", both.stderr);
    }
}

#[test]
fn a_state_mask_chooses_intervals() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let mut spinners = Workload::start("spinners", &[2 * cpus_online(), 60]);
    spinners.go();
    let pids = format!("{},{}", simple.pid(), spinners.pid());
    let with_state = |mask: &str| {
        Tool::new("offcputime")
            .args("--state")
            .arg(mask)
            .arg("-p")
            .arg(&pids)
            .folded(0.5)
    };
    // This is TASK_INTERRUPTIBLE. nanosleep adds TASK_FREEZABLE, so the value is a mask.
    let sleeping = with_state("1");
    assert!(
        sleeping.under("known_sleep").total() > 0 && sleeping.under("spin").total() == 0,
        "{sleeping:#?}"
    );
    // A sleeper that wakes just before the window is runnable in the window.
    let preempted = with_state("0");
    assert!(
        preempted.under("spin").total() > 20 * preempted.under("known_sleep").total(),
        "{preempted:#?}"
    );
    let uninterruptible = with_state("2");
    assert_eq!(
        uninterruptible.under("known_sleep").total(),
        0,
        "{uninterruptible:#?}"
    );
}

#[test]
fn one_cpu_alone() {
    let _turn = Turn::share();
    let mut on_one = pinned_spinner(0);
    let mut on_last = pinned_spinner(cpus_online() - 1);
    on_one.go();
    on_last.go();
    let watch = Watch::apart_samples(Tool::new("oncputime").args("-F 199 -C 0"));
    let sampled = Sampled::open(on_one.pid(), watch);
    sleep(Duration::from_millis(700));
    let (seen, cpu_time) = sampled.close();
    // On a busy machine the tool may learn late that its window is over.
    let until_heard = now_ns() - seen.started_ns;
    let samples_of = |workload: &Workload| {
        let own = |line: &Line| line.thread.unwrap().0 == workload.pid();
        seen.folded.only(own).under("spin").total()
    };
    cpu_time.assert_sampled("samples of CPU 0", samples_of(&on_one), 199);
    if cpus_online() > 1 {
        assert_eq!(samples_of(&on_last), 0, "{}", seen.folded);
    }
    let most = until_heard * 199 / 1_000_000_000 + 2;
    let total = seen.folded.total();
    assert!(total <= most, "{total} samples of one CPU, {most} at most");
}

fn pinned_spinner(cpu: usize) -> Workload {
    let folder = scratch();
    let binary = WorkloadBuilder::new("spinners").build_into(folder.path());
    let mut command = Command::new("taskset");
    command
        .args(["--cpu-list", &cpu.to_string()])
        .arg(&binary)
        .args(["1", "60"]);
    Workload::run(command, binary, folder)
}

/// A new process gets the ID of a target that ended. Another target keeps the tool running
/// meanwhile.
#[test]
fn an_id_that_is_used_again_is_another_process() {
    let _turn = Turn::share();
    let bystander = Workload::start("crowd", &[2]);
    // The BPF programs compare a single target with a constant, and look up several targets in a
    // map.
    for others in [&[][..], &[bystander.pid()]] {
        let simple = Workload::plain("simple");
        let pid = simple.pid();
        let folder = scratch();
        let as_pid = WorkloadBuilder::new("as_pid").build_into(folder.path());
        let names = WorkloadBuilder::new("names").build_into(folder.path());
        let mut watch = Watch::offcputime_of(&[&[pid], others].concat(), "");
        watch.open();
        drop(simple);
        let mut command = Command::new(&as_pid);
        command.arg(pid.to_string()).arg(&names);
        let newcomer = Workload::run(command, names, folder);
        sleep(Duration::from_millis(300));
        let seen = watch.close();
        drop(newcomer);
        assert_eq!(seen.folded.under("named").total(), 0, "{}", seen.folded);
        let strangers = seen
            .clocks
            .iter()
            .filter(|row| row.started_ns > seen.started_ns);
        assert_eq!(strangers.count(), 0, "{:#?}", seen.clocks);
    }
}
