//! Cost of profiling: processes, context switches of a bystander, time to attach, memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::printed::output::median;
use systemscope_tests::printed::refusal::FOLDING;
use systemscope_tests::printed::samples::running_ns;
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::programs::process::children_of;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::watch::MAX_RSS_KIB;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::statistics::cost_of;
use systemscope_tests::{Account, Running, Tool, Turn, Watch, Workload, cpus_online, patiently};

const THREADS: u32 = 65;

fn start_wallclock(pid: u32, seconds: u32) -> (Running, tempfile::TempDir) {
    let folder = scratch();
    let prefix = folder.path().join("crowd");
    let tool = Tool::new("wallclock")
        .arg(pid.to_string())
        .args(&format!("-d {seconds} -o"))
        .arg(prefix);
    (tool.start(), folder)
}

/// Returns whether a process is one of the tools that wallclock starts.
fn is_tool(pid: u32) -> bool {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    comm.is_ok_and(|comm| FOLDING.contains(&comm.trim()))
}

#[test]
fn two_tools_and_their_helpers_serve_a_target_of_65_threads() {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    let (running, _folder) = start_wallclock(crowd.pid(), 3);
    let mut most = 0;
    let end = Instant::now() + Duration::from_millis(2500);
    while Instant::now() < end {
        let mut children = children_of(running.pid());
        // wallclock also has a helper process until it knows the target's command line.
        children.retain(|child| is_tool(*child));
        for &child in &children {
            let helpers = children_of(child);
            assert!(helpers.len() <= 1, "{child} has {helpers:?}");
        }
        most = most.max(children.len());
        sleep(Duration::from_millis(20));
    }
    assert_eq!(most, 2, "tools for {THREADS} threads");
    let finished = running.finish_within(PATIENCE).succeeded();
    // This is the memory of wallclock itself, without its children.
    assert!(
        finished.peak_rss_kib < MAX_RSS_KIB,
        "{} KiB",
        finished.peak_rss_kib
    );
}

/// Context switches of a bystander under a tool. The bystander passes a byte back and forth.
struct Switches {
    /// Running time per switch by the kernel's account, in ns.
    ns: f64,
    /// Runs of the tool's BPF programs per switch.
    runs: f64,
    /// Time in the tool's BPF programs per switch, in ns. It includes the overhead of the kernel's
    /// statistics.
    programs_ns: f64,
}

fn measure_switches(profiler: &Profiler, target: u32) -> Switches {
    const WINDOW: Duration = Duration::from_millis(1000);
    let ping_pong = Workload::start("ping_pong", &[cpus_online() - 1]);
    let pids = [ping_pong.pid(), child_of(ping_pong.pid())];
    let booked = || pids.map(|pid| Account::read(pid, pid).expect("a ping-pong"));
    let cost = cost_of(profiler, target, || {
        let before = booked();
        sleep(WINDOW);
        let [one, other] = booked();
        [one.since(before[0]), other.since(before[1])]
    });
    let switches = cost
        .done
        .map(|booked| booked.voluntary + booked.involuntary);
    let switches = switches.iter().sum::<u64>() as f64;
    let running_ns = cost.done.map(|booked| booked.running_ns);
    let running_ns = running_ns.iter().sum::<u64>() as f64;
    let runs: u64 = cost.ran.iter().map(|program| program.runs).sum();
    Switches {
        ns: running_ns / switches,
        runs: runs as f64 / switches,
        programs_ns: cost.run_ns() as f64 / switches,
    }
}

fn child_of(pid: u32) -> u32 {
    let children = children_of(pid);
    assert_eq!(children.len(), 1, "{children:?}");
    children[0]
}

/// Checks that the BPF programs of tools take less than a tenth of a bystander's context switch.
/// They run at each switch of a thread that is no target, and return at once. An empty program
/// gives the overhead of the kernel's statistics.
#[track_caller]
fn assert_bystander_keeps_its_speed(tools: &[(&str, &str)]) {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    patiently(|| {
        let nothing = measure_switches(&Profiler::ours("cpudist", "-p PID"), 1);
        let statistics_ns = nothing.programs_ns / nothing.runs;
        let costs = tools.iter().map(|(tool, arguments)| {
            let profiler = Profiler::ours(tool, &format!("-p PID {arguments}"));
            let with = measure_switches(&profiler, crowd.pid());
            (with.programs_ns - with.runs * statistics_ns) / with.ns
        });
        let share: f64 = costs.sum();
        assert!(share < 0.1, "programs take {share:.3} of a switch");
    });
}

#[test]
#[ignore = "measures speed, alternating: needs a quiet machine"]
fn a_bystander_keeps_its_speed() {
    assert_bystander_keeps_its_speed(&[("offcputime", "-m 1000"), ("oncputime", "-F 49")]);
    assert_bystander_keeps_its_speed(&[("offwaketime", "")]);
}

#[test]
#[ignore = "measures speed, alternating: needs a quiet machine"]
fn a_bystander_of_cpudist_keeps_its_speed() {
    assert_bystander_keeps_its_speed(&[("cpudist", "")]);
    assert_bystander_keeps_its_speed(&[("cpudist", "--runq")]);
}

/// A tool spends its CPU time until it is attached on loading programs and building unwind tables,
/// whatever the number of threads.
#[test]
#[ignore = "measures speed, alternating: needs a quiet machine"]
fn attaching_to_many_threads_takes_no_more_than_to_one() {
    const ROUNDS: usize = 7;
    let _turn = Turn::take();
    // All threads wait until the test lets them go.
    let (one, many) = (
        Workload::start("spinners", &[1]),
        Workload::start("spinners", &[20 * THREADS]),
    );
    for tool in FOLDING {
        patiently(|| {
            let ratios = (0..ROUNDS).map(|_| {
                let alone = attaching_ns(tool, one.pid());
                attaching_ns(tool, many.pid()) / alone
            });
            let ratio = median(ratios.collect());
            assert!(
                ratio < 1.5,
                "{tool}: {ratio:.2} times the CPU time for {} threads",
                20 * THREADS
            );
        });
    }
}

/// Returns the CPU time of a tool from `exec` until it is attached, in ns.
fn attaching_ns(tool: &str, pid: u32) -> f64 {
    let (running, mut control) = Tool::new(tool).pid(pid).start_controlled();
    control.ready().unwrap();
    running_ns(running.pid()) as f64
}

/// A tool that traces the whole machine needs hardly more memory for hundreds of threads, or for a
/// thread with thousands of wake-ups.
#[test]
#[ignore = "measures memory in many windows"]
fn memory_follows_stacks_and_not_threads_or_events() {
    const MAX_MORE_KIB: u64 = 16 * 1024;
    let _turn = Turn::take();
    let held = |tool: &str| {
        let (name, arguments) = tool.split_once(' ').unwrap_or((tool, ""));
        let tool = Tool::new(name).args(arguments).args("--per-thread 3");
        tool.run().succeeded().peak_rss_kib
    };
    for tool in ["oncputime -F 997", "offcputime", "offwaketime"] {
        patiently(|| {
            let without = held(tool);
            let _crowd = Workload::start("crowd", &[150]);
            let mut naps = Workload::start("naps", &[20, 1]);
            naps.go();
            let with = held(tool);
            assert!(
                with < without + MAX_MORE_KIB,
                "{tool}: {with} KiB, {without} KiB without"
            );
        });
    }
}

/// The tool polls every 20 ms. The program has some thousand new stacks a second.
#[test]
#[ignore = "counts wake-ups: needs a quiet machine"]
fn a_tool_is_not_woken_by_the_stacks_that_it_is_sent() {
    let _turn = Turn::take();
    patiently(|| {
        let mut paths = Workload::start("paths", &[1]);
        let mut watch = Watch::offcputime(paths.pid(), "");
        watch.open();
        let tool = watch.pid();
        let (begun, before) = (Instant::now(), Account::read(tool, tool).unwrap());
        paths.go();
        paths.wait_done();
        let slept = Account::read(tool, tool).unwrap().since(before).voluntary;
        let looks = begun.elapsed().as_millis() as u64 / 20;
        let (seen, _) = watch.close_however_big();
        let stacks = seen.folded.lines.len();
        // The tool also sleeps while it waits until a CPU is interrupted.
        assert!(
            slept <= looks + looks / 2 + 20,
            "{slept} times awake in {looks} looks, for {stacks} stacks"
        );
    });
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
        let finished = running.finish_within(PATIENCE);
        assert_eq!(
            (finished.code, finished.stderr.as_str()),
            (Some(1), ""),
            "{tool}"
        );
        assert!(finished.stdout.is_empty(), "{tool} prints without a parent");
    }
}
