//! Names and folders of the files that wallclock writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::time::Instant;

use rustix::process::Signal;
use systemscope_tests::printed::output::{assert_close, files_below};
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::wallclock::{Run, assert_marked, start_measuring};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::threads_of;
use systemscope_tests::{Tool, Turn, Workload, patiently};

#[test]
fn a_single_thread_gives_a_page_and_three_files() {
    let _turn = Turn::share();
    let mut naps = Workload::start("naps", &[30, 3000]);
    naps.go();
    let run = patiently(|| {
        let run = Run::with_prefix(&naps.pid().to_string(), "-d 2 -f 199 -m 1000");
        let folded = run.folded("base", ".folded");
        assert_marked(&folded);
        // Each line is rounded to whole microseconds.
        let lines = folded.lines.len() as u64;
        assert_close("widths in us", folded.total(), 2_000_000, lines);
        run
    });
    let mut names: Vec<_> = run
        .files
        .iter()
        .map(|path| {
            path.strip_prefix(run.folder.path())
                .unwrap()
                .to_str()
                .unwrap()
        })
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "out/base.folded",
            "out/base.html",
            "out/base.svg",
            "out/base_single_thread_analysis.txt"
        ]
    );
    let report = run.text("base", "_analysis.txt");
    assert!(
        report.contains(&naps.pid().to_string()) && report.contains("199"),
        "{report}"
    );
}

#[test]
fn without_a_prefix_the_name_tells_the_process() {
    let _turn = Turn::share();
    let mut naps = Workload::start("naps", &[30, 3000]);
    naps.go();
    let run = Run::without_prefix(&naps.pid().to_string(), "-d 1");
    let start = format!("combined_profile_pid{}_", naps.pid());
    run.file(&start, ".html");
    run.file(&start, ".svg");
    run.file(&start, ".folded");
    run.file(&start, "_single_thread_analysis.txt");
    let crowd = Workload::start("crowd", &[3]);
    let run = Run::without_prefix(&crowd.pid().to_string(), "-d 1");
    let folder = run
        .file("report", ".html")
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap();
    let expected = format!("multithread_combined_profile_pid{}_", crowd.pid());
    assert!(folder.starts_with(&expected), "the files are in {folder}");
    run.file("", "_thread_analysis.txt");
}

#[test]
fn every_thread_has_its_files_and_all_have_one_together() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let pid = phases.pid();
    let run = Run::with_prefix(&pid.to_string(), "-d 1");
    let beside = |path: &&PathBuf| {
        !path
            .strip_prefix(run.folder.path())
            .unwrap()
            .starts_with("out")
    };
    let outside: Vec<_> = run.files.iter().filter(beside).collect();
    assert!(outside.is_empty(), "-o is not honoured: {outside:?}");
    for tid in threads_of(pid) {
        for end in [".svg", ".folded", "_analysis.txt"] {
            run.file(&format!("thread_{tid}_"), end);
        }
    }
    run.file(&format!("thread_{pid}_main"), ".svg");
    run.file("", "_thread_analysis.txt");
    run.combined(".svg");
    run.combined(".folded");
}

#[test]
fn a_target_that_exits_early_gives_what_was_seen() {
    let _turn = Turn::share();
    let begun = Instant::now();
    let mut simple = Workload::start("simple", &[4]);
    // The run ends within the patience for any run, long before the requested duration.
    let run = Run::meanwhile(&simple.pid().to_string(), "-d 600 -f 199", || simple.go());
    let folded = run.folded("base", ".folded");
    let seconds = |text: &str| folded.under(text).total() as f64 / 1e6;
    let (slept, burnt) = (seconds("known_sleep"), seconds("known_burn"));
    assert!(slept > 0.0 && burnt > 0.0, "{folded:#?}");
    // The thread's life includes its wait for the test and its exit. The exit may wait for other
    // processes that use the same files.
    let (life, waiting) = (folded.total() as f64 / 1e6, seconds("await_test"));
    let working = life - waiting - seconds("do_exit");
    assert!(
        life <= begun.elapsed().as_secs_f64() && slept + burnt >= 0.8 * working,
        "{life} s: {folded:#?}"
    );
}

#[test]
fn two_processes_have_reports_of_their_own() {
    let _turn = Turn::share();
    let first = Workload::plain("simple");
    let second = Workload::start("crowd", &[4]);
    let run = Run::with_prefix(&format!("{},{}", first.pid(), second.pid()), "-d 2");
    for pid in [first.pid(), second.pid()] {
        let of_process = |path: &&PathBuf| path.to_string_lossy().contains(&pid.to_string());
        let files: Vec<_> = run.files.iter().filter(of_process).collect();
        for end in [".svg", ".folded", "_analysis.txt"] {
            assert!(
                files
                    .iter()
                    .any(|path| path.to_string_lossy().ends_with(end)),
                "no {end} of {pid}: {:#?}",
                run.files
            );
        }
    }
}

#[test]
fn threads_born_and_ended_meanwhile_have_files() {
    let _turn = Turn::share();
    let mut births = Workload::plain("births");
    let folder = scratch();
    let prefix = folder.path().join("base");
    let wallclock = Tool::new("wallclock")
        .arg(births.pid().to_string())
        .args("-d 600 -o")
        .arg(&prefix);
    let running = start_measuring(wallclock);
    births.go();
    births.wait_done();
    running.signal(Signal::INT);
    running.finish_within(PATIENCE).succeeded();
    let files = files_below(folder.path());
    for thread in ["lasting", "ending", "born", "brief"] {
        let start = format!("thread_{}_", births.told(thread));
        let has = |end: &str| {
            files.iter().any(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name.starts_with(&start) && name.ends_with(end)
            })
        };
        assert!(
            has(".svg") && has(".folded") && has("_analysis.txt"),
            "no files of {thread}: {files:#?}"
        );
    }
}
