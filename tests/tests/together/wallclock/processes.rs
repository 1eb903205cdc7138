//! wallclock on several processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use systemscope_tests::programs::process::children_of;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::wallclock::{Run, assert_marked};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Running, Tool, Turn, Workload};

/// Starts a shell with `children` child processes. All processes sleep.
fn family(children: usize) -> (Running, Vec<u32>) {
    let mut shell = Command::new("sh");
    let script = "sleep 1000 & ".repeat(children) + "wait";
    shell.args(["-c", &script]);
    let shell = Running::spawn(shell, true);
    let deadline = Instant::now() + PATIENCE;
    let is_sleep = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
    };
    loop {
        let mut pids = children_of(shell.pid());
        if pids.iter().filter(|pid| is_sleep(pid)).count() == children {
            pids.sort_unstable();
            return (shell, pids);
        }
        assert!(
            Instant::now() < deadline,
            "no {children} children: {pids:?}"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn children_stand_below_their_parents_and_the_busiest_have_tables() {
    let _turn = Turn::share();
    let (shell, children) = family(7);
    let mut pids = vec![shell.pid()];
    pids.extend(&children);
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let run = Run::with_prefix(&list.join(","), "-d 1");
    let told = String::from_utf8(run.finished.stdout.clone()).unwrap();
    let report = run.text("base_processes", ".txt");
    assert!(told.starts_with("8 processes · 1.00 s · "), "{told}");
    assert!(report.starts_with("8 processes\n"), "{report}");
    let row = |pid: u32| {
        let of_pid = |line: &&str| line.split_whitespace().next() == Some(&pid.to_string());
        let line = report.lines().find(of_pid);
        line.unwrap_or_else(|| panic!("no row of {pid}:\n{report}"))
    };
    assert!(row(shell.pid()).contains("  sh -c sleep"), "{report}");
    for &child in &children {
        let row = row(child);
        assert!(row.ends_with("    sleep 1000"), "{row}");
        let cells: Vec<&str> = row.split_whitespace().collect();
        let parent = shell.pid().to_string();
        assert_eq!(cells[1..4], [&*parent, "1.000", "0.000"], "{row}");
        assert_eq!(cells[9..11], ["100.0", "1"], "{row}");
    }
    // Idle processes share one row.
    let others = told.lines().find(|line| line.ends_with("  8 processes"));
    assert!(others.is_some_and(|row| row.contains("100 %")), "{told}");
    // The report has the threads of five processes. The threads of the others are in their folders.
    assert_eq!(told.matches(" (PID ").count(), 5, "{told}");
    assert!(
        told.contains("Threads of 3 more processes: in their folders.\n"),
        "{told}"
    );
    for pid in &pids {
        let folder = format!("base/files/pid{pid}/combined.folded");
        assert!(
            run.files.iter().any(|path| path.ends_with(&folder)),
            "{folder} is not in {:#?}",
            run.files
        );
    }
    let together = run
        .files
        .iter()
        .find(|path| path.ends_with("base/files/combined.folded"));
    let together = Folded::parse(&std::fs::read(together.unwrap()).unwrap());
    assert_marked(&together);
    // All of the time is there, with the process in the first field.
    assert_eq!(together.marked("_[o]").total() / 1_000_000, 8, "{together}");
    let first = format!("sleep-{}", children[0]);
    assert!(together.comms().contains(first.as_str()), "{together}");
}

#[test]
fn a_hundred_processes_have_files_and_of_more_those_that_are_busiest() {
    let _turn = Turn::share();
    let (shell, children) = family(100);
    let mut pids: Vec<String> = children.iter().map(u32::to_string).collect();
    let measure = |pids: &[String]| {
        let run = Run::with_prefix(&pids.join(","), "-d 1");
        let told = String::from_utf8(run.finished.stdout.clone()).unwrap();
        let is_folder = |path: &&PathBuf| path.ends_with("combined.folded");
        let folders = run.files.iter().filter(is_folder).count() - 1;
        (told, folders, run.text("base_processes", ".txt"))
    };
    let (told, folders, report) = measure(&pids);
    assert_eq!(folders, 100);
    assert!(told.contains("/pid<PID>/  (of each)\n"), "{told}");
    assert!(!report.contains("Files of their own"), "{report}");
    pids.push(shell.pid().to_string());
    let (told, folders, report) = measure(&pids);
    assert_eq!(folders, 100);
    assert!(told.contains("/pid<PID>/  (of 100 of them)\n"), "{told}");
    assert!(
        report.contains("Files of their own: the 100 processes that"),
        "{report}"
    );
}

#[test]
fn stacks_of_all_are_under_the_names_of_processes_and_not_of_threads() {
    let _turn = Turn::share();
    let (first, second) = (Workload::plain("births"), Workload::plain("simple"));
    let pids = [&first, &second].map(|workload| workload.pid().to_string());
    let run = Run::with_prefix(&pids.join(","), "-d 1");
    let is_together = |path: &&PathBuf| path.ends_with("base/files/combined.folded");
    let together = run.files.iter().find(is_together).unwrap();
    let together = Folded::parse(&std::fs::read(together).unwrap());
    let [first, second] = pids;
    let wanted = [format!("births-{first}"), format!("simple-{second}")];
    let mut comms: Vec<&str> = together.comms().into_iter().collect();
    comms.sort_unstable();
    assert_eq!(comms, wanted);
}

#[test]
fn a_report_has_as_many_rows_and_tables_as_it_is_told() {
    let _turn = Turn::share();
    let (shell, children) = family(6);
    let folder = scratch();
    let scope = folder.path().join("run.scope");
    let mut pids = children.clone();
    pids.push(shell.pid());
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let run = Tool::new("wallclock").arg(list.join(",")).args("-d 1 -o");
    run.arg(&scope).run().succeeded();
    let report = |flags: &str| {
        let report = Tool::new("systemscope")
            .arg("report")
            .args(flags)
            .arg(&scope);
        String::from_utf8(report.run().succeeded().stdout).unwrap()
    };
    let tables = |text: &str| text.matches(" (PID ").count();
    assert_eq!(tables(&report("")), 5);
    let all = report("--tables 99");
    assert_eq!(tables(&all), 7);
    assert!(!all.contains("more process"), "{all}");
    let few = report("--tables 2 --processes 1");
    assert_eq!(tables(&few), 2);
    assert!(
        few.ends_with("Threads of 5 more processes: --tables N lists those of N processes.\n"),
        "{few}"
    );
    assert!(few.contains("  7 processes\n"), "{few}");
}
