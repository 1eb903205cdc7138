//! Other views of the same process: py-spy looks from outside, and faulthandler from inside.

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

use super::{Call, Row, assert_all_known, measure, nesting, read_rows};

/// Frame in the form that each tool reports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Frame {
    #[serde(rename = "name")]
    function: String,
    #[serde(rename = "filename")]
    file: String,
    line: u64,
}

/// Frames by thread, outermost first.
type Threads<Id> = BTreeMap<Id, Vec<Frame>>;

impl Frame {
    fn from_call(call: &Call) -> Frame {
        let base = call.file.rsplit('/').next().unwrap();
        let function = call.name.strip_prefix(base).unwrap().strip_prefix(':');
        Frame {
            function: function.unwrap().to_owned(),
            file: call.file.clone(),
            line: call.line,
        }
    }

    /// Returns whether this is the frame that 3.13 puts between a call of a class and the class's
    /// `__init__`. Both other tools report this frame. The frame has no code of the program, and
    /// `f_back` skips the frame.
    fn is_synthetic(&self) -> bool {
        self.function == "__init__" && self.file == "__init__" && self.line == 0
    }

    /// Removes the qualifier of the function's name.
    fn unqualified(mut self) -> Frame {
        self.function = self.function.rsplit('.').next().unwrap().to_owned();
        self
    }

    /// Escapes the names as faulthandler does.
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

/// Returns offcputime's frames by TID. Each thread stays in one place.
fn by_offcputime(held: &Workload) -> Threads<u32> {
    let (finished, stacks) = measure(held.pid(), held.folder(), "");
    assert_all_known("held", &stacks);
    let mut threads = Threads::new();
    for stack in stacks {
        let frames = stack.calls().iter().map(Frame::from_call).collect();
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

/// Returns py-spy's frames by TID.
///
/// # Panics
///
/// Panics if py-spy does not support this version. py-spy supports every version that the tools
/// support.
fn by_py_spy(held: &Workload) -> Threads<u32> {
    let mut command = Command::new(from_pypi("py-spy"));
    let pid = held.pid().to_string();
    let output = command.args(["dump", "--json", "--pid", &pid]).output();
    let output = output.unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let threads: Vec<Dumped> = serde_json::from_slice(&output.stdout).unwrap();
    let threads = threads.into_iter().map(|mut thread| {
        thread.frames.retain(|frame| !frame.is_synthetic());
        thread.frames.reverse();
        (thread.os_thread_id, thread.frames)
    });
    threads.collect()
}

/// Maximum frames of a thread that faulthandler writes. It writes the innermost ones.
const MAX_FRAMES: usize = 100;

/// Stack of a thread as faulthandler writes it.
#[derive(Debug, Default)]
struct Dump {
    /// Frames, outermost first.
    frames: Vec<Frame>,
    /// True if faulthandler stopped at a damaged frame.
    is_cut: bool,
}

/// Returns faulthandler's stacks by the interpreter's thread ID.
fn by_faulthandler(held: &Workload, dump: &Path) -> BTreeMap<u64, Dump> {
    let pid = Pid::from_raw(held.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::USR1).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(dump).unwrap();
        // The main thread gets the signal. It comes last, because it was started first.
        if text.contains("\nCurrent thread ") && text.ends_with(" in <module>\n") {
            return parse(&text);
        }
        assert!(Instant::now() < deadline, "{text}");
        sleep(Duration::from_millis(5));
    }
}

/// Parses threads: `[Current ]Thread 0xID [NAME] (most recent call first):`, and then frames from
/// the innermost on: `File "FILE", line LINE in FUNCTION`. Since 3.14.1 faulthandler takes a frame
/// without code for a damaged frame, and ends there.
fn parse(text: &str) -> BTreeMap<u64, Dump> {
    let mut threads = BTreeMap::new();
    let mut dump = Dump::default();
    // The loop reads lines from the last to the first.
    for line in text.lines().rev() {
        if let Some(frame) = line.strip_prefix("  File \"") {
            let (file, rest) = frame.rsplit_once("\", line ").unwrap();
            let (line, function) = rest.split_once(" in ").unwrap();
            let frame = Frame {
                function: function.to_owned(),
                file: file.to_owned(),
                // faulthandler writes `???` for a missing line.
                line: line.parse().unwrap_or(0),
            };
            let is_first = dump.frames.is_empty();
            assert!(!dump.is_cut || !is_first || frame.is_synthetic(), "{text}");
            dump.frames.push(frame);
        } else if line == "  <invalid frame>" {
            dump.is_cut = true;
        } else if let Some((_, id)) = line.split_once("hread 0x") {
            let id = id.split(' ').next().unwrap();
            let id = u64::from_str_radix(id, 16).unwrap();
            dump.frames.retain(|frame| !frame.is_synthetic());
            threads.insert(id, std::mem::take(&mut dump));
        }
    }
    threads
}

/// Starts scenes that block for ever, each in a thread of its own. Returns the rows that they
/// wrote.
fn hold(python: &Python) -> (Workload, Vec<Row>) {
    let folder = scratch();
    let truth = folder.path().join("truth");
    let mut command = Command::new(&python.path);
    command.arg(nesting()).arg(&truth).arg("hold");
    let held = Workload::run(command, python.path.clone(), folder);
    accounts_at_rest(held.pid());
    (held, read_rows(&truth))
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
        // In two scenes another thread waits for a thread that it started. The third further thread
        // is the main thread.
        assert_eq!(ours.len(), rows.len() + 3, "{what}");
        assert!(ours.keys().eq(py_spys.keys()), "{what}: {py_spys:#?}");
        assert_eq!(faulthandlers.len(), ours.len(), "{what}");
        for (tid, ours) in &ours {
            // Both tools use the names of the Python version. Before 3.11 names have no qualifiers.
            assert_eq!(ours, &py_spys[tid], "{what}: py-spy has {tid} so");
        }
        for row in &rows {
            let scene = &row.scene;
            let ours = &ours[&row.thread];
            let truth: Vec<Frame> = row.calls().iter().map(Frame::from_call).collect();
            assert_eq!(ours, &truth, "{what}: {scene} itself");

            // faulthandler always writes names without qualifiers.
            let Dump { frames, is_cut } = &faulthandlers[&row.ident];
            let most = if *is_cut { frames.len() } else { MAX_FRAMES };
            let innermost = &ours[ours.len().saturating_sub(most)..];
            let innermost = innermost.iter().cloned();
            let innermost: Vec<Frame> = innermost.map(|it| it.unqualified().escaped()).collect();
            let theirs = frames.iter().cloned();
            let theirs: Vec<Frame> = theirs.map(Frame::unqualified).collect();
            assert_eq!(innermost, theirs, "{what}: faulthandler has {scene} so");
        }
    }
}
