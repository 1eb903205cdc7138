//! cpudist's spans, against the kernel's account and the times that programs measured themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::output::{assert_close, per_mille};
use systemscope_tests::printed::spans::{Interval, Spans, close, watch};
use systemscope_tests::truth::account::stolen_ns;
use systemscope_tests::truth::wake_ups::WakeUps;
use systemscope_tests::{
    Account, Running, Tool, Turn, Workload, accounts_at_rest, binary, cpus_online, least_stolen,
    patiently,
};

/// The kernel's account of a program in the window.
#[derive(Debug)]
struct Booked {
    switches: u64,
    running_ns: u64,
    /// Maximum time in ns by which `running_ns` begins before the switches: see
    /// [`systemscope_tests::truth::wake_ups`].
    preempting_ns: u64,
}

/// Measures a program in a window. The program is blocked before and after the window. Returns the
/// spans, the kernel's account, and the stolen time in ns. The kernel leaves stolen time out of its
/// account, so a window with much stolen time is measured again.
fn measure(
    arguments: &str,
    run: impl Fn() -> (Workload, fn(&mut Workload) -> Booked),
) -> (Spans, Booked, u64) {
    least_stolen(|| {
        let (mut workload, run) = run();
        let tool = watch(&format!("-p {} {arguments}", workload.pid()));
        let stolen = stolen_ns();
        let booked = run(&mut workload);
        let stolen = stolen_ns() - stolen;
        let spans = close(tool);
        let share = stolen * 1000 / booked.running_ns;
        (share, (spans, booked, stolen))
    })
}

#[track_caller]
fn assert_agrees((spans, booked, stolen_ns): &(Spans, Booked, u64)) {
    let interval = spans.only();
    let lost = spans.lost_switches;
    assert_close(
        &format!("spans, {lost} switches lost"),
        interval.count(),
        booked.switches,
        per_mille(booked.switches, 10) + lost,
    );
    let most = booked.running_ns;
    let tolerance = per_mille(most, 10) + stolen_ns;
    let least = most.saturating_sub(booked.preempting_ns + tolerance);
    let total = interval.total_ns();
    assert!(
        (least..=most + tolerance).contains(&total),
        "{total} ns on the CPU, hypervisor's {stolen_ns}: {booked:?}"
    );
}

/// Returns `phases`. Its threads live from before the window until after it.
fn phases(threads: u64) -> (Workload, fn(&mut Workload) -> Booked) {
    let run = |phases: &mut Workload| {
        let before = accounts_at_rest(phases.pid());
        let wake_ups = WakeUps::watch(phases.pid());
        phases.go();
        phases.wait_done();
        let mut booked = Booked {
            switches: 0,
            running_ns: 0,
            preempting_ns: wake_ups
                .stop()
                .values()
                .map(|delays| delays.preempting_ns)
                .sum(),
        };
        let after = accounts_at_rest(phases.pid());
        for (tid, account) in after {
            let account = account.since(before[&tid]);
            booked.switches += account.voluntary + account.involuntary;
            booked.running_ns += account.running_ns;
        }
        booked
    };
    (Workload::start("phases", &[2, threads]), run)
}

#[test]
fn one_threads_spans_are_its_switches() {
    let _turn = Turn::share();
    patiently(|| assert_agrees(&measure("", || phases(1))));
}

#[test]
#[ignore = "traces every switch beside the tool: needs a quiet machine"]
fn the_spans_of_64_threads_are_their_switches() {
    let _turn = Turn::share();
    patiently(|| {
        let measured = measure("-L", || phases(64));
        // The main thread and the thread that wakes the others are included.
        assert_eq!(measured.0.only().rows.len(), 66);
        assert_agrees(&measured);
    });
    patiently(|| assert_agrees(&measure("-P", || phases(64))));
}

#[test]
#[ignore = "counts thousands of threads, in a quiet machine"]
fn threads_that_come_and_go_are_counted_to_their_last_turn() {
    // The number of threads that run at once is so large that no CPU is idle.
    let (threads, at_once) = (30 * cpus_online(), 4 * cpus_online());
    let _turn = Turn::share();
    let run = |generations: &mut Workload| {
        generations.go();
        generations.wait_done();
        Booked {
            // The kernel adds up a thread's switches while the thread exits. The last switch comes
            // after that, and sometimes a preemption comes in between.
            switches: generations.told("switches") + generations.told("threads"),
            running_ns: generations.told("cpu"),
            preempting_ns: 0,
        }
    };
    for arguments in ["", "-L"] {
        let run: fn(&mut Workload) -> Booked = run;
        patiently(|| {
            assert_agrees(&measure(arguments, || {
                (Workload::start("generations", &[threads, at_once]), run)
            }));
        });
    }
}

/// Python program. Its threads start each other, and each sleeps for 10 ms.
const THREADS: &str = "
import threading, time
while True:
    thread = threading.Thread(target=time.sleep, args=(0.01,))
    thread.start()
    thread.join()
";

/// A thread that exits loses its ID in the container before its last switch.
#[test]
fn threads_of_a_container_are_seen_to_their_end() {
    let _turn = Turn::share();
    let tool = binary("cpudist");
    let script = format!("python3 -c '{THREADS}' & {} -L --json 1 1", tool.display());
    patiently(|| {
        let finished = Tool::at("unshare".as_ref())
            .args("--pid --fork --mount-proc sh -c")
            .arg(&script)
            .run();
        let spans = Spans::read(finished);
        let rows = spans.only().rows.iter();
        let threads = rows.filter(|row| row.comm.as_deref() == Some("python3"));
        let threads = threads.count() as u64;
        assert!(
            threads > 2 && spans.lost_switches * 4 < threads + 8,
            "{} switches lost, of {threads} threads",
            spans.lost_switches
        );
    });
}

/// Parses lengths with the prefix `kind`, and returns them sorted.
fn parse_lengths(lines: &[String], kind: &str) -> Vec<u64> {
    let mut lengths: Vec<u64> = lines
        .iter()
        .filter_map(|line| line.strip_prefix(kind)?.trim().parse().ok())
        .collect();
    lengths.sort_unstable();
    lengths
}

/// Returns the limits of the quantile at `part` per mille, if `lengths` lacks `unknown` spans.
fn quantile(lengths: &[u64], unknown: usize, part: usize) -> (u64, u64) {
    let rank = (lengths.len() * part).div_ceil(1000);
    let shortest = rank.saturating_sub(unknown + 1);
    let longest = lengths.get(rank + unknown).copied();
    (lengths[shortest], longest.unwrap_or(u64::MAX))
}

#[test]
#[ignore = "needs thousands of spans"]
fn percentiles_are_those_that_the_program_measured() {
    let _turn = Turn::share();
    for (flags, kind) in [
        ("", "turn "),
        ("-O", "sleep "),
        ("-m", "turn "),
        ("-O -m", "sleep "),
    ] {
        patiently(|| assert_percentiles(flags, kind));
    }
}

fn assert_percentiles(flags: &str, kind: &str) {
    const TURNS: usize = 600;
    let mut turns = Workload::start("turns", &[TURNS as u64, 500, 4, 1500]);
    let before = accounts_at_rest(turns.pid())[&turns.pid()];
    let tool = watch(&format!("-t {} {flags}", turns.pid()));
    let stolen = stolen_ns();
    turns.go();
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line| line != "done") {
        lines.push(turns.next_line());
    }
    let booked = Account::read(turns.pid(), turns.pid()).unwrap();
    // The program's clock and the tool's clock both include stolen time. The kernel's account does
    // not.
    let most = booked.since(before).running_ns + (stolen_ns() - stolen);
    let spans = close(tool);
    let told = parse_lengths(&lines, kind);
    assert_eq!(told.len(), TURNS);
    let row = &spans.only().rows[0];
    // The waits for the test at both ends are spans, too. One span in a hundred may be cut in two.
    let unknown = TURNS / 100 + 2;
    assert_close("spans", row.count, TURNS as u64, unknown as u64);
    // The program's measure of a turn leaves out the system call and the switches. The program's
    // measure of a sleep includes them. `around` is the mean time of both by the kernel's account.
    // A part of this time may be on either side.
    let computed: u64 = parse_lengths(&lines, "turn ").iter().sum();
    let around = most.saturating_sub(computed) / TURNS as u64;
    for (what, measured, part) in [
        ("p50", row.p50_ns, 500),
        ("p90", row.p90_ns, 900),
        ("p99", row.p99_ns, 990),
    ] {
        let (shortest, longest) = quantile(&told, unknown, part);
        let (least, most) = match kind {
            "sleep " => (shortest.saturating_sub(2 * around), longest),
            _ => (shortest, longest.saturating_add(2 * around)),
        };
        // A bucket is 1/64 of its power of two wide.
        let (least, most) = (least - least / 64, most.saturating_add(most / 32));
        assert!(
            (least..=most).contains(&measured),
            "{flags} {what}: {measured} is not from {least} to {most}"
        );
    }
    if flags.is_empty() {
        let longest = told[TURNS - 1];
        assert!(row.max_ns >= longest, "{} of {longest} ns", row.max_ns);
        let least = computed;
        let total = row.total_ns;
        assert!(
            (least..=most + per_mille(most, 10)).contains(&total),
            "{total} ns is not from {least} to {most}"
        );
    }
}

#[test]
fn a_sleeper_fills_every_interval_to_the_nanosecond() {
    let _turn = Turn::share();
    let sleepers = Workload::start("phases", &[1, 1]);
    for flag in ["-O", "--blocked"] {
        let spans = patiently(|| {
            let tool = watch(&format!("-p {} -L {flag} 0.2", sleepers.pid()));
            sleep(Duration::from_millis(900));
            let spans = close(tool);
            assert!(spans.intervals.len() >= 5, "{spans:?}");
            // Two intervals become one if the tool gets no CPU for that long.
            for interval in &spans.intervals[..spans.intervals.len() - 1] {
                assert_eq!(interval.length_ns(), 200_000_000);
            }
            spans
        });
        for (interval, next) in spans.intervals.iter().zip(&spans.intervals[1..]) {
            assert_eq!(interval.end_ns, next.start_ns);
            assert_eq!(interval.rows.len(), 3, "{interval:?}");
            for row in &interval.rows {
                assert_eq!((row.count, row.total_ns), (1, 200_000_000), "{flag}");
            }
        }
    }
    let tool = watch(&format!("-p {} --runq 0.2", sleepers.pid()));
    assert_eq!(
        close(tool)
            .intervals
            .iter()
            .map(Interval::count)
            .sum::<u64>(),
        0
    );
}

/// Checks intervals of 10 ms while `meanwhile` disturbs the tool.
fn assert_no_interval_overflows(meanwhile: impl Fn(&Running)) {
    let mut naps = Workload::start("naps", &[60, 1500]);
    naps.go();
    let tool = watch(&format!("-p {} -O 0.01", naps.pid()));
    meanwhile(&tool);
    let spans = close(tool);
    assert!(spans.intervals.len() > 20, "{spans:?}");
    for interval in &spans.intervals {
        // The time of a hidden switch is known only roughly.
        let tolerance = match spans.lost_switches {
            0 => 0,
            _ => interval.length_ns() / 2,
        };
        assert!(
            interval.total_ns() <= interval.length_ns() + tolerance,
            "{interval:?}"
        );
    }
}

/// Naps end at any time after an interval's end, also while the tool reads that interval.
#[test]
#[ignore = "holds many short intervals against a trace"]
fn short_intervals_are_read_while_threads_come_back() {
    let _turn = Turn::share();
    assert_no_interval_overflows(|_| sleep(Duration::from_secs(4)));
}

/// The tool is stopped at any point of its loop, for longer than an interval.
#[test]
fn intervals_hold_their_own_time_when_the_tool_comes_late() {
    let _turn = Turn::share();
    assert_no_interval_overflows(|tool| {
        // A tool that continues reads at once, so most stops come while the tool reads.
        for n in 0..200 {
            tool.signal(Signal::STOP);
            sleep(Duration::from_millis(12));
            tool.signal(Signal::CONT);
            sleep(Duration::from_micros(50 * (n % 20)));
        }
    });
}

#[test]
fn running_and_idle_fill_every_cpu_in_every_interval() {
    let _turn = Turn::share();
    for arguments in ["-I 0.25", "-I -P 0.25"] {
        patiently(|| assert_filled(arguments));
    }
}

fn assert_filled(arguments: &str) {
    let mut naps = Workload::start("naps", &[2, 300]);
    let mut spinners = Workload::start("spinners", &[1, 2]);
    let tool = watch(arguments);
    naps.go();
    spinners.go();
    sleep(Duration::from_millis(1000));
    let spans = close(tool);
    for interval in &spans.intervals {
        let whole = interval.length_ns() * cpus_online() as u64;
        assert!(interval.total_ns() <= whole, "{interval:?}");
        // The time of a hidden switch is known only roughly.
        let tolerance = match spans.lost_switches {
            0 => 0,
            _ => per_mille(whole, 10),
        };
        assert_close("ns", interval.total_ns(), whole, tolerance);
    }
}

#[test]
fn waits_for_a_cpu_are_those_that_the_kernel_booked() {
    let _turn = Turn::share();
    patiently(assert_waits_agree);
}

fn assert_waits_agree() {
    let threads = 2 * cpus_online() as u64;
    let mut spinners = Workload::start("spinners", &[threads, 2]);
    let runnable = |accounts: BTreeMap<u32, Account>| -> u64 {
        accounts.values().map(|account| account.runnable_ns).sum()
    };
    let tool = watch(&format!("-p {} --runq 0.5", spinners.pid()));
    let before = runnable(accounts_at_rest(spinners.pid()));
    spinners.go();
    spinners.wait_done();
    let booked = runnable(accounts_at_rest(spinners.pid())) - before;
    let spans = close(tool);
    let total = spans.intervals.iter().map(Interval::total_ns).sum();
    assert_close("waiting", total, booked, per_mille(booked, 10));
}

#[test]
#[ignore = "needs thousands of spans"]
fn spans_are_in_the_buckets_they_belong_to() {
    let _turn = Turn::share();
    for arguments in ["-L", "-L -m", "-O -L", "-O -L -m"] {
        let mut naps = Workload::start("naps", &[1, 300]);
        let tool = watch(arguments);
        naps.go();
        sleep(Duration::from_millis(600));
        let spans = close(tool);
        let rows = &spans.only().rows;
        let own = rows.iter().any(|row| row.tid == Some(naps.pid()));
        assert!(own, "{arguments}: {rows:?}");
        for row in rows {
            let counted: u64 = row.buckets.iter().map(|bucket| bucket.2).sum();
            assert_eq!(counted, row.count);
            // The longest span is known exactly.
            let (low, high, _) = row.buckets[row.buckets.len() - 1];
            assert!((low..=high).contains(&row.max_ns), "{arguments}: {row:?}");
        }
    }
}
