//! Timelines of programs that switch as fast as they can.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use profile::{Interval, Profile, State};
use tempfile::TempDir;

use crate::programs::tool::PATIENCE;
use crate::programs::workload::scratch;
use crate::{Tool, Workload, cpus_online};

/// Length of each nap of the sleeper, in µs.
pub const NAP_US: u64 = 5000;

/// Name of the capture's file.
const CAPTURE: &str = "run.scope";

/// Timeline of a sleeper, and of a pair of processes on each CPU that switch as fast as they can.
#[derive(Debug)]
pub struct Recorded {
    /// Process ID of the sleeper.
    pub sleeper: u32,
    /// Profile with the timeline.
    pub profile: Profile,
    /// Peak memory of the tool, in KiB.
    pub peak_rss_kib: u64,
    /// Folder of the capture.
    pub folder: TempDir,
}

/// Reads a capture.
///
/// # Panics
///
/// Panics if the file cannot be read.
pub fn read(path: &Path) -> Profile {
    let file = File::open(path).expect("open the capture");
    capture::read(BufReader::new(file)).expect("read the capture")
}

/// Records a timeline of many switches with these flags of offcputime.
///
/// # Panics
///
/// Panics if offcputime fails.
pub fn record_switches(flags: &str) -> Recorded {
    let folder = scratch();
    let capture = folder.path().join(CAPTURE);
    let pairs = (0..cpus_online()).map(|cpu| Workload::start("ping_pong", &[cpu]));
    let pairs: Vec<Workload> = pairs.collect();
    let mut naps = Workload::start("naps", &[60, NAP_US]);
    naps.go();
    let tool = Tool::new("offcputime").args("--timeline --children -m 0");
    let tool = tool.args(flags).arg("-o").arg(&capture).pid(naps.pid());
    let tool = pairs.iter().fold(tool, |tool, pair| tool.pid(pair.pid()));
    let finished = tool.start().finish_within(PATIENCE).succeeded();
    Recorded {
        sleeper: naps.pid(),
        profile: read(&capture),
        peak_rss_kib: finished.peak_rss_kib,
        folder,
    }
}

/// Returns the lane of each thread ID, in the order of time.
pub fn lanes(profile: &Profile) -> BTreeMap<u32, Vec<Interval>> {
    let mut lanes: BTreeMap<u32, Vec<Interval>> = BTreeMap::new();
    for row in &profile.times.intervals {
        lanes.entry(row.thread.tid).or_default().push(*row);
    }
    for lane in lanes.values_mut() {
        lane.sort_by_key(|row| row.start_ns);
    }
    lanes
}

impl Recorded {
    /// Returns the path of the capture.
    pub fn capture(&self) -> PathBuf {
        self.folder.path().join(CAPTURE)
    }

    /// Returns the number of context switches by the clocks.
    pub fn switches(&self) -> u64 {
        let clocks = self.profile.threads.iter().map(|thread| thread.clock);
        clocks.map(|it| it.voluntary + it.involuntary).sum()
    }

    /// Returns the number of stays off the CPU that have rows of their own.
    pub fn kept(&self) -> u64 {
        let lanes = lanes(&self.profile);
        lanes.values().map(|lane| stays_off_cpu(lane)).sum()
    }

    /// Checks that each switch has a row or is counted as lost.
    ///
    /// # Panics
    ///
    /// Panics if kept and lost rows are not as many as the switches.
    pub fn assert_adds_up(&self) {
        let (kept, lost) = (self.kept(), self.profile.losses.times);
        let switches = self.switches();
        // A thread may be off the CPU when the window opens. Its last stretch may be lost, too.
        let tolerance = 2 * self.profile.threads.len() as u64;
        assert!(
            (kept + lost).abs_diff(switches) <= tolerance,
            "{kept} kept, {lost} lost, {switches} switches"
        );
    }
}

fn stays_off_cpu(lane: &[Interval]) -> u64 {
    let is = |row: &Interval, state| row.sample.is_some() && row.state() == state;
    let blocked = lane.iter().filter(|row| is(row, State::Blocked)).count();
    // A runnable interval after a blocked one is the same stay off the CPU.
    let follows = |pair: &&[Interval]| {
        let is_same = pair[0].state() == State::Blocked && pair[0].end_ns() == pair[1].start_ns;
        is(&pair[1], State::Runnable) && !is_same
    };
    (blocked + lane.windows(2).filter(follows).count()) as u64
}
