//! List of all tests.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// Test of a program.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// Full name: `program::path::of::test`.
    pub(crate) name: String,
    /// Name within its program.
    pub(crate) path: String,
    pub(crate) executable: PathBuf,
    /// Directory where cargo runs the tests of the package.
    pub(crate) folder: PathBuf,
    /// True if the test takes long, or needs a quiet machine.
    pub(crate) ignored: bool,
}

impl Test {
    /// Returns whether the test belongs to `program`.
    pub(crate) fn is_in(&self, program: &str) -> bool {
        let rest = self.name.strip_prefix(program);
        rest.is_some_and(|rest| rest.starts_with("::"))
    }
}

/// Message of cargo about a build output.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Ignored tests that `make test-all` leaves out. Two are programs that other tests start. The
/// third tests the memory controller, and runs in `make test-kernels`.
const NOT_RUN: [&str; 3] = [
    "window::signals::tests::helper_watches",
    "stage::makes_a_capture",
    "reasons::who_takes_too_much_memory_is_throttled",
];

/// Returns the tests of all programs in a file of cargo's messages.
pub(crate) fn tests(messages: &Path) -> Vec<Test> {
    let text = fs::read_to_string(messages)
        .unwrap_or_else(|error| panic!("read {}: {error}", messages.display()));
    let messages = text.lines().map(|line| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("not cargo's: {error}: {line}"))
    });
    messages.flat_map(tests_of).collect()
}

fn tests_of(message: Message) -> Vec<Test> {
    let Message {
        manifest_path: Some(manifest),
        target: Some(target),
        profile: Some(Profile { test: true }),
        executable: Some(executable),
    } = message
    else {
        return Vec::new();
    };
    let folder = manifest.parent().expect("a manifest's folder").to_owned();
    let package = folder.file_name().expect("a package's folder");
    let package = package.to_string_lossy();
    // A library has the name of its package; a test program can have any name.
    let program = match &target.name {
        name if *name == package || package == "tests" => name.clone(),
        name => format!("{package}::{name}"),
    };
    let ignored = list(&executable, &["--ignored"]);
    let paths = list(&executable, &[]);
    let run = paths.into_iter();
    let run = run.filter(|path| !NOT_RUN.contains(&path.as_str()));
    let mut run: Vec<Test> = run
        .map(|path| Test {
            name: format!("{program}::{path}"),
            ignored: ignored.contains(&path),
            path,
            executable: executable.clone(),
            folder: folder.clone(),
        })
        .collect();
    run.sort_by(|one, other| one.name.cmp(&other.name));
    run
}

/// Returns the tests that a program lists with these arguments.
fn list(program: &Path, arguments: &[&str]) -> HashSet<String> {
    let output = Command::new(program)
        .args(["--list", "--format", "terse"])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("start {}: {error}", program.display()));
    assert!(output.status.success(), "{} --list", program.display());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.map(str::to_owned).collect()
}
