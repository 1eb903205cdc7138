//! The blocked time of offwaketime equals the blocked time of offcputime, for each thread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::output::{assert_close, per_mille};
use systemscope_tests::truth::statistics::{Statistics, programs};
use systemscope_tests::{Folded, Tool, Turn, Watch, Workload, cpus_online, patiently};

const WINDOW: Duration = Duration::from_secs(3);

fn blocked_and_runnable(folded: &Folded, tid: u32) -> [u64; 2] {
    let of_thread = folded.of_thread(tid);
    ["_[o]", "_[r]"].map(|mark| of_thread.marked(mark).total())
}

/// The load has sleeps, locks, pipes and preemption, and more threads than CPUs. At a wake-up the
/// BPF programs of the tool that comes first delay the clock of the other tool. The kernel's
/// statistics of BPF programs tell the length of that delay.
#[test]
#[ignore = "loads every CPU beside two tools"]
fn the_same_window_has_the_same_time() {
    let _turn = Turn::share();
    patiently(assert_same_time);
}

fn assert_same_time() {
    let mut phases = Workload::start("phases", &[60, 4]);
    let mut pair = Workload::start("wake_pairs", &[3000]);
    let mut naps = Workload::start("naps", &[60, 5000]);
    let mut spinners = Workload::start("spinners", &[cpus_online(), 60]);
    for workload in [&mut phases, &mut pair, &mut naps, &mut spinners] {
        workload.go();
    }
    let pids = [phases.pid(), naps.pid(), spinners.pid()].map(u64::from);
    let pids = [&pids[..], &[pair.told("asker"), pair.told("answering")]].concat();
    let pids = pids
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let tool = |name| Tool::new(name).arg("-p").arg(&pids);
    let others = programs();
    let mut wakes = Watch::apart(tool("offwaketime").args("--states"));
    let mut off = Watch::with_clocks(tool("offcputime"));
    let statistics = Statistics::enable();
    Watch::open_together([&mut wakes, &mut off], WINDOW);
    sleep(WINDOW);
    let mut own = programs();
    drop(statistics);
    own.retain(|id, _| !others.contains_key(id));
    let longest_ns = own
        .values()
        .map(|program| program.run_ns / program.runs.max(1));
    let between_ns = 2 * longest_ns.max().expect("programs of the tools");
    let (wakes, off) = (wakes.close(), off.close());
    let window_ns = off.window_ns();

    let sleepers = wakes.folded.sleepers();
    let threads = |folded: &Folded| -> BTreeSet<(u32, u32)> {
        folded
            .marked("_[o]")
            .lines
            .iter()
            .map(|line| line.thread.unwrap())
            .collect()
    };
    let all = threads(&off.folded);
    assert!(all.len() >= 10, "{all:?}");
    assert_eq!(threads(&sleepers), all);
    for (_, tid) in all {
        let seen = off.folded.of_thread(tid);
        let name = &seen.lines[0].comm;
        let [blocked, _] = blocked_and_runnable(&sleepers, tid);
        let [truth, _] = blocked_and_runnable(&off.folded, tid);
        // Each wait has two ends. For a thread that hardly blocks, 1 % of its blocked time is too
        // small a tolerance.
        let waits = off
            .clocks
            .iter()
            .find(|row| row.tid == tid)
            .map_or(0, |row| row.voluntary);
        let tolerance = per_mille(truth, 10).max(per_mille(window_ns, 1)) + waits * between_ns;
        assert_close(
            &format!("{name} {tid} blocked ns"),
            blocked,
            truth,
            tolerance,
        );
    }
}
