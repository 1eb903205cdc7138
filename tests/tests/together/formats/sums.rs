//! One capture in every format. Each reader finds the same time for each thread in each state.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as PerfOptions};
use profile::{State, Unit, folded};
use serde_json::Value;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload};

/// Time in ns by thread and state.
type Sums = BTreeMap<(u32, &'static str), u64>;

fn add(sums: &mut Sums, tid: u32, state: &str, value: u64) {
    let states = ["running", "runnable", "blocked"];
    let state = states.into_iter().find(|known| *known == state);
    let state = state.unwrap_or_else(|| panic!("a sample without a state"));
    *sums.entry((tid, state)).or_default() += value;
}

fn sum_folded(text: &str) -> Sums {
    let profile = folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
    let mut sums = Sums::new();
    for (sample, value) in profile.values() {
        let state = match sample.state.unwrap() {
            State::Running => "running",
            State::Runnable => "runnable",
            State::Blocked => "blocked",
        };
        add(&mut sums, sample.thread.unwrap().tid, state, value);
    }
    sums
}

fn sum_json(path: &Path) -> Sums {
    let object: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut sums = Sums::new();
    for sample in object["samples"].as_array().unwrap() {
        let tid = sample["tid"].as_u64().unwrap() as u32;
        let value = sample["value"].as_u64().unwrap();
        add(&mut sums, tid, sample["state"].as_str().unwrap(), value);
    }
    sums
}

/// Returns the sums of the profiles for single threads and states. The first profile is left out,
/// because it is the sum of all others.
fn sum_speedscope(path: &Path) -> Sums {
    let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let profiles = file["profiles"].as_array().unwrap();
    let weights = |profile: &Value| -> u64 {
        let weights = profile["weights"].as_array().unwrap().iter();
        weights.map(|weight| weight.as_u64().unwrap()).sum()
    };
    let mut sums = Sums::new();
    for profile in &profiles[1..] {
        let name = profile["name"].as_str().unwrap();
        let (thread, state) = name.rsplit_once(' ').unwrap();
        let tid = thread.rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!(profile["endValue"].as_u64().unwrap(), weights(profile));
        add(&mut sums, tid, state, weights(profile));
    }
    assert_eq!(weights(&profiles[0]), sums.values().sum::<u64>());
    sums
}

/// Returns the sums of inferno's output, in which the leaves name the states.
fn sum_perf_script(path: &Path) -> Sums {
    let mut options = PerfOptions::default();
    options.include_tid = true;
    let mut lines = Vec::new();
    let text = fs::read(path).unwrap();
    Folder::from(options).collapse(&*text, &mut lines).unwrap();
    sum_folded(&String::from_utf8(lines).unwrap())
}

/// Returns the sums of `go tool pprof -raw`.
fn sum_pprof(path: &Path) -> Sums {
    let output = Command::new("go")
        .args(["tool", "pprof", "-raw"])
        .arg(path)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, samples) = text.split_once("\nSamples:\n").unwrap();
    let (samples, _) = samples.split_once("\nLocations\n").unwrap();
    let mut lines = samples.lines();
    let types: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let wall = types
        .iter()
        .position(|name| name.starts_with("wall/nanoseconds"))
        .unwrap();
    let lines: Vec<&str> = lines.collect();
    let mut sums = Sums::new();
    for pair in lines.chunks(2) {
        let [values, labels] = pair else {
            panic!("a sample without labels: {pair:?}")
        };
        let (values, _) = values.split_once(':').unwrap();
        let value = values.split_whitespace().nth(wall).unwrap();
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}:[")).unwrap();
            rest.split_once(']').unwrap().0
        };
        let tid = label("thread_id").parse().unwrap();
        add(&mut sums, tid, label("state"), value.parse().unwrap());
    }
    sums
}

/// Returns the total that a flame graph shows.
fn sum_svg(text: &str, unit: &str) -> u64 {
    let (_, rest) = text.split_once("<title>all (").unwrap();
    let (number, _) = rest.split_once(unit).unwrap();
    number.trim().replace(',', "").parse().unwrap()
}

/// Runs flamegraph.pl on folded text.
fn flamegraph_pl(path: &Path) -> String {
    // Path of the script in Debian's libdevel-nytprof-perl.
    let debians = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl";
    let program = if Path::new(debians).exists() {
        debians
    } else {
        "flamegraph.pl"
    };
    let output = Command::new(program)
        .args(["--countname", "ns"])
        .env("LC_ALL", "C")
        .arg(path)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `systemscope export` on a capture.
fn export(capture: &Path, arguments: &str) -> String {
    let tool = Tool::new("systemscope").arg("export").arg(capture);
    let finished = tool.args(arguments).run().succeeded();
    String::from_utf8(finished.stdout).unwrap()
}

#[test]
fn every_reader_finds_the_same_time_of_each_thread_in_each_state() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let capture = at("run.scope");
    let tool = Tool::new("wallclock").arg(phases.pid().to_string());
    let finished = tool.args("-d 2 -f 199 -o").arg(&capture).run();
    finished.succeeded();

    let formats = "folded,svg,pprof,speedscope,perf-script,json,scope";
    let flags = format!("--per-thread --nanoseconds --format {formats} -o");
    export(&capture, &format!("{flags} {}", at("out").display()));
    let text = fs::read_to_string(at("out.folded")).unwrap();
    let sums = sum_folded(&text);
    // Five threads live for 2 s each.
    let total: u64 = sums.values().sum();
    assert!(total.abs_diff(10_000_000_000) < 1_000_000, "{sums:?}");
    assert_eq!(sum_json(&at("out.json")), sums);
    assert_eq!(sum_speedscope(&at("out.speedscope.json")), sums);
    assert_eq!(sum_perf_script(&at("out.perf")), sums);
    assert_eq!(sum_pprof(&at("out.pb.gz")), sums);
    let svg = fs::read_to_string(at("out.svg")).unwrap();
    assert_eq!(sum_svg(&svg, "µs"), total / 1000);
    assert_eq!(sum_svg(&flamegraph_pl(&at("out.folded")), "ns"), total);

    // A capture that is exported from a capture has the same exports, and so does a capture that is
    // read from a pipe.
    let again = export(&at("out.scope"), "--per-thread --nanoseconds");
    assert_eq!(again, text);
    for (format, ending) in [("json", "json"), ("speedscope", "speedscope.json")] {
        let piped = export(&capture, &format!("--format {format}"));
        assert_eq!(
            piped,
            fs::read_to_string(at(&format!("out.{ending}"))).unwrap()
        );
    }
}

/// An export from a tool's capture equals the tool's own output.
#[test]
fn exporting_later_gives_what_is_written_at_once() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    for (tool, flags) in [
        ("oncputime", "-F 999"),
        ("offcputime", "--states"),
        ("offwaketime", "-d -a"),
    ] {
        let base = folder.path().join(tool);
        let run = Tool::new(tool).pid(phases.pid()).args(flags);
        let formats = "folded,classic,perf-script,json,scope";
        let run = run
            .args("--duration 1 --format")
            .arg(formats)
            .arg("-o")
            .arg(&base);
        let finished = run.run();
        finished.succeeded();
        let flags = if tool == "offwaketime" { flags } else { "" };
        for (format, ending) in [
            ("folded", "folded"),
            ("classic", "classic"),
            ("perf-script", "perf"),
            ("json", "json"),
        ] {
            let capture = base.with_extension("scope");
            let later = export(&capture, &format!("{flags} --format {format}"));
            let at_once = fs::read_to_string(base.with_extension(ending)).unwrap();
            assert!(!at_once.is_empty(), "{tool} {format}");
            assert_eq!(later, at_once, "{tool} {format}");
        }
        let json = fs::read(base.with_extension("json")).unwrap();
        let meta = &serde_json::from_slice::<Value>(&json).unwrap()["meta"];
        assert_eq!(meta["tool"], tool);
        assert_eq!(meta["targets"], format!("PID {}", phases.pid()));
    }
}
