//! Others who look at the same process: py-spy from outside, faulthandler from inside.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use systemscope_tests::programs::django::from_pypi;
use systemscope_tests::programs::pythons::{Python, pythons};
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Turn, Workload, accounts_at_rest};

use super::{Call, Row, assert_all_known, nesting, told, watched};

/// A frame as all of them tell it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Frame {
    #[serde(rename = "name")]
    function: String,
    #[serde(rename = "filename")]
    file: String,
    line: u64,
}

/// The frames of threads, outermost first.
type Threads<Id> = BTreeMap<Id, Vec<Frame>>;

impl Frame {
    fn of(call: &Call) -> Frame {
        let base = call.file.rsplit('/').next().unwrap();
        let function = call.name.strip_prefix(base).unwrap().strip_prefix(':');
        Frame {
            function: function.unwrap().to_owned(),
            file: call.file.clone(),
            line: call.line,
        }
    }

    /// In 3.13 both others also have what the interpreter puts between a class that is called
    /// and its `__init__`: that is nobody's code, and `f_back` does not go there.
    fn is_nobodys(&self) -> bool {
        self.function == "__init__" && self.file == "__init__" && self.line == 0
    }

    /// Its name without what the function is in.
    fn simple(mut self) -> Frame {
        self.function = self.function.rsplit('.').next().unwrap().to_owned();
        self
    }

    /// As faulthandler writes it.
    fn escaped(mut self) -> Frame {
        self.function = escaped(&self.function);
        self.file = escaped(&self.file);
        self
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        let number = u32::from(character);
        match number {
            0x20..0x7f => escaped.push(character),
            0..0x20 | 0x7f..0x100 => write!(escaped, "\\x{number:02x}").unwrap(),
            0x100..0x1_0000 => write!(escaped, "\\u{number:04x}").unwrap(),
            _ => write!(escaped, "\\U{number:08x}").unwrap(),
        }
    }
    escaped
}

/// What offcputime has, by the kernel's ID: each thread is in one place all the time.
fn by_offcputime(held: &Workload) -> Threads<u32> {
    let (finished, stacks) = watched(held.pid(), held.folder(), "");
    assert_all_known("held", &stacks);
    let mut threads = Threads::new();
    for stack in stacks {
        let frames = stack.calls().iter().map(Frame::of).collect();
        let before = threads.insert(stack.tid, frames);
        assert!(before.is_none(), "a second: {stack:#?} {}", finished.stderr);
        assert!(stack.value >= 950_000_000, "{stack:#?}");
    }
    threads
}

#[derive(Deserialize)]
struct Dumped {
    os_thread_id: u32,
    frames: Vec<Frame>,
}

/// What py-spy has, by the kernel's ID.
///
/// # Panics
/// When it does not know this version: there is none that the tools know and it does not.
fn by_py_spy(held: &Workload) -> Threads<u32> {
    let mut command = Command::new(from_pypi("py-spy"));
    let pid = held.pid().to_string();
    let output = command.args(["dump", "--json", "--pid", &pid]).output();
    let output = output.unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let threads: Vec<Dumped> = serde_json::from_slice(&output.stdout).unwrap();
    let threads = threads.into_iter().map(|mut thread| {
        thread.frames.retain(|frame| !frame.is_nobodys());
        thread.frames.reverse();
        (thread.os_thread_id, thread.frames)
    });
    threads.collect()
}

/// The innermost frames of a thread, which is all that faulthandler has of more.
const MOST_FRAMES: usize = 100;

/// What faulthandler has of a thread.
#[derive(Debug, Default)]
struct Dump {
    /// Outermost first.
    frames: Vec<Frame>,
    /// It went no further.
    is_cut: bool,
}

/// What faulthandler has, by the interpreter's ID. It is asked once and for all.
fn by_faulthandler(held: &Workload, dump: &Path) -> BTreeMap<u64, Dump> {
    let pid = Pid::from_raw(held.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::USR1).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(dump).unwrap();
        // The main thread gets the signal, and is the last one: it was the first.
        if text.contains("\nCurrent thread ") && text.ends_with(" in <module>\n") {
            return parsed(&text);
        }
        assert!(Instant::now() < deadline, "{text}");
        sleep(Duration::from_millis(5));
    }
}

/// `[Current ]Thread 0xID [NAME] (most recent call first):`, and below it, innermost first,
/// `File "FILE", line LINE in FUNCTION`. Since 3.14.1 it takes what is nobody's for damaged,
/// and ends there.
fn parsed(text: &str) -> BTreeMap<u64, Dump> {
    let mut threads = BTreeMap::new();
    let mut dump = Dump::default();
    // From below.
    for line in text.lines().rev() {
        if let Some(frame) = line.strip_prefix("  File \"") {
            let (file, rest) = frame.rsplit_once("\", line ").unwrap();
            let (line, function) = rest.split_once(" in ").unwrap();
            let frame = Frame {
                function: function.to_owned(),
                file: file.to_owned(),
                // `???` where there is none.
                line: line.parse().unwrap_or(0),
            };
            let is_first = dump.frames.is_empty();
            assert!(!dump.is_cut || !is_first || frame.is_nobodys(), "{text}");
            dump.frames.push(frame);
        } else if line == "  <invalid frame>" {
            dump.is_cut = true;
        } else if let Some((_, id)) = line.split_once("hread 0x") {
            let id = id.split(' ').next().unwrap();
            let id = u64::from_str_radix(id, 16).unwrap();
            dump.frames.retain(|frame| !frame.is_nobodys());
            threads.insert(id, std::mem::take(&mut dump));
        }
    }
    threads
}

/// Scenes that block for good, each in a thread of its own; what they say of themselves.
fn hold(python: &Python) -> (Workload, Vec<Row>) {
    let folder = scratch();
    let truth = folder.path().join("truth");
    let mut command = Command::new(&python.path);
    command.arg(nesting()).arg(&truth).arg("hold");
    let held = Workload::run(command, python.path.clone(), folder);
    accounts_at_rest(held.pid());
    (held, told(&truth))
}

#[test]
#[ignore = "asks three other tools about every interpreter"]
fn others_see_the_same_frames_in_the_same_threads() {
    let _turn = Turn::share();
    for python in pythons() {
        let what = python.path.display();
        let (held, rows) = hold(&python);
        let ours = by_offcputime(&held);
        let py_spys = by_py_spy(&held);
        let dump = held.folder().join("truth.dump");
        let faulthandlers = by_faulthandler(&held, &dump);
        // Two scenes have somebody wait for the thread that they start, and there is the
        // main thread.
        assert_eq!(ours.len(), rows.len() + 3, "{what}");
        assert!(ours.keys().eq(py_spys.keys()), "{what}: {py_spys:#?}");
        assert_eq!(faulthandlers.len(), ours.len(), "{what}");
        for (tid, ours) in &ours {
            // Both have names as the version has them: before 3.11, simple ones.
            assert_eq!(ours, &py_spys[tid], "{what}: py-spy has {tid} so");
        }
        for row in &rows {
            let scene = &row.scene;
            let ours = &ours[&row.thread];
            let truth: Vec<Frame> = row.calls().iter().map(Frame::of).collect();
            assert_eq!(ours, &truth, "{what}: {scene} itself");

            // It has simple names always.
            let Dump { frames, is_cut } = &faulthandlers[&row.ident];
            let most = if *is_cut { frames.len() } else { MOST_FRAMES };
            let innermost = &ours[ours.len().saturating_sub(most)..];
            let innermost = innermost.iter().cloned();
            let innermost: Vec<Frame> = innermost.map(|it| it.simple().escaped()).collect();
            let theirs = frames.iter().cloned();
            let theirs: Vec<Frame> = theirs.map(Frame::simple).collect();
            assert_eq!(innermost, theirs, "{what}: faulthandler has {scene} so");
        }
    }
}
