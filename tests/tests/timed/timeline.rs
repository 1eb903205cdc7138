//! The timeline: every interval of a known schedule is there, and each thread's lane is its life.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod recorder;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use profile::{EndedBy, Interval, Profile, Sample, State, ThreadChange, ThreadEvent, ThreadId};
use rustix::process::Signal;
use systemscope_tests::programs::tool::{MEASURING, PATIENCE};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::timeline::{lanes, read};
use systemscope_tests::{Tool, Turn, Workload, patiently};

/// Minimum length of an interval with a row of its own: the default of `--timeline-min`.
const LEAST_NS: u64 = 100_000;
/// Maximum difference between the times of the workload and of the timeline.
const TOLERANCE_NS: u64 = 20_000;
/// The hypervisor may stop the machine between a note and the event that it notes: one of this
/// many intervals may differ by more than the tolerance.
const PER_DISTURBED: usize = 10;

/// A wait that the workload noted.
#[derive(Debug)]
struct Noted {
    function: String,
    begin_ns: u64,
    end_ns: u64,
    /// ID of the thread that ended the wait; 0 for a timer.
    waker: u32,
}

/// Runs a workload under offcputime, and returns what both say.
fn measure(name: &str, arguments: &[u64], flags: &str) -> (Workload, Vec<String>, Profile) {
    let folder = scratch();
    let capture = folder.path().join("run.scope");
    let mut workload = Workload::start(name, arguments);
    let tool = Tool::new("offcputime").args("--timeline").args(flags);
    let mut tool = tool.pid(workload.pid()).arg("-o").arg(&capture).start();
    tool.wait_until_said(MEASURING, PATIENCE);
    workload.go();
    let mut lines = Vec::new();
    loop {
        match workload.next_line() {
            line if line == "done" => break,
            line => lines.push(line),
        }
    }
    tool.signal(Signal::INT);
    tool.finish_within(PATIENCE).succeeded();
    (workload, lines, read(&capture))
}

/// Returns the waits that the workload noted, by thread and in the order of time.
fn noted_waits(lines: &[String]) -> BTreeMap<u32, Vec<Noted>> {
    let mut waits: BTreeMap<u32, Vec<Noted>> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let ["wait", _, tid, function, begin, end, waker] = words[..] else {
            continue;
        };
        waits.entry(tid.parse().unwrap()).or_default().push(Noted {
            function: function.to_owned(),
            begin_ns: begin.parse().unwrap(),
            end_ns: end.parse().unwrap(),
            waker: waker.parse().unwrap(),
        });
    }
    for waits in waits.values_mut() {
        waits.sort_by_key(|wait| wait.begin_ns);
    }
    waits
}

fn sample(profile: &Profile, interval: &Interval) -> Sample {
    let id = interval.sample.expect("a sample of a blocked interval");
    *profile.samples.row(id).unwrap().0
}

/// Returns the ID of the thread that ended a wait, and the name of the waker.
fn waker(profile: &Profile, interval: &Interval) -> Option<(u32, String)> {
    let sample = sample(profile, interval);
    let EndedBy::Wakers(wakers) = profile.wait(&sample)?.ended_by? else {
        return None;
    };
    let waker = &profile.wakers[wakers][0];
    let tid = waker.thread.map_or(0, |thread| thread.tid);
    Some((tid, profile.names[waker.comm].to_string()))
}

fn has_function(profile: &Profile, interval: &Interval, function: &str) -> bool {
    let stack = sample(profile, interval).stack.user;
    let mut frames = profile.frames_of(stack);
    frames.any(|frame| profile.name(frame) == function)
}

/// Checks the lane of a thread against the waits that the thread noted. `tolerance_ns` is the
/// maximum difference of their times.
fn assert_is_as_noted(profile: &Profile, tid: u32, noted: &[Noted], tolerance_ns: u64) {
    let lane = &lanes(profile)[&tid];
    let waits: Vec<&Interval> = lane
        .iter()
        .filter(|row| row.state() == State::Blocked && row.start_ns + LEAST_NS > noted[0].begin_ns)
        .filter(|row| row.start_ns < noted[noted.len() - 1].end_ns)
        .collect();
    assert_eq!(waits.len(), noted.len(), "{tid}: {waits:?}, {noted:?}");
    let mut disturbed = Vec::new();
    for (wait, noted) in waits.iter().zip(noted) {
        assert!(!wait.shares.is_mixed(), "{wait:?}");
        assert!(
            has_function(profile, wait, &noted.function),
            "{wait:?} is not in {}",
            noted.function
        );
        let (waker, name) = waker(profile, wait).expect("the waker is known");
        assert_eq!(waker, noted.waker, "{name}: {wait:?} {noted:?}");
        let begin = wait.start_ns.abs_diff(noted.begin_ns);
        // A nap ends when its timer expires, which the thread notes once it is back.
        let end = wait.end_ns().abs_diff(noted.end_ns);
        if begin > tolerance_ns || (end > tolerance_ns && noted.waker != 0) {
            disturbed.push((begin, end));
        }
    }
    assert!(
        disturbed.len() * PER_DISTURBED <= noted.len(),
        "{tid}: {} of {} differ: {disturbed:?}",
        disturbed.len(),
        noted.len()
    );
    // Between two waits there is one row: the run.
    for (first, second) in waits.iter().zip(&waits[1..]) {
        let between: Vec<&Interval> = lane
            .iter()
            .filter(|row| row.start_ns >= first.end_ns() && row.end_ns() <= second.start_ns)
            .collect();
        let runs = between.iter().filter(|row| row.state() == State::Running);
        assert_eq!(runs.count(), 1, "{between:?}");
    }
}

#[test]
fn every_phase_of_a_known_schedule_is_there() {
    // Another test on the machine delays switches by more than the tolerance.
    let _turn = Turn::take();
    patiently(|| {
        let (_workload, lines, profile) = measure("relay", &[100], "");
        let noted = noted_waits(&lines);
        assert_eq!(noted.len(), 4);
        for (tid, noted) in &noted {
            assert_is_as_noted(&profile, *tid, noted, TOLERANCE_NS);
        }
        assert_eq!(profile.losses.times, 0);
    });
}

/// Asserts that the lane of each thread covers its life without a hole or an overlap, and has the
/// times of its clock.
fn assert_lanes_are_lives(profile: &Profile) {
    assert_eq!(profile.check_times(), []);
    assert!(!profile.threads.is_empty());
    let lanes = lanes(profile);
    for thread in &profile.threads {
        let lane = &lanes[&thread.id.tid];
        let mut at = thread.clock.started_ns;
        for row in lane {
            assert_eq!(row.start_ns, at, "{thread:?} {row:?}");
            at = row.end_ns();
        }
        assert_eq!(at, thread.clock.ended_ns, "{thread:?}");
    }
}

#[test]
fn each_lane_is_its_threads_life() {
    let _turn = Turn::share();
    for flags in [
        "",
        "--timeline-min 0",
        "-m 1000",
        "-m 1000 --timeline-min 10000",
    ] {
        let (_workload, _, profile) = measure("relay", &[20], flags);
        assert_lanes_are_lives(&profile);
    }
    // Threads are born and exit, and execute programs.
    let folder = scratch();
    let capture = folder.path().join("run.scope");
    let script = "for i in 1 2 3 4 5; do sleep 0.01; done; exec sleep 0.02";
    let tool = Tool::new("offcputime").args("--timeline -o").arg(&capture);
    let tool = tool.args("-- sh -c").arg(script);
    tool.start().finish_within(PATIENCE).succeeded();
    let profile = read(&capture);
    assert_lanes_are_lives(&profile);
    let count = |is: fn(ThreadChange) -> bool| {
        let events = profile.times.thread_events.iter();
        events.filter(|event| is(event.change)).count()
    };
    assert_eq!(count(|change| change == ThreadChange::Started), 5);
    assert_eq!(count(|change| change == ThreadChange::Ended), 6);
    // Five naps, and the last one. The shell is executed before the window opens.
    assert_eq!(count(|it| matches!(it, ThreadChange::Executed(_))), 6);
    // The kernel renames a thread that executes a program. That is no event of its own. busybox
    // renames itself after it was executed.
    let events = &profile.times.thread_events;
    let is_exec_of = |event: &ThreadEvent, name| {
        let execs = events.iter().filter(|exec| exec.thread == event.thread);
        let mut later = execs.filter(|exec| exec.time_ns >= event.time_ns);
        later.any(|exec| exec.change == ThreadChange::Executed(name))
    };
    let parts_of_execs = events.iter().filter(|event| match event.change {
        ThreadChange::Renamed(name) => is_exec_of(event, name),
        _ => false,
    });
    assert_eq!(parts_of_execs.count(), 0);
}

#[test]
fn samples_keep_their_times() {
    let _turn = Turn::share();
    let folder = scratch();
    let capture = folder.path().join("run.scope");
    let mut spinner = Workload::start("spinners", &[1, 600]);
    spinner.go();
    let tool = Tool::new("oncputime").args("--timeline -F 499 -d 1 -o");
    tool.arg(&capture)
        .pid(spinner.pid())
        .start()
        .finish_within(PATIENCE)
        .succeeded();
    let profile = read(&capture);
    assert_eq!(profile.check_times(), []);
    let samples = &profile.times.timed_samples;
    assert!(!samples.is_empty());
    let window = profile.meta.window;
    for sample in samples {
        let since = sample.time_ns.checked_sub(window.start_ns);
        assert!(since.is_some_and(|since| since < window.length_ns));
        assert_eq!(sample.thread.pid, spinner.pid());
    }
    // One thread is sampled once a period.
    let mut times: BTreeMap<ThreadId, Vec<u64>> = BTreeMap::new();
    for sample in samples {
        times.entry(sample.thread).or_default().push(sample.time_ns);
    }
    for times in times.values_mut() {
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let short = gaps.filter(|gap| *gap < 500_000).count();
        assert!(short * 10 <= times.len(), "{short} of {}", times.len());
    }
}

/// A tool that is killed leaves what it has written under a hidden name.
#[test]
fn what_a_killed_tool_has_written_can_be_read() {
    let _turn = Turn::share();
    let folder = scratch();
    let capture = folder.path().join("run.scope");
    let mut workload = Workload::start("relay", &[400]);
    let tool = Tool::new("offcputime").args("--timeline -o").arg(&capture);
    let mut tool = tool.pid(workload.pid()).start();
    tool.wait_until_said(MEASURING, PATIENCE);
    workload.go();
    sleep(Duration::from_millis(2500));
    tool.signal(Signal::KILL);
    tool.finish_within(PATIENCE);
    assert!(!capture.exists());
    let files = std::fs::read_dir(folder.path()).unwrap();
    let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    let [partial] = &files[..] else {
        panic!("{files:?}");
    };
    let report = |flag: &str| {
        let tool = Tool::new("systemscope").arg("report").arg(partial);
        tool.args(flag).start().finish_within(PATIENCE)
    };
    let refused = report("");
    assert!(
        refused.stderr.contains("the capture is cut off"),
        "{refused:?}"
    );
    let read = report("--partial").succeeded();
    assert!(read.stderr.contains("the capture is cut off"), "{read:?}");
    let file = BufReader::new(File::open(partial).unwrap());
    let partials = capture::read_what_is_whole(file).unwrap();
    let times = &partials[0].profile.times;
    // Two seconds of at least 250 waits a second of all threads.
    assert!(times.intervals.len() > 500, "{}", times.intervals.len());
}
