//! `--thread-name`, which selects threads by name among the threads that other flags select.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;

use systemscope_tests::printed::clocks;
use systemscope_tests::printed::refusal::{
    FAILED, FOLDING, WRONG_COMMAND_LINE, assert_ended_with_error, assert_refused, on_target,
};
use systemscope_tests::programs::tool::TOOLS;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Tool, Turn, Workload};

/// Regular expression that matches two threads of `names`, and their names as tools print them.
const CHOSEN: &str = r"^(a:b c|1 2 3)$";
const FOUND: [&str; 2] = ["a:b c", "1 2 3"];

/// Returns a tool on the threads of `names` that match the expression.
fn on(tool: &str, names: &Workload, expression: &str) -> Tool {
    let tool = on_target(tool, &names.pid().to_string());
    tool.arg("--thread-name").arg(expression)
}

#[test]
fn only_threads_of_that_name_are_shown() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    let folder = scratch();
    for tool in FOLDING {
        let mut run = on(tool, &names, CHOSEN).arg("--per-thread");
        let accounts = folder.path().join("clocks.tsv");
        match tool {
            "oncputime" => run = run.args("-F 999"),
            "offcputime" => run = run.arg("--clocks").arg(&accounts),
            _ => {}
        }
        let finished = run.run().succeeded();
        let folded = Folded::parse_per_thread(&finished.stdout);
        assert_eq!(folded.comms(), HashSet::from(FOUND), "{tool}");
        assert!(
            !finished.stderr.contains("no measured thread"),
            "{}",
            finished.stderr
        );
        if tool == "offcputime" {
            let rows = clocks::read(&accounts);
            let comms: HashSet<&str> = rows.iter().map(|row| row.comm.as_str()).collect();
            assert_eq!((comms, rows.len()), (HashSet::from(FOUND), 2));
        }
    }
}

#[test]
fn a_thread_has_all_of_its_time_in_wallclock() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    let folder = scratch();
    let [scope, folded] = ["run.scope", "run.folded"].map(|name| folder.path().join(name));
    let run = on("wallclock", &names, CHOSEN);
    let finished = run.arg("-o").arg(&scope).arg("-o").arg(&folded).run();
    let told = String::from_utf8(finished.succeeded().stdout).unwrap();
    let all = told
        .lines()
        .find(|line| line.starts_with(" 2 threads "))
        .unwrap_or_else(|| panic!("no sums:\n{told}"));
    let cells: Vec<&str> = all.split_whitespace().collect();
    assert_eq!(cells[2..4], ["2.00", "s"], "{all}");
    let folded = Folded::parse(&std::fs::read(&folded).unwrap());
    assert_eq!(folded.comms(), HashSet::from(FOUND));
    let lines = folded.lines.len() as u64;
    assert!(folded.total().abs_diff(2_000_000) <= lines, "{folded}");
    // The capture has no other threads.
    let report = Tool::new("systemscope")
        .arg("report")
        .arg(&scope)
        .run()
        .succeeded();
    // Only the run itself knows the programs that had the CPUs.
    let without_cpus = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.contains("waiting for a CPU "));
        lines.map(str::to_owned).collect()
    };
    let report = String::from_utf8(report.stdout).unwrap();
    assert_eq!(without_cpus(&report), without_cpus(&told));
}

#[test]
fn spans_of_named_threads_are_added_up_or_kept_apart() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    let run = |flags: &str| {
        let run = on("cpudist", &names, CHOSEN).args(flags).arg("--json");
        let text = String::from_utf8(run.run().succeeded().stdout).unwrap();
        let interval: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        interval["rows"].as_array().unwrap().clone()
    };
    let apart = run("-L");
    let comms: HashSet<&str> = apart
        .iter()
        .map(|row| row["comm"].as_str().unwrap())
        .collect();
    assert_eq!((comms, apart.len()), (HashSet::from(FOUND), 2));
    let together = run("-O");
    assert_eq!(together.len(), 1);
    // The two threads are off the CPU for most of a second.
    let total = together[0]["total_ns"].as_u64().unwrap();
    assert!(
        (1_000_000_000..=2_000_000_000).contains(&total),
        "{together:?}"
    );
    let both = on("cpudist", &names, CHOSEN).arg("-P").run();
    assert_refused("cpudist", &both, &[WRONG_COMMAND_LINE], &["--thread-name"]);
}

#[test]
#[ignore = "runs every tool on the whole machine"]
fn it_is_said_that_nobody_is_called_so() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    for tool in TOOLS {
        let finished = on(tool, &names, "^nobody$").run();
        let told = "no measured thread has a name that matches `^nobody$`";
        match tool {
            "wallclock" => assert_ended_with_error(tool, &finished, &[told]),
            _ => {
                let finished = finished.succeeded();
                assert!(
                    finished.stderr.contains(told),
                    "{tool}: {}",
                    finished.stderr
                );
            }
        }
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    let _turn = Turn::share();
    let names = Workload::plain("names");
    for tool in TOOLS {
        let refused = on(tool, &names, "a(b").run();
        let told = ["--thread-name", "unclosed group"];
        assert_refused(tool, &refused, &[WRONG_COMMAND_LINE], &told);
    }
    let nothing = Tool::new("wallclock").args("--thread-name a").run();
    assert_refused("wallclock", &nothing, &[WRONG_COMMAND_LINE, FAILED], &[]);
}
