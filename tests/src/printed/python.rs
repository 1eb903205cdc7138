//! Stacks with frames of Python, in the JSON object that docs/profile.schema.json describes.

use std::fs;
use std::path::Path;

use serde::Deserialize;

/// Beginning of the name of each frame that stands for unknown Python frames.
pub const UNKNOWN: &str = "[python: ";

/// A user stack with its value.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Value in nanoseconds or samples.
    pub value: u64,
    /// State `running`, `runnable` or `blocked`, if the tool tells states apart.
    pub state: Option<String>,
    /// The user frames, root first.
    pub frames: Vec<Frame>,
}

/// A frame of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Frame {
    /// Name of the function as tools show it.
    pub name: String,
    /// Kind of the frame, such as `user` or `python`.
    pub kind: String,
    /// Address in its binary. It tells frames without names apart.
    pub address: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in the source file.
    pub line: Option<u64>,
}

/// A frame of Python.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// `FILE:FUNCTION`, with the file's name without folders.
    pub name: String,
    /// Path of the file as the interpreter has it.
    pub file: String,
    /// Line of the call.
    pub line: u64,
}

#[derive(Deserialize)]
struct Object {
    frames: Vec<Frame>,
    samples: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    pid: Option<u32>,
    tid: Option<u32>,
    user: Vec<usize>,
    value: u64,
    state: Option<String>,
}

/// Reads the user stacks of a file. It leaves out samples without a process, such as idle time.
///
/// # Panics
///
/// Panics if the file cannot be read or does not have that format.
pub fn stacks(path: &Path) -> Vec<Stack> {
    let text = fs::read(path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
    read(&text)
}

fn read(text: &[u8]) -> Vec<Stack> {
    let object: Object = serde_json::from_slice(text).expect("a profile as JSON");
    let stacks = object.samples.into_iter().filter_map(|sample| {
        let frames = sample
            .user
            .iter()
            .map(|place| object.frames[*place].clone());
        Some(Stack {
            pid: sample.pid?,
            tid: sample.tid?,
            value: sample.value,
            state: sample.state,
            frames: frames.collect(),
        })
    });
    stacks.collect()
}

impl Frame {
    /// Returns whether the frame is a Python frame.
    pub fn is_python(&self) -> bool {
        self.kind == "python"
    }

    /// Returns the call of a Python frame; `None` for other frames.
    ///
    /// # Panics
    ///
    /// Panics if it is a Python frame without a file.
    fn call(&self) -> Option<Call> {
        self.is_python().then(|| Call {
            name: self.name.clone(),
            file: self
                .file
                .clone()
                .unwrap_or_else(|| panic!("{self:?} has no file")),
            // The frame at the start of a module has no line.
            line: self.line.unwrap_or(0),
        })
    }
}

impl Stack {
    /// Returns the stack's Python frames, root first.
    ///
    /// # Panics
    ///
    /// Panics if a Python frame has no file.
    pub fn calls(&self) -> Vec<Call> {
        self.frames.iter().filter_map(Frame::call).collect()
    }

    /// Returns the stack's frames of a language that have a file, root first.
    pub fn calls_in(&self, language: &str) -> Vec<Call> {
        let frames = self.frames.iter().filter(|frame| frame.kind == language);
        let calls = frames.filter_map(|frame| {
            Some(Call {
                name: frame.name.clone(),
                file: frame.file.clone()?,
                line: frame.line.unwrap_or(0),
            })
        });
        calls.collect()
    }

    /// Returns the names of the stack's native frames, root first.
    pub fn native(&self) -> Vec<&str> {
        let native = self.frames.iter().filter(|frame| frame.kind == "user");
        native.map(|frame| frame.name.as_str()).collect()
    }

    /// Returns the native frames that this stack has in addition to the native frames of another
    /// stack. Returns `None` if this stack does not contain all of the other's native frames in the
    /// same order.
    pub fn native_beyond<'a>(&'a self, other: &'a Stack) -> Option<Vec<&'a Frame>> {
        let [own, others] = [self, other].map(|stack| {
            let frames = stack.frames.iter();
            frames.filter(|frame| frame.kind == "user")
        });
        let mut others = others.peekable();
        let beyond = own.filter(|frame| others.next_if_eq(frame).is_none());
        let beyond = beyond.collect();
        others.peek().is_none().then_some(beyond)
    }

    /// Returns the names of the native frames between two Python functions, where the first calls
    /// the second.
    ///
    /// # Panics
    ///
    /// Panics if `callee` is not the next Python frame after `caller`.
    pub fn between(&self, caller: &str, callee: &str) -> Vec<&str> {
        let of_python = |frame: &&Frame| frame.is_python();
        let begin = self.frames.iter().position(|frame| frame.name == caller);
        let begin = begin.unwrap_or_else(|| panic!("no {caller} in {self:#?}")) + 1;
        let rest = &self.frames[begin..];
        let next = rest.iter().find(of_python).map(|frame| &*frame.name);
        assert_eq!(next, Some(callee), "after {caller}: {self:#?}");
        let native = rest.iter().take_while(|frame| !frame.is_python());
        native.map(|frame| frame.name.as_str()).collect()
    }

    /// Iterates over the names of frames that stand for unknown Python frames.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let names = self.frames.iter().map(|frame| frame.name.as_str());
        names.filter(|name| name.starts_with(UNKNOWN))
    }
}

impl Call {
    /// Builds a call of a function, in a file, on a line, to compare with.
    pub fn new(function: &str, file: &str, line: u64) -> Call {
        let base = file.rsplit('/').next().unwrap_or(file);
        Call {
            name: format!("{base}:{function}"),
            file: file.to_owned(),
            line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
        "frames": [
            {"name": "main", "kind": "user", "module": 0},
            {"name": "a.py:Outer.call", "kind": "python", "file": "/x/a.py", "line": 3},
            {"name": "list_sort", "kind": "user"},
            {"name": "<string>:key", "kind": "python", "file": "<string>", "line": 1},
            {"name": "[python: cut]", "kind": "marker"}
        ],
        "samples": [
            {"pid": 7, "tid": 8, "user": [0, 1, 2, 3], "kernel": [], "value": 5},
            {"pid": 7, "tid": 7, "user": [4, 0], "kernel": [0], "value": 6},
            {"pid": null, "tid": null, "user": [], "kernel": [], "value": 7}
        ]
    }"#;

    #[test]
    fn stacks_are_of_frames_of_both_kinds() {
        let [first, second] = &read(TEXT.as_bytes())[..] else {
            panic!("two")
        };
        assert_eq!((first.pid, first.tid, first.value), (7, 8, 5));
        let outer = Call::new("Outer.call", "/x/a.py", 3);
        assert_eq!(first.calls(), [outer, Call::new("key", "<string>", 1)]);
        assert_eq!(first.native(), ["main", "list_sort"]);
        let between = first.between("a.py:Outer.call", "<string>:key");
        assert_eq!(between, ["list_sort"]);
        let names = |beyond: Option<Vec<&Frame>>| {
            let beyond = beyond?.into_iter().map(|frame| frame.name.clone());
            Some(beyond.collect::<Vec<String>>())
        };
        let mut part = first.clone();
        part.frames.pop();
        part.frames.remove(0);
        assert_eq!(
            names(first.native_beyond(&part)),
            Some(vec!["main".to_owned()])
        );
        assert_eq!(names(first.native_beyond(first)), Some(Vec::new()));
        assert_eq!(part.native_beyond(first), None);
        assert_eq!(first.unknown().count(), 0);
        assert!(second.unknown().eq(["[python: cut]"]) && second.calls().is_empty());
    }

    #[test]
    #[should_panic(expected = "no file")]
    fn a_frame_of_python_has_a_file() {
        let text = TEXT.replace(r#", "file": "/x/a.py""#, "");
        read(text.as_bytes())[0].calls();
    }
}
