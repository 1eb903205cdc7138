//! The page in browsers: each view shows the totals of the capture, and nothing acts on what a
//! page holds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use profile::join::join;
use profile::{FrameKind, Idleness, Profile, Sample, State};
use serde_json::{Value, json};
use systemscope_tests::programs::browser::Browser;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::timeline::lanes;
use systemscope_tests::{Tool, Turn, Workload};
use tempfile::TempDir;

use crate::printed::hostile::{Hostile, capture_with};

/// Times in ns by what a view tells apart.
type Sums = BTreeMap<String, u64>;

/// A sample of the capture, as the filters of the page see it.
struct Row {
    thread: String,
    state: &'static str,
    reason: &'static str,
    is_idle: bool,
    /// Functions, root first.
    functions: Vec<(FrameKind, String)>,
    value: u64,
}

impl Row {
    fn has(&self, name: &str) -> bool {
        self.functions.iter().any(|(_, function)| function == name)
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Runnable => "runnable",
        State::Blocked => "blocked",
    }
}

fn is_idle(profile: &Profile, sample: &Sample) -> bool {
    let wait = profile.wait(sample);
    wait.is_some_and(|wait| matches!(wait.idleness, Idleness::Idle | Idleness::Dormant))
}

fn rows(profile: &Profile) -> Vec<Row> {
    let rows = profile.values().map(|(sample, value)| {
        let thread = sample.thread.unwrap();
        let stack = [sample.stack.user, sample.stack.kernel];
        let frames = stack.into_iter().flat_map(|part| profile.frames_of(part));
        let named = frames.map(|frame| {
            let name = profile.name(frame);
            let name = if name.is_empty() { "[unknown]" } else { name };
            (frame.kind, name.to_owned())
        });
        Row {
            thread: format!("{}/{}", thread.pid, thread.tid),
            state: state_name(sample.state.unwrap()),
            reason: (profile.wait(&sample)).map_or("unknown", |wait| wait.kind.reason.name()),
            is_idle: is_idle(profile, &sample),
            functions: named.collect(),
            value,
        }
    });
    rows.collect()
}

fn add(sums: &mut Sums, key: &str, value: u64) {
    if value > 0 {
        *sums.entry(key.to_owned()).or_default() += value;
    }
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Row>, key: impl Fn(&Row) -> String) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        add(&mut sums, &key(row), row.value);
    }
    sums
}

/// Returns the sums in an answer. All are whole numbers below 2^53.
fn told(sums: &Value) -> Sums {
    serde_json::from_value(sums.clone()).unwrap_or_else(|error| panic!("{error}: {sums}"))
}

/// A link, and the samples that it shows.
struct Link {
    name: &'static str,
    hash: String,
    shows: Box<dyn Fn(&Row) -> bool>,
}

/// Returns links with each kind of filter. `function` is on some stacks and `thread` is one of the
/// threads.
fn links(thread: &str, reason: &str, function: &'static str) -> Vec<Link> {
    let link = |name, hash: &str, shows: Box<dyn Fn(&Row) -> bool>| Link {
        name,
        hash: hash.to_owned(),
        shows,
    };
    let [thread, reason] = [thread, reason].map(str::to_owned);
    let has = move |row: &Row| row.has(function);
    vec![
        link("opened", "", Box::new(|row| !row.is_idle)),
        link("idle", "idle=show", Box::new(|_| true)),
        link(
            "thread",
            &format!("idle=show&thread={thread}"),
            Box::new(move |row| row.thread == thread),
        ),
        link(
            "state",
            "state=runnable",
            Box::new(|row| row.state == "runnable" && !row.is_idle),
        ),
        link(
            "reason",
            &format!("idle=show&reason={}", reason.replace(' ', "+")),
            Box::new(move |row| row.state != "blocked" || row.reason == reason),
        ),
        link(
            "only",
            &format!("only={function}"),
            Box::new(move |row| has(row) && !row.is_idle),
        ),
        link(
            "without",
            &format!("idle=show&without={function}"),
            Box::new(move |row| !has(row)),
        ),
        link(
            "hide",
            &format!("idle=show&hide={function}"),
            Box::new(|_| true),
        ),
        link(
            "pivot",
            &format!("idle=show&pivot={function}"),
            Box::new(has),
        ),
        link("inverted", "idle=show&flame.invert=yes", Box::new(|_| true)),
        link(
            "search",
            &format!("idle=show&search={function}"),
            Box::new(|_| true),
        ),
    ]
}

/// Compares what the views show behind a link with the samples.
fn check_views(link: &Link, hidden: Option<&str>, views: &Value, rows: &[Row]) {
    let shown: Vec<&Row> = rows.iter().filter(|row| (link.shows)(row)).collect();
    let total: u64 = shown.iter().map(|row| row.value).sum();
    let whole: u64 = rows.iter().map(|row| row.value).sum();
    let shown = || shown.iter().copied();
    let by_thread = sum(shown(), |row| format!("{} {}", row.thread, row.state));
    let by_state = sum(shown(), |row| row.state.to_owned());
    let views = views.as_object().unwrap();
    assert_eq!(views.len(), 4, "{:?}", views.keys());
    for (view, its) in views {
        let what = format!("{} in {view}", link.name);
        assert_eq!(its["shown"], total, "{what}");
        assert_eq!(its["whole"], whole, "{what}");
        assert_eq!(its["hidden"], whole - total, "{what}");
        assert_eq!(told(&its["byThread"]), by_thread, "{what}");
    }

    let functions = |row: &Row| -> Vec<(FrameKind, String)> {
        let all = row.functions.iter().cloned();
        all.filter(|(_, name)| Some(&**name) != hidden).collect()
    };
    let flame = &views["flame"];
    assert_eq!(flame["all"], total, "{}", link.name);
    assert_eq!(told(&flame["byState"]), by_state, "{}", link.name);
    let mut roots = Sums::new();
    let mut totals = Sums::new();
    for row in shown() {
        let functions = functions(row);
        let root = if link.name == "inverted" {
            functions.last()
        } else {
            functions.first()
        };
        if let Some((_, root)) = root {
            add(&mut roots, root, row.value);
        }
        let distinct: BTreeSet<_> = functions.into_iter().collect();
        if distinct.is_empty() {
            add(&mut totals, "[no stack]", row.value);
        }
        for (_, name) in &distinct {
            add(&mut totals, name, row.value);
        }
    }
    // The graph around a function starts with its callees.
    if link.name != "pivot" {
        assert_eq!(told(&flame["roots"]), roots, "{}", link.name);
    }

    let table = &views["table"];
    assert_eq!(told(&table["byState"]), by_state, "{}", link.name);
    assert_eq!(told(&table["functions"]), totals, "{}", link.name);
    let blocked = by_state.get("blocked").copied().unwrap_or_default();
    assert_eq!(views["wakers"]["blocked"], blocked, "{}", link.name);
}

/// Compares the lanes with the intervals of the capture.
fn check_lanes(profile: &Profile, views: &Value, hides_idle: bool) {
    let mut expected = Sums::new();
    for lane in lanes(profile).values() {
        for interval in lane {
            let thread = format!("{}/{}", interval.thread.pid, interval.thread.tid);
            let sample = interval.sample.map(|id| profile.samples.row(id).unwrap().0);
            let is_hidden = hides_idle && sample.is_some_and(|sample| is_idle(profile, sample));
            for state in [State::Running, State::Runnable, State::Blocked] {
                let kind = if is_hidden {
                    "hidden"
                } else {
                    state_name(state)
                };
                let key = format!("{thread} {kind}");
                add(&mut expected, &key, interval.shares.of(state));
            }
        }
    }
    assert_eq!(told(&views["timeline"]["lanes"]), expected);
}

/// Compares what a time range shows with the intervals in it.
fn check_brush(profile: &Profile, brushed: &Value) {
    let window = profile.meta.window;
    let bound = |number: usize| window.start_ns + brushed["range"][number].as_u64().unwrap();
    let (from, to) = (bound(0), bound(1));
    // The brush goes over the middle half.
    let length = to - from;
    assert!(length.abs_diff(window.length_ns / 2) < window.length_ns / 50);
    let shown = told(&brushed["byThread"]);
    let mut total = 0;
    for (tid, lane) in lanes(profile) {
        let mut of_thread = 0;
        for state in [State::Running, State::Runnable, State::Blocked] {
            let mut expected = 0.0;
            for interval in &lane {
                let inside = interval
                    .end_ns()
                    .min(to)
                    .saturating_sub(interval.start_ns.max(from));
                if inside > 0 {
                    let share = inside as f64 / interval.length_ns() as f64;
                    expected += interval.shares.of(state) as f64 * share;
                }
            }
            let key = format!("{}/{tid} {}", lane[0].thread.pid, state_name(state));
            let value = shown.get(&key).copied().unwrap_or_default();
            // Intervals of several states are divided by their share, in whole ns.
            assert!(
                (value as f64 - expected).abs() < 5.0,
                "{key}: {value} {expected}"
            );
            of_thread += value;
        }
        let inside = lane.iter().map(|interval| {
            let end = interval.end_ns().min(to);
            end.saturating_sub(interval.start_ns.max(from))
        });
        assert_eq!(of_thread, inside.sum::<u64>(), "{tid}");
        total += of_thread;
    }
    assert_eq!(brushed["shown"], total);
}

fn check_page(browser: Browser) {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let tool = Tool::new("wallclock").arg(phases.pid().to_string());
    let tool = tool.args("-d 1 -f 499 --timeline -o run.html -o run.scope");
    tool.in_folder(folder.path()).run().succeeded();
    let profiles = capture::read_all(&*fs::read(at("run.scope")).unwrap()).unwrap();
    let profile = join(profiles).unwrap().into_profile();
    let rows = rows(&profile);
    let most = |key: &dyn Fn(&Row) -> String| {
        let blocked = rows
            .iter()
            .filter(|row| row.state == "blocked" && row.has("work"));
        let sums = sum(blocked, key);
        sums.into_iter().max_by_key(|(_, value)| *value).unwrap().0
    };
    let thread = most(&|row| row.thread.clone());
    let reason = most(&|row| row.reason.to_owned());
    let function = "work";
    let links = links(&thread, &reason, function);
    let hashes: BTreeMap<_, _> = links.iter().map(|link| (link.name, &link.hash)).collect();
    let questions = json!({ "kind": "whole", "name": function, "hashes": hashes });
    let answer = browser.open_page(&at("run.html"), &questions);

    let screen = answer["screen"].as_str().unwrap();
    assert!(screen.contains("How far to trust this"), "{screen}");
    assert_eq!(answer["trouble"], "");
    for link in &links {
        let hidden = (link.name == "hide").then_some(function);
        check_views(link, hidden, &answer["totals"][link.name], &rows);
    }
    check_lanes(&profile, &answer["totals"]["opened"], true);
    check_lanes(&profile, &answer["totals"]["idle"], false);
    check_brush(&profile, &answer["brushed"]);
}

#[test]
fn views_in_chromium_show_the_totals_of_the_capture() {
    check_page(Browser::Chromium);
}

#[test]
fn views_in_firefox_show_the_totals_of_the_capture() {
    check_page(Browser::Firefox);
}

/// Text that would act on a browser if a page had it as markup.
const MARKUP: &str = "</script></main><img src=x onerror=alert(1)><script>alert(2)</script>";

#[test]
fn no_name_acts_on_a_browser() {
    let _turn = Turn::share();
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let mut capture = Vec::new();
    capture::write(&capture_with(MARKUP), &mut capture).unwrap();
    fs::write(at("made.scope"), capture).unwrap();
    let report = Tool::new("systemscope").args("report made.scope -o made.html");
    report.in_folder(folder.path()).run().succeeded();
    let hostile = Hostile::start();
    let measure = Tool::new("wallclock").args(&hostile.pids().replace(',', " "));
    let measure = measure.args("-d 1 --timeline -o measured.html");
    measure.in_folder(folder.path()).run().succeeded();
    let questions = json!({ "kind": "hostile", "hashes": { "idle": "idle=show" } });
    for (file, name) in [("made.html", MARKUP), ("measured.html", "hot?[1m??")] {
        for browser in [Browser::Chromium, Browser::Firefox] {
            let answer = browser.open_page(&at(file), &questions);
            // The name is text in the table.
            let functions = told(&answer["totals"]["idle"]["table"]["functions"]);
            let is_shown = functions.keys().any(|function| function.contains(name));
            assert!(is_shown, "{file}: {functions:?}");
        }
    }
}

/// Writes a page of the demo's kind, and returns its text.
fn write_page(folder: &TempDir) -> String {
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let tool = Tool::new("wallclock").arg(phases.pid().to_string());
    let tool = tool.args("-d 1 -o whole.html").in_folder(folder.path());
    tool.run().succeeded();
    fs::read_to_string(folder.path().join("whole.html")).unwrap()
}

/// Opens a page that cannot show its views, and checks that its first screen stands with a line.
fn check_first_screen(browser: Browser, file: &Path, line: &str, has_scripts: bool) {
    let questions = json!({ "kind": "plain", "hasScripts": has_scripts, "told": line });
    let answer = browser.open_page(file, &questions);
    let screen = answer["screen"].as_str().unwrap();
    assert!(screen.contains("How far to trust this"), "{screen}");
    assert!(
        answer["trouble"].as_str().unwrap().contains(line),
        "{answer}"
    );
    assert_eq!(answer["isAppHidden"], true, "{answer}");
}

#[test]
fn a_page_without_its_views_has_its_first_screen_and_says_why() {
    let _turn = Turn::share();
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let page = write_page(&folder);
    let data = page.find("id=\"capture\"").unwrap() + 1_000;
    fs::write(at("cut.html"), &page[..data]).unwrap();
    let mut edited = page.into_bytes();
    edited[data] = if edited[data] == b'A' { b'B' } else { b'A' };
    fs::write(at("edited.html"), edited).unwrap();
    for browser in [Browser::Chromium, Browser::Firefox] {
        check_first_screen(browser, &at("cut.html"), "the page was cut short", true);
        check_first_screen(
            browser,
            &at("edited.html"),
            "The views are not available",
            true,
        );
    }
    let whole = at("whole.html");
    check_first_screen(
        Browser::Chromium,
        &whole,
        "the browser runs no scripts",
        false,
    );
}
