//! Resources that are hard to identify. [`reasons`](super::reasons) has the other resources.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::folded;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Tool, Turn, Workload};

const PATIENCE: Duration = Duration::from_secs(60);

fn measure(workload: &Workload, seconds: f32) -> Folded {
    let tool = Tool::new("offcputime").args("-m 0 --reasons --states --nanoseconds");
    tool.pid(workload.pid()).folded(seconds)
}

/// Returns the blocked time of a thread, and the part of it for whose reason `is_expected` holds.
fn blocked(folded: &Folded, name: &str, is_expected: impl Fn(&str) -> bool) -> (u64, u64) {
    let mut sums = (0, 0);
    for line in folded.lines.iter().filter(|line| line.comm == name) {
        let leaf = line.leaf();
        if let Some(said) = folded::reason(leaf).filter(|_| leaf.ends_with("_[o]")) {
            sums.0 += line.value;
            sums.1 += if is_expected(said) { line.value } else { 0 };
        }
    }
    assert!(sums.0 > 0, "{name}: {folded}");
    sums
}

/// The descriptor belongs to another file when the wait ends, so the resource is unknown. The other
/// file may be /dev/zero, which the thread has read before. The thread's stack may name it then.
#[test]
fn a_file_that_takes_the_place_of_another_is_not_what_was_waited_on() {
    let _turn = Turn::share();
    let swap = Workload::start("objects", &["swap"]);
    let folded = measure(&swap, 2.0);
    let (all, nothing) = blocked(&folded, "o_swapped", |said| said == "local IPC: pipe, read");
    let told = "local IPC: pipe, read, pipe:[";
    // The reader keeps its descriptor while it waits for the next round, so its pipe is known.
    let (_, pipes) = blocked(&folded, "o_swapped", |said| said.starts_with(told));
    assert!(nothing > all / 2, "{nothing} of {all}: {folded}");
    assert!((nothing + pipes) as f64 >= all as f64 * 0.99, "{folded}");
    let other = format!("{}]", swap.told("other"));
    let (_, others) = blocked(&folded, "o_swapped", |said| said.ends_with(&other));
    assert_eq!(others, 0, "{other}: {folded}");
}

#[test]
fn names_are_text_whoever_chose_them() {
    let _turn = Turn::share();
    let folder = scratch();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let names = Workload::start("objects", &["names".to_owned(), path("")]);
    let folded = measure(&names, 2.0);
    for (kind, object) in [
        ("local IPC: pipe, read", path("a:b?c?[31m 7")),
        ("local IPC: pipe, read", path("deleted (deleted)")),
        ("local IPC: pipe, read", path("caf\u{fffd}")),
        (
            "local IPC: accept",
            "unix listening on s:?\u{fffd}".to_owned(),
        ),
    ] {
        let said = format!("{kind}, {object}");
        let (_, time) = blocked(&folded, "o_named", |found| found == said);
        assert!(time > 0, "{said}: {folded}");
    }
}

/// There are more pipes than the table can hold. No time is lost.
#[test]
#[ignore = "fills a table of resources"]
fn what_there_is_no_room_for_is_other() {
    const PIPES: u32 = 100_000;
    const MAX_KIB: u64 = 192 * 1024;
    let _turn = Turn::share();
    let mut many = Workload::start("objects", &["many".to_owned(), PIPES.to_string()]);
    let tool = Tool::new("offcputime").args("-m 0 --reasons --states --nanoseconds");
    let tool = tool.pid(many.pid()).args("--thread-name o_many");
    let running = tool.start_measuring();
    many.go();
    many.wait_done_within(PATIENCE);
    running.signal(Signal::INT);
    let finished = running.finish_within(PATIENCE).succeeded();
    let folded = Folded::parse(&finished.stdout);
    let (all, other) = blocked(&folded, "o_many", |said| said.ends_with(", other"));
    let (_, pipes) = blocked(&folded, "o_many", |said| said.contains(", pipe:["));
    assert!(other > 0 && pipes > 0, "{other} and {pipes} of {all} ns");
    let told = folded
        .lines
        .iter()
        .filter(|line| line.leaf().contains("pipe:["));
    let told = told.count();
    assert!(
        (60_000..=1 << 16).contains(&told),
        "{told} of the pipes are named"
    );
    let held = finished.peak_rss_kib;
    assert!(held < MAX_KIB, "{held} KiB");
}
