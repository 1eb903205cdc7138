//! Timelines in Firefox Profiler and in speedscope. Each shows the rows of the capture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use profile::{Interval, Profile, Shares, State, join::join};
use serde_json::Value;
use systemscope_tests::programs::browser::speedscope;
use systemscope_tests::programs::firefox::FirefoxProfiler;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::timeline::lanes;
use systemscope_tests::{Tool, Turn, Workload};

const SECONDS: u32 = 2;

/// A slice or a marker: its name, its category, its start and its length in ns.
type Row = (String, String, u64, u64);

/// Returns a time in ns of a viewer that shows ms.
fn ns(milliseconds: &Value) -> u64 {
    (milliseconds.as_f64().unwrap() * 1e6).round() as u64
}

/// Returns the threads that Firefox Profiler shows: thread ID, handle and CPU time in ms.
fn threads(viewer: &FirefoxProfiler) -> BTreeMap<u32, (String, f64)> {
    let list = viewer.ask("thread list --limit 0");
    let threads = list["threads"].as_array().unwrap().iter().map(|thread| {
        // In files of Chrome, Firefox Profiler puts the process ID before the thread ID.
        let tid = thread["tid"].as_str().unwrap();
        let tid = tid.rsplit(':').next().unwrap().parse().unwrap();
        let handle = thread["threadHandle"].as_str().unwrap().to_owned();
        (tid, (handle, thread["cpuMs"].as_f64().unwrap()))
    });
    threads.collect()
}

fn markers(viewer: &FirefoxProfiler, handle: &str) -> Vec<Value> {
    let command = format!("thread markers --list --limit 0 --thread {handle}");
    viewer.ask(&command)["flatMarkers"]
        .as_array()
        .unwrap()
        .clone()
}

fn row(marker: &Value) -> Row {
    let text = |key: &str| marker[key].as_str().unwrap().to_owned();
    let [start, length] = ["start", "duration"].map(|key| ns(&marker[key]));
    (text("name"), text("category"), start, length)
}

fn start_of(profile: &Profile, interval: &Interval) -> u64 {
    interval.start_ns - profile.meta.window.start_ns
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Runnable => "runnable",
        State::Blocked => "blocked",
    }
}

/// Checks a file of the format `chrome`: each interval is a slice.
fn check_slices(profile: &Profile, file: &Path) {
    let viewer = FirefoxProfiler::open(file);
    let threads = threads(&viewer);
    for (tid, lane) in lanes(profile) {
        let mut slices: Vec<Row> = markers(&viewer, &threads[&tid].0).iter().map(row).collect();
        slices.retain(|slice| slice.1 != "thread");
        assert_eq!(slices.len(), lane.len(), "{tid}");
        for (interval, (name, category, start, length)) in lane.iter().zip(slices) {
            let state = state_name(interval.state());
            assert_eq!(category, state);
            assert_eq!(
                (start, length),
                (start_of(profile, interval), interval.length_ns())
            );
            let is_as_told = if interval.shares.is_mixed() {
                name == format!("mostly {state}")
            } else {
                name.starts_with(state)
            };
            assert!(is_as_told, "{name}: {interval:?}");
        }
    }
}

/// Checks a file of the format `firefox`: samples add up to the clocks, and waits are markers.
fn check_samples_and_markers(profile: &Profile, file: &Path) {
    let viewer = FirefoxProfiler::open(file);
    let threads = threads(&viewer);
    let mut wakers = 0;
    for (tid, lane) in lanes(profile) {
        let (handle, cpu_ms) = &threads[&tid];
        let mut shares = Shares::default();
        lane.iter().for_each(|interval| shares += interval.shares);
        assert!(
            (shares.running_ns as f64 / 1e6 - cpu_ms).abs() < 0.002,
            "{tid}: {cpu_ms} {shares:?}"
        );
        let samples = viewer.ask(&format!("thread samples --include-idle --thread {handle}"));
        let mut told = BTreeMap::from([("running", 0), ("runnable", 0), ("blocked", 0)]);
        for category in samples["categoryBreakdown"]["categories"]
            .as_array()
            .unwrap()
        {
            let state = match category["name"].as_str().unwrap() {
                "Blocked" | "Idle" => "blocked",
                "Runnable" => "runnable",
                _ => "running",
            };
            *told.get_mut(state).unwrap() += category["samples"].as_u64().unwrap();
        }
        // A sample weighs ms. The rest of each state is less than one ms.
        for state in [State::Running, State::Runnable, State::Blocked] {
            let expected = shares.of(state) / 1_000_000;
            assert_eq!(told[state_name(state)], expected, "{tid}: {shares:?}");
        }

        let markers = markers(&viewer, handle);
        let waits = lane
            .iter()
            .filter(|interval| interval.state() != State::Running && !interval.shares.is_mixed());
        let shown =
            |marker: &&Value| matches!(marker["name"].as_str(), Some("Blocked" | "Runnable"));
        let shown: Vec<&Value> = markers.iter().filter(shown).collect();
        assert_eq!(shown.len(), waits.clone().count(), "{tid}");
        for (interval, marker) in waits.zip(shown) {
            let (name, _, start, length) = row(marker);
            assert_eq!(name.to_lowercase(), state_name(interval.state()));
            assert_eq!(
                (start, length),
                (start_of(profile, interval), interval.length_ns())
            );
            let sample = interval.sample.map(|id| profile.samples.row(id).unwrap().0);
            assert_eq!(marker["hasStack"], sample.is_some(), "{marker}");
            let Some(wait) = sample.and_then(|sample| profile.wait(sample)) else {
                continue;
            };
            let detail = profile.detail_name(wait.kind.detail);
            let kind = format!("{}: {detail}", wait.kind.reason.name());
            assert!(
                marker["data"]["wait"].as_str().unwrap().starts_with(&kind),
                "{marker}"
            );
            wakers += u32::from(
                marker["data"]["waker"]
                    .as_str()
                    .unwrap()
                    .starts_with("driver-"),
            );
        }
    }
    // The main function of `phases` wakes the workers from a thread of its own.
    assert!(wakers > 10, "{wakers}");
    // The stack of a marker is there, leaf first.
    let (handle, _) = &threads.values().next().unwrap();
    let waits = markers(&viewer, handle);
    let waits = waits
        .iter()
        .find(|marker| marker["name"] == "Blocked")
        .unwrap();
    let information = viewer.ask(&format!("thread select {handle}"));
    assert!(information.is_object());
    let information = viewer.ask(&format!(
        "marker info {}",
        waits["handle"].as_str().unwrap()
    ));
    let frames = information["stack"]["frames"].as_array().unwrap();
    let names: Vec<&str> = frames
        .iter()
        .map(|frame| frame["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"main") && !names[0].contains("main"),
        "{names:?}"
    );
}

#[test]
fn viewers_show_the_rows_of_a_timeline() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let tool = Tool::new("wallclock").arg(phases.pid().to_string());
    let tool = tool.args(&format!("-d {SECONDS} -f 499 --timeline -o"));
    let tool = tool.arg(at("run.scope"));
    tool.arg("-o").arg(at("run.trace.json")).run().succeeded();
    // Firefox Profiler unpacks the file itself.
    let export = Tool::new("systemscope").arg("export").arg(at("run.scope"));
    export
        .arg("-o")
        .arg(at("run.firefox.json.gz"))
        .run()
        .succeeded();
    let profiles = capture::read_all(&*fs::read(at("run.scope")).unwrap()).unwrap();
    let profile = join(profiles).unwrap().into_profile();

    check_slices(&profile, &at("run.trace.json"));
    check_samples_and_markers(&profile, &at("run.firefox.json.gz"));
    // speedscope has a profile for each thread.
    let shown = speedscope(&at("run.trace.json"));
    assert_eq!(shown.len(), 5, "{shown:?}");
    for (name, seconds) in shown {
        let process = format!("phases (pid {}), ", phases.pid());
        assert!(name.starts_with(&process), "{name}");
        assert!(
            (seconds - f64::from(SECONDS)).abs() < 0.01,
            "{name}: {seconds} s"
        );
    }
}
