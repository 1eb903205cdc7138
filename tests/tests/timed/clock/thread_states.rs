//! States of threads with few events or without events: at birth, in `exec`, and at the window's
//! edges.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::{
    Account, ClockRow, Seen, Tool, Turn, Watch, Workload, cpus_online, now_ns, undisturbed,
};

/// Another thread runs on the newborn thread's CPU since before the birth.
#[test]
fn a_newborn_waits_for_a_cpu() {
    let _turn = Turn::share();
    let mut held = Workload::start("held", &[20]);
    let mut watch = Watch::offcputime(held.pid(), "");
    watch.open();
    held.go();
    held.wait_done();
    let seen = watch.close();
    let old = [u64::from(held.pid()), held.told("sleeper")];
    let newborn = seen.clocks.iter();
    let newborn = newborn.filter(|row| !old.contains(&row.tid.into()));
    let runnable: u64 = newborn.map(|row| row.runnable_ns).sum();
    let truth = held.told("born");
    assert!(runnable >= truth, "{runnable} of {truth} ns: {seen:?}");
}

/// Runs offcputime on the process `off` and oncputime on the process `on` in one window. The window
/// opens after both tools have received its start. `meanwhile` gets the earliest start of the
/// window, its latest end, and a function that stops both tools. Both tools continue 200 ms after
/// `meanwhile` returns.
fn measure_in_window(
    off: u32,
    on: u32,
    length: Duration,
    meanwhile: impl FnOnce(u64, u64, &dyn Fn()),
) -> (Seen, Seen) {
    let mut off = Watch::offcputime(off, "");
    let mut on = Watch::oncputime(on, "-F 999");
    let notice = Duration::from_millis(100);
    let opens = now_ns() + u64::try_from(notice.as_nanos()).unwrap();
    Watch::open_together([&mut off, &mut on], length);
    let closes = now_ns() + u64::try_from((notice + length).as_nanos()).unwrap();
    let hold = |signal| {
        off.signal(signal);
        on.signal(signal);
    };
    meanwhile(opens, closes, &|| hold(Signal::STOP));
    sleep(Duration::from_millis(200));
    hold(Signal::CONT);
    (off.close(), on.close())
}

fn sleep_until(time_ns: u64) {
    sleep(Duration::from_nanos(time_ns.saturating_sub(now_ns())));
}

/// One CPU remains for the tools.
#[test]
fn one_that_never_leaves_its_cpu_is_running() {
    let _turn = Turn::share();
    if cpus_online() < 2 {
        return;
    }
    let length = Duration::from_millis(100);
    // The hold is many times as long as the window and the notice of its end.
    let mut held = Workload::start("held", &[1, 500]);
    let pid = held.pid();
    let (seen, _) = measure_in_window(pid, pid, length, |_, _, _| {
        held.go();
        held.wait_done();
    });
    let row = seen.clocks.iter().find(|row| row.tid == pid).unwrap();
    if held.told("born") > 0 {
        assert!(row.running_ns * 2 > row.lifetime_ns(), "{row:?}");
    }
}

#[test]
fn the_window_is_all_that_counts() {
    const LENGTH: Duration = Duration::from_millis(200);
    let _turn = Turn::share();
    let mut naps = Workload::start("naps", &[60, 100]);
    let mut spinner = Workload::start("spinners", &[1, 60]);
    naps.go();
    spinner.go();
    let account = || Account::read(naps.pid(), naps.pid()).unwrap();
    let mut before = None;
    let mut after = Account::default();
    let (off, on) = undisturbed(|| {
        let (off, on) =
            measure_in_window(naps.pid(), spinner.pid(), LENGTH, |opens, closes, hold| {
                sleep_until(opens - 5_000_000);
                let earlier = account();
                before = (now_ns() < opens).then_some(earlier);
                // The BPF programs of both tools stay attached for long after the window.
                sleep_until(opens + 50_000_000);
                hold();
                sleep_until(closes);
                after = account();
            });
        before.map(|_| (off, on))
    });
    let row = &off.clocks[0];
    assert_eq!(row.started_ns, off.started_ns);
    assert_eq!(row.ended_ns, off.stopped_ns);
    assert_eq!(row.accounted_ns(), row.lifetime_ns(), "{row:?}");
    let switches = after.since(before.unwrap());
    assert!(
        row.voluntary <= switches.voluntary && row.involuntary <= switches.involuntary,
        "{row:?} {switches:?}"
    );
    // One sample on each CPU of the thread may come early. A stopped tool cannot adjust the periods
    // of the sampling clocks, which may be 15 % shorter then.
    let most = 999 * 200 / 1000 * 100 / 85 + 5 + 5 * cpus_online() as u64;
    assert!(on.folded.total() <= most, "{}", on.folded);
}

/// Runs `usurper` under offcputime with `-t` and one of the program's IDs. Also returns the
/// accounts of that ID.
fn measure_usurper(rounds: u64, id: impl Fn(&Workload) -> u64) -> (Workload, Seen, Vec<ClockRow>) {
    let mut usurper = Workload::start("usurper", &[rounds]);
    let tid = id(&usurper);
    let tool = Tool::new("offcputime").arg("-t").arg(tid.to_string());
    let mut watch = Watch::with_clocks(tool);
    watch.open();
    usurper.go();
    usurper.wait_done();
    // The program sleeps on.
    sleep(Duration::from_millis(100));
    let seen = watch.close();
    let rows = seen.clocks.iter();
    let rows = rows
        .filter(|row| u64::from(row.tid) == tid)
        .cloned()
        .collect();
    (usurper, seen, rows)
}

#[test]
fn who_becomes_the_leader_is_measured_no_longer() {
    let _turn = Turn::share();
    let (usurper, seen, rows) = measure_usurper(1, |usurper| usurper.told("usurper"));
    let [row] = &rows[..] else {
        panic!("{:?}", seen.clocks)
    };
    assert_eq!(seen.clocks.len(), 1, "{:?}", seen.clocks);
    assert!(row.ended_ns <= usurper.told("through"), "{row:?}");
}

/// At any time exactly one thread has the ID.
#[test]
fn who_becomes_the_leader_is_measured_from_then_on() {
    let _turn = Turn::share();
    let (_, seen, rows) = measure_usurper(20, |usurper| usurper.pid().into());
    assert!(rows.len() > 20, "{rows:?}");
    let lives: u64 = rows.iter().map(ClockRow::lifetime_ns).sum();
    assert!(lives <= seen.window_ns(), "{rows:?}");
    for row in &rows {
        assert_eq!(row.accounted_ns(), row.lifetime_ns(), "{row:?}");
    }
}

#[test]
fn who_becomes_the_leader_keeps_its_clock() {
    let _turn = Turn::share();
    let mut usurper = Workload::start("usurper", &[1]);
    let mut watch = Watch::offcputime(usurper.pid(), "");
    watch.open();
    usurper.go();
    usurper.wait_done();
    let seen = watch.close();
    let old = usurper.told("usurper");
    assert!(
        seen.clocks.iter().all(|row| u64::from(row.tid) != old),
        "{old}: {:?}",
        seen.clocks
    );
    // The old leader's clock ends at the exec. The new leader's clock covers the whole window.
    let leaders = seen.clocks.iter().filter(|row| row.tid == usurper.pid());
    let whole = leaders.filter(|row| row.lifetime_ns() == seen.window_ns());
    assert_eq!(whole.count(), 1, "{:?}", seen.clocks);
}
