//! cpudist's output for each flag, and its errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::output::files_below;
use systemscope_tests::printed::refusal::{
    FAILED, WRONG_COMMAND_LINE, assert_ended_with_error, assert_refused, nobody,
};
use systemscope_tests::printed::samples::running_ns;
use systemscope_tests::printed::spans::Spans;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::{idle_ticks, stolen_ns};
use systemscope_tests::{Account, Finished, Tool, Turn, Workload, binary, cpus_online};

/// Starts a program that computes and sleeps for longer than any test.
fn naps() -> Workload {
    let mut naps = Workload::start("naps", &[60, 300]);
    naps.go();
    naps
}

fn cpudist(arguments: &str) -> Tool {
    Tool::new("cpudist").args(arguments)
}

fn text(finished: &Finished) -> String {
    String::from_utf8(finished.stdout.clone()).unwrap()
}

/// Checks a histogram in bcc's layout: a header, and then rows from `0 -> 1` on. Returns the sum of
/// the counts, and the lines after the histogram.
#[track_caller]
fn histogram<'a>(lines: &'a [&'a str], unit: &str) -> (u64, &'a [&'a str]) {
    assert_eq!(
        lines[0],
        format!("     {unit:<19} : count     distribution")
    );
    let mut sum = 0;
    let mut rows = 0;
    for line in &lines[1..] {
        let Some((range, rest)) = line.split_once(" : ") else {
            break;
        };
        let (low, high) = range.split_once(" -> ").unwrap();
        assert_eq!((low.len(), high.len()), (10, 10), "{line:?}");
        let low_is = if rows == 0 { 0 } else { 1_u64 << rows };
        assert_eq!(low.trim(), low_is.to_string());
        assert_eq!(high.trim(), ((2_u64 << rows) - 1).to_string());
        let (count, stars) = rest.split_once(" |").unwrap();
        assert_eq!((count.len(), stars.len()), (8, 41), "{line:?}");
        sum += count.trim().parse::<u64>().unwrap();
        rows += 1;
    }
    assert!(sum > 0);
    (sum, &lines[rows + 1..])
}

#[test]
fn the_default_is_bccs_layout_on_stdout_alone() {
    let _turn = Turn::share();
    let naps = naps();
    let finished = cpudist("0.5 2").pid(naps.pid()).run().succeeded();
    let text = text(&finished);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "");
    let (first, rest) = histogram(&lines[1..], "usecs");
    assert_eq!(rest[0], "");
    let (second, rest) = histogram(&rest[1..], "usecs");
    assert!(rest.is_empty());
    let mut stderr = finished.stderr.lines();
    assert_eq!(
        stderr.next(),
        Some("Tracing on-CPU time... Hit Ctrl-C to end.")
    );
    let last = stderr.next().unwrap();
    let (spans, lost) = last.split_once(" spans; ").unwrap();
    assert_eq!(
        spans.replace(',', ""),
        format!("cpudist: {}", first + second),
        "{last}"
    );
    assert!(!lost.contains("span"), "{last}");
    assert_eq!(stderr.next(), None);
}

#[test]
fn time_unit_and_summary_are_added_on_request() {
    let _turn = Turn::share();
    let naps = naps();
    let (before, stolen) = (running_ns(naps.pid()), stolen_ns());
    let finished = cpudist("-O -T -m -e 0.5 1")
        .pid(naps.pid())
        .run()
        .succeeded();
    let text = text(&finished);
    let lines: Vec<&str> = text.lines().collect();
    let time: Vec<&str> = lines[1].split(':').collect();
    assert!(
        lines[1].len() == 8 && time.len() == 3 && time.iter().all(|part| part.len() == 2),
        "{text}"
    );
    let (count, rest) = histogram(&lines[2..], "msecs");
    let words: Vec<&str> = rest[1].split([' ', ',']).collect();
    assert_eq!((rest[0], rest[2], rest.len()), ("", "", 3), "{text}");
    assert_eq!(
        [words[0], words[1], words[3], words[5], words[7], words[9]],
        ["avg", "=", "msecs", "total:", "msecs", "count:"],
    );
    assert_eq!(words[10], count.to_string());
    // The thread is off the CPU for half a second, less its running time in the kernel's account
    // and the stolen time.
    let total: u64 = words[6].parse().unwrap();
    let running_ns = running_ns(naps.pid()) - before + (stolen_ns() - stolen);
    let running_ms = running_ns.div_ceil(1_000_000);
    let least = 500_u64.saturating_sub(running_ms + 20);
    assert!(
        (least..=500).contains(&total),
        "{running_ms} ms running: {text}"
    );
    assert!(finished.stderr.starts_with("Tracing off-CPU time... "));
}

#[test]
fn processes_and_threads_are_told_apart() {
    let _turn = Turn::share();
    let naps = naps();
    for (flag, section) in [("-P", "pid"), ("-L", "tid")] {
        let finished = cpudist("0.5 1").arg(flag).pid(naps.pid()).run().succeeded();
        let text = text(&finished);
        let lines: Vec<&str> = text.lines().collect();
        let name = format!("{section} = {} naps", naps.pid());
        assert_eq!(lines[..4], ["", "", &name, ""], "{text}");
        histogram(&lines[4..], "usecs");
    }
    let everyone = text(&cpudist("-P 0.5 1").run().succeeded());
    assert!(everyone.matches("\npid = ").count() > 1, "{everyone}");
    assert!(!everyone.contains("pid = 0 "), "{everyone}");
    let idle_before = idle_ticks();
    let idle = text(&cpudist("-P -I 0.5 1").run().succeeded());
    // A busy machine has no idle CPU.
    if idle_ticks() - idle_before > 25 * cpus_online() as u64 {
        assert_eq!(idle.matches("\npid = 0 swapper\n\n").count(), 1, "{idle}");
    }
    let thread = cpudist("-L 0.5 1").arg("-t").arg(naps.pid().to_string());
    assert!(text(&thread.run().succeeded()).contains(" naps\n"));
}

#[test]
fn one_that_ended_still_has_its_name() {
    let _turn = Turn::share();
    let running = cpudist("-P").start_measuring();
    Tool::at("/bin/true".as_ref()).run().succeeded();
    running.signal(Signal::INT);
    let finished = running.finish_within(PATIENCE).succeeded();
    assert!(text(&finished).contains(" true\n\n     usecs"));
}

#[test]
fn a_container_sees_its_own_threads_by_its_own_numbers() {
    let _turn = Turn::share();
    let outside = Workload::start("ping_pong", &[0]);
    let tool = binary("cpudist");
    let script = format!(
        "(while sleep 0.1; do :; done) & {} -L --json 1 1",
        tool.display()
    );
    let finished = Tool::at("unshare".as_ref())
        .args("--pid --fork --mount-proc sh -c")
        .arg(script)
        .run();
    let spans = Spans::read(finished);
    let rows = &spans.only().rows;
    // Outside the container these threads have higher IDs than a process that existed before them.
    let is_own = |tid| (1..outside.pid()).contains(&tid);
    assert!(
        rows.iter().all(|row| row.tid.is_some_and(is_own)),
        "{rows:?}"
    );
    assert!(rows.iter().any(|row| row.comm.as_deref() == Some("sleep")));
    // Switches of threads outside the container do not count as lost. There are many more of them.
    let outside = Account::read(outside.pid(), outside.pid()).unwrap();
    assert!(
        spans.lost_switches * 10 < outside.voluntary.max(1000),
        "{outside:?}, {spans:?}"
    );
}

#[test]
fn percentiles_come_as_a_table() {
    let _turn = Turn::share();
    let naps = naps();
    let (before, stolen) = (running_ns(naps.pid()), stolen_ns());
    let finished = cpudist("-L --percentiles -O 0.5 1")
        .pid(naps.pid())
        .run()
        .succeeded();
    let text = text(&finished);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[1],
        [
            "tid", "comm", "p50/us", "p90/us", "p99/us", "p99.9/us", "max/us", "mean/us",
            "total/us", "count"
        ]
    );
    assert_eq!(rows[2][..2], [&naps.pid().to_string(), "naps"]);
    let number = |column: usize| rows[2][column].parse::<f64>().unwrap();
    assert!((2..6).all(|column| number(column) <= number(column + 1)));
    // Half of the spans are at least as long as the median. The sum of all spans is the window,
    // less the running time in the kernel's account and the stolen time.
    assert!(
        number(2) <= 2.0 * number(7) && number(7) <= number(6),
        "{text}"
    );
    let running_ns = running_ns(naps.pid()) - before + (stolen_ns() - stolen);
    let running_us = running_ns as f64 / 1e3 + 20_000.0;
    assert!(
        number(8) <= 500_000.0 && number(8) >= 500_000.0 - running_us,
        "{running_us} us running: {text}"
    );
    let product = number(7) * number(9);
    assert!((product / number(8) - 1.0).abs() < 0.03, "{text}");
}

#[test]
fn forms_have_names_too() {
    let _turn = Turn::share();
    let naps = naps();
    let print_as = |form: &str| {
        let tool = cpudist("-p").arg(naps.pid().to_string());
        text(
            &tool
                .args("--format")
                .arg(form)
                .args("1 1")
                .run()
                .succeeded(),
        )
    };
    let histogram_of = print_as("log2");
    let lines: Vec<&str> = histogram_of
        .lines()
        .skip_while(|line| line.is_empty())
        .collect();
    histogram(&lines, "usecs");
    assert!(print_as("percentiles").contains("99.9"));
    let object: serde_json::Value = serde_json::from_str(print_as("json").trim()).unwrap();
    assert!(object.is_object());
    // There is one table for the whole run.
    let hgrm = print_as("hgrm");
    assert!(hgrm.trim_start().starts_with("Value"), "{hgrm}");
    assert!(hgrm.contains("#[Mean") || hgrm.contains("#[Max"), "{hgrm}");
}

#[test]
fn hgrm_is_a_file_for_hdrhistograms_plotter() {
    let _turn = Turn::share();
    let naps = naps();
    let folder = scratch();
    let path = folder.path().join("naps.hgrm");
    let finished = cpudist("--json --hgrm")
        .arg(&path)
        .args("0.3 2")
        .pid(naps.pid())
        .run();
    let spans = Spans::read(finished);
    let count: u64 = spans
        .intervals
        .iter()
        .map(|interval| interval.count())
        .sum();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    );
    let (rows, footer) = lines[2..].split_at(lines.len() - 5);
    let mut last = (0.0, 0.0);
    for row in rows {
        let numbers: Vec<f64> = row
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        assert!(numbers[0] >= last.0 && numbers[1] >= last.1, "{text}");
        last = (numbers[0], numbers[1]);
    }
    assert_eq!(last.1, 1.0);
    assert!(footer[0].starts_with("#[Mean    = ") && footer[2].starts_with("#[Buckets = "));
    assert!(
        footer[1].ends_with(&format!("Total count    = {count:>12}]")),
        "{text}"
    );
}

#[test]
fn without_a_span_bccs_empty_line_is_all() {
    let _turn = Turn::share();
    let sleeper = Workload::start("naps", &[1]);
    let finished = cpudist("0.2 2").pid(sleeper.pid()).run().succeeded();
    assert_eq!(text(&finished), "\n\n");
    let finished = cpudist("-e -P 0.2 1").pid(sleeper.pid()).run().succeeded();
    assert_eq!(text(&finished), "\n");
}

#[test]
fn signals_end_it_with_what_it_has() {
    let _turn = Turn::share();
    let naps = naps();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        for arguments in ["--json", "--json -O 0.4"] {
            let finished = cpudist(arguments)
                .pid(naps.pid())
                .run_until(signal, Duration::from_millis(600));
            let spans = Spans::read(finished);
            let last = spans.intervals.last().unwrap();
            assert!(last.count() > 0, "{spans:?}");
        }
    }
}

#[test]
fn it_ends_with_its_targets() {
    let _turn = Turn::share();
    let naps = naps();
    let running = cpudist("--json").pid(naps.pid()).start_measuring();
    sleep(Duration::from_millis(300));
    drop(naps);
    let spans = Spans::read(running.finish_within(PATIENCE));
    assert!(spans.only().count() > 0);
}

#[test]
fn wrong_command_lines_are_refused() {
    let _turn = Turn::share();
    let refused = |arguments: &str, words: &[&str]| {
        assert_refused(
            "cpudist",
            &cpudist(arguments).run(),
            &[WRONG_COMMAND_LINE],
            words,
        );
    };
    for bad in ["abc", "-1", "0", "1,abc", "99999999999", "12x"] {
        let named = bad.rsplit(',').next().unwrap();
        refused(&format!("-p {bad} 1 1"), &[named]);
        refused(&format!("-t {bad} 1 1"), &[named]);
    }
    refused("0", &["0", "seconds"]);
    refused("-1", &["-1", "seconds"]);
    refused("soon", &["soon"]);
    refused("1 0", &["0", "1 or more"]);
    refused("1 -1", &["-1"]);
    refused("1 1 1", &["1"]);
    refused("-p 1 -t 1", &["--pid", "--tid"]);
    refused("-O --runq", &["--offcpu", "--runq"]);
    refused("--blocked --runq", &["--blocked", "--runq"]);
    refused("-P -L", &["--pids", "--tids"]);
    refused("-I -O", &["--include-idle"]);
    refused("-I -p 1", &["--include-idle"]);
    refused("--percentiles --json", &["--percentiles", "--json"]);
    refused("--json -e", &["--json", "--extension"]);
    refused("--no-such-flag", &["--no-such-flag"]);
}

#[test]
fn what_is_not_there_or_not_writable_is_named_before_anything_is_measured() {
    let _turn = Turn::share();
    for flag in ["-p", "-t"] {
        let finished = cpudist("1 1").arg(flag).arg(nobody()).run();
        assert_refused("cpudist", &finished, &[FAILED], &[&nobody()]);
    }
    let folder = scratch();
    let missing = folder.path().join("missing/turns.hgrm");
    let finished = cpudist("--hgrm").arg(&missing).run();
    assert_refused(
        "cpudist",
        &finished,
        &[FAILED],
        &["missing/turns.hgrm", "folder"],
    );
    let finished = cpudist("--hgrm").arg(folder.path()).run();
    assert_refused("cpudist", &finished, &[FAILED], &["is a folder"]);
    assert!(files_below(folder.path()).is_empty());
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let _turn = Turn::share();
    let (reader, writer) = std::io::pipe().unwrap();
    let running = cpudist("0.2").start_into(writer);
    drop(reader);
    let finished = running.finish_within(PATIENCE);
    assert_ended_with_error("cpudist", &finished, &["closed"]);
}

#[test]
fn help_explains_open_spans_and_ends_with_examples() {
    let _turn = Turn::share();
    let help = text(&cpudist("--help").run().succeeded());
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("A span that is open at the end of a period counts there"),
        "{help}"
    );
    let (_, examples) = help.split_once("Examples:").unwrap();
    assert!(examples.contains("cpudist -p 1234 -O"), "{help}");
}
