//! Wrong command lines and missing targets. A wrong command line gives one line that names the
//! value, and exit status 2. A missing target gives exit status 1.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::printed::refusal::{
    FAILED, FOLDING, WRONG_COMMAND_LINE, assert_refused, nobody, on_target,
};
use systemscope_tests::programs::tool::TOOLS;
use systemscope_tests::{Tool, Turn, Workload};

#[test]
fn what_is_no_pid_is_refused() {
    let _turn = Turn::share();
    for tool in TOOLS {
        for bad in ["abc", "-1", "0", "1,abc", "99999999999", "12x"] {
            let named = bad.rsplit(',').next().unwrap();
            assert_refused(
                tool,
                &on_target(tool, bad).run(),
                &[WRONG_COMMAND_LINE],
                &[named],
            );
        }
    }
}

#[test]
fn a_name_that_is_nobodys_is_refused_and_those_like_it_told() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in TOOLS {
        for chosen in ["simpel", "-n simpel"] {
            let finished = match (tool, chosen) {
                (tool, "simpel") => on_target(tool, "simpel").run(),
                (tool, chosen) => Tool::new(tool).args(chosen).run(),
            };
            let told = [
                "simpel",
                "no process has this name; similar ones:",
                "simple (",
            ];
            assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &told);
        }
        let finished = Tool::new(tool).args("--name-regex (").run();
        assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &["--name-regex"]);
    }
    drop(simple);
}

#[test]
fn what_is_no_tid_is_refused() {
    let _turn = Turn::share();
    for tool in FOLDING {
        for bad in ["abc", "-1", "0"] {
            let finished = Tool::new(tool).args("--duration 1 -t").arg(bad).run();
            assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &[bad]);
        }
    }
}

#[test]
fn a_process_that_is_not_there_is_named() {
    let _turn = Turn::share();
    let nobody = nobody();
    let simple = Workload::plain("simple");
    for tool in TOOLS {
        assert_refused(tool, &on_target(tool, &nobody).run(), &[FAILED], &[&nobody]);
        let one_is_there = format!("{},{nobody}", simple.pid());
        assert_refused(
            tool,
            &on_target(tool, &one_is_there).run(),
            &[FAILED],
            &[&nobody],
        );
    }
    for tool in FOLDING {
        let finished = Tool::new(tool).args("--duration 1 -t").arg(&nobody).run();
        assert_refused(tool, &finished, &[FAILED], &[&nobody]);
    }
}

#[test]
fn frequencies_that_cannot_be_are_refused() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let pid = simple.pid().to_string();
    for (tool, flag) in [("oncputime", "-F"), ("wallclock", "-f")] {
        let run = |frequency: &str| on_target(tool, &pid).arg(flag).arg(frequency).run();
        assert_refused(tool, &run("0"), &[WRONG_COMMAND_LINE], &["0"]);
        assert_refused(tool, &run("many"), &[WRONG_COMMAND_LINE], &["many"]);
        // The kernel alone knows its limit, so either exit status is right.
        assert_refused(
            tool,
            &run("1000000"),
            &[FAILED, WRONG_COMMAND_LINE],
            &["1000000"],
        );
    }
    let both = on_target("oncputime", &pid).args("-F 99 -c 1000").run();
    assert_refused("oncputime", &both, &[WRONG_COMMAND_LINE], &["-c"]);
    let unknown = on_target("oncputime", &pid).args("-e no-such-event").run();
    assert_refused(
        "oncputime",
        &unknown,
        &[FAILED, WRONG_COMMAND_LINE],
        &["no-such-event"],
    );
    let no_cpu = on_target("oncputime", &pid).args("-C 4000").run();
    assert_refused(
        "oncputime",
        &no_cpu,
        &[FAILED, WRONG_COMMAND_LINE],
        &["4000"],
    );
}

/// No interval is shorter than 0.
#[test]
fn sampling_what_is_below_a_minimum_of_0_is_refused() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let pid = simple.pid().to_string();
    let finished = on_target("offcputime", &pid)
        .args("-m 0 --sample-short")
        .run();
    let told = ["--sample-short", "-m is 0"];
    assert_refused("offcputime", &finished, &[WRONG_COMMAND_LINE], &told);
    let finished = on_target("wallclock", &pid)
        .args("-m 0 --format folded")
        .run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

#[test]
fn a_minimum_not_below_the_maximum_is_refused() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let pid = simple.pid().to_string();
    for tool in ["offcputime", "offwaketime"] {
        for bounds in ["-m 700 -M 700", "-m 701 -M 700"] {
            let finished = on_target(tool, &pid).args(bounds).run();
            assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &["700", "-m", "-M"]);
        }
    }
    for tool in ["offcputime", "offwaketime", "wallclock"] {
        let finished = on_target(tool, &pid).args("-m abc").run();
        assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &["abc"]);
    }
}

#[test]
fn wakers_that_cannot_be_are_refused() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let pid = simple.pid().to_string();
    let run = |flag: &str, value: &str| on_target("offwaketime", &pid).arg(flag).arg(value).run();
    for flag in ["--waker-pid", "--waker-tid"] {
        for bad in ["abc", "-1", "0", "12x"] {
            let finished = run(flag, bad);
            assert_refused("offwaketime", &finished, &[WRONG_COMMAND_LINE], &[bad]);
        }
        let nobody = nobody();
        for list in [nobody.clone(), format!("{pid},{nobody}")] {
            assert_refused("offwaketime", &run(flag, &list), &[FAILED], &[&nobody]);
        }
    }
    for bad in ["0", "9", "-1", "x"] {
        let finished = run("--chain", bad);
        assert_refused("offwaketime", &finished, &[WRONG_COMMAND_LINE], &[bad, "8"]);
    }
    // A runnable thread waits for no waker.
    let runnable = run("--state", "0");
    assert_refused(
        "offwaketime",
        &runnable,
        &[WRONG_COMMAND_LINE],
        &["--state 0"],
    );
}

#[test]
fn unknown_flags_and_missing_arguments_are_wrong_command_lines() {
    let _turn = Turn::share();
    for tool in TOOLS {
        assert_refused(
            tool,
            &Tool::new(tool).arg("--no-such-flag").run(),
            &[WRONG_COMMAND_LINE],
            &["--no-such-flag"],
        );
    }
    assert_refused(
        "wallclock",
        &Tool::new("wallclock").run(),
        &[WRONG_COMMAND_LINE],
        &["PID"],
    );
    let bad_duration = Tool::new("offcputime").arg("soon").run();
    assert_refused(
        "offcputime",
        &bad_duration,
        &[WRONG_COMMAND_LINE],
        &["soon"],
    );
}

#[test]
fn help_ends_with_examples_and_is_no_error() {
    let _turn = Turn::share();
    for tool in TOOLS {
        let help = Tool::new(tool).arg("--help").run().succeeded();
        let text = String::from_utf8(help.stdout).unwrap();
        let (_, examples) = text
            .to_lowercase()
            .split_once("examples")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("examples");
        assert!(
            examples.contains(tool),
            "{tool} --help shows no example of the tool"
        );
        Tool::new(tool).arg("--version").run().succeeded();
    }
}
