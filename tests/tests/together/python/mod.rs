//! Frames of Python, against the frames that the interpreter reports about itself in `nesting.py`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod damages;
mod embedding;
mod pools;
mod second_opinions;
mod servers;
mod stubs;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde::Deserialize;
use systemscope_tests::printed::python::{Call, Stack, stacks};
use systemscope_tests::programs::pythons::{Python, pythons, some_pythons};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Finished, Folded, Tool, Turn, Workload, accounts_at_rest, patiently};
use tempfile::TempDir;

/// Function that evaluates frames of Python. The tools show these frames in its place.
const EVALUATION: &str = "_PyEval_EvalFrameDefault";

/// Label of functions whose native frames are not known: while libraries are loaded, and beyond the
/// native frames that a tool keeps.
const NOT_PLACED: &str = "[python: not placed]";

/// Label of functions in stacks that a tool captured before it knew the interpreter.
const NOT_READ: &str = "[python: not read]";

/// Tolerance in ns. It is far longer than the time that reading the clock takes before the wait.
const SLACK_NS: u64 = 1_000_000;

/// Run of a scene of `nesting.py`, as the interpreter reports it.
#[derive(Debug, Deserialize)]
struct Row {
    scene: String,
    chain: Vec<(String, String, u64)>,
    thread: u32,
    ident: u64,
    seconds: f64,
    elapsed: f64,
}

impl Row {
    fn calls(&self) -> Vec<Call> {
        let calls = self.chain.iter();
        let calls = calls.map(|(function, file, line)| Call::new(function, file, *line));
        calls.collect()
    }
}

fn read_rows(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Row> = rows.collect();
    assert!(!rows.is_empty());
    rows
}

fn nesting() -> PathBuf {
    source("nesting.py")
}

/// Runs `nesting.py` from start to end. Returns the rows that it wrote, and the stacks.
fn run_nesting(python: &Python, flags: &str, mode: &str) -> (Vec<Row>, Vec<Stack>) {
    let program = [python.path.as_path(), &nesting(), "truth".as_ref()];
    let program = program.map(|word| word.to_str().unwrap());
    let flags = format!("--states {flags} --");
    let (folder, _, stacks) = run_under_offcputime(&flags, &[&program[..], &[mode]].concat(), &[]);
    (read_rows(&folder.path().join("truth")), stacks)
}

/// Runs a program under offcputime, in a folder with these files. To learn of an interpreter the
/// tool must wait for a CPU and a disk. A run in which the tool learned of it too late is repeated.
fn run_under_offcputime(
    flags: &str,
    program: &[&str],
    files: &[(&str, &str)],
) -> (TempDir, Finished, Vec<Stack>) {
    patiently(|| {
        let folder = scratch();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let tool = Tool::new("offcputime").args("--format json -o run.json");
        let tool = program
            .iter()
            .fold(tool.args(flags), |tool, word| tool.arg(word));
        let finished = tool.in_folder(folder.path()).run().succeeded();
        let stacks = stacks(&folder.path().join("run.json"));
        assert_known_soon(&program.join(" "), &stacks);
        (folder, finished, stacks)
    })
}

/// Largest time in one stack, and the sum over all stacks.
#[derive(Debug, Default)]
struct Time {
    one_ns: u64,
    all_ns: u64,
}

/// Time by thread and by calls in Python.
type Times = BTreeMap<(u32, Vec<Call>), Time>;

/// Returns the times of the stacks that end in the innermost calls of these scenes.
fn times_at_ends(rows: &[Row], stacks: &[Stack]) -> Times {
    let ends: HashSet<(u32, Call)> = rows
        .iter()
        .map(|row| (row.thread, row.calls().pop().unwrap()))
        .collect();
    let mut times = Times::new();
    for stack in stacks {
        let calls = stack.calls();
        let end = calls.last().map(|last| (stack.tid, last.clone()));
        if end.is_some_and(|end| ends.contains(&end)) {
            let time = times.entry((stack.tid, calls)).or_default();
            time.one_ns = time.one_ns.max(stack.value);
            time.all_ns += stack.value;
        }
    }
    times
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Returns whether functions are missing from a stack. Missing native frames between them do not
/// count.
fn has_gaps(stack: &Stack) -> bool {
    stack.unknown().any(|mark| mark != NOT_PLACED)
}

/// Returns whether a thread waited by itself. A preempted thread did not.
fn is_waiting(stack: &Stack) -> bool {
    stack.state.as_deref() != Some("runnable")
}

/// Returns whether all missing functions ran before the tool knew the interpreter.
fn is_early(stack: &Stack) -> bool {
    has_gaps(stack) && stack.unknown().all(|mark| mark == NOT_READ)
}

/// Returns the time in stacks of waiting threads, and the part of it that `is_counted`.
fn waiting_time(stacks: &[Stack], is_counted: impl Fn(&Stack) -> bool) -> (u64, u64) {
    let waiting = || stacks.iter().filter(|stack| is_waiting(stack));
    let counted = waiting().filter(|stack| is_counted(stack));
    let total = |stack: &Stack| stack.value;
    (waiting().map(total).sum(), counted.map(total).sum())
}

/// Checks early stacks. All frames of an interpreter may be missing in its first moments.
fn assert_known_soon(what: &str, stacks: &[Stack]) {
    let (all, early) = waiting_time(stacks, is_early);
    assert!(early * 10 <= all, "{what}: {early} of {all} early on");
}

/// Checks that nearly all time of waiting threads is in whole stacks. If a thread is preempted
/// while it changes its frames, frames may be missing until the thread runs again. With `--states`
/// such stacks do not count.
fn assert_all_known(what: &str, stacks: &[Stack]) {
    assert_known_soon(what, stacks);
    let has_gap = |stack: &Stack| has_gaps(stack) && !is_early(stack);
    let (all, late) = waiting_time(stacks, has_gap);
    let marks = stacks.iter().filter(|stack| has_gap(stack));
    let marks: Vec<&str> = marks.flat_map(Stack::unknown).collect();
    assert!(late * 100 <= all, "{what}: {late} of {all}: {marks:?}");
}

/// Returns the stacks that end in these scenes and contain the interpreter's evaluation function.
/// The leaf does not count, because the thread may just have entered the function for a frame that
/// does not exist yet. Stacks with functions that are not placed contain all native frames. They
/// take little of the time.
fn evaluations<'a>(rows: &[Row], stacks: &'a [Stack]) -> Vec<&'a Stack> {
    let ends: HashSet<Call> = rows.iter().filter_map(|row| row.calls().pop()).collect();
    let of_scenes = |stack: &&Stack| stack.calls().pop().is_some_and(|end| ends.contains(&end));
    let total = |stacks: &[&Stack]| -> u64 { stacks.iter().map(|stack| stack.value).sum() };
    let (placed, unplaced): (Vec<&Stack>, Vec<&Stack>) = (stacks.iter().filter(of_scenes))
        .partition(|stack| stack.unknown().all(|mark| mark != NOT_PLACED));
    assert!(
        total(&unplaced) * 20 <= total(&placed),
        "not placed: {unplaced:?}"
    );
    let is_there = |stack: &&Stack| {
        let mut callers = stack.frames.iter().rev().skip(1);
        callers.any(|frame| frame.name.contains(EVALUATION))
    };
    placed.into_iter().filter(is_there).collect()
}

#[test]
fn every_frame_is_where_the_interpreter_has_it() {
    let _turn = Turn::share();
    for python in pythons() {
        let what = python.path.display().to_string();
        let (rows, stacks) = run_nesting(&python, "", "block");
        assert_all_known(&what, &stacks);
        let evaluations = evaluations(&rows, &stacks);
        assert!(evaluations.is_empty(), "{what}: {evaluations:?}");
        let mut times = times_at_ends(&rows, &stacks);
        let mut wrong = String::new();
        for row in rows {
            let scene = &row.scene;
            // No two scenes have the same chain of calls.
            match times.remove(&(row.thread, row.calls())) {
                None => wrong.push_str(&format!("{scene}: not seen: {:?}\n", row.chain)),
                // The thread computes the end of its sleep before it releases the interpreter's
                // lock. A wait for that lock has another native stack.
                Some(time)
                    if time.all_ns + SLACK_NS < nanoseconds(row.seconds)
                        || time.one_ns > nanoseconds(row.elapsed) + SLACK_NS =>
                {
                    wrong.push_str(&format!("{scene}: {time:?} of {row:?}\n"));
                }
                Some(_) => (),
            }
        }
        for ((tid, calls), time) in times {
            wrong.push_str(&format!("{tid} was never there: {time:?} {calls:?}\n"));
        }
        assert!(wrong.is_empty(), "{what}:\n{wrong}");
    }
}

/// Returns the stacks with these frames of Python. Each run has another folder of imported files,
/// so folders are ignored.
fn with_calls<'a>(stacks: &'a [Stack], calls: &[Call]) -> Vec<&'a Stack> {
    let places = |calls: &[Call]| {
        let all = calls.iter().map(|call| (call.name.clone(), call.line));
        all.collect::<Vec<_>>()
    };
    let calls = places(calls);
    let there = stacks
        .iter()
        .filter(|stack| places(&stack.calls()) == calls);
    there.collect()
}

/// Returns whether each stack of `shown` is a stack of `hidden` with added functions of the
/// interpreter.
fn has_own_functions(shown: &[&Stack], hidden: &[&Stack]) -> bool {
    // Some binaries have no name for the function.
    let is_own = |name: &str| name.contains(EVALUATION) || name.starts_with('[');
    let mut beyond = shown.iter().flat_map(|shown| {
        hidden
            .iter()
            .filter_map(|hidden| shown.native_beyond(hidden))
    });
    beyond.any(|own| !own.is_empty() && own.iter().all(|it| is_own(&it.name)))
}

/// A thread that is preempted before its sleep has another stack, too. A preemption longer than the
/// sleep leaves no sleep, so the run is repeated.
#[test]
#[ignore = "runs every scene twice in each interpreter"]
fn the_interpreters_own_functions_are_shown_where_that_is_asked() {
    let _turn = Turn::share();
    for python in some_pythons() {
        patiently(|| {
            let (_, hidden) = run_nesting(&python, "", "block");
            let (rows, shown) = run_nesting(&python, "--native-python", "block");
            let times = times_at_ends(&rows, &shown);
            for row in rows {
                let calls = row.calls();
                let what = format!("{python:?}: {row:?}");
                let [hidden, shown] = [&hidden, &shown].map(|stacks| with_calls(stacks, &calls));
                assert!(times.contains_key(&(row.thread, calls)), "{what}");
                assert!(
                    has_own_functions(&shown, &hidden),
                    "{what}: {shown:#?} instead of {hidden:#?}"
                );
            }
        });
    }
}

/// C functions that call back into Python: scene, called Python function, and a part of the C
/// functions' names.
const THROUGH_C: [(&str, &str, &str); 4] = [
    ("a_sort_key", "key_of", "sort"),
    ("a_map", "key_of", "map_next"),
    ("reduce", "reduce.<locals>.<lambda>", "functools_reduce"),
    ("a_callback_from_ctypes", "compare", "qsort"),
];

#[test]
#[ignore = "needs interpreters with symbols, and runs each"]
fn functions_in_c_are_between_those_that_they_are_between() {
    let _turn = Turn::share();
    for python in pythons().iter().filter(|python| python.has_symbols) {
        let (rows, stacks) = run_nesting(python, "", "block");
        for (scene, callee, function) in THROUGH_C {
            let is_of_scene = |row: &&Row| row.scene.split(", ").next() == Some(scene);
            let rows: Vec<&Row> = rows.iter().filter(is_of_scene).collect();
            assert_eq!(rows.len(), 2, "{scene}");
            for row in rows {
                // Versions before 3.11 have names without qualifiers.
                let full = row.chain.iter().any(|(name, _, _)| name == callee);
                let callee = if full {
                    callee
                } else {
                    callee.rsplit('.').next().unwrap()
                };
                let calls = row.calls();
                // A preempted thread may have one more native frame than Python has frames.
                let is_in_row = |stack: &&Stack| {
                    stack.tid == row.thread && stack.calls() == calls && is_waiting(stack)
                };
                let stack = stacks.iter().find(is_in_row);
                let stack = stack.unwrap_or_else(|| panic!("{python:?}: {row:?}"));
                let [caller, callee] = [scene, callee].map(|name| format!("nesting.py:{name}"));
                let between = stack.between(&caller, &callee);
                assert!(
                    between.iter().any(|name| name.contains(function)),
                    "{python:?}, {scene}: {between:?} in {stack:#?}"
                );
            }
        }
    }
}

/// A thread waits for the interpreter's lock inside the call that released the lock.
#[test]
fn who_waits_for_the_interpreters_lock_is_where_it_was_given_away() {
    let _turn = Turn::share();
    for python in some_pythons() {
        let what = python.path.display().to_string();
        let (mut rows, stacks) = run_nesting(&python, "", "gil");
        assert_all_known(&what, &stacks);
        rows.retain(|row| row.calls().last().unwrap().name == "nesting.py:wait_for_the_lock");
        let times = times_at_ends(&rows, &stacks);
        let mut elapsed: BTreeMap<(u32, Vec<Call>), f64> = BTreeMap::new();
        for row in &rows {
            *elapsed.entry((row.thread, row.calls())).or_default() += row.elapsed;
        }
        assert_eq!(elapsed.len(), 2, "{what}: {rows:?}");
        assert!(
            times.keys().eq(elapsed.keys()),
            "{what}: {times:?} {rows:?}"
        );
        for (time, elapsed) in times.values().zip(elapsed.values()) {
            let elapsed = nanoseconds(*elapsed);
            // Meanwhile the thread wakes to request the lock.
            let range = elapsed * 9 / 10 - SLACK_NS..=elapsed + SLACK_NS;
            assert!(range.contains(&time.all_ns), "{what}: {time:?} {range:?}");
        }
    }
}

/// Python program that blocks in its line 6.
const ALREADY: &str = "
import time
def outer():
    inner()
def inner():
    print('ready', flush=True); time.sleep(1000)
outer()
";

/// Starts a script that prints "ready" and blocks.
fn script(python: &Python, text: &str, argument: &str) -> Workload {
    let mut command = Command::new(&python.path);
    command.args(["-c", text, argument]);
    let script = Workload::run(command, python.path.clone(), scratch());
    accounts_at_rest(script.pid());
    script
}

/// Measures a process with offcputime for 1 s.
fn measure(pid: u32, folder: &Path, flags: &str) -> (Finished, Vec<Stack>) {
    let tool = Tool::new("offcputime").args("--format json -o run.json");
    let tool = tool.pid(pid).args(flags).arg("1").in_folder(folder);
    let finished = tool.run().succeeded();
    (finished, stacks(&folder.join("run.json")))
}

#[test]
fn who_blocked_before_the_window_has_its_frames() {
    let _turn = Turn::share();
    for python in pythons() {
        let already = script(&python, ALREADY, "");
        let (finished, stacks) = measure(already.pid(), already.folder(), "");
        let [stack] = &stacks[..] else {
            panic!("{python:?}: {stacks:#?} {}", finished.stderr)
        };
        assert!(stack.value >= 950_000_000, "{python:?}: {stack:#?}");
        assert_all_known("blocked before", &stacks);
        let chain = [("<module>", 7), ("outer", 4), ("inner", 6)];
        let chain = chain.map(|(function, line)| Call::new(function, "<string>", line));
        assert_eq!(stack.calls(), chain, "{python:?}: {stack:#?}");

        // The folded text has the same functions.
        let folded: Folded = Tool::new("offcputime").pid(already.pid()).folded(0.5);
        let [line] = &folded.lines[..] else {
            panic!("{python:?}: {folded}")
        };
        let of_script = line.frames.iter().filter(|it| it.starts_with("<string>:"));
        let chain = ["<string>:<module>", "<string>:outer", "<string>:inner"];
        assert!(of_script.eq(chain), "{python:?}: {line}");
    }
}

/// Returns the functions and files of a chain, without lines.
fn functions(calls: &[Call]) -> Vec<(&str, &str)> {
    let functions = calls.iter().map(|call| (&*call.name, &*call.file));
    functions.collect()
}

/// Returns whether a stack is whole and lies between the entry of `busy` and the call of
/// `innermost`. Code that enters and leaves the scenes takes about 1 % of the time.
fn is_setup_code(stack: &Stack) -> bool {
    let calls = stack.calls();
    let has = |function: &str| calls.iter().any(|call| call.name == function);
    !has_gaps(stack) && has("nesting.py:busy") && !has("nesting.py:innermost")
}

#[test]
fn what_computes_has_its_frames() {
    const HERTZ: f64 = 999.0;
    let _turn = Turn::share();
    for python in some_pythons() {
        let folder = scratch();
        let [truth, json] = ["truth", "run.json"].map(|name| folder.path().join(name));
        let mut command = Command::new(&python.path);
        command.arg(nesting()).arg(&truth).arg("busy");
        // The program existed before the window. In the window it runs only its scenes.
        let mut busy = Workload::run(command, python.path.clone(), folder);
        let tool = Tool::new("oncputime").args("-F 999 --format json -o");
        let running = tool.arg(&json).pid(busy.pid()).start_measuring();
        busy.go();
        busy.wait_done();
        running.signal(Signal::INT);
        running.finish_within(PATIENCE).succeeded();

        let rows = read_rows(&truth);
        let (mut right, mut set_up, mut all) = (0, 0, 0);
        let mut of_scenes: BTreeMap<&str, u64> = BTreeMap::new();
        let mut others: Vec<(u64, Vec<Call>)> = Vec::new();
        let chains: Vec<Vec<Call>> = rows.iter().map(Row::calls).collect();
        for stack in stacks(&json) {
            all += stack.value;
            let calls = stack.calls();
            let mut pairs = rows.iter().zip(&chains);
            let found = pairs.find(|(row, chain)| {
                let Some((there, beyond)) = calls.split_at_checked(chain.len()) else {
                    return false;
                };
                // After its computation a scene calls `tell`.
                let tells = beyond
                    .first()
                    .is_none_or(|call| call.name == "nesting.py:tell");
                row.thread == stack.tid && functions(chain) == functions(there) && tells
            });
            match found {
                Some((row, chain)) => {
                    right += stack.value;
                    if chain.len() == calls.len() {
                        *of_scenes.entry(&row.scene).or_default() += stack.value;
                    }
                }
                None if is_setup_code(&stack) => set_up += stack.value,
                None => others.push((stack.value, calls)),
            }
        }
        assert!(
            right * 1000 >= (all - set_up) * 995,
            "{python:?}: {right} of {all}, {set_up} in set-up code, and {others:#?}"
        );
        assert!(set_up * 20 <= all, "{python:?}: {set_up} of {all} set up");
        for row in &rows {
            let samples = of_scenes.get(&*row.scene).copied().unwrap_or_default() as f64;
            // No sample is taken while the hypervisor takes the CPU.
            let expected = row.seconds * HERTZ;
            assert!(samples >= expected / 2.0, "{python:?}: {samples}: {row:?}");
        }
    }
}

#[test]
fn languages_are_chosen_and_missed() {
    let _turn = Turn::share();
    let python = &pythons()[0];
    let already = script(python, ALREADY, "");
    let (pid, folder) = (already.pid(), already.folder());
    let (finished, native) = measure(pid, folder, "--language none");
    assert!(native.iter().all(|stack| stack.calls().is_empty()));
    assert!(!finished.stderr.contains("Python"), "{}", finished.stderr);
    let (finished, mixed) = measure(pid, folder, "--language python");
    assert!(mixed.iter().all(|stack| stack.calls().len() == 3));
    assert!(
        !finished.stderr.contains("--language"),
        "{}",
        finished.stderr
    );

    let simple = Workload::plain("simple");
    let (finished, stacks) = measure(simple.pid(), simple.folder(), "--language python");
    let said = "--language python: no process that was measured has a Python interpreter";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
    assert!(!stacks.is_empty());
}
