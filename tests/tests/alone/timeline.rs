//! A timeline of more switches than anybody can look at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::time::Duration;

use profile::{Interval, State};
use systemscope_tests::truth::timeline::{NAP_US, Recorded, lanes, record_switches};
use systemscope_tests::{Tool, Turn};

/// Maximum CPU time of the export of a million rows.
const EXPORT: Duration = Duration::from_secs(10);
/// Maximum memory of the tool, in KiB.
const MAX_RSS_KIB: u64 = 128 * 1024;

#[test]
fn a_sleeper_among_many_switches_is_whole() {
    let _turn = Turn::take();
    let recorded = record_switches("-d 10");
    let profile = &recorded.profile;
    let (switches, rows) = (recorded.switches(), profile.times.intervals.len());
    println!("{switches} switches, {rows} rows");
    assert!(switches > 1_000_000, "{switches} switches are no flood");
    assert_eq!(profile.losses.times, 0);
    assert_eq!(profile.check_times(), []);
    let lane = &lanes(profile)[&recorded.sleeper];
    let window = profile.meta.window;
    let is_hole = |pair: &&[Interval]| pair[0].end_ns() != pair[1].start_ns;
    assert_eq!(lane.windows(2).filter(is_hole).count(), 0);
    let end_ns = window.start_ns + window.length_ns;
    assert_eq!(lane[0].start_ns, window.start_ns);
    assert_eq!(lane[lane.len() - 1].end_ns(), end_ns);
    let is_nap = |row: &&Interval| row.state() == State::Blocked && row.sample.is_some();
    let naps_shown = lane.iter().filter(is_nap).count() as u64;
    let most = window.length_ns / (NAP_US * 1000);
    // A nap takes a little longer than requested, and the machine is busy.
    assert!(
        (most / 2..=most + 1).contains(&naps_shown),
        "{naps_shown} of {most}"
    );
}

/// About a million intervals: each switch has a row, with a stretch before it.
#[test]
fn kept_and_lost_rows_add_up_in_little_memory() {
    let _turn = Turn::take();
    let recorded = record_switches("-d 2 --timeline-min 0");
    let (kept, lost) = (recorded.kept(), recorded.profile.losses.times);
    let (rows, rss) = (
        recorded.profile.times.intervals.len(),
        recorded.peak_rss_kib,
    );
    println!("{kept} kept, {lost} lost, {rows} rows, {rss} KiB");
    assert!(kept > 100_000, "{kept} switches are no flood");
    recorded.assert_adds_up();
    if lost == 0 {
        assert_eq!(recorded.profile.check_times(), []);
    }
    assert!(rss < MAX_RSS_KIB, "{rss} KiB");
    for ending in ["pftrace", "trace.json", "firefox.json"] {
        assert_is_exported_quickly(ending, &recorded);
    }
}

/// Checks that the export to a format takes less than [`EXPORT`] of one CPU for a million rows.
fn assert_is_exported_quickly(ending: &str, recorded: &Recorded) {
    let before = cpu_time_of_children();
    let output = recorded.folder.path().join(format!("run.{ending}"));
    let export = Tool::new("systemscope")
        .args("export")
        .arg(recorded.capture());
    export.arg("-o").arg(&output).run().succeeded();
    let took = cpu_time_of_children() - before;
    let million = took.mul_f64(1e6 / recorded.profile.times.intervals.len() as f64);
    println!("{ending}: {took:?}, {million:?} for a million rows");
    assert!(million < EXPORT, "{ending}: {million:?}");
    fs::remove_file(output).unwrap();
}

/// Returns the CPU time of all children that have ended.
fn cpu_time_of_children() -> Duration {
    // SAFETY: all-zero bytes are a valid rusage, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), 0);
        usage
    };
    let time = |it: libc::timeval| {
        Duration::from_secs(it.tv_sec as u64) + Duration::from_micros(it.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// A recorder takes as much memory after ten seconds as after three.
#[test]
fn a_recorder_takes_no_more_memory_the_longer_it_runs() {
    /// Memory of the rows, in MiB.
    const MEMORY: &str = "4";
    /// Maximum growth, in KiB.
    const GROWTH_KIB: u64 = 4096;
    let _turn = Turn::take();
    let flags = format!("--timeline-min 0 --last 5s --last-memory {MEMORY}");
    let [short, long] = ["-d 3", "-d 10"].map(|time| record_switches(&format!("{flags} {time}")));
    println!("{} KiB, {} KiB", short.peak_rss_kib, long.peak_rss_kib);
    assert!(long.peak_rss_kib < short.peak_rss_kib + GROWTH_KIB);
    // The memory is too little for a second of this many rows. What is there is whole.
    let profile = &long.profile;
    let window = profile.meta.window;
    assert!(window.length_ns < 1_000_000_000, "{} ns", window.length_ns);
    assert!(profile.times.intervals.len() > 10_000);
    if profile.losses.times == 0 {
        assert_eq!(profile.check_times(), []);
    }
}
