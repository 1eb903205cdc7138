//! A timeline of more switches than anybody can look at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use profile::{Interval, Profile, State};
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload, cpus_online};

/// Length of each nap of the sleeper, in µs.
const NAP_US: u64 = 5000;

fn read(path: &Path) -> Profile {
    let file = BufReader::new(File::open(path).unwrap());
    capture::read(file).unwrap()
}

/// Records a timeline of a sleeper, and of a pair of processes on each CPU that switch as fast as
/// they can. Returns the sleeper and the profile.
fn record(flags: &str) -> (Workload, Profile) {
    let folder = scratch();
    let capture = folder.path().join("run.scope");
    let pairs = (0..cpus_online()).map(|cpu| Workload::start("ping_pong", &[cpu]));
    let pairs: Vec<Workload> = pairs.collect();
    let mut naps = Workload::start("naps", &[60, NAP_US]);
    naps.go();
    let tool = Tool::new("offcputime").args("--timeline --children -m 0");
    let tool = tool.args(flags).arg("-o").arg(&capture).pid(naps.pid());
    let tool = pairs.iter().fold(tool, |tool, pair| tool.pid(pair.pid()));
    tool.start().finish_within(PATIENCE).succeeded();
    (naps, read(&capture))
}

/// Returns the lanes, each in the order of time.
fn lanes(profile: &Profile) -> BTreeMap<u32, Vec<Interval>> {
    let mut lanes: BTreeMap<u32, Vec<Interval>> = BTreeMap::new();
    for row in &profile.times.intervals {
        lanes.entry(row.thread.tid).or_default().push(*row);
    }
    for lane in lanes.values_mut() {
        lane.sort_by_key(|row| row.start_ns);
    }
    lanes
}

#[test]
fn a_sleeper_among_many_switches_is_whole() {
    let _turn = Turn::take();
    let (naps, profile) = record("-d 10");
    let switches: u64 = profile.threads.iter().map(|it| it.clock.voluntary).sum();
    println!(
        "{switches} switches, {} rows",
        profile.times.intervals.len()
    );
    assert!(switches > 1_000_000, "{switches} switches are no flood");
    assert_eq!(profile.losses.times, 0);
    assert_eq!(profile.check_times(), []);
    let lane = &lanes(&profile)[&naps.pid()];
    let window = profile.meta.window;
    let holes = lane
        .windows(2)
        .filter(|pair| pair[0].end_ns() != pair[1].start_ns);
    assert_eq!(holes.count(), 0);
    assert_eq!(lane[0].start_ns, window.start_ns);
    assert_eq!(
        lane[lane.len() - 1].end_ns(),
        window.start_ns + window.length_ns
    );
    let is_nap = |row: &&Interval| row.state() == State::Blocked && row.sample.is_some();
    let naps_shown = lane.iter().filter(is_nap).count() as u64;
    let most = window.length_ns / (NAP_US * 1000);
    // A nap takes a little longer than asked for, and the machine is busy.
    assert!(
        (most / 2..=most + 1).contains(&naps_shown),
        "{naps_shown} of {most}"
    );
}

#[test]
fn kept_and_lost_rows_add_up() {
    let _turn = Turn::take();
    let (_naps, profile) = record("-d 1 --timeline-min 0");
    let kept: u64 = lanes(&profile)
        .values()
        .map(|lane| {
            let is_off = |row: &Interval| row.sample.is_some();
            let blocked = lane
                .iter()
                .filter(|row| is_off(row) && row.state() == State::Blocked);
            // A runnable interval after a blocked one is the same stay off the CPU.
            let pairs = lane.windows(2).filter(|pair| {
                is_off(&pair[1])
                    && pair[1].state() == State::Runnable
                    && !(pair[0].state() == State::Blocked && pair[0].end_ns() == pair[1].start_ns)
            });
            (blocked.count() + pairs.count()) as u64
        })
        .sum();
    let lost = profile.losses.times;
    let clocks = profile.threads.iter().map(|thread| thread.clock);
    let switches: u64 = clocks.map(|it| it.voluntary + it.involuntary).sum();
    println!("{kept} kept, {lost} lost, {switches} switches");
    assert!(switches > 100_000, "{switches} switches are no flood");
    // A thread may be off the CPU when the window opens. Its last stretch may be lost, too.
    let threads = profile.threads.len() as u64;
    assert!((kept + lost).abs_diff(switches) <= 2 * threads);
    if lost == 0 {
        assert_eq!(profile.check_times(), []);
    }
}
