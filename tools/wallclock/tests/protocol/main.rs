//! Tests of wallclock with shell scripts as its children, including failures. The tests need no
//! privileges.
#![allow(clippy::unwrap_used)]

mod stage;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use stage::{MEASURE, OFF_CPU, ON_CPU, READY, Stage, await_that};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the sum of a folded file's values.
fn sum(path: &Path) -> u64 {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum()
}

#[test]
fn one_thread_gives_a_page_and_three_files() {
    let stage = Stage::whole("");
    let output = stage.run(&["-d", "0.5", "-o", "run"]);
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
    assert_eq!(
        stage.new_files(),
        [
            "run.folded",
            "run.html",
            "run.svg",
            "run_single_thread_analysis.txt"
        ]
    );
    assert_eq!(
        fs::read_to_string(stage.path("run.folded")).unwrap(),
        "a/b;[blocked, below -m]_[o] 125000\n\
         a/b;main;burn_[c] 250000\n\
         a/b;main;g;do_nanosleep;schedule_[o] 125000\n"
    );
    let said = text(&output.stdout);
    assert!(
        said.contains("\nOpen  run.html  (a page for the browser)\nAlso  run.svg  (flame graph: "),
        "{said}"
    );
    assert!(said.contains("     g ← main\n"), "{said}");
    assert!(said.contains(" · 500 ms · "), "{said}");
    // A second run replaces the files.
    assert!(stage.run(&["-d", "0.1", "-o", "run"]).status.success());
    assert_eq!(sum(&stage.path("run.folded")), 100_000);
    stage.assert_children_ended();
}

#[test]
fn formats_go_to_stdout_and_what_is_told_beside_them_to_stderr() {
    let stage = Stage::whole("");
    let output = stage.run(&["-d", "0.1", "--format", "folded"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("main"), "{said}");
    let folded = text(&output.stdout);
    assert!(
        folded.contains(";burn") && !folded.contains("THREADS") && !folded.contains("STACKS"),
        "{folded}"
    );
    assert!(stage.new_files().is_empty());
}

#[test]
fn of_what_the_children_say_the_last_hundred_lines_are_kept() {
    let many = "for i in {1..150}; do echo \"line $i\" >&2; done\n";
    let stage = Stage::new(
        &format!("{many}{READY}{MEASURE}{ON_CPU}"),
        &format!("{READY}{MEASURE}{OFF_CPU}"),
    );
    let output = stage.run(&["-d", "0.1", "-o", "run", "-v"]);
    let said = text(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 100, "{said}");
    assert_eq!([lines[0], lines[98]], ["line 52", "line 150"]);
    assert_eq!(lines[99], "oncputime: 3 samples, 0 lost");
}

#[test]
fn a_target_that_ends_after_the_window_did_not_end_it() {
    let lingers = "kill \"$pid\"; sleep 0.3\n";
    let stage = Stage::new(
        &format!("{READY}{MEASURE}{lingers}{ON_CPU}"),
        &format!("{READY}{MEASURE}{OFF_CPU}"),
    );
    let output = stage.run(&["-d", "0.1", "-o", "run"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(!said.contains("until every process had ended"), "{said}");
}

#[test]
fn a_command_begins_once_both_children_measure_and_is_over_when_they_see_nobody() {
    let open = "sleep 0.3
[ ! -e begun.pid ] || fail 'the command ran before this measured'
say open
sleep 0.5
say gone
";
    let stage = Stage::with(open);
    let command = ["-o", "run", "--", "sh", "-c", ": > begun.pid; echo said"];
    let output = stage.untargeted(&command).output().unwrap();
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains(" · exit status 0 · "), "{told}");
    // The standard output belongs to the command.
    assert_eq!(text(&output.stdout), "said\n");
    assert!(stage.path("begun.pid").exists());
    let measured = sum(&stage.path("run.folded"));
    // The children receive the order at most 20 ms before the start.
    assert!(measured >= 780_000, "{measured} µs");
}

#[test]
fn the_window_of_a_name_that_is_waited_for_begins_when_the_first_came() {
    // The children report different times. The earlier time counts.
    let script = |came: u32, patience: &str| {
        format!(
            "{READY}
[ \"$stop\" = 9223372036854775807 ] || fail 'an end before the start'
sleep {patience}
hears_nothing || fail 'told something before both children knew'
say first $((start + {came}000000))
hear
start=$((start + 200000000))
stop=$time
[ \"$verb\" = stop ] || fail 'stop expected'
pid=4321
{MEASURE}"
        )
    };
    let stage = Stage::new(
        &format!("{}{ON_CPU}", script(200, "0.3")),
        &format!("{}{OFF_CPU}", script(250, "0.1")),
    );
    let waiting = [
        "-n",
        "nobody-is-called-this",
        "--wait",
        "-d",
        "0.5",
        "-o",
        "run",
    ];
    let output = stage.untargeted(&waiting).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(sum(&stage.path("run.folded")), 500_000);
}

#[test]
fn several_threads_give_a_folder() {
    let stage = Stage::whole("71 72");
    let output = stage.run(&["-d", "0.2", "-o", "run", "--thread-files", "2", "-v"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "oncputime: 3 samples, 0 lost\n");
    assert_eq!(stage.new_files(), ["run"]);
    assert!(stage.path("run/report.html").is_file());
    let main = format!("thread_{}_main", stage.target.id());
    for file in [
        "combined.folded",
        "combined.svg",
        "run_thread_analysis.txt",
        "thread_71_a_b.svg",
        "thread_71_a_b.folded",
        "thread_71_a_b_analysis.txt",
        &format!("{main}_analysis.txt"),
    ] {
        assert!(stage.path("run/files").join(file).is_file(), "{file}");
    }
    assert!(!stage.path("run/files/thread_72_a_b.svg").exists());
    let said = text(&output.stdout);
    assert!(
        said.contains("  run/files/thread_<TID>") && said.contains("(of 2 of 3 threads)"),
        "{said}"
    );
    let folded = fs::read_to_string(stage.path("run/files/combined.folded")).unwrap();
    for tid in [stage.target.id(), 71, 72] {
        let thread = format!("a/b-{}/{tid};", stage.target.id());
        assert!(folded.contains(&thread), "{thread} {folded}");
    }
    assert_eq!(sum(&stage.path("run/files/combined.folded")), 600_000);
    assert_eq!(sum(&stage.path("run/files/thread_71_a_b.folded")), 200_000);
    assert_eq!(
        sum(&stage.path(&format!("run/files/{main}.folded"))),
        200_000
    );
    let analysis = fs::read_to_string(stage.path("run/files/run_thread_analysis.txt")).unwrap();
    assert!(
        analysis.contains("the 2 threads with the longest lives"),
        "{analysis}"
    );
    for (most, told) in [("3", true), ("0", false)] {
        let output = stage.run(&["-d", "0.1", "-o", most, "--thread-files", most]);
        let said = text(&output.stdout);
        assert_eq!(said.contains("(of each thread)"), told, "{said}");
        assert!(!said.contains(" of 3 threads)"), "{said}");
    }
    // wallclock refuses to overwrite the folder before it measures.
    let again = stage.run(&["-d", "100", "-o", "run"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("`run` already exists"));
}

#[test]
fn a_child_that_cannot_start_ends_the_other_and_is_quoted() {
    let failing =
        "echo 'some warning' >&2; echo \"$name: no BTF here; boot another kernel\" >&2; exit 1";
    for stage in [
        Stage::new(failing, "say ready; sleep 1000"),
        Stage::new("say ready; sleep 1000", failing),
        Stage::new("sleep 1000", failing),
    ] {
        let output = stage.run(&["-d", "100", "-o", "run"]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(
            said.starts_with("wallclock: o")
                && said.ends_with("cputime: no BTF here; boot another kernel\n"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
        assert!(stage.new_files().is_empty());
        stage.assert_children_ended();
    }
}

#[test]
fn a_child_that_dies_midway_ends_the_run() {
    for (death, said) in [
        (
            "echo 'oncputime: lost heart' >&2; exit 1",
            "wallclock: oncputime: lost heart\n",
        ),
        (
            "kill -KILL $$",
            "oncputime was killed (signal: 9 (SIGKILL))",
        ),
        ("exit 0", "oncputime ended before it was told to"),
    ] {
        let stage = Stage::new(
            &format!("say ready; hear; hear; {death}"),
            &format!("{READY}{MEASURE}{OFF_CPU}"),
        );
        let output = stage.run(&["-d", "100", "-o", "run"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).contains(said),
            "{}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stderr).lines().count(), 1);
        assert!(stage.new_files().is_empty());
        stage.assert_children_ended();
    }
}

#[test]
fn nonsense_from_a_child_is_told() {
    let stage = Stage::new(
        &format!("{READY}{MEASURE}echo nonsense;{ON_CPU}"),
        &format!("{READY}{MEASURE}{OFF_CPU}"),
    );
    let output = stage.run(&["-d", "0.1", "-o", "run"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot read the data of oncputime: this is no capture"));
    assert!(stage.new_files().is_empty());
}

#[test]
fn a_second_signal_quits_at_once_and_takes_the_children_along() {
    let stage = Stage::new(
        "say ready; while :; do hear; done",
        "say ready; while :; do hear; done",
    );
    let running = stage.command(&["-d", "1000", "-o", "run"]).spawn().unwrap();
    await_that(|| {
        ["oncputime.pid", "offcputime.pid"]
            .iter()
            .all(|name| stage.path(name).exists())
    });
    std::thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&running), Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&running), Signal::INT).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(stage.new_files().is_empty());
    stage.assert_children_ended();
}

#[test]
fn wrong_command_lines_are_one_line_and_status_2() {
    let stage = Stage::whole("");
    for arguments in [
        &["-d", "0"][..],
        &["-d", "x"],
        &["-f", "0"],
        &["-f", "-3"],
        &["-m", "1.5"],
        &["--thread-files", "-1"],
        &["--frequence", "3"],
    ] {
        let output = stage.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
    for (pid, told) in [
        ("no-such-process", "no process has this name"),
        ("-1", "process IDs are numbers"),
        ("0", "process IDs are numbers"),
        ("1,no-such-process", "no process has this name"),
    ] {
        let output = Command::new(stage.path("wallclock"))
            .arg(pid)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{pid}");
        assert!(text(&output.stderr).contains(told), "{pid}");
    }
    let output = Command::new(stage.path("wallclock"))
        .arg("4194304")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("process 4194304 does not exist"));
    assert!(stage.new_files().is_empty());
}
