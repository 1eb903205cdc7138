//! Content of wallclock's flame graphs and reports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use systemscope_tests::printed::output::assert_close;
use systemscope_tests::programs::wallclock::{Run, assert_marked};
use systemscope_tests::truth::account::threads_of;
use systemscope_tests::{Folded, Line, Running, Turn, Workload, patiently};

fn assert_flame_graph(svg: &str, colours_of: &[&str]) {
    assert!(svg.trim_end().ends_with("</svg>"), "not a whole SVG");
    assert!(svg.contains("<script"), "not interactive");
    assert!(svg.to_lowercase().contains("search"), "no search");
    assert!(
        !svg.contains("src=\"http") && !svg.contains("href=\"http"),
        "needs a network"
    );
    for function in colours_of {
        assert!(svg.contains(function), "no {function} in the picture");
    }
}

/// Returns the fill colours of the frames whose title contains `mark`, as (red, green, blue).
fn fills(svg: &str, mark: &str) -> Vec<(u32, u32, u32)> {
    let groups = svg.split("<g").filter(|group| group.contains("<title>"));
    let marked = groups.filter(|group| {
        let title = group
            .split("<title>")
            .nth(1)
            .and_then(|rest| rest.split("</title>").next());
        title.is_some_and(|title| title.contains(mark))
    });
    marked
        .filter_map(|group| {
            let numbers = group.split("fill=\"rgb(").nth(1)?.split(')').next()?;
            let mut numbers = numbers.split(',').map(|number| number.trim().parse().ok());
            Some((numbers.next()??, numbers.next()??, numbers.next()??))
        })
        .collect()
}

/// A thread whose waits are nearly all shorter than `-m` has no time without a stack.
#[test]
fn short_waits_have_stacks() {
    let _turn = Turn::share();
    patiently(|| {
        let mut waits = Workload::start("short_waits", &[60]);
        waits.go();
        let run = Run::with_prefix(&waits.pid().to_string(), "-d 3 -m 1000");
        let folded = run.folded("thread_", "_waiter.folded");
        assert_marked(&folded);
        for state in ["blocked", "runnable"] {
            let marker = format!("[{state}, below -m]");
            assert_eq!(folded.under(&marker).total(), 0, "{folded:#?}");
        }
        for (function, mark) in [("sleep_300", "_[o]"), ("pushed_300", "_[r]")] {
            assert!(
                folded.under(function).marked(mark).total() > 0,
                "{function}"
            );
        }
        let analysis = run.text("thread_", "_waiter_analysis.txt");
        for said in [
            "kept from 1000 µs on, shorter ones sampled",
            "\nSampled: ",
            "Without a stack: 0.000 s blocked and 0.000 s runnable",
        ] {
            assert!(analysis.contains(said), "no {said:?} in {analysis}");
        }
    });
}

#[test]
fn every_threads_widths_add_up_to_its_life() {
    let _turn = Turn::share();
    patiently(assert_widths_add_up);
}

fn assert_widths_add_up() {
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let pid = phases.pid();
    let run = Run::with_prefix(&pid.to_string(), "-d 3 -f 199 -m 1000");
    let mut together = 0;
    for tid in threads_of(pid) {
        let folded = run.folded(&format!("thread_{tid}_"), ".folded");
        assert_marked(&folded);
        // Each line is rounded to whole microseconds.
        assert_close(
            &format!("widths of thread {tid} in us"),
            folded.total(),
            3_000_000,
            folded.lines.len() as u64,
        );
        together += folded.total();
    }
    let combined = Folded::parse(&fs::read(run.combined(".folded")).unwrap());
    assert_marked(&combined);
    let lines = combined.lines.len() as u64;
    assert_close(
        "all threads together",
        combined.total(),
        together,
        together / 1000 + lines,
    );
    // Samples are scaled to the running time of the thread clock. The program hardly runs outside
    // f.
    let running = combined.marked("_[c]").total();
    let burnt = combined.under("f").marked("_[c]").total();
    let unsampled = combined.under("[running, no sample]").total();
    assert!(
        burnt > 0 && (burnt + unsampled) * 10 >= running * 8,
        "{burnt} of {running} us"
    );
    // A blocked worker is in one of these functions, or waits for its lock.
    let blocked = combined
        .only(|line| line.comm.starts_with("worker"))
        .marked("_[o]");
    let known = |line: &Line| ["g", "h", "i"].iter().any(|name| line.has(name));
    let waited = blocked.only(known).total();
    assert!(
        waited > 0 && waited * 10 >= blocked.total() * 9,
        "{blocked}"
    );
}

#[test]
fn states_have_their_colours() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 6]);
    phases.go();
    let run = Run::with_prefix(&phases.pid().to_string(), "-d 3 -f 199 -m 100");
    let svg = fs::read_to_string(run.combined(".svg")).unwrap();
    assert_flame_graph(&svg, &["_[c]", "_[o]", "_[r]"]);
    let (red, blue, third) = (
        fills(&svg, "_[c]"),
        fills(&svg, "_[o]"),
        fills(&svg, "_[r]"),
    );
    assert!(
        !red.is_empty() && !blue.is_empty() && !third.is_empty(),
        "a state has no frame"
    );
    assert!(
        red.iter().all(|&(r, g, b)| r > g && r > b),
        "_[c] is not red: {red:?}"
    );
    assert!(
        blue.iter().all(|&(r, g, b)| b > r && b > g),
        "_[o] is not blue: {blue:?}"
    );
    assert!(
        third
            .iter()
            .all(|colour| !red.contains(colour) && !blue.contains(colour)),
        "_[r] has no colour of its own"
    );
}

#[test]
fn sleep_1000_is_not_an_empty_report() {
    let _turn = Turn::share();
    let target = Running::asleep();
    let folded = patiently(|| {
        let run = Run::with_prefix(&target.pid().to_string(), "-d 2");
        let folded = run.folded("base", ".folded");
        assert_eq!(folded.marked("_[o]").total(), 2_000_000, "us asleep");
        folded
    });
    assert!(
        folded.frames().any(|frame| frame.contains("nanosleep")),
        "{folded:#?}"
    );
}

#[test]
fn reports_tell_what_the_clock_and_the_kernel_count() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 2]);
    phases.go();
    let run = Run::with_prefix(&phases.pid().to_string(), "-d 2 -f 99");
    let report = format!(
        "{}\n{}",
        run.text("", "_thread_analysis.txt"),
        run.text(&format!("thread_{}_", phases.pid()), "_analysis.txt")
    );
    let report = report.to_lowercase();
    for word in [
        "running",
        "runnable",
        "blocked",
        "coverage",
        "samples",
        "voluntary",
        "involuntary",
        "longest",
        "lost",
    ] {
        assert!(
            report.contains(word),
            "{word} is not in the reports:\n{report}"
        );
    }
    let terminal = format!(
        "{}{}",
        String::from_utf8_lossy(&run.finished.stdout),
        run.finished.stderr
    );
    for tid in threads_of(phases.pid()) {
        assert!(
            report.contains(&tid.to_string()),
            "thread {tid} is not in the analysis:\n{report}"
        );
    }
    for line in terminal.lines() {
        let is_path = line.contains("out/base");
        assert!(is_path || line.chars().count() <= 120, "{line}");
    }
    assert!(
        !terminal.contains('\u{1b}'),
        "escape sequences in output that is no terminal"
    );
}
