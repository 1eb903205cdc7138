//! Frames of JavaScript, against the frames that V8 reports about itself in `nesting.js`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde::Deserialize;
use systemscope_tests::printed::python::{Call, Stack, stacks};
use systemscope_tests::programs::nodes::{Node, nodes};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::wallclock;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Finished, Tool, Turn, Workload, accounts_at_rest, patiently};

/// Name of the language in kinds of frames.
const LANGUAGE: &str = "node";
/// Beginning of the name of each frame that stands for unknown JavaScript frames.
const UNKNOWN: &str = "[node: ";
/// Name of functions without a name, but for their first line.
const ANONYMOUS: &str = "(anonymous)";
/// Function that each scene ends in.
const END: &str = "nesting.js:end";

/// Number of runs before a scene is measured: none, so that functions are interpreted, and enough
/// for V8 to optimize them.
const COLD: &str = "0";
const WARM: &str = "3000";

/// Run of a scene of `nesting.js`, as V8 reports it.
#[derive(Debug, Deserialize)]
struct Row {
    scene: String,
    chain: Vec<(Option<String>, Option<String>, u64)>,
    seconds: f64,
}

impl Row {
    /// Returns the calls that have a file.
    fn calls(&self) -> Vec<Call> {
        let calls = self.chain.iter().filter_map(|(function, file, line)| {
            let function = function.as_deref().unwrap_or(ANONYMOUS);
            Some(Call::new(function, file.as_deref()?, *line))
        });
        calls.collect()
    }
}

/// Runs the scenes of `nesting.js` under a tool. Returns what V8 reports, and the stacks of the
/// tool.
fn run_nesting(
    node: &Node,
    flags: &[&str],
    arguments: &[&str],
    tool: &str,
) -> (Vec<Row>, Vec<Stack>) {
    let folder = scratch();
    let [truth, json] = ["truth", "run.json"].map(|name| folder.path().join(name));
    let mut command = Command::new(&node.path);
    command.args(flags).arg(source("nesting.js"));
    command.arg(&truth).args(arguments);
    let mut program = Workload::run(command, node.path.clone(), folder);
    accounts_at_rest(program.pid());
    let (name, options) = tool.split_once(' ').unwrap();
    let tool = Tool::new(name).args(options).args("--format json -o");
    let running = tool.arg(&json).pid(program.pid()).start_measuring();
    program.go();
    program.wait_done();
    running.signal(Signal::INT);
    running.finish_within(PATIENCE).succeeded();
    let text = fs::read_to_string(&truth).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (rows.collect(), stacks(&json))
}

/// Returns whether a stack has the calls of a row, from its first one on.
fn begins_with(stack: &Stack, calls: &[Call]) -> bool {
    scripted(stack).starts_with(calls)
}

/// Returns the stacks that contain the function of a scene and its end, for a message.
fn of_scene<'a>(stacks: &'a [Stack], row: &Row) -> Vec<&'a Stack> {
    let scene = format!("nesting.js:{}", row.scene);
    let has = |stack: &Stack, name: &str| stack.frames.iter().any(|frame| frame.name == name);
    let of_scene = stacks
        .iter()
        .filter(|stack| has(stack, &scene) && has(stack, END));
    of_scene.take(3).collect()
}

/// Checks that each scene blocked for its time with the frames that V8 reports.
fn assert_blocked_there(what: &str, rows: &[Row], stacks: &[Stack]) {
    // A thread that is preempted when its wait begins waits for the rest of the time.
    const LEAST: f64 = 0.5;
    assert!(rows.len() > 30, "{what}: {rows:?}");
    for row in rows {
        let calls = row.calls();
        let there = stacks.iter().filter(|stack| begins_with(stack, &calls));
        let time: u64 = there.map(|stack| stack.value).sum();
        assert!(
            time as f64 >= row.seconds * LEAST * 1e9,
            "{what}, {}: {time} ns: {calls:#?}\n{:#?}",
            row.scene,
            of_scene(stacks, row)
        );
    }
    // All time with the innermost function is in the frames of a scene, and no frame is missing.
    let chains: Vec<Vec<Call>> = rows.iter().map(Row::calls).collect();
    for stack in stacks {
        let is_blocked = stack.state.as_deref() == Some("blocked");
        let waits = stack
            .frames
            .iter()
            .any(|frame| frame.name == "nesting.js:wait");
        if is_blocked && waits {
            assert!(
                chains.iter().any(|chain| begins_with(stack, chain)),
                "{what}: {stack:#?}"
            );
            let mut marks = stack.frames.iter();
            assert!(
                !marks.any(|frame| frame.name.starts_with(UNKNOWN)),
                "{what}: {stack:#?}"
            );
        }
    }
}

#[test]
fn javascript_functions_are_where_v8_has_them() {
    let _turn = Turn::share();
    for node in nodes() {
        for (flags, runs) in [
            (&[][..], COLD),
            (&[], WARM),
            (&["--always-sparkplug"], COLD),
        ] {
            let what = format!("{}, {flags:?}, {runs} runs", node.name);
            // V8 replaces machine code while the tool waits for a CPU to read it.
            patiently(|| {
                let (rows, stacks) = run_nesting(&node, flags, &[runs], "offcputime --states");
                assert_blocked_there(&what, &rows, &stacks);
            });
        }
    }
}

/// Returns the names of calls, without lines.
fn names(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| &*call.name).collect()
}

/// Returns the stack's functions of scripts, root first, without the first lines that tell those
/// without a name apart. Builtins have no file.
fn scripted(stack: &Stack) -> Vec<Call> {
    let mut calls = stack.calls_in(LANGUAGE);
    calls.retain(|call| !call.file.is_empty());
    for call in &mut calls {
        if let Some((file, _)) = call.name.split_once(":(anonymous:") {
            call.name = format!("{file}:{ANONYMOUS}");
        }
    }
    calls
}

#[test]
fn javascript_that_computes_has_its_frames() {
    let _turn = Turn::share();
    for node in nodes() {
        for (flags, runs) in [
            (&[][..], COLD),
            (&[], WARM),
            (&["--always-sparkplug"], COLD),
        ] {
            let tool = "oncputime -F 999";
            let (rows, stacks) = run_nesting(&node, flags, &[runs, "busy"], tool);
            let what = format!("{}, {flags:?}, {runs} runs", node.name);
            let chains: Vec<Vec<Call>> = rows.iter().map(Row::calls).collect();
            let (mut right, mut all) = (0, 0);
            let mut wrong: HashMap<Vec<String>, u64> = HashMap::new();
            for stack in &stacks {
                let calls = scripted(stack);
                let computes = calls.iter().any(|call| call.name == "nesting.js:compute");
                if !computes {
                    continue;
                }
                all += stack.value;
                let names = names(&calls);
                let is_chain = |chain: &Vec<Call>| {
                    let chain = self::names(chain);
                    names.strip_prefix(&*chain) == Some(&["nesting.js:compute"])
                };
                if chains.iter().any(is_chain) {
                    right += stack.value;
                } else {
                    let names = names.iter().map(|name| (*name).to_owned());
                    *wrong.entry(names.collect()).or_default() += stack.value;
                }
            }
            // Each scene computes for 50 ms, of which other programs may take the most.
            let expected = rows.len() as u64 * 50 * 999 / 1000;
            assert!(all * 20 >= expected, "{what}: {all} of {expected} samples");
            assert!(
                right * 100 >= all * 99,
                "{what}: {right} of {all}: {wrong:#?}"
            );
        }
    }
}

/// Program that looks up strings in a map, for which V8 calls a builtin without a frame.
const LOOKS_UP: &str = "
const map = new Map();
for (let i = 0; i < 50000; i++) map.set('key' + i, i);
const keys = [...map.keys()];
function lookUp(key) { return map.get(key); }
function turn() { let sum = 0; for (const key of keys) sum += lookUp(key); return sum; }
for (let i = 0; i < 30; i++) turn();
require('fs').writeSync(1, 'ready\\n');
setInterval(turn, 0);
";

/// Compiled functions call builtins, which must not be taken for these functions. Without
/// functions of JavaScript, the leaf is always the native one.
#[test]
fn builtins_without_frames_are_leaves() {
    let _turn = Turn::share();
    let mut have_builtin = false;
    for node in nodes() {
        let program = start(&node, &[], LOOKS_UP);
        let share_of_builtin = |flags: &str| {
            let tool = Tool::new("oncputime").args("-F 499 -U").args(flags);
            let folded = tool.pid(program.pid()).folded(1.0);
            let leaves = folded.only(|line| line.leaf() == "Builtins_FindOrderedHashMapEntry");
            leaves.total() as f64 / folded.total() as f64
        };
        have_builtin |= patiently(|| {
            let [native, mixed] = ["--language none", ""].map(share_of_builtin);
            let what = format!("{}: {native} of native leaves, {mixed}", node.name);
            assert!((native - mixed).abs() < 0.15, "{what}");
            native > 0.3
        });
    }
    assert!(have_builtin, "no node calls the builtin");
}

/// Program that blocks in its line 4.
const ALREADY: &str = "
const fs = require('fs');
function outer() { return inner(); }
function inner() { fs.writeSync(1, 'ready\\n'); return fs.readSync(0, Buffer.alloc(1)); }
outer();
";

/// Starts a script that prints \"ready\" and blocks.
fn script(node: &Node, flags: &[&str], text: &str) -> Workload {
    let script = start(node, flags, text);
    accounts_at_rest(script.pid());
    script
}

/// Starts a script that prints \"ready\".
fn start(node: &Node, flags: &[&str], text: &str) -> Workload {
    let folder = scratch();
    let path = folder.path().join("already.js");
    fs::write(&path, text).unwrap();
    let mut command = Command::new(&node.path);
    command.args(flags).arg(path).current_dir(folder.path());
    Workload::run(command, node.path.clone(), folder)
}

/// Measures a process with offcputime for 1 s.
fn measure(pid: u32, folder: &Path, flags: &str) -> (Finished, Vec<Stack>) {
    let tool = Tool::new("offcputime").args("--format json -o run.json");
    let tool = tool.pid(pid).args(flags).arg("1").in_folder(folder);
    let finished = tool.run().succeeded();
    (finished, stacks(&folder.join("run.json")))
}

#[test]
fn javascript_that_blocked_before_the_window_has_its_frames() {
    let _turn = Turn::share();
    for node in nodes() {
        // With a map for perf, native frames of V8's code have names as well.
        for flags in [&[][..], &["--perf-basic-prof"]] {
            let already = script(&node, flags, ALREADY);
            let (finished, stacks) = measure(already.pid(), already.folder(), "");
            let blocked = stacks.iter().filter(|stack| {
                stack
                    .frames
                    .iter()
                    .any(|frame| frame.name == "already.js:inner")
            });
            let [stack] = &blocked.collect::<Vec<_>>()[..] else {
                panic!("{}: {stacks:#?} {}", node.name, finished.stderr)
            };
            assert!(stack.value >= 950_000_000, "{}: {stack:#?}", node.name);
            let of_script = |name: &str| {
                stack
                    .frames
                    .iter()
                    .filter(|it| it.name.contains(name))
                    .count()
            };
            assert_eq!(
                (of_script("outer"), of_script("inner")),
                (1, 1),
                "{}: {stack:#?}",
                node.name
            );
            let calls = scripted(stack);
            let lines: Vec<(&str, u64)> = calls
                .iter()
                .filter(|call| call.name.starts_with("already.js:"))
                .map(|call| (&*call.name, call.line))
                .collect();
            let expected = [
                ("already.js:(anonymous)", 5),
                ("already.js:outer", 3),
                ("already.js:inner", 4),
            ];
            assert_eq!(lines, expected, "{}: {stack:#?}", node.name);
        }
    }
}

/// Program whose functions without a name begin in its lines 4 and 6, and in line 9. V8 names one of
/// them after the variable.
const UNNAMED: &str = "
const fs = require('fs');
const block = (made) => { fs.writeSync(1, 'ready\\n'); fs.readSync(0, Buffer.alloc(1)); return made; };
const list = {}; list.of = [() => { const a = 1; let b = 2; return (function () {
    return block(a + b); })() + (() => a)(); }];
[1].forEach(function (some) {
    list.then = function () { return list.of[0]() + some; };
    const more = some;
    ((other) => { list.then(); return () => more + other; })(1);
});
";

#[test]
fn javascript_functions_without_a_name_have_their_first_line() {
    let _turn = Turn::share();
    for node in nodes() {
        let already = script(&node, &[], UNNAMED);
        let (_, stacks) = measure(already.pid(), already.folder(), "");
        let names = |stack: &Stack| {
            let calls = stack.calls_in(LANGUAGE).into_iter();
            let calls =
                calls.filter_map(|call| Some(call.name.strip_prefix("already.js:")?.to_owned()));
            calls.collect::<Vec<_>>()
        };
        let blocked = stacks
            .iter()
            .map(names)
            .find(|names| names.contains(&"block".to_owned()));
        let expected = [
            "(anonymous:1)",
            "(anonymous:6)",
            "(anonymous:9)",
            "list.then",
            "list.of",
            "(anonymous:4)",
            "block",
        ];
        assert_eq!(
            blocked.as_deref(),
            Some(&expected.map(str::to_owned)[..]),
            "{}",
            node.name
        );
    }
}

#[test]
fn javascript_is_chosen_and_missed() {
    let _turn = Turn::share();
    let node = &nodes()[0];
    let already = script(node, &[], ALREADY);
    let (pid, folder) = (already.pid(), already.folder());
    let (finished, native) = measure(pid, folder, "--language none");
    assert!(native.iter().all(|stack| scripted(stack).is_empty()));
    assert!(
        !finished.stderr.contains("JavaScript"),
        "{}",
        finished.stderr
    );
    let (finished, mixed) = measure(pid, folder, "--language node");
    assert!(mixed.iter().any(|stack| !scripted(stack).is_empty()));
    assert!(
        !finished.stderr.contains("--language"),
        "{}",
        finished.stderr
    );

    let simple = Workload::plain("simple");
    let (finished, stacks) = measure(simple.pid(), simple.folder(), "--language node");
    let said = "--language node: no process that was measured has a JavaScript interpreter";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
    assert!(!stacks.is_empty());
}

/// Program whose main thread wakes a worker every 20 ms.
const WAKES: &str = "
const { Worker, isMainThread, workerData } = require('worker_threads');
if (isMainThread) {
  const word = new Int32Array(new SharedArrayBuffer(4));
  new Worker(__filename, { workerData: word });
  function wake() { Atomics.notify(word, 0); }
  setInterval(function onInterval() { wake(); }, 20);
  setTimeout(() => require('fs').writeSync(1, 'ready\\n'), 300);
} else {
  function sleep() { Atomics.wait(workerData, 0, 0); }
  for (;;) { sleep(); }
}
";

#[test]
fn wakers_in_javascript_have_their_frames() {
    let _turn = Turn::share();
    for node in nodes() {
        let program = script(&node, &[], WAKES);
        let tool = Tool::new("offwaketime").pid(program.pid()).args("-f 1");
        let finished = tool.run().succeeded();
        let text = String::from_utf8_lossy(&finished.stdout).into_owned();
        let is_wake = |line: &&str| {
            line.contains(";already.js:sleep;")
                && line.contains("already.js:wake;already.js:onInterval")
        };
        assert!(
            text.lines().any(|line| is_wake(&line)),
            "{}: {text}",
            node.name
        );
    }
}

/// Returns the row of a function in the longest turns: their time, number and longest, as printed.
fn turns_of<'a>(report: &'a str, function: &str) -> Vec<&'a str> {
    let row = report
        .lines()
        .skip_while(|line| !line.starts_with("LONGEST TURNS"))
        .find(|line| line.trim_start().starts_with(function));
    let row = row.unwrap_or_else(|| panic!("no turn of {function}: {report}"));
    let figures = row.rsplit("  ").filter(|cell| !cell.trim().is_empty());
    figures.take(4).map(str::trim).collect()
}

/// Parses a length of time of a report, in µs.
fn microseconds(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap();
    let scale = match unit {
        "s" => 1e6,
        "ms" => 1e3,
        "µs" => 1.0,
        _ => panic!("{text}"),
    };
    number.parse::<f64>().unwrap() * scale
}

/// libuv counts the time of its loop outside `epoll_wait`, and the program times its long turns.
#[test]
fn turns_of_the_event_loop_are_those_that_node_measures() {
    let _turn = Turn::share();
    let node = nodes().into_iter().next().unwrap();
    patiently(|| {
        let folder = scratch();
        let capture = folder.path().join("run.scope");
        let mut command = Command::new(&node.path);
        command.arg(source("event_loop.js"));
        let mut program = Workload::run(command, node.path.clone(), folder);
        accounts_at_rest(program.pid());
        let tool = Tool::new("wallclock").args("-f 499 --timeline -o");
        let tool = tool.arg(&capture).arg(program.pid().to_string());
        let running = wallclock::start_measuring(tool);
        program.go();
        program.wait_done();
        running.signal(Signal::INT);
        let finished = running.finish_within(PATIENCE).succeeded();
        let report = String::from_utf8(finished.stdout).unwrap();

        for (function, told) in [
            ("event_loop.js:slow", "computed"),
            ("event_loop.js:sleeper", "slept"),
        ] {
            let figures = turns_of(&report, function);
            let [_, _, turns, total] = figures[..] else {
                panic!("{figures:?}")
            };
            assert_eq!(turns, program.told(told).to_string(), "{report}");
            let total = microseconds(total) / program.told(&format!("{told}_us")) as f64;
            assert!(
                (0.98..1.02).contains(&total),
                "{function}: {total}\n{report}"
            );
        }
        let (_, busy) = report.split_once("busy (").unwrap();
        let (busy, rest) = busy.split_once(" of ").unwrap();
        let (life, _) = rest.split_once(')').unwrap();
        let more = microseconds(busy) - program.told("active_us") as f64;
        assert!(
            more.abs() < microseconds(life) / 100.0,
            "{more} µs\n{report}"
        );
    });
}
