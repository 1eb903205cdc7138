//! A timeline for Perfetto, read by the schema of PyPI's `perfetto` and by Perfetto's rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use profile::{EndedBy, Interval, Profile, Sample, Shares, State, ThreadId};
use serde::Deserialize;
use systemscope_tests::programs::django::from_pypi;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload};

/// Tables that Perfetto derives from a trace: see `read_trace.py`.
#[derive(Deserialize)]
struct Derived {
    contradictions: u32,
    states: Vec<StateRow>,
    slices: Vec<Slice>,
    flows: Vec<Flow>,
    samples: Vec<StackSample>,
    clocks: BTreeMap<String, u64>,
    release: String,
}

#[derive(Deserialize)]
struct StateRow {
    tid: u32,
    state: Option<String>,
    start: u64,
    end: Option<u64>,
    waker: Option<u32>,
    #[serde(default)]
    waker_runs: bool,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Slice {
    tid: u32,
    start: u64,
    end: u64,
    categories: Vec<String>,
    stack: Vec<String>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Flow {
    to: u32,
    at: u64,
    from: u32,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct StackSample {
    tid: u32,
    at: u64,
    stack: Vec<String>,
    weight: u64,
}

fn read(trace: &Path) -> Derived {
    let mut python = Command::new(from_pypi("python"));
    let output = python
        .args(["-c", include_str!("read_trace.py")])
        .arg(trace);
    let output = output.output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stack(profile: &Profile, sample: &Sample) -> Vec<String> {
    let parts = [sample.stack.user, sample.stack.kernel].into_iter();
    let frames = parts.flat_map(|part| profile.frames_of(part).collect::<Vec<_>>());
    frames.map(|frame| profile.name(frame).to_owned()).collect()
}

/// Returns an interval as a slice, unless the thread ran in all of it.
fn slice(profile: &Profile, interval: &Interval) -> Option<Slice> {
    let category = match interval.state() {
        _ if interval.shares.is_mixed() => "mixed",
        State::Running => return None,
        State::Runnable => "runnable",
        State::Blocked => "blocked",
    };
    let sample = interval.sample.and_then(|id| profile.samples.row(id));
    Some(Slice {
        tid: interval.thread.tid,
        start: interval.start_ns,
        end: interval.end_ns(),
        categories: vec![category.to_owned()],
        stack: sample.map_or_else(Vec::new, |(sample, _)| stack(profile, sample)),
    })
}

/// Returns the thread that ended an interval.
fn waker(profile: &Profile, interval: &Interval) -> Option<ThreadId> {
    let (sample, _) = profile.samples.row(interval.sample?)?;
    let of_wait = profile.wait(sample).and_then(|wait| wait.ended_by);
    let wakers = match (sample.wakers, of_wait) {
        (Some(wakers), _) | (None, Some(EndedBy::Wakers(wakers))) => wakers,
        _ => return None,
    };
    let is_blocked = interval.state() == State::Blocked && !interval.shares.is_mixed();
    profile.wakers[wakers]
        .first()?
        .thread
        .filter(|_| is_blocked)
}

/// Compares a trace with the capture of the same run.
fn assert_has_all(derived: &Derived, profile: &Profile) {
    let window = &profile.meta.window;
    assert_eq!(derived.contradictions, 0);
    assert_eq!(derived.release, &*profile.meta.kernel);
    assert_eq!(derived.clocks["3"], window.start_ns);
    assert_eq!(derived.clocks["1"], window.start_utc_ns);

    let mut ends = BTreeMap::new();
    let mut expected: BTreeMap<u32, Shares> = BTreeMap::new();
    let mut slices = Vec::new();
    let mut flows = Vec::new();
    for interval in &profile.times.intervals {
        let tid = interval.thread.tid;
        *expected.entry(tid).or_default() += interval.shares;
        let end = ends.entry(tid).or_insert(0);
        *end = interval.end_ns().max(*end);
        slices.extend(slice(profile, interval));
        flows.extend(waker(profile, interval).map(|waker| Flow {
            from: waker.tid,
            to: tid,
            at: interval.end_ns(),
        }));
    }
    let mut sums: BTreeMap<u32, Shares> = BTreeMap::new();
    for row in &derived.states {
        let end = row.end.unwrap_or_else(|| ends[&row.tid].max(row.start));
        let state = match row.state.as_deref() {
            Some("Running") => State::Running,
            Some("R") => State::Runnable,
            Some("S" | "D") => State::Blocked,
            _ => continue,
        };
        *sums.entry(row.tid).or_default() += Shares::all(state, end - row.start);
    }
    assert_eq!(sums, expected);

    slices.sort();
    let mut found: Vec<&Slice> = derived.slices.iter().collect();
    // Instants and the window have no category.
    found.retain(|slice| !slice.categories.is_empty());
    found.sort();
    assert!(found.iter().copied().eq(&slices), "{found:?}\n{slices:?}");

    flows.sort();
    let mut found: Vec<&Flow> = derived.flows.iter().collect();
    found.sort();
    assert!(found.iter().copied().eq(&flows), "{found:?}\n{flows:?}");

    let timed = profile.times.timed_samples.iter();
    let places = timed.map(|timed| (timed.thread.tid, timed.time_ns));
    let mut places: Vec<(u32, u64)> = places.collect();
    places.sort_unstable();
    let found = derived.samples.iter();
    let mut found: Vec<(u32, u64)> = found.map(|sample| (sample.tid, sample.at)).collect();
    found.sort_unstable();
    assert_eq!(found, places);
}

/// Two threads wake each other, each after 3 ms of work.
#[test]
fn states_and_wakers_are_those_of_the_capture() {
    let _turn = Turn::share();
    let mut pair = Workload::start("wake_pairs", &[3000]);
    pair.go();
    let told = ["asker", "answering", "answerer"].map(|name| pair.told(name));
    let [asker, answering, answerer] = told.map(|id| u32::try_from(id).unwrap());
    let folder = scratch();
    let [trace, capture] = ["run.pftrace", "run.scope"].map(|name| folder.path().join(name));
    let tool = Tool::new("offwaketime")
        .arg("-p")
        .arg(format!("{asker},{answering}"));
    let tool = tool.args("--timeline --duration 3 -o").arg(&trace);
    tool.arg("-o").arg(&capture).run().succeeded();

    let profile = capture::read(BufReader::new(File::open(&capture).unwrap())).unwrap();
    let derived = read(&trace);
    assert_has_all(&derived, &profile);

    // Perfetto's critical path goes from a thread to its waker, which must run then.
    for (woken, waker) in [(asker, answerer), (answerer, asker)] {
        let rows = derived.states.iter();
        let woken = rows.filter(|row| row.tid == woken && row.waker == Some(waker));
        let woken: Vec<&StateRow> = woken.collect();
        let running = woken.iter().filter(|row| row.waker_runs).count();
        assert!(woken.len() > 20, "{} wake-ups", woken.len());
        assert!(
            running * 10 >= woken.len() * 9,
            "{running} of {}",
            woken.len()
        );
    }
}
