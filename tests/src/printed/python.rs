//! Stacks with frames of Python, in the JSON object that docs/profile.schema.json describes.

use std::fs;
use std::path::Path;

use serde::Deserialize;

/// How the name of a frame begins that stands for frames of Python that are not known.
pub const UNKNOWN: &str = "[python: ";

/// A user stack, and how much of the unit was spent there.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Nanoseconds, or samples.
    pub value: u64,
    /// Running, runnable or blocked, where these are told apart.
    pub state: Option<String>,
    /// The user frames, root first.
    pub frames: Vec<Frame>,
}

/// A frame, as the object has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Frame {
    /// The function as it is shown.
    pub name: String,
    /// Whose function it is.
    pub kind: String,
    /// Where it is in its binary, which tells those without a name apart.
    pub address: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u64>,
}

/// A frame of Python.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// `FILE:FUNCTION`, of the file without its folders.
    pub name: String,
    /// The file as the interpreter has it.
    pub file: String,
    /// Where in it the call is.
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

/// The user stacks of a file; what is of no process, such as idle time, is left out.
///
/// # Panics
///
/// When it is not as described.
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
    /// Whether it is one of Python.
    pub fn is_python(&self) -> bool {
        self.kind == "python"
    }

    /// # Panics
    ///
    /// When it is of Python, and without its file.
    fn call(&self) -> Option<Call> {
        self.is_python().then(|| Call {
            name: self.name.clone(),
            file: self
                .file
                .clone()
                .unwrap_or_else(|| panic!("{self:?} has no file")),
            // What begins a module has none.
            line: self.line.unwrap_or(0),
        })
    }
}

impl Stack {
    /// Its frames of Python, root first.
    ///
    /// # Panics
    ///
    /// When one of them is without its file.
    pub fn calls(&self) -> Vec<Call> {
        self.frames.iter().filter_map(Frame::call).collect()
    }

    /// The names of its other frames, root first.
    pub fn native(&self) -> Vec<&str> {
        let native = self.frames.iter().filter(|frame| frame.kind == "user");
        native.map(|frame| frame.name.as_str()).collect()
    }

    /// The native frames that are here and not in another stack, if all of those that are there
    /// are here, in the same order.
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

    /// The names of the native frames between two functions of Python, of which one has
    /// called the other.
    ///
    /// # Panics
    ///
    /// When they do not follow each other here.
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

    /// The names of frames that stand for those of Python that are not known.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let names = self.frames.iter().map(|frame| frame.name.as_str());
        names.filter(|name| name.starts_with(UNKNOWN))
    }
}

impl Call {
    /// The call that a function of a file makes on a line, as it is to be shown.
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
