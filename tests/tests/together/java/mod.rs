//! Frames of Java, against the frames that the virtual machine reports about itself in
//! `Nesting.java`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod unloads;
mod waits;

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde::Deserialize;
use systemscope_tests::printed::python::{Stack, stacks};
use systemscope_tests::programs::javas::{Java, compile, java, javas};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload, patiently};

/// Beginning of the marks in stacks whose Java frames are not known.
const MARK: &str = "[java: ";
/// Frame of a stack that no program captured, as of waits that the window cuts.
const MISSED: &str = "[Missed User Stack]";
/// Time in which the virtual machine compiles the functions that run most.
const WARM_UP: Duration = Duration::from_secs(2);
/// Smallest share of samples in whole stacks.
const LEAST_SHARE: f64 = 0.98;

/// Thread of `Nesting.java`.
#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    tid: u32,
    /// Functions and lines, root first. A function without lines has a negative line.
    chain: Vec<(String, i64)>,
}

/// Running `Nesting.java`.
struct Nesting {
    workload: Workload,
    rows: Vec<Row>,
}

impl Nesting {
    fn start(java: &Java, flags: &str, mode: &str) -> Nesting {
        let folder = scratch();
        let file = folder.path().join("rows");
        compile(&source("Nesting.java"), folder.path());
        let mut command = Command::new(&java.path);
        command.args(["-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"]);
        command.args(flags.split_whitespace()).arg("-cp");
        command
            .arg(folder.path())
            .args(["Nesting", mode])
            .arg(&file);
        // Names of functions are not ASCII.
        command.env("LC_ALL", "C.UTF-8");
        let workload = Workload::run(command, java.path.clone(), folder);
        let rows = fs::read_to_string(file).unwrap();
        let rows = rows.lines().map(|line| serde_json::from_str(line).unwrap());
        let rows: Vec<Row> = rows.collect();
        assert!(rows.len() > 10, "{rows:?}");
        Nesting { workload, rows }
    }

    /// Returns the stacks of the threads of `rows`, from a run of a tool.
    fn measure(&self, tool: &str, flags: &str) -> Vec<Stack> {
        let file = self.workload.folder().join("run.json");
        let tool = Tool::new(tool)
            .args("--format json -o run.json")
            .args(flags);
        let tool = tool.pid(self.workload.pid()).arg("2");
        tool.in_folder(self.workload.folder()).run().succeeded();
        let stacks = stacks(&file).into_iter();
        stacks
            .filter(|stack| stack.frames.iter().all(|frame| frame.name != MISSED))
            .collect()
    }

    /// Returns the sum of the values in stacks that are whole, and in all.
    fn whole_of_all(&self, stacks: &[Stack], wrong: &mut String) -> (u64, u64) {
        let (mut whole, mut all) = (0, 0);
        for row in &self.rows {
            let of_thread = || stacks.iter().filter(|stack| stack.tid == row.tid);
            if of_thread().next().is_none() {
                wrong.push_str(&format!("{}: not seen\n", row.name));
            }
            for stack in of_thread() {
                all += stack.value;
                match row.difference(stack) {
                    None => whole += stack.value,
                    Some(difference) => {
                        wrong.push_str(&format!("{}: {difference}: {stack:?}\n", row.name));
                    }
                }
            }
        }
        (whole, all)
    }
}

impl Row {
    /// Returns in which way the stack is not of this thread. Below the thread's own functions are
    /// those of Java's library, in which it waits.
    fn difference(&self, stack: &Stack) -> Option<String> {
        let marks = stack.frames.iter().map(|frame| &frame.name);
        if let Some(mark) = { marks }.find(|name| name.starts_with(MARK)) {
            return Some(mark.clone());
        }
        let frames = stack.frames.iter().filter(|frame| frame.kind == "java");
        let frames: Vec<_> = frames.collect();
        let names = frames.iter().map(|frame| &frame.name);
        if !self
            .chain
            .iter()
            .map(|(name, _)| name)
            .eq(names.take(self.chain.len()))
        {
            return Some("other functions".to_owned());
        }
        // The thread can also be at the end of its loop, one line before.
        let callers = &self.chain[..self.chain.len() - 1];
        let has_line = |(_, line): &&(String, i64)| *line > 0;
        let lines = callers
            .iter()
            .zip(&frames)
            .filter(|(call, _)| has_line(call));
        let mut wrong = { lines }.filter(|((_, line), frame)| frame.line != Some(*line as u64));
        let wrong = wrong.next();
        wrong.map(|((name, line), frame)| format!("{name}: line {line}, not {:?}", frame.line))
    }
}

/// Checks that all time of waiting threads is in whole stacks, read by programs at each wait.
fn assert_waits_are_whole(java: &Java, flags: &str) {
    let nesting = Nesting::start(java, flags, "repeat");
    sleep(WARM_UP);
    patiently(|| {
        let stacks = nesting.measure("offcputime", "--states");
        let waits = stacks.into_iter();
        let waits = waits.filter(|stack| stack.state.as_deref() == Some("blocked"));
        let waits: Vec<Stack> = waits.collect();
        let mut wrong = String::new();
        let (whole, all) = nesting.whole_of_all(&waits, &mut wrong);
        assert!(
            whole == all && wrong.is_empty(),
            "{java:?} {flags}: {whole} of {all}:\n{wrong}"
        );
    });
}

/// Checks that samples of working threads are in whole stacks.
fn assert_samples_are_whole(java: &Java, flags: &str) {
    let nesting = Nesting::start(java, flags, "work");
    sleep(WARM_UP);
    patiently(|| {
        let samples = nesting.measure("oncputime", "-F 999");
        let mut wrong = String::new();
        let (whole, all) = nesting.whole_of_all(&samples, &mut wrong);
        assert!(
            all > 100 && whole as f64 >= all as f64 * LEAST_SHARE,
            "{java:?} {flags}: {whole} of {all}:\n{wrong}"
        );
    });
}

#[test]
fn every_wait_is_where_the_machine_has_it() {
    let _turn = Turn::share();
    assert_waits_are_whole(&java(), "");
}

#[test]
fn threads_that_blocked_before_the_window_have_their_frames() {
    let _turn = Turn::share();
    let nesting = Nesting::start(&java(), "", "hold");
    patiently(|| {
        let stacks = nesting.measure("offcputime", "--states");
        let mut wrong = String::new();
        let (whole, all) = nesting.whole_of_all(&stacks, &mut wrong);
        assert!(
            whole == all && wrong.is_empty(),
            "{whole} of {all}:\n{wrong}"
        );
        assert!(all >= 1_900_000_000 * nesting.rows.len() as u64, "{all}");
    });
}

#[test]
fn samples_are_where_the_machine_has_them() {
    let _turn = Turn::share();
    assert_samples_are_whole(&java(), "");
}

#[test]
#[ignore = "starts each virtual machine in each of its modes"]
fn frames_of_interpreted_and_compiled_code_are_known() {
    let _turn = Turn::share();
    for java in javas() {
        for flags in ["", "-Xint", "-Xcomp", "-XX:TieredStopAtLevel=1"] {
            assert_waits_are_whole(&java, flags);
            assert_samples_are_whole(&java, flags);
        }
    }
}

#[test]
fn languages_are_chosen_by_name() {
    let _turn = Turn::share();
    let nesting = Nesting::start(&java(), "", "hold");
    let has_java = |flags: &str| {
        let stacks = nesting.measure("offcputime", flags);
        let mut frames = stacks.iter().flat_map(|stack| &stack.frames);
        frames.any(|frame| frame.kind == "java" || frame.name.starts_with(MARK))
    };
    patiently(|| assert!(has_java("--language java")));
    assert!(!has_java("--language none"));
    assert!(!has_java("--language python"));
}
