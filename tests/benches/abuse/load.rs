//! Loads that exceed the capacity of the buffers.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::output::files_below;
use systemscope_tests::truth::timeline::record_switches;
use systemscope_tests::{Folded, Seen, Tool, Watch, Workload};

use crate::fault::{End, Fault, held};
use crate::run::{Run, with_each};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "the ring buffer overruns: the tool is stopped while 16,384 new stacks and 20,000 thread ends come",
        tools: "offcputime",
        outcome: "exit 0; what found no room is counted: stacks, threads, and intervals as events; a living thread's account is whole",
        body: the_ring_buffer_overruns,
    },
    Fault {
        name: "10,000 threads",
        tools: "offcputime",
        outcome: "each is there with all of the window, or counted as lost",
        body: ten_thousand_threads,
    },
    Fault {
        name: "10,000 threads",
        tools: "oncputime, offwaketime, cpudist",
        outcome: "exit 0, no thread counted as lost",
        body: ten_thousand_threads_elsewhere,
    },
    Fault {
        name: "10,000 threads",
        tools: "wallclock",
        outcome: "exit 0; its stacks add up to 10,000 windows, less what it says is lost",
        body: ten_thousand_threads_in_wallclock,
    },
    Fault {
        name: "1,048,576 distinct stacks",
        tools: "offcputime",
        outcome: "each is there, or counted as lost; their time is that of the thread's account; 400 MiB at most",
        body: a_million_stacks,
    },
    Fault {
        name: "20,000 short processes a second for 10 s",
        tools: "offcputime, whole machine",
        outcome: "exit 0; a sleeper is there with all of the window; threads seen and lost are at least those started; the storm keeps half its rate",
        body: a_storm_off_cpu,
    },
    Fault {
        name: "20,000 short processes a second for 10 s",
        tools: "oncputime, offwaketime, cpudist, whole machine",
        outcome: "exit 0 with a count of what was lost; offwaketime shows a sleeper with all of the window",
        body: a_storm_elsewhere,
    },
    Fault {
        name: "a timeline of every switch of pairs of processes that switch as fast as they can, for 5 s",
        tools: "offcputime",
        outcome: "exit 0; each switch has a row or is counted as lost; 128 MiB at most",
        body: a_timeline_of_every_switch,
    },
];

fn a_timeline_of_every_switch() -> End {
    let recorded = record_switches("-d 5 --timeline-min 0");
    recorded.assert_adds_up();
    let (kept, lost) = (recorded.kept(), recorded.profile.losses.times);
    let mib = recorded.peak_rss_kib / 1024;
    assert!(mib <= 128, "{mib} MiB");
    held(format!("{kept} kept, {lost} lost; {mib} MiB at most"))
}

/// Returns the sum of a thread's stacks and its time off the CPU by its account, both in ns.
fn shown_and_booked(seen: &Seen, tid: u32) -> (u64, u64) {
    let rows = seen.clocks.iter().filter(|row| row.tid == tid);
    let booked = rows.map(|row| row.blocked_ns + row.runnable_ns).sum();
    (seen.folded.of_thread(tid).total(), booked)
}

fn the_ring_buffer_overruns() -> End {
    let mut paths = Workload::start("paths", &[1, 14]);
    let mut lives = Workload::start("short_lives", &[20_000]);
    let mut watch = Watch::offcputime_of(&[paths.pid(), lives.pid()], "");
    watch.open();
    watch.signal(Signal::STOP);
    paths.go();
    lives.go();
    paths.wait_done();
    lives.wait_done();
    watch.signal(Signal::CONT);
    let seen = watch.close();
    let (stacks, threads) = (seen.lost["stacks"], seen.lost["threads"]);
    assert!(
        stacks > 0 && threads > 0,
        "nothing was lost: no overrun, lost {:?}",
        seen.lost
    );
    let (shown, booked) = shown_and_booked(&seen, paths.pid());
    let events = seen.lost["events"];
    assert!(
        shown <= booked,
        "{shown} ns shown of {booked} ns off the CPU"
    );
    assert!(
        events > 0 || (booked - shown) * 200 <= booked,
        "{shown} ns shown of {booked} ns off the CPU, and not a word"
    );
    let main = seen.clocks.iter().find(|row| row.tid == paths.pid());
    let main = main.expect("the account of a thread that lives");
    assert!(
        main.accounted_ns().abs_diff(seen.window_ns()) * 200 <= seen.window_ns(),
        "{main:?} of {} ns",
        seen.window_ns()
    );
    let lives_seen = seen
        .clocks
        .iter()
        .filter(|row| row.pid == lives.pid())
        .count() as u64;
    assert!(
        lives_seen + threads >= 20_000,
        "{lives_seen} threads seen, {threads} lost"
    );
    held(format!(
        "lost {events} events, {stacks} stacks, {threads} threads; {lives_seen} threads seen; {:.1} s shown of {:.1} s; account whole",
        shown as f64 / 1e9,
        booked as f64 / 1e9
    ))
}

/// Starts 10,000 threads, each busy for 10 us a second.
fn crowd() -> Workload {
    Workload::start("crowd", &[10_000, 10, 1000])
}

fn ten_thousand_threads() -> End {
    let crowd = crowd();
    let mut watch = Watch::offcputime(crowd.pid(), "");
    watch.open();
    sleep(Duration::from_secs(3));
    let (seen, peak_rss_kib) = watch.close_however_big();
    let window = seen.window_ns();
    let whole = seen.clocks.iter().filter(|row| {
        let booked = row.accounted_ns();
        booked.abs_diff(window) * 200 <= window
    });
    let whole = whole.count() as u64;
    let lost = seen.lost["threads"];
    assert!(
        whole + lost >= 10_000,
        "{whole} threads whole, {lost} lost, of 10,000"
    );
    held(format!(
        "{whole} threads whole, {lost} lost; {} MiB at most",
        peak_rss_kib >> 10
    ))
}

/// Returns the count of lost threads from a tool's last lines.
fn threads_lost(stderr: &str) -> u64 {
    let (before, _) = stderr
        .rsplit_once(" threads")
        .expect("a count of lost threads");
    let count = before.rsplit(' ').next().unwrap_or_default();
    count.parse().expect("a number")
}

fn ten_thousand_threads_elsewhere() -> End {
    held(with_each(
        &["oncputime", "offwaketime", "cpudist"],
        |tool| {
            let crowd = crowd();
            let finished = Run::start(tool, crowd.pid(), 3.0)
                .finish()
                .finished
                .succeeded();
            let lost = threads_lost(&finished.stderr);
            assert_eq!(lost, 0, "{tool}: {}", finished.stderr);
            if tool == "offwaketime" {
                let shown = Folded::parse(&finished.stdout).total();
                let all = 10_000 * 3_000_000;
                // Waits for a CPU are missing, because no waker ends them.
                assert!(
                    shown * 10 >= all * 9 && shown <= all,
                    "{shown} us shown of {all}"
                );
            }
            format!("lost none, {} MiB at most", finished.peak_rss_kib >> 10)
        },
    ))
}

fn ten_thousand_threads_in_wallclock() -> End {
    let crowd = crowd();
    let folder = systemscope_tests::programs::workload::scratch();
    let finished = Tool::new("wallclock")
        .arg(crowd.pid().to_string())
        .args("-d 3 --thread-files 10 -o out")
        .in_folder(folder.path())
        .start()
        .finish_within(Duration::from_secs(120))
        .succeeded();
    let files = files_below(folder.path());
    let all = files.iter().find(|path| path.ends_with("combined.folded"));
    let all = all.unwrap_or_else(|| panic!("no combined stacks in {files:?}"));
    let shown = Folded::parse(&fs::read(all).expect("folded stacks")).total();
    let asked = 10_000 * 3_000_000_u64;
    let off = shown.abs_diff(asked);
    let says_lost = finished.stderr.contains("lost");
    assert!(
        off * 200 <= asked || says_lost,
        "{shown} us shown of {asked}, and not a word"
    );
    held(format!(
        "{:.1} s shown of 30,000 s; {} files; {} MiB at most",
        shown as f64 / 1e6,
        files.len(),
        finished.peak_rss_kib >> 10
    ))
}

fn a_million_stacks() -> End {
    const LEVELS: u64 = 20;
    let mut paths = Workload::start("paths", &[1, LEVELS]);
    let mut watch = Watch::offcputime(paths.pid(), "");
    watch.open();
    paths.go();
    paths.wait_done_within(Duration::from_secs(400));
    let (seen, peak_rss_kib) = watch.close_however_big();
    let leaves = seen.folded.lines.iter().filter(|line| line.has("leaf"));
    // A path has one stack in each of two states.
    let blocked = leaves.filter(|line| line.leaf().ends_with("_[o]")).count() as u64;
    let lost = seen.lost["stacks"] + seen.lost["events"];
    // The kernel's count of switches tells how many sleeps ended before a switch.
    let unswitched = paths.told("unswitched");
    assert!(
        blocked + lost + unswitched >= 1 << LEVELS,
        "{blocked} of {} stacks shown, {lost} lost, {unswitched} never there",
        1 << LEVELS
    );
    let (shown, booked) = shown_and_booked(&seen, paths.pid());
    assert!(
        shown.abs_diff(booked) * 200 <= booked,
        "{shown} ns shown of {booked}, lost {:?}",
        seen.lost
    );
    let mib = peak_rss_kib >> 10;
    assert!(mib <= 400, "{mib} MiB");
    held(format!(
        "{blocked} shown, {lost} lost, {unswitched} sleeps over before a switch; {:.1} s shown of {:.1} s; {mib} MiB at most",
        shown as f64 / 1e9,
        booked as f64 / 1e9
    ))
}

/// Starts the storm, waits for its end, and returns its rate in processes a second.
fn release(storm: &mut Workload) -> u64 {
    storm.go();
    storm.wait_done();
    storm.told("processes") * 1_000_000 / storm.told("took")
}

fn storm() -> Workload {
    Workload::start("storm", &[20_000, 10, 4])
}

/// Checks that the storm reached the rate it asked for, or half the rate it has without a tool.
fn assert_stormy(rate: u64, undisturbed: u64) {
    let enough = 19_000.min(undisturbed / 2);
    assert!(
        rate >= enough,
        "{rate} processes a second, {undisturbed} without a tool"
    );
}

fn a_storm_off_cpu() -> End {
    let alone = release(&mut storm());
    let mut storm = storm();
    let mut watch = Watch::offcputime_of(&[], "-m 1000");
    watch.open();
    let rate = release(&mut storm);
    let (seen, peak_rss_kib) = watch.close_however_big();
    assert_stormy(rate, alone);
    let sleeper = seen.clock("storm-sleeper");
    let window = seen.window_ns();
    assert!(
        sleeper.blocked_ns.abs_diff(window) * 200 <= window,
        "{sleeper:?} of {window} ns"
    );
    let slept = seen.folded.under("storm_sleep").total();
    assert!(
        slept.abs_diff(window) * 200 <= window,
        "{slept} ns shown of {window}"
    );
    let (threads, lost) = (seen.clocks.len() as u64, seen.lost["threads"]);
    let started = storm.told("processes");
    assert!(
        threads + lost >= started,
        "{threads} seen, {lost} lost, {started} started"
    );
    held(format!(
        "{rate} a second ({alone} without a tool); sleeper whole; {threads} threads seen, {lost} lost; {} MiB at most",
        peak_rss_kib >> 10
    ))
}

fn a_storm_elsewhere() -> End {
    held(with_each(
        &["oncputime", "offwaketime", "cpudist"],
        |tool| {
            let mut storm = storm();
            let arguments = match tool {
                "oncputime" => "-F 99",
                "offwaketime" => "-m 1000",
                _ => "-L --json",
            };
            let running = Tool::new(tool).args(arguments).start();
            sleep(Duration::from_millis(1500));
            let rate = release(&mut storm);
            running.signal(Signal::INT);
            let finished = running.finish_within(Duration::from_secs(60)).succeeded();
            let lost = threads_lost(&finished.stderr);
            if tool == "offwaketime" {
                let slept = Folded::parse(&finished.stdout).under("storm_sleep").total();
                assert!(slept >= 10_000_000, "{slept} us of more than 10 s of sleep");
            }
            assert!(!finished.stdout.is_empty(), "{tool} shows nothing");
            format!(
                "{rate} a second, {lost} threads lost, {} MiB at most",
                finished.peak_rss_kib >> 10
            )
        },
    ))
}
