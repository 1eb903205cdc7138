//! Tests with the interpreters of this machine: `python3`, the versions of pyenv, and the versions
//! that scripts/pythons/fetch.sh stores.
#![allow(clippy::unwrap_used, clippy::panic)]

mod chains;
mod code_objects;

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde::Deserialize;

use super::{Interpreter, Layout, find, layout};

/// Process that runs target.py.
struct Target {
    child: Child,
    rows: Lines<BufReader<ChildStdout>>,
    interpreter: Interpreter,
    layout: &'static Layout,
    /// Address of `_PyRuntime` in the process.
    runtime: u64,
}

impl Target {
    fn start(python: &Path, mode: &str) -> Target {
        let mut child = Command::new(python)
            .args(["-I", "-X", "utf8"])
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/python/tests/target.py"
            ))
            .arg(mode)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut rows = BufReader::new(child.stdout.take().unwrap()).lines();
        // Before the target prints its first line, its data may still move.
        let first = rows.next().unwrap().unwrap();
        assert_eq!(first, "ready");
        let (interpreter, bias) = interpreter_of(child.id()).unwrap();
        Target {
            child,
            rows,
            interpreter,
            layout: layout::by_version(interpreter.version).unwrap(),
            runtime: interpreter.runtime.wrapping_add(bias),
        }
    }

    fn row<'a, Row: Deserialize<'a>>(&mut self, text: &'a mut String) -> Option<Row> {
        *text = self.rows.next().unwrap().unwrap();
        (text != "{}").then(|| serde_json::from_str(text).unwrap())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the interpreter of a process, and the difference between addresses in the process and in
/// the file.
fn interpreter_of(pid: u32) -> Option<(Interpreter, u64)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[range, flags, offset, _, _, path] = fields.as_slice() else {
            return None;
        };
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let start = number(range.split_once('-')?.0);
        // The process may have a mount namespace of its own.
        let seen = format!("/proc/{pid}/root{path}");
        let file = File::open(seen).ok().filter(|_| flags.contains('x'))?;
        let interpreter = find(&file, path)?;
        let address = unwind::build(&file).unwrap().address(number(offset))?;
        Some((interpreter, start.wrapping_sub(address)))
    })
}

/// Returns interpreters with a known layout, and their minor versions. They are the distribution's
/// interpreter and the newest other one, or all of them if `SYSTEMSCOPE_ALL_VERSIONS` is set.
fn interpreters() -> Vec<(u8, PathBuf)> {
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let folders = [
        home.join(".pyenv/versions"),
        cache.join("systemscope/pythons"),
    ];
    let versions = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    let installed = versions.map(|version| version.path().join("bin/python3"));
    let paths = ["/usr/bin/python3".into()].into_iter().chain(installed);
    let known = paths
        .filter(|path| path.exists())
        .filter_map(|path| Some((minor(&path)?, path)));
    let mut known: Vec<_> = known.collect();
    assert!(!known.is_empty(), "python3 is none that is known");
    if env::var_os("SYSTEMSCOPE_ALL_VERSIONS").is_none() {
        known[1..].sort_by_key(|(minor, _)| *minor);
        known.drain(1..known.len().max(2) - 1);
    }
    known
}

/// Returns the minor version that an interpreter reports.
fn minor(python: &Path) -> Option<u8> {
    let script = "import sys; print(sys.version_info[1])";
    let output = Command::new(python).args(["-I", "-c", script]).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    let minor = output.trim().parse().unwrap();
    (8..=14).contains(&minor).then_some(minor)
}
