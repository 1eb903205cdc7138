//! Frames of PHP and Ruby, against the frames that the interpreters report about themselves in
//! `nesting.php` and `nesting.rb`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod php;
mod ruby;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde::Deserialize;
use systemscope_tests::printed::python::{Call, Stack, stacks};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::versions::{Version, all_fetched};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload, accounts_at_rest};

/// Tolerance in ns. It is far longer than the time that reading the clock takes before the wait.
const SLACK_NS: u64 = 1_000_000;

/// Frequency of samples, in Hz.
const HERTZ: f64 = 999.0;

/// Interpreter, with the program that has known nestings of calls.
struct Interpreter {
    /// Name of the language in captures.
    language: &'static str,
    path: PathBuf,
    program: &'static str,
    /// Function that blocks or computes, as the tools show it.
    innermost: &'static str,
}

/// Run of a scene, as the interpreter reports it.
#[derive(Debug, Deserialize)]
struct Row {
    scene: String,
    chain: Vec<(String, String, u64)>,
    seconds: f64,
    elapsed: f64,
}

impl Row {
    fn calls(&self) -> Vec<Call> {
        let calls = self.chain.iter();
        let call = |(function, file, line): &(String, String, u64)| match &**file {
            "" => without_file(function),
            file => Call::new(function, file, *line),
        };
        as_reported(calls.map(call).collect())
    }
}

fn without_file(function: &str) -> Call {
    Call {
        name: function.to_owned(),
        file: String::new(),
        line: 0,
    }
}

/// Makes calls equal that Ruby 3.4 reports otherwise than its frames are. It reports an own function
/// at its caller's place, like a function in C, a `rescue` as its method, and code of `eval` as the
/// block around it.
fn as_reported(calls: Vec<Call>) -> Vec<Call> {
    let mut reported: Vec<Call> = Vec::new();
    for mut call in calls {
        let internal = call.name.strip_prefix("<internal:");
        if let Some((_, function)) = internal.and_then(|name| name.split_once(">:")) {
            call = without_file(function);
        }
        if call.file == "of eval.rb" {
            call.name = "eval".to_owned();
        }
        if let Some((file, method)) = call.name.split_once(":rescue in ") {
            call.name = format!("{file}:{method}");
            reported.pop_if(|caller| caller.name == call.name);
        }
        reported.push(call);
    }
    reported
}

fn read_rows(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Row> = rows.collect();
    assert!(rows.len() > 40, "{}", rows.len());
    rows
}

/// Program that ran its scenes while a tool measured it.
struct Run {
    program: Workload,
    rows: Vec<Row>,
    output: PathBuf,
}

/// Measures the program with a tool while it runs its scenes. `flags` end with a format.
fn measure(interpreter: &Interpreter, tool: &str, flags: &str, mode: &str) -> Run {
    let folder = scratch();
    let [truth, output] = ["truth", "output"].map(|name| folder.path().join(name));
    let mut command = Command::new(&interpreter.path);
    command
        .arg(source(interpreter.program))
        .arg(&truth)
        .arg(mode);
    // The program existed before the window, so the tool knows all of its files.
    let mut program = Workload::run(command, interpreter.path.clone(), folder);
    let tool = Tool::new(tool).args(flags).arg("-o").arg(&output);
    let running = tool.pid(program.pid()).start_measuring();
    program.go();
    program.wait_done();
    running.signal(Signal::INT);
    running.finish_within(PATIENCE).succeeded();
    Run {
        rows: read_rows(&truth),
        program,
        output,
    }
}

/// Measures the program, and returns what it reports and the stacks of its process.
fn run(interpreter: &Interpreter, tool: &str, flags: &str, mode: &str) -> (Vec<Row>, Vec<Stack>) {
    let flags = format!("{flags} --format json");
    let run = measure(interpreter, tool, &flags, mode);
    let mut found = stacks(&run.output);
    found.retain(|stack| stack.pid == run.program.pid());
    (run.rows, found)
}

/// Returns the names of the marks in a stack for frames of a language.
fn marks<'a>(stack: &'a Stack, language: &str) -> Vec<&'a str> {
    let start = format!("[{language}: ");
    let names = stack.frames.iter().map(|frame| &*frame.name);
    names.filter(|name| name.starts_with(&start)).collect()
}

/// Checks that each scene blocked for its time in just the frames that the interpreter reports, and
/// that no other stack contains the innermost function for long.
fn check_blocked(interpreter: &Interpreter) {
    let language = interpreter.language;
    let (rows, stacks) = run(interpreter, "offcputime", "--states", "block");
    let mut times: BTreeMap<Vec<Call>, u64> = BTreeMap::new();
    let (mut all, mut marked) = (0, 0);
    for stack in &stacks {
        if stack.state.as_deref() == Some("runnable") {
            continue;
        }
        all += stack.value;
        marked += if marks(stack, language).is_empty() {
            0
        } else {
            stack.value
        };
        *times
            .entry(as_reported(stack.calls_in(language)))
            .or_default() += stack.value;
    }
    assert!(
        marked * 1000 <= all,
        "{marked} of {all}: {:?}",
        interpreter.path
    );
    let mut wrong = String::new();
    for row in &rows {
        let time = times.remove(&row.calls()).unwrap_or(0);
        let (least, most) = (row.seconds * 1e9, row.elapsed * 1e9);
        if time + SLACK_NS < least as u64 || time > most as u64 + SLACK_NS {
            wrong.push_str(&format!("{time} ns in {row:?}\n"));
        }
    }
    for (calls, time) in &times {
        let is_scene = calls
            .iter()
            .any(|call| call.name.ends_with(interpreter.innermost));
        if is_scene && *time > SLACK_NS {
            wrong.push_str(&format!(
                "{time} ns in {calls:?}, where the program never was\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{:?}:\n{wrong}", interpreter.path);
}

/// Returns the frames before the innermost function of the scenes; `None` if it is not there.
fn callers<'a>(interpreter: &Interpreter, calls: &'a [Call]) -> Option<&'a [Call]> {
    let is_innermost = |call: &Call| call.name.ends_with(interpreter.innermost);
    let at = calls.iter().position(is_innermost)?;
    calls.get(..at)
}

/// Checks that nearly all samples of the scenes are in just the frames that the interpreter
/// reports, and that each scene has the samples of its time.
fn check_running(interpreter: &Interpreter) {
    let language = interpreter.language;
    let (rows, stacks) = run(interpreter, "oncputime", "-F 999", "busy");
    let expected: Vec<Vec<Call>> = rows.iter().map(Row::calls).collect();
    let expected: BTreeMap<&[Call], &Row> = expected
        .iter()
        .map(|calls| callers(interpreter, calls).unwrap())
        .zip(&rows)
        .collect();
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut right, mut wrong, mut others) = (0, 0, 0);
    let mut examples = String::new();
    for stack in &stacks {
        let calls = as_reported(stack.calls_in(language));
        let found = callers(interpreter, &calls);
        match found.map(|callers| expected.get(callers)) {
            Some(Some(row)) if marks(stack, language).is_empty() => {
                right += stack.value;
                *samples.entry(&row.scene).or_default() += stack.value;
            }
            // The program sets scenes up, and writes the truth.
            None if marks(stack, language).is_empty() => others += stack.value,
            _ => {
                wrong += stack.value;
                examples.push_str(&format!("{:?} {calls:?}\n", marks(stack, language)));
            }
        }
    }
    let path = &interpreter.path;
    assert!(
        right >= wrong * 99,
        "{path:?}: {right} right, {wrong} wrong:\n{examples}"
    );
    assert!(
        others * 10 <= right,
        "{path:?}: {right} right, {others} in other code"
    );
    let least = |row: &Row| row.seconds * HERTZ / 2.0;
    for row in expected.values() {
        let found = samples.get(&*row.scene).copied().unwrap_or_default();
        assert!(
            found as f64 >= least(row),
            "{path:?}: {found} samples: {row:?}"
        );
    }
}

/// Checks that a waker shows the function that ends a wait. `reads` waits in the function
/// `function` until `writes` is called there.
fn check_wakers(interpreter: &Interpreter, function: &str, reads: &str, writes: &str) {
    let run = measure(interpreter, "offwaketime", "--format folded", "block");
    let text = fs::read_to_string(&run.output).unwrap();
    let waits_there = text.lines().any(|line| {
        // The waker's stack is from leaf to root.
        line.split_once(";--;").is_some_and(|(waiter, waker)| {
            waiter.contains(&format!("{function};{reads};")) && waker.contains(writes)
        })
    });
    assert!(waits_there, "{:?}: {text}", interpreter.path);
}

/// Checks that the language can be left out.
fn check_choice(interpreter: &Interpreter) {
    let language = interpreter.language;
    let stacks = |choice: &str| run(interpreter, "offcputime", choice, "block").1;
    let native = stacks("--language none");
    assert!(
        native
            .iter()
            .all(|stack| stack.calls_in(language).is_empty())
    );
    let mixed = stacks(&format!("--language {language}"));
    assert!(
        mixed
            .iter()
            .any(|stack| stack.calls_in(language).len() > 500)
    );
}

/// Programs that print a line and block, with the oldest version whose functions the tools read.
const BLOCKED: [(&str, Version, &str); 3] = [
    (
        "node",
        (18, 0),
        "console.log('ready'); require('fs').readSync(0, Buffer.alloc(1))",
    ),
    ("php", (8, 1), "<?php echo \"ready\\n\"; fgets(STDIN);"),
    ("ruby", (3, 0), "puts 'ready'; $stdout.flush; gets"),
];

#[test]
#[ignore = "runs old versions, which only make test-all fetches"]
fn versions_that_are_not_read_are_said_and_have_native_frames() {
    let _turn = Turn::share();
    for (language, oldest, text) in BLOCKED {
        let fetched = all_fetched(language).into_iter();
        for (_, path) in fetched.filter(|(version, _)| *version < oldest) {
            let folder = scratch();
            let [script, json] = ["script", "run.json"].map(|name| folder.path().join(name));
            fs::write(&script, text).unwrap();
            let mut command = Command::new(&path);
            command.arg(&script);
            let program = Workload::run(command, path.clone(), folder);
            accounts_at_rest(program.pid());
            let tool = Tool::new("offcputime").args("--format json -o").arg(&json);
            let finished = tool.pid(program.pid()).arg("1").run().succeeded();
            let said = "only the interpreter's own functions are shown";
            let lines = finished.stderr.lines().filter(|line| line.contains(said));
            assert_eq!(lines.count(), 1, "{path:?}: {}", finished.stderr);
            let stacks = stacks(&json);
            assert!(
                stacks.iter().any(|stack| stack.frames.len() > 5),
                "{path:?}: {stacks:#?}"
            );
            let is_native = |stack: &Stack| {
                stack.calls_in(language).is_empty() && marks(stack, language).is_empty()
            };
            assert!(stacks.iter().all(is_native), "{path:?}: {stacks:#?}");
        }
    }
}
