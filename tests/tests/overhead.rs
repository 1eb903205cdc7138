//! What profiling costs: processes, a bystander's speed, time to attach,
//! memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::RefCell;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::output::median;
use systemscope_tests::ping_pong::speed_for;
use systemscope_tests::refusal::FOLDING;
use systemscope_tests::watch::MOST_RSS_KIB;
use systemscope_tests::workload::scratch;
use systemscope_tests::{Running, Tool, Turn, Workload, cpus_online, patiently};

const THREADS: u32 = 65;

/// The processes whose parent is this one.
fn children_of(pid: u32) -> Vec<u32> {
    let is_child = |candidate: &u32| {
        fs::read(format!("/proc/{candidate}/status")).is_ok_and(|status| {
            String::from_utf8_lossy(&status)
                .lines()
                .any(|line| line == format!("PPid:\t{pid}"))
        })
    };
    let processes = fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(is_child).collect()
}

fn wallclock_on(pid: u32, seconds: u32) -> (Running, tempfile::TempDir) {
    let folder = scratch();
    let prefix = folder.path().join("crowd");
    let tool = Tool::new("wallclock")
        .arg(pid.to_string())
        .args(&format!("-d {seconds} -o"))
        .arg(prefix);
    (tool.start(), folder)
}

#[test]
fn two_processes_serve_a_target_of_65_threads() {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    let (running, _folder) = wallclock_on(crowd.pid(), 3);
    let mut most = 0;
    let end = Instant::now() + Duration::from_millis(2500);
    while Instant::now() < end {
        let children = children_of(running.pid());
        let grandchildren: usize = children.iter().map(|&child| children_of(child).len()).sum();
        assert_eq!(grandchildren, 0, "children of {children:?}");
        most = most.max(children.len());
        sleep(Duration::from_millis(20));
    }
    assert_eq!(most, 2, "processes for {THREADS} threads");
    let finished = running.finish_within(Duration::from_secs(40)).succeeded();
    // Its own, and that of the larger one of its children.
    assert!(
        finished.peak_rss_kib < MOST_RSS_KIB,
        "{} KiB",
        finished.peak_rss_kib
    );
}

/// Runs tools on one process while another one passes a byte to and fro.
#[track_caller]
fn assert_bystander_keeps_its_speed(start: impl Fn(u32) -> Vec<Running>) {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    let ping_pong = RefCell::new(Workload::start("ping_pong", &[cpus_online() - 1]));
    patiently(|| {
        let ratios = bystanders_ratios(crowd.pid(), &mut ping_pong.borrow_mut(), &start);
        let ratio = median(ratios);
        assert!(ratio > 0.9, "the bystander went at {ratio:.3} of its speed");
    });
}

/// A bystander's speed beside tools, as a part of that without them, in turn.
fn bystanders_ratios(
    target: u32,
    ping_pong: &mut Workload,
    start: impl Fn(u32) -> Vec<Running>,
) -> Vec<f64> {
    const ROUNDS: usize = 5;
    const WINDOW: Duration = Duration::from_millis(1200);
    let mut ratios = Vec::new();
    let mut before = speed_for(ping_pong, WINDOW);
    for _ in 0..ROUNDS {
        let tools = start(target);
        // Not what attaching costs, but what being attached costs.
        sleep(Duration::from_millis(500));
        let during = speed_for(ping_pong, WINDOW);
        for tool in tools {
            tool.signal(rustix::process::Signal::INT);
            tool.finish_within(Duration::from_secs(20)).succeeded();
        }
        let after = speed_for(ping_pong, WINDOW);
        ratios.push(during / f64::midpoint(before, after));
        before = after;
    }
    ratios
}

#[test]
fn a_bystander_keeps_its_speed() {
    assert_bystander_keeps_its_speed(|pid| {
        let off = Tool::new("offcputime").pid(pid).args("-m 1000").start();
        let on = Tool::new("oncputime").pid(pid).start();
        vec![off, on]
    });
    assert_bystander_keeps_its_speed(|pid| vec![Tool::new("offwaketime").pid(pid).start()]);
}

#[test]
fn a_bystander_of_cpudist_keeps_its_speed() {
    assert_bystander_keeps_its_speed(|pid| vec![Tool::new("cpudist").pid(pid).start()]);
    assert_bystander_keeps_its_speed(|pid| {
        vec![Tool::new("cpudist").pid(pid).arg("--runq").start()]
    });
}

#[test]
fn tools_are_attached_soon_after_exec() {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    for tool in FOLDING {
        // It has two stacks to walk at a wake-up, and the verifier both to check.
        let bound = if tool == "offwaketime" { 250.0 } else { 150.0 };
        // A virtual machine that is given less than its CPUs is slow for
        // seconds on end: the best of three rounds counts.
        let rounds: Vec<Vec<f64>> = (0..3).map(|_| attach_times(tool, crowd.pid())).collect();
        let best = rounds.iter().cloned().map(median).fold(f64::MAX, f64::min);
        assert!(
            best < bound,
            "{tool} took {best:.0} ms to attach: {rounds:.0?}"
        );
    }
}

/// Milliseconds from exec to attached, seven times.
fn attach_times(tool: &str, pid: u32) -> Vec<f64> {
    let attach = |_| {
        let start = Instant::now();
        let (running, mut control) = Tool::new(tool).pid(pid).start_controlled();
        control.ready().unwrap();
        let took = start.elapsed().as_secs_f64() * 1000.0;
        drop(running);
        took
    };
    (0..7).map(attach).collect()
}

#[test]
fn memory_stays_small_on_all_of_the_machine() {
    let _turn = Turn::take();
    let _crowd = Workload::start("crowd", &[150]);
    let mut naps = Workload::start("naps", &[20, 1]);
    naps.go();
    for tool in ["oncputime -F 997", "offcputime", "offwaketime"] {
        let (name, arguments) = tool.split_once(' ').unwrap_or((tool, ""));
        let finished = Tool::new(name)
            .args(arguments)
            .args("--per-thread 3")
            .run()
            .succeeded();
        assert!(
            finished.peak_rss_kib < MOST_RSS_KIB,
            "{tool}: {} KiB",
            finished.peak_rss_kib
        );
    }
}

#[test]
fn an_orphaned_child_ends_quietly() {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    for tool in FOLDING {
        let (running, mut control) = Tool::new(tool).pid(crowd.pid()).start_controlled();
        control.ready().unwrap();
        control.start(systemscope_tests::now_ns()).unwrap();
        sleep(Duration::from_millis(100));
        drop(control);
        let finished = running.finish_within(Duration::from_secs(10));
        assert_eq!(
            (finished.code, finished.stderr.as_str()),
            (Some(1), ""),
            "{tool}"
        );
        assert!(finished.stdout.is_empty(), "{tool} prints to nobody");
    }
}
