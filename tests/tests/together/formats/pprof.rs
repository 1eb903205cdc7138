//! Profiles for pprof, as Debian's Go reads them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::{Language, scratch};
use systemscope_tests::{Tool, Turn, Workload, WorkloadBuilder};

/// Runs `go tool pprof` and returns its output.
fn pprof(path: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("go");
    command.args(["tool", "pprof"]).args(arguments).arg(path);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn functions_threads_and_means_are_there() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let file = folder.path().join("off.pb.gz");
    let tool = Tool::new("offcputime").pid(phases.pid());
    let finished = tool.args("--states --duration 2 -o").arg(&file).run();
    finished.succeeded();

    // By default pprof shows the last sample type.
    let top = pprof(
        &file,
        &["-top", "-cum", "-nodecount=2000", "-nodefraction=0"],
    );
    assert!(top.contains("Type: wall"), "{top}");
    assert!(top.contains("File: phases"), "{top}");
    // These functions wait even if their threads seldom get a CPU. A worker that comes late finds
    // its lock free.
    for function in ["main", "g", "drive"] {
        assert!(
            top.lines()
                .any(|line| line.ends_with(&format!(" {function}"))),
            "{top}"
        );
    }
    let blocked = pprof(&file, &["-top", "-sample_index=blocked"]);
    assert!(blocked.contains("Type: blocked"), "{blocked}");
    let mean = pprof(&file, &["-top", "-mean", "-sample_index=blocked"]);
    assert!(mean.contains("Type: mean_blocked"), "{mean}");
    let tags = pprof(&file, &["-tags"]);
    for label in ["thread_name: ", "thread_id: ", "process_id: ", "state: "] {
        assert!(tags.contains(label), "{tags}");
    }
    assert!(tags.contains(&format!(": {}", phases.pid())), "{tags}");
    let traces = pprof(&file, &["-traces"]);
    assert!(
        traces.contains("thread_name: ") && traces.contains("main"),
        "{traces}"
    );
}

#[test]
fn source_lines_and_inlined_functions_are_listed() {
    let _turn = Turn::share();
    let workload = WorkloadBuilder::new("inlined")
        .flag("-g")
        .flag("-O2")
        .start();
    let folder = scratch();
    let file = folder.path().join("on.pb.gz");
    let tool = Tool::new("oncputime").pid(workload.pid());
    let finished = tool
        .args("-F 999 --duration 2 --srcline --inline -o")
        .arg(&file)
        .run();
    finished.succeeded();
    let path = format!(
        "-source_path={}",
        source("inlined.c").with_file_name("").display()
    );
    let list = pprof(&file, &["-list", "^innermost$", &path]);
    assert!(
        list.contains("ROUTINE ======================== innermost"),
        "{list}"
    );
    // The line that computes has most of the time.
    let burning = list
        .lines()
        .find(|line| line.contains("/* the burning line */"));
    let burning = burning.unwrap_or_else(|| panic!("{list}"));
    assert!(
        burning.contains('s') && !burning.trim_start().starts_with(". "),
        "{burning}"
    );
}

#[test]
fn names_of_rust_come_out_whole() {
    let _turn = Turn::share();
    let workload = WorkloadBuilder::new("mangled")
        .language(Language::Rust)
        .start();
    let folder = scratch();
    let file = folder.path().join("off.pb.gz");
    let tool = Tool::new("oncputime").pid(workload.pid());
    let finished = tool.args("--duration 1 -F 999 -o").arg(&file).run();
    finished.succeeded();
    let top = pprof(&file, &["-top", "-nodecount=500"]);
    let name = " <mangled::Basket as mangled::Gather>::gather";
    assert!(top.lines().any(|line| line.ends_with(name)), "{top}");
}
