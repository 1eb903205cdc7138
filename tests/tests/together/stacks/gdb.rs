//! Stacks of the distribution's Python against the stacks of gdb. Both have the same frames.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::folded::bare;
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{
    Chain, Seen, Turn, UserStacks, Watch, Workload, accounts_at_rest, truth::gdb,
};

/// Starts Python threads that sleep 0 to 3 calls deep, and a main thread that sleeps 5 calls deep.
fn doze(seconds: &str) -> Workload {
    let mut command = Command::new("/usr/bin/python3");
    let script = source("busy.py");
    command.arg(script).args(["doze", seconds]);
    Workload::run(command, PathBuf::from("/usr/bin/python3"), scratch())
}

/// Returns the stacks of all threads by TID, at a moment when all threads sleep.
fn sleeping(pid: u32) -> BTreeMap<u32, Chain> {
    let is_asleep = |backtrace: &gdb::Backtrace| {
        let leaf = backtrace.frames.last().and_then(Option::as_deref);
        leaf.is_some_and(|name| name.contains("nanosleep"))
    };
    let stacks = (0..20)
        .map(|_| gdb::backtraces(pid))
        .find(|stacks| stacks.values().all(is_asleep))
        .expect("a moment when all threads sleep");
    let chains = stacks
        .iter()
        .map(|(tid, backtrace)| (*tid, Chain::new(backtrace, &[], &HashSet::new())));
    chains.collect()
}

fn assert_same_frames(seen: &Seen, chains: &BTreeMap<u32, Chain>) {
    assert_eq!(chains.len(), 5, "{chains:?}");
    let lengths: HashSet<usize> = chains.values().map(Chain::len).collect();
    assert_eq!(lengths.len(), 5, "nested alike: {chains:?}");
    for (tid, chain) in chains {
        let blocked = seen.folded.of_thread(*tid).marked("_[o]");
        let asleep = blocked.only(|line| bare(line.leaf()).contains("nanosleep"));
        assert!(asleep.total() > 0, "{tid}: {}", seen.folded);
        for line in &asleep.lines {
            // gdb does not show functions of Python.
            let mut line = line.clone();
            line.frames.retain(|frame| !frame.contains(".py:"));
            assert!(
                chain.is(&line),
                "{tid}: {} frames, not {}: {line}\n{chain:?}",
                line.frames.len(),
                chain.len()
            );
        }
    }
}

fn watch(pid: u32, ms: u64) -> Seen {
    let mut watch = Watch::offcputime(pid, "-U --native-python");
    watch.open();
    sleep(Duration::from_millis(ms));
    watch.close()
}

#[test]
fn python_that_slept_before_has_the_frames_that_gdb_sees() {
    let _turn = Turn::share();
    let python = doze("1000");
    accounts_at_rest(python.pid());
    let seen = watch(python.pid(), 200);
    assert_eq!(seen.folded.lines.len(), 5, "{}", seen.folded);
    assert_eq!(UserStacks::read(&seen.stderr).cut_short(), 0);
    assert_same_frames(&seen, &sleeping(python.pid()));
}

#[test]
fn python_that_sleeps_again_has_the_frames_that_gdb_sees() {
    let _turn = Turn::share();
    let python = doze("0.02");
    let seen = watch(python.pid(), 1000);
    UserStacks::read(&seen.stderr).assert_reached(990);
    assert_same_frames(&seen, &sleeping(python.pid()));
}
