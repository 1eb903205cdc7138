//! Small captures that expand to huge data.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use systemscope_tests::binary;
use systemscope_tests::programs::tool::EVERYTHING;
use systemscope_tests::programs::workload::scratch;

use crate::every_command::{DIFFS, FORMATS};
use crate::written::{
    bytes, capture, chains, frames, intervals, lanes, meta, request_spans, same_rows, samples,
    stacks, thread, timed_samples,
};

/// Memory that is enough to refuse a capture, in bytes.
const FEW_BYTES: u64 = 128 << 20;

/// Runs a command with a limit of `bytes` of memory and 10 s of CPU time.
fn run(arguments: &str, captures: &[&Path], bytes: u64) -> Output {
    let mut command = Command::new("prlimit");
    command.args([&format!("--data={bytes}"), "--cpu=10", "--"]);
    command.arg(binary(EVERYTHING)).args(arguments.split(' '));
    command.args(captures).output().unwrap()
}

/// Checks that every command refuses a capture with one line.
fn assert_refused(capture: &[u8], why: &str) {
    let folder = scratch();
    let path = folder.path().join("bomb.scope");
    fs::write(&path, capture).unwrap();
    for (arguments, captures) in [
        ("report", vec![&*path]),
        ("export --format folded", vec![&path]),
        ("diff", vec![&path, &path]),
    ] {
        let output = run(arguments, &captures, FEW_BYTES);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {told}");
        assert!(told.contains(why) && told.lines().count() == 1, "{told}");
        assert!(output.stdout.is_empty());
        // The part of the capture that `--partial` reads stays within the limits, too.
        let arguments = "export --partial --format json";
        let output = run(arguments, &[&path], FEW_BYTES);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
    }
}

#[test]
fn far_more_rows_than_the_size_allows_are_refused() {
    let part = |count| capture(&[meta(), same_rows(10, &bytes(1, b""), count)]);
    let why = "it has far more rows than its size allows";
    assert_refused(&part(1 << 22), why);
    assert_refused(&part(1 << 17).repeat(40), why);
    let names = capture(&[meta(), same_rows(2, &bytes(1, b""), 1 << 23)]);
    assert_refused(&names, why);
    let zeros = [0; 4096];
    for rows in [
        intervals(&zeros, 0),
        timed_samples(&zeros),
        lanes(zeros.len()),
        request_spans(&zeros, 0),
    ] {
        let sample = samples(&[[0, 0, 0]]);
        let bomb = capture(&[meta(), frames(1), sample, rows.repeat(400)]);
        assert_refused(&bomb, why);
    }
}

#[test]
fn stacks_deeper_than_any_recorder_writes_are_refused() {
    let bomb = capture(&[
        meta(),
        frames(8),
        stacks(200_000),
        samples(&[[200_000, 0, 0]]),
    ]);
    assert_refused(&bomb, "a stack is deeper than any recorder writes");
}

#[test]
fn samples_with_far_more_frames_than_the_size_allows_are_refused() {
    let rows: Vec<[u64; 3]> = (1..=16_000).map(|stack| [stack, 0, 0]).collect();
    let bomb = capture(&[meta(), frames(8), stacks(16_000), samples(&rows)]);
    assert_refused(&bomb, "its stacks are far deeper than its size allows");
}

/// Returns a capture with deep stacks, the samples `rows`, and the chains of wakers `chained`.
fn deep(rows: &[[u64; 3]], chained: &[u64]) -> Vec<u8> {
    let stacks = stacks(16_000);
    capture(&[
        meta(),
        frames(8),
        stacks,
        chains(chained),
        samples(rows),
        thread(),
    ])
}

/// The deep stacks are user stacks, kernel stacks or stacks of wakers. Memory does not grow with
/// the number of samples times their depth.
#[test]
#[ignore = "writes gigabytes of text in every format"]
fn each_sample_may_have_a_deep_stack() {
    let depths: Vec<u64> = (0..300).map(|at| 16_000 - at).collect();
    let each = |row: fn(u64, u64) -> [u64; 3]| -> Vec<[u64; 3]> {
        let depths = (0..).zip(&depths);
        depths.map(|(at, depth)| row(at, *depth)).collect()
    };
    let folder = scratch();
    for (name, rows) in [
        ("user", each(|_, depth| [depth, 0, 0])),
        ("kernel", each(|at, depth| [1 + at % 8, depth, 0])),
        ("wakers", each(|at, _| [1, 0, 1 + at])),
    ] {
        let path = folder.path().join(format!("{name}.scope"));
        fs::write(&path, deep(&rows, &depths)).unwrap();
        let exports = FORMATS.map(|format| format!("export --format {format}"));
        for arguments in exports.iter().map(String::as_str).chain(["report"]) {
            assert_done(name, arguments, run(arguments, &[&path], 48 << 20));
        }
        for arguments in DIFFS {
            assert_done(name, arguments, run(arguments, &[&path, &path], 48 << 20));
        }
    }
}

#[test]
fn what_takes_too_much_memory_ends_with_one_line() {
    let rows: Vec<[u64; 3]> = (0..900).map(|at| [1 + at % 8, 16_000 - at, 0]).collect();
    let folder = scratch();
    let path = folder.path().join("deep.scope");
    fs::write(&path, deep(&rows, &[])).unwrap();
    let output = run("export --format svg", &[&path], 32 << 20);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("takes more memory than") && told.lines().count() == 1,
        "{told}"
    );
    assert!(output.stdout.is_empty());
}

fn assert_done(name: &str, arguments: &str, output: Output) {
    let told = String::from_utf8_lossy(&output.stderr);
    let signal = output.status.signal();
    assert!(
        output.status.success(),
        "{name}, {arguments}: {signal:?} {told}"
    );
    assert!(!output.stdout.is_empty(), "{name}, {arguments}");
}
