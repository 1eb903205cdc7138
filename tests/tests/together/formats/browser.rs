//! Flame graphs and speedscope files in a real browser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use systemscope_tests::programs::browser::{ask, speedscope};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload};
use tempfile::TempDir;

const SECONDS: u32 = 2;

/// Measures five threads for `SECONDS` and writes these files.
fn measure(files: &[&str]) -> (Workload, TempDir) {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let tool = Tool::new("wallclock").arg(phases.pid().to_string());
    let mut tool = tool.args(&format!("-d {SECONDS} -f 199"));
    for file in files {
        tool = tool.arg("-o").arg(folder.path().join(file));
    }
    tool.run().succeeded();
    (phases, folder)
}

fn within(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

/// Returns the total seconds of the profiles that speedscope lists under names that `is_wanted`
/// accepts.
fn listed_seconds(file: &Path, is_wanted: impl Fn(&str) -> bool) -> f64 {
    let profiles = speedscope(file);
    let wanted: Vec<_> = profiles
        .iter()
        .filter(|(name, _)| is_wanted(name))
        .collect();
    assert!(!wanted.is_empty(), "{profiles:?}");
    wanted.iter().map(|(_, seconds)| seconds).sum()
}

fn assert_about(seconds: f64, expected: u32, what: &str) {
    let off = (seconds - f64::from(expected)).abs();
    assert!(off < 0.03 * f64::from(expected), "{what}: {seconds} s");
}

#[test]
fn speedscope_shows_every_thread_and_state() {
    let (phases, folder) = measure(&["run.speedscope.json", "run.perf"]);
    let file = within(&folder, "run.speedscope.json");
    assert_about(
        listed_seconds(&file, |name| name == "all threads"),
        5 * SECONDS,
        "all",
    );
    // The main thread has one profile for each of its states.
    let main = format!("/{} ", phases.pid());
    assert_about(
        listed_seconds(&file, |name| name.contains(&main)),
        SECONDS,
        "main",
    );
    let states = ["running", "runnable", "blocked"];
    let all = listed_seconds(&file, |name| {
        states.iter().any(|state| name.ends_with(state))
    });
    assert_about(all, 5 * SECONDS, "all states");
    // In perf's text, speedscope takes a thread's time from one event to the next as the weight.
    let text = within(&folder, "run.perf");
    let main = format!(" tid: {}", phases.pid());
    assert_about(
        listed_seconds(&text, |name| name.ends_with(&main)),
        SECONDS,
        "main",
    );
    assert_about(
        listed_seconds(&text, |_| true),
        5 * SECONDS,
        "all in perf's text",
    );
}

#[test]
fn the_flame_graph_is_searched_and_zoomed_into() {
    let (_phases, folder) = measure(&["run.svg"]);
    let said = ask(
        &within(&folder, "run.svg"),
        "const groups = [...shown.document.querySelectorAll('#frames > g')];
        const group = groups.find(group => group.querySelector('title').textContent.startsWith('main '));
        const width = () => group.querySelector('rect').getBoundingClientRect().width;
        shown.search('^main');
        const found = shown.document.getElementById('matched').textContent;
        const widths = [width()];
        shown.zoom(group);
        widths.push(width());
        shown.unzoom();
        widths.push(width());
        return [found, ...widths].join(' ');",
    );
    let words: Vec<&str> = said.split(' ').collect();
    let ["Matched:", percent, before, zoomed, after] = words[..] else {
        panic!("{said}")
    };
    // The main thread is one of five threads, and all of its stacks are below main().
    let percent: f64 = percent.trim_end_matches('%').parse().unwrap();
    assert!((18.0..22.0).contains(&percent), "{said}");
    let [before, zoomed, after] =
        [before, zoomed, after].map(|width| width.parse::<f64>().unwrap());
    assert!(before > 1.0 && zoomed > 4.0 * before, "{said}");
    assert!((after - before).abs() < 0.1, "{said}");
}
