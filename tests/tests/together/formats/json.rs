//! The JSON object, checked against its schema and used as its documentation says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload};

const VALIDATE: &str = "
import json, sys
from jsonschema import Draft202012Validator as Validator
schema, data = (json.load(open(path)) for path in sys.argv[1:])
Validator.check_schema(schema)
Validator(schema).validate(data)
";

/// Runs a program to its end and returns its stdout.
fn stdout_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}

fn jq(program: &str, file: &Path) -> String {
    stdout_of(Command::new("jq").args(["-r", program]).arg(file))
}

#[test]
fn each_tools_object_is_what_the_schema_says() {
    let _turn = Turn::share();
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    let folder = scratch();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/profile.schema.json");
    for (tool, flags) in [
        ("oncputime", "-F 199 --duration 1 -p"),
        ("offcputime", "--states --srcline --inline --duration 1 -p"),
        ("offwaketime", "--duration 1 -p"),
        ("wallclock", "-d 1"),
    ] {
        let file = folder.path().join(format!("{tool}.json"));
        let run = Tool::new(tool).args(flags).arg(phases.pid().to_string());
        run.arg("-o").arg(&file).run().succeeded();
        let mut python = Command::new("python3");
        stdout_of(python.args(["-c", VALIDATE]).arg(&schema).arg(&file));
        assert_eq!(jq(".meta.tool", &file).trim(), tool);
        let names = jq(".frames as $f | .samples[].user[] | $f[.].name", &file);
        assert!(
            names.lines().any(|name| name == "start_thread"),
            "{tool}: {names}"
        );
    }
    // The metadata describe how each tool measured.
    for (tool, measure, told) in [
        ("oncputime", ".meta.sampling.frequency", "199"),
        ("offcputime", ".meta.lengths.least_ns", "1000"),
        ("offwaketime", ".meta.lengths.least_ns", "1000"),
    ] {
        let file = folder.path().join(format!("{tool}.json"));
        assert_eq!(jq(measure, &file).trim(), told, "{tool}");
    }
    let off = folder.path().join("offcputime.json");
    // All sleeps of these threads are longer than 1 ms, some by little.
    let sums = jq(
        ".ebpf.offcpu | .total_time_ns, .total_events, .avg_time_ns, .max_time_ns, .min_time_ns",
        &off,
    );
    let sums: Vec<u64> = sums.lines().map(|line| line.parse().unwrap()).collect();
    let [total, events, average, longest, shortest] = sums[..] else {
        panic!("{sums:?}")
    };
    assert!(events > 0 && shortest <= average && average <= longest && longest <= total);
    assert_eq!(average, total / events);
    let threads = jq(
        ".ebpf.offcpu.thread_stats | map(.total_time_ns) | add",
        &off,
    );
    assert_eq!(threads.trim(), total.to_string());
    // The accounts of the threads have the same time.
    let clocks = jq("[.threads[] | .runnable_ns + .blocked_ns] | add", &off);
    let clocks: u64 = clocks.trim().parse().unwrap();
    assert!(clocks.abs_diff(total) * 100 < clocks, "{clocks} {total}");
}
