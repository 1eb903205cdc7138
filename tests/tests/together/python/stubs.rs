//! Python functions that the interpreter calls through stubs, or that run on other stacks.

use std::process::Command;

use systemscope_tests::Line;
use systemscope_tests::printed::user_stacks::{assert_most, whole_stacks};
use systemscope_tests::programs::django::from_pypi;

use super::*;

/// Minimum share of whole stacks, in thousandths.
const WHOLE: u64 = 980;

/// Python program with three functions that call each other. One function computes, and another one
/// sleeps.
const TURNS: &str = "
import time
def inner(n):
    s = 0
    for i in range(n): s += i
    return s
def middle(n): return inner(n)
def outer(n):
    middle(n)
    time.sleep(0.01)
print('ready', flush=True)
while True: outer(200000)
";

/// With `-X perf` CPython calls each function through its own stub. CPython writes the stubs into
/// memory and names them in a perf map.
#[test]
fn functions_that_are_called_through_stubs() {
    let _turn = Turn::share();
    let has_stubs = |python: &&Python| {
        let name = python.path.file_name().and_then(|name| name.to_str());
        let minor = name.and_then(|name| name.strip_prefix("python3.")?.parse::<u32>().ok());
        minor.is_some_and(|minor| minor >= 12)
    };
    let pythons = pythons();
    let python = pythons
        .iter()
        .find(has_stubs)
        .expect("Python 3.12 or later");
    let folder = scratch();
    fs::write(folder.path().join("turns.py"), TURNS).unwrap();
    let mut command = Command::new(&python.path);
    command
        .args(["-X", "perf"])
        .arg(folder.path().join("turns.py"));
    let turns = Workload::run(command, python.path.clone(), folder);
    let times = |line: &Line, function: &str| {
        let frames = line.frames.iter();
        frames.filter(|frame| frame.contains(function)).count()
    };
    let once = |functions: &'static [&'static str]| {
        move |line: &Line| {
            functions.iter().all(|function| times(line, function) == 1) && !line.has(NOT_PLACED)
        }
    };
    let spins = whole_stacks("oncputime", turns.pid(), WHOLE);
    let spins = spins.only(|line| times(line, "turns.py:inner") > 0);
    assert!(spins.total() > 0, "{spins}");
    assert_most(
        "spins",
        &spins,
        WHOLE,
        once(&["<module>", "outer", "middle", "inner"]),
    );
    let sleeps = whole_stacks("offcputime", turns.pid(), WHOLE);
    let sleeps =
        sleeps.only(|line| times(line, "turns.py:outer") > 0 && times(line, "middle") == 0);
    assert!(sleeps.total() > 0, "{sleeps}");
    assert_most("sleeps", &sleeps, WHOLE, once(&["<module>", "outer"]));
    let map = format!("/tmp/perf-{}.map", turns.pid());
    assert!(
        fs::read_to_string(&map).unwrap().contains("py::outer"),
        "{map}"
    );
    fs::remove_file(map).unwrap();
}

/// A greenlet's part of the stack ends at the greenlet's first function. The greenlet's parent runs
/// on another stack.
#[test]
fn greenlets_begin_at_their_first_function() {
    let _turn = Turn::share();
    let python = from_pypi("python");
    let mut command = Command::new(&python);
    command.arg(source("greenlets.py"));
    let greenlets = Workload::run(command, python, scratch());
    for (tool, function, root) in [
        ("oncputime", "greenlets.py:spin", "greenlets.py:spinner"),
        ("offcputime", "greenlets.py:doze", "greenlets.py:sleeper"),
    ] {
        let stacks = whole_stacks(tool, greenlets.pid(), WHOLE);
        let stacks = stacks.only(|line| line.has(function));
        assert!(stacks.total() > 0, "{tool}");
        assert_most(tool, &stacks, WHOLE, |line| {
            line.frames[0].contains("inner_bootstrap")
                && line.has(root)
                && !line.frames.iter().any(|frame| frame.contains("<module>"))
        });
    }
}
