//! Goroutines of Go programs. A program has a known number of goroutines for each reason.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::programs::gos::gos;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::{install, scratch};
use systemscope_tests::tries::patiently;
use systemscope_tests::{Finished, Folded, Language, Line, Tool, Turn, Workload, WorkloadBuilder};

/// Goroutines that wait all the time: their function, the reason in old and new versions of Go, and
/// their number.
const WAITS: [(&str, [&str; 2], u64); 8] = [
    ("main.inSelect", ["select"; 2], 5),
    ("main.inReceive", ["chan receive"; 2], 3),
    ("main.inSend", ["chan send"; 2], 2),
    ("main.inMutex", ["semacquire", "sync.Mutex.Lock"], 4),
    ("main.inGroup", ["semacquire", "sync.WaitGroup.Wait"], 1),
    ("main.inNetwork", ["IO wait"; 2], 1),
    ("main.inSleep", ["sleep"; 2], 6),
    ("main.main", ["chan receive"; 2], 1),
];
/// Number of calls of the recursive function `main.inReceive`.
const DEPTH: usize = 11;
/// Part of the time in which `main.alternates` waits in `main.shortly`.
const SHORT_PART: f64 = 0.25;

/// Runs offcputime on a program's goroutines. Returns them beside what the tool said.
fn sampled(pid: u32, rate: u32, seconds: f32, folder: &Path) -> (Finished, Folded) {
    let file = folder.join("goroutines.folded");
    let tool = Tool::new("offcputime").pid(pid).arg("--goroutines");
    let tool = tool.arg(&file).arg("--goroutine-rate");
    let finished = tool.arg(rate.to_string()).arg(seconds.to_string()).run();
    let finished = finished.succeeded();
    let folded = Folded::parse(&fs::read(file).unwrap());
    (finished, folded)
}

/// Returns the number before the word `samples` that the tool said.
fn samples(said: &str) -> f64 {
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = words.windows(2).find(|pair| pair[1] == "samples").unwrap();
    at[0].parse().unwrap()
}

/// Checks the reason, the time and the functions of each goroutine of the program. All times are
/// compared with that of the goroutine of `main`.
fn assert_goroutines(folded: &Folded, samples: f64) {
    let of = |function: &str| folded.only(|line| innermost(line) == Some(function));
    let window = of("main.main").total();
    assert!(window > 0, "{folded}");
    for (function, reasons, number) in WAITS {
        let lines = of(function);
        // A sample in which the goroutine changed has no stack. These goroutines do not change.
        assert_eq!(lines.total() / number, window, "{function}: {folded}");
        for line in &lines.lines {
            let reason = reasons.map(|reason| format!("[{reason}]_[o]"));
            assert!(reason.iter().any(|it| it == line.leaf()), "{line}");
            let calls = line.frames.iter().filter(|frame| *frame == function);
            let expected = if function == "main.inReceive" {
                DEPTH
            } else {
                1
            };
            assert_eq!(calls.count(), expected, "{line}");
            assert!(starts_right(line), "{line}");
        }
    }
    let (short, long) = (of("main.shortly"), of("main.longer"));
    for lines in [&short, &long] {
        assert!(lines.lines.iter().all(|line| line.has("main.alternates")));
        assert!(lines.lines.iter().all(starts_right));
    }
    // Five standard deviations of a part that is counted in independent samples.
    let part = short.total() as f64 / (short.total() + long.total()) as f64;
    let tolerance = 5.0 * (SHORT_PART * (1.0 - SHORT_PART) / samples).sqrt();
    assert!((part - SHORT_PART).abs() < tolerance, "{part}: {folded}");
    // Besides, there is the goroutine that reads stdin, and one that was read while it changed.
    let known: Vec<&str> = { WAITS.iter() }.map(|wait| wait.0).collect();
    let others = folded.only(|line| {
        let function = innermost(line).unwrap_or_default();
        !known.contains(&function) && !["main.shortly", "main.longer"].contains(&function)
    });
    assert!(others.total() <= window / 10, "{others}");
    let of_runtime = |line: &Line| line.frames.iter().all(|it| it.starts_with("runtime."));
    assert_eq!(folded.only(of_runtime), Folded::default());
}

/// Returns the innermost function of the program.
fn innermost(line: &Line) -> Option<&str> {
    let mut frames = line.frames.iter().rev().map(String::as_str);
    frames.find(|frame| frame.starts_with("main."))
}

/// Returns whether a stack begins at the first function of a goroutine.
fn starts_right(line: &Line) -> bool {
    let root = line.frames.first().map_or("", String::as_str);
    if innermost(line) == Some("main.main") {
        root == "runtime.main"
    } else {
        root.starts_with("main.") && root != "main.main"
    }
}

/// Starts the program, built by this compiler with flags.
fn workload(compiler: &str, flags: &[&str]) -> Workload {
    let builder = WorkloadBuilder::new("goroutines").language(Language::Go);
    let builder = builder.compiler(compiler);
    let builder = flags
        .iter()
        .fold(builder, |builder, flag| builder.flag(flag));
    builder.start()
}

#[test]
fn each_goroutine_has_its_reason_time_and_functions() {
    let _turn = Turn::share();
    let program = workload("go", &[]);
    let folder = scratch();
    patiently(|| {
        let (finished, folded) = sampled(program.pid(), 50, 3.0, folder.path());
        let said = &finished.stderr;
        let window = folded.only(|line| innermost(line) == Some("main.main"));
        let error = (window.total() as f64 - 3e6).abs();
        assert!(error < 3e5, "{} µs: {said}", window.total());
        assert!(said.contains("Go's runtime has "), "{said}");
        assert_goroutines(&folded, samples(said));
    });
}

/// Distributions leave out the debug information, and most of them the symbols.
#[test]
fn programs_without_debug_information_and_symbols_have_the_same() {
    let _turn = Turn::share();
    let folder = scratch();
    for go in gos() {
        for flags in [
            &[][..],
            &["-ldflags=-w"],
            &["-ldflags=-s"],
            &["-buildmode=pie", "-ldflags=-s"],
            &["-buildmode=pie", "-ldflags=-s -linkmode=external"],
        ] {
            println!("{go}, {flags:?}");
            let program = workload(&go, flags);
            patiently(|| {
                let (finished, folded) = sampled(program.pid(), 50, 1.0, folder.path());
                assert_goroutines(&folded, samples(&finished.stderr));
            });
        }
    }
}

#[test]
fn what_was_sampled_before_the_program_ended_is_written() {
    let _turn = Turn::share();
    let mut program = workload("go", &[]);
    let folder = scratch();
    let file = folder.path().join("goroutines.folded");
    let tool = Tool::new("offcputime").pid(program.pid());
    let tool = tool.arg("--goroutines").arg(&file);
    let running = tool.args("--goroutine-rate 50 20").start_measuring();
    sleep(Duration::from_secs(1));
    program.go();
    let finished = running.finish_within(PATIENCE).succeeded();
    let folded = Folded::parse(&fs::read(file).unwrap());
    assert!(
        finished
            .stderr
            .contains("process ended before the window did"),
        "{}",
        finished.stderr
    );
    let sleeps = folded.under("main.inSleep").total();
    // Six goroutines slept for about a second.
    assert!((4_000_000..8_000_000).contains(&sleeps), "{folded}");
    assert_eq!(folded.comms().len(), 1);
    assert!(folded.comms().contains("goroutines"));
}

#[test]
fn a_program_that_is_not_written_in_go_is_refused() {
    let _turn = Turn::share();
    let program = Workload::start("naps", &[0]);
    let folder = scratch();
    let file = folder.path().join("goroutines.folded");
    let tool = Tool::new("offcputime").pid(program.pid());
    let finished = tool.arg("--goroutines").arg(&file).arg("1").run();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let line = finished.stderr.lines().last().unwrap();
    let expected = format!(
        "offcputime: cannot read the goroutines of process {}: it is not a Go program",
        program.pid()
    );
    assert!(line.starts_with(&expected), "{line}");
    assert!(!file.exists());
}

/// Returns the report's section about goroutines, as lines.
fn section(report: &str) -> Vec<&str> {
    let lines = report.lines();
    let from = lines.skip_while(|line| !line.starts_with("GOROUTINES, by reason"));
    from.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn wallclock_reports_goroutines_beside_threads() {
    let _turn = Turn::share();
    let program = workload("go", &["-ldflags=-s"]);
    let folder = scratch();
    let wallclock = |rate: u32, name: &str| {
        let tool = Tool::new("wallclock").arg(program.pid().to_string());
        let tool = tool.args("-d 2 --goroutine-rate").arg(rate.to_string());
        let tool = tool.arg("-o").arg(folder.path().join(name));
        let finished = tool.run().succeeded();
        String::from_utf8(finished.stdout).unwrap()
    };
    let report = wallclock(20, "sampled");
    let section = section(&report);
    let goroutines = |reason: &str| -> f64 {
        let row = format!(" {reason} ");
        let row = section.iter().find(|line| line.starts_with(&row));
        let number = row.and_then(|row| row.split_whitespace().last());
        number
            .unwrap_or_else(|| panic!("{reason}: {report}"))
            .parse()
            .unwrap()
    };
    // One goroutine sleeps at two places in turn, and one is `main`.
    for (reason, number) in [
        ("select", 5.0),
        ("chan receive", 4.0),
        ("chan send", 2.0),
        ("IO wait", 1.0),
    ] {
        assert_eq!(goroutines(reason), number, "{report}");
    }
    assert!((goroutines("sleep") - 7.0).abs() < 0.4, "{report}");
    let created = "main.inSelect ← created by main.start";
    assert!(
        section.iter().any(|line| line.trim() == created),
        "{report}"
    );
    assert!(
        section
            .iter()
            .any(|line| line.contains("of Go's runtime left out")),
        "{report}"
    );
    assert!(!wallclock(0, "none").contains("GOROUTINES"));
}

#[test]
fn wallclock_finds_the_goroutines_of_a_command() {
    let _turn = Turn::share();
    let folder = scratch();
    let builder = WorkloadBuilder::new("goroutines").language(Language::Go);
    let program = builder.build_into(folder.path());
    let tool = Tool::new("wallclock").args("-d 2 -o");
    let tool = tool.arg(folder.path().join("run.scope")).arg("--");
    let finished = tool.arg(&program).arg("0").arg("stays").run();
    assert!(
        finished.stderr.contains("GOROUTINES"),
        "{}",
        finished.stderr
    );
}

#[test]
fn an_unknown_version_without_symbols_is_refused() {
    let _turn = Turn::share();
    let builder = WorkloadBuilder::new("goroutines").language(Language::Go);
    let builder = builder.flag("-ldflags=-s");
    let program = builder.start_with(|binary, _| {
        // The program keeps the version 33 bytes behind this text, as `go1.24.4`.
        let magic = b"\xff Go buildinf:";
        let mut image = fs::read(binary).unwrap();
        let mut places = image.windows(magic.len());
        let version = places.position(|it| it == magic).unwrap() + 33;
        image[version + 4..version + 6].copy_from_slice(b"99");
        let patched = binary.with_extension("patched");
        fs::write(&patched, image).unwrap();
        install(&patched, binary);
    });
    let folder = scratch();
    let file = folder.path().join("goroutines.folded");
    let tool = Tool::new("offcputime").pid(program.pid());
    let finished = tool.arg("--goroutines").arg(&file).arg("1").run();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let line = finished.stderr.lines().last().unwrap();
    assert!(line.contains("its version of Go, go1.99"), "{line}");
    assert!(
        line.contains("is not known, and it has no debug information"),
        "{line}"
    );
    assert!(!file.exists());
    let tool = Tool::new("wallclock").arg(program.pid().to_string());
    let finished = tool.args("-d 1 -o").arg(folder.path().join("a")).run();
    let finished = finished.succeeded();
    let line = "wallclock: the report has no goroutines of process";
    assert!(finished.stderr.contains(line), "{}", finished.stderr);
}
