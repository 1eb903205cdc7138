//! Flags of oncputime and offcputime: `-U`, `-K`, `-a`, `-d`, `-f`, `-v`, `-o`, `--per-thread`,
//! `--classic`, `--states`, `--nanoseconds`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::fs;

use systemscope_tests::printed::refusal::FOLDING;
use systemscope_tests::programs::simple::{is_user, known, on};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Tool, Turn, Workload, cpus_online};

const TOOLS: [&str; 2] = ["oncputime", "offcputime"];

fn has_kernel(folded: &Folded) -> bool {
    let kernel = [
        "do_syscall_64",
        "entry_SYSCALL_64_after_hwframe",
        "hrtimer_nanosleep",
    ];
    kernel
        .iter()
        .any(|function| !folded.under(function).lines.is_empty())
}

#[test]
fn user_only_and_kernel_only() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let user = on("offcputime", &simple).args("-U").folded(0.5);
    assert!(
        user.lines.iter().any(is_user) && !has_kernel(&user),
        "{user:#?}"
    );
    assert!(user.under("known_sleep").total() > 0);
    let kernel = on("offcputime", &simple).args("-K").folded(0.5);
    assert!(
        !kernel.lines.iter().any(is_user) && has_kernel(&kernel),
        "{kernel:#?}"
    );
    let both = on("offcputime", &simple).folded(0.5);
    assert!(
        both.lines.iter().any(is_user) && has_kernel(&both),
        "{both:#?}"
    );

    let user = on("oncputime", &simple).args("-U").folded(0.5);
    assert!(
        user.under("known_burn").total() > 0 && !has_kernel(&user),
        "{user:#?}"
    );
    let kernel = on("oncputime", &simple).args("-K").folded(0.5);
    assert!(!kernel.lines.iter().any(is_user), "{kernel:#?}");
    assert!(
        kernel.total() > 0,
        "samples in user space remain, without their stacks"
    );
}

#[test]
fn annotations_and_delimiters() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let plain = on("offcputime", &simple).folded(0.5);
    assert!(
        plain
            .frames()
            .all(|frame| !frame.ends_with("_[k]") && frame != "-"),
        "{plain:#?}"
    );

    let annotated = on("offcputime", &simple).args("-a").folded(0.5);
    // If the machine hides a context switch, one interval has no kernel stack.
    let whole = annotated.only(|line| !line.has("[Missed Kernel Stack]"));
    for line in whole.under("known_sleep").lines {
        let first_kernel = line
            .frames
            .iter()
            .position(|frame| frame.ends_with("_[k]"))
            .expect("kernel frames");
        assert!(
            line.frames[first_kernel..]
                .iter()
                .all(|frame| frame.ends_with("_[k]")),
            "{line:?}"
        );
        assert_eq!(line.frames[first_kernel - 1], "known_sleep", "{line:?}");
    }
    let delimited = on("offcputime", &simple).args("-d").folded(0.5);
    for line in delimited.under("known_sleep").lines {
        let delimiters: Vec<usize> = (0..line.frames.len())
            .filter(|&index| line.frames[index] == "-")
            .collect();
        assert_eq!(delimiters.len(), 1, "{line:?}");
        assert_eq!(line.frames[delimiters[0] - 1], "known_sleep", "{line:?}");
    }
    let states = on("offcputime", &simple).args("-a --states").folded(0.5);
    let blocked = states
        .under("known_sleep")
        .only(|line| line.leaf().ends_with("_[k]_[o]"));
    assert!(blocked.total() > 0, "{states:#?}");
    let on_cpu = Tool::new("oncputime").args("-F 499 -a -d").folded(0.5);
    assert!(
        on_cpu.frames().any(|frame| frame.ends_with("_[k]")),
        "{on_cpu:#?}"
    );
}

#[test]
fn f_is_accepted_and_changes_nothing() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in FOLDING {
        assert!(
            on(tool, &simple)
                .args("-f")
                .folded(0.5)
                .under(known(tool))
                .total()
                > 0
        );
    }
}

#[test]
fn per_thread_tells_threads_apart() {
    let _turn = Turn::share();
    let mut spinners = Workload::start("spinners", &[4, 60]);
    spinners.go();
    for tool in TOOLS {
        let on_target = || Tool::attentive(tool).pid(spinners.pid());
        let together = on_target().folded(0.5);
        assert_eq!(
            together
                .under("spin")
                .comms()
                .into_iter()
                .collect::<Vec<_>>(),
            ["spinner"],
            "{tool}"
        );
        let apart = on_target().folded_per_thread(2.0).under("spin");
        let threads: HashSet<_> = apart.lines.iter().filter_map(|line| line.thread).collect();
        assert_eq!(threads.len(), 4, "{tool}: {apart:#?}");
        assert!(
            threads
                .iter()
                .all(|&(pid, tid)| pid == spinners.pid() && tid != pid),
            "{threads:?}"
        );
    }
}

/// bcc's layout has indented frames from the leaf on, the name with the PID, the value, and an
/// empty line.
#[test]
fn classic_prints_bccs_records() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in TOOLS {
        let finished = on(tool, &simple)
            .args("--classic -d --duration 1")
            .run()
            .succeeded();
        let text = String::from_utf8(finished.stdout).unwrap();
        let record = text
            .split("\n\n")
            .find(|record| record.contains(known(tool)))
            .unwrap_or_else(|| panic!("{text}"));
        let lines: Vec<&str> = record.lines().filter(|line| !line.is_empty()).collect();
        let position = |wanted: &str| {
            lines
                .iter()
                .position(|line| line.trim() == wanted)
                .unwrap_or_else(|| panic!("no {wanted}: {record}"))
        };
        assert!(
            position(known(tool)) < position("known_work"),
            "leaf first: {record}"
        );
        assert!(
            position("known_work") < position("main"),
            "leaf first: {record}"
        );
        let thread = format!("    -                simple ({})", simple.pid());
        assert_eq!(lines[lines.len() - 2], thread, "{record}");
        let value = lines[lines.len() - 1];
        assert!(
            value.starts_with("        ") && value.trim().parse::<u64>().is_ok(),
            "{record}"
        );
        if tool == "offcputime" {
            let delimiter = position("--");
            assert!(
                delimiter < position("known_sleep") && delimiter > 0,
                "{record}"
            );
        }
    }
}

#[test]
fn o_writes_what_stdout_would_get() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let folder = scratch();
    for tool in FOLDING {
        let path = folder.path().join(tool);
        let finished = on(tool, &simple)
            .args("--duration 1 -o")
            .arg(&path)
            .run()
            .succeeded();
        assert!(finished.stdout.is_empty());
        assert!(
            Folded::parse(&fs::read(path).unwrap())
                .under(known(tool))
                .total()
                > 0
        );
    }
}

#[test]
fn v_says_more_and_only_on_stderr() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in TOOLS {
        let quiet = on(tool, &simple).arg("1").run().succeeded();
        let verbose = on(tool, &simple).args("-v 1").run().succeeded();
        Folded::parse(&verbose.stdout);
        assert!(
            verbose.stderr.len() > quiet.stderr.len(),
            "{tool} -v:\n{}",
            verbose.stderr
        );
        // The counts are drained twice at the end, and any number of times before the end.
        let drained = |line: &str| {
            let (_, times) = line.split_once("the counts were drained ")?;
            times.strip_suffix(" times")?.parse::<u64>().ok()
        };
        let drains = verbose.stderr.lines().find_map(drained);
        assert!(drains >= Some(2), "{tool} -v:\n{}", verbose.stderr);
        let measured = match tool {
            "oncputime" => "Sampling at 999 Hertz (",
            _ => "Tracing off-CPU time (us) of ",
        };
        let whom = format!(" of PID {} by user + kernel stack", simple.pid());
        let first = quiet.stderr.lines().next().unwrap_or_default();
        assert!(
            first.starts_with(measured) && first.contains(&whom),
            "{tool}: {first}"
        );
        assert!(
            quiet.stderr.contains("lost") && verbose.stderr.contains("reached the root"),
            "{tool} does not end with what the data is worth:\n{}{}",
            quiet.stderr,
            verbose.stderr
        );
    }
}

#[test]
fn states_split_an_interval_and_add_up() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let mut spinners = Workload::start("spinners", &[2 * cpus_online(), 60]);
    spinners.go();
    let folded = on("offcputime", &simple).args("--states").folded(2.0);
    let sleep = folded.under("known_sleep");
    // The thread waits for a CPU after its sleep.
    assert!(
        sleep.marked("_[o]").total() > 0 && sleep.marked("_[r]").total() > 0,
        "{sleep:#?}"
    );
    assert_eq!(
        sleep.marked("_[o]").total() + sleep.marked("_[r]").total(),
        sleep.total()
    );
}

#[test]
#[ignore = "compares two windows of every tool"]
fn nanoseconds_are_a_thousand_times_as_many() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in ["offcputime", "offwaketime"] {
        // One of the two threads sleeps for the whole window, and the other for a part of it.
        let micro = on(tool, &simple).folded(0.5).total();
        assert!((500_000..=1_000_000).contains(&micro), "{tool}: {micro} us");
        let nano = on(tool, &simple).arg("--nanoseconds").folded(0.5).total();
        assert!(
            (500_000_000..=1_000_000_000).contains(&nano),
            "{tool}: {nano} ns"
        );
    }
}
