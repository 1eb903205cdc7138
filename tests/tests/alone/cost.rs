//! What profiling costs: processes, a bystander's switches, attaching, memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::printed::output::median;
use systemscope_tests::printed::refusal::FOLDING;
use systemscope_tests::printed::samples::running_ns;
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::programs::process::children_of;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::watch::MOST_RSS_KIB;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::statistics::cost_of;
use systemscope_tests::{Account, Running, Tool, Turn, Watch, Workload, cpus_online, patiently};

const THREADS: u32 = 65;

fn wallclock_on(pid: u32, seconds: u32) -> (Running, tempfile::TempDir) {
    let folder = scratch();
    let prefix = folder.path().join("crowd");
    let tool = Tool::new("wallclock")
        .arg(pid.to_string())
        .args(&format!("-d {seconds} -o"))
        .arg(prefix);
    (tool.start(), folder)
}

/// Whether a process has become one of the tools that wallclock starts.
fn is_tool(pid: u32) -> bool {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    comm.is_ok_and(|comm| FOLDING.contains(&comm.trim()))
}

#[test]
fn two_tools_and_their_helpers_serve_a_target_of_65_threads() {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    let (running, _folder) = wallclock_on(crowd.pid(), 3);
    let mut most = 0;
    let end = Instant::now() + Duration::from_millis(2500);
    while Instant::now() < end {
        let mut children = children_of(running.pid());
        // It has a helper of its own until it knows the target's command line.
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
    // Its own, and that of the larger one of its children.
    assert!(
        finished.peak_rss_kib < MOST_RSS_KIB,
        "{} KiB",
        finished.peak_rss_kib
    );
}

/// A bystander's switches, a byte passed to and fro, under a tool.
struct Switches {
    /// What one takes by the kernel's account, nanoseconds.
    ns: f64,
    /// Runs of the tool's programs at each.
    runs: f64,
    /// Nanoseconds of those, with what the kernel's statistics take themselves.
    programs_ns: f64,
}

fn bystanders_switches(profiler: &Profiler, target: u32) -> Switches {
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

/// A tool that looks at others runs its programs at a bystander's switch too, and
/// they leave at once: less than a tenth of what the switch itself takes. What the
/// statistics take is known of a program that has nothing to do.
#[track_caller]
fn assert_bystander_keeps_its_speed(tools: &[(&str, &str)]) {
    let _turn = Turn::take();
    let crowd = Workload::start("crowd", &[THREADS]);
    patiently(|| {
        let nothing = bystanders_switches(&Profiler::ours("cpudist", "-p PID"), 1);
        let statistics_ns = nothing.programs_ns / nothing.runs;
        let costs = tools.iter().map(|(tool, arguments)| {
            let profiler = Profiler::ours(tool, &format!("-p PID {arguments}"));
            let with = bystanders_switches(&profiler, crowd.pid());
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

/// The CPU time from exec to attached is that of loading the programs and making
/// tables, whatever the number of threads.
#[test]
#[ignore = "measures speed, alternating: needs a quiet machine"]
fn attaching_to_many_threads_takes_no_more_than_to_one() {
    const ROUNDS: usize = 7;
    let _turn = Turn::take();
    // All of them wait for the test.
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

/// The CPU time of a tool from exec to attached, nanoseconds.
fn attaching_ns(tool: &str, pid: u32) -> f64 {
    let (running, mut control) = Tool::new(tool).pid(pid).start_controlled();
    control.ready().unwrap();
    running_ns(running.pid()) as f64
}

/// Threads by the hundred, and one that is woken by the thousand, add next to
/// nothing to what the tool holds of the machine as it is.
#[test]
#[ignore = "measures memory in many windows"]
fn memory_follows_stacks_and_not_threads_or_events() {
    const MOST_MORE_KIB: u64 = 16 * 1024;
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
                with < without + MOST_MORE_KIB,
                "{tool}: {with} KiB, {without} KiB without"
            );
        });
    }
}

/// It looks every 20 ms; some thousand stacks a second are new.
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
        // It also sleeps where it waits for a CPU to have been interrupted.
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
        assert!(finished.stdout.is_empty(), "{tool} prints to nobody");
    }
}
