//! Wakers of blocked threads.

use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::printed::user_stacks::starts_a_thread;
use systemscope_tests::printed::wakers::{TIMER, Waker};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::{Folded, Line, Tool, Watch, Workload};

use crate::peers::wakeuptime;

const LEAST_PERCENT: f64 = 99.0;
const WINDOW: Duration = Duration::from_secs(4);

/// Measures two processes that only wake each other, and a process that only timers wake.
pub(crate) fn rows(table: &mut Table) {
    each_other(table);
    timers(table);
}

fn each_other(table: &mut Table) {
    let mut pair = Workload::start("wake_pairs", &[3000]);
    let (asker, answering) = (pair.told("asker"), pair.told("answering"));
    let pids = format!("-p {asker},{answering}");
    let other = Profiler::libbpf_tools("wakeuptime", "-p PID");
    let other = other.map(|other| other.attach(pair.pid()));
    let mut watch = Watch::apart(Tool::new("offwaketime").args(&pids));
    pair.go();
    watch.open();
    sleep(WINDOW);
    let seen = watch.close();

    let is_of_pair = |line: &Line| ["asker", "answerer"].contains(&line.comm.as_str());
    let waits = seen.folded.ended().only(is_of_pair);
    let (waits, hidden) = but_hidden(&waits);
    let is_right = |line: &Line| {
        let waker = line.waker();
        let (comm, function) = match line.comm.as_str() {
            "asker" => ("answerer", "wake_asker"),
            _ => ("asker", "wake_answerer"),
        };
        waker.comm == comm && waker.has(function) && is_whole(&waker)
    };
    let percent = share(waits.only(is_right).total(), waits.total());
    let said = other.map_or("wakeuptime: not installed".to_owned(), |other| {
        let woken = wakeuptime(other);
        let time_of = |condition: fn(&str) -> bool| -> u64 {
            let of_asker = woken.iter().filter(|(target, ..)| target == "asker");
            of_asker
                .filter(|(_, waker, _)| condition(waker))
                .map(|(.., value)| value)
                .sum()
        };
        let right = share(time_of(|waker| waker == "answerer"), time_of(|_| true));
        format!("libbpf-tools' wakeuptime: {right:.1} % by name, no user stacks")
    });
    let cells = [
        "time blocked with its waker's thread and whole stack",
        "two processes that wake each other",
        "100 %",
        &format!("{percent:.2} %; besides, {hidden:.2} % told as [Missed …]"),
        &format!("at least {LEAST_PERCENT} %"),
        &said,
    ];
    table.row(&cells, Verdict::of(percent >= LEAST_PERCENT));
}

/// Removes the waits for which this machine hid a switch or the wake-up, by the tool's report.
/// Returns the rest, and the removed share of the time in percent.
fn but_hidden(waits: &Folded) -> (Folded, f64) {
    let is_hidden = |line: &Line| line.frames.iter().any(|frame| frame.starts_with("[Missed"));
    let left = waits.only(|line| !is_hidden(line));
    let hidden = 100.0 - share(left.total(), waits.total());
    (left, hidden)
}

fn is_whole(waker: &Waker) -> bool {
    starts_a_thread(&Line {
        comm: waker.comm.clone(),
        thread: waker.thread,
        frames: waker.frames.clone(),
        value: 0,
    })
}

fn timers(table: &mut Table) {
    let simple = Workload::plain("simple");
    let tool = Tool::new("offwaketime").pid(simple.pid());
    let mut watch = Watch::apart(tool);
    let other = Profiler::libbpf_tools("wakeuptime", "-p PID");
    let other = other.map(|other| other.attach(simple.pid()));
    watch.open();
    sleep(WINDOW);
    let seen = watch.close();
    let (sleeps, hidden) = but_hidden(&seen.folded.under("known_sleep").ended());
    let percent = share(sleeps.woken_by(TIMER).total(), sleeps.total());
    let said = other.map_or("wakeuptime: not installed".to_owned(), |other| {
        let woken = wakeuptime(other);
        let all: u64 = woken.iter().map(|(.., value)| value).sum();
        let idle = woken
            .iter()
            .filter(|(_, waker, _)| waker.starts_with("swapper"));
        let idle: u64 = idle.map(|(.., value)| value).sum();
        format!(
            "libbpf-tools' wakeuptime: idle task {:.1} %, bystanders {:.1} %",
            share(idle, all),
            100.0 - share(idle, all)
        )
    });
    let cells = [
        "sleep that a timer ended",
        "a program that sleeps 5 ms at a time",
        "100 %",
        &format!("[timer] {percent:.2} %; besides, {hidden:.2} % told as [Missed …]"),
        &format!("at least {LEAST_PERCENT} %"),
        &said,
    ];
    table.row(&cells, Verdict::of(percent >= LEAST_PERCENT));
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}
