//! Targets whose memory does not answer readers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use systemscope_tests::printed::refusal::a_second_of;
use systemscope_tests::programs::tool::TOOLS;
use systemscope_tests::{Tool, Turn, Workload};

/// Limit of a run of 1 s on a busy machine. A tool that hangs never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs each tool for 1 s on a target whose stack and command line lie in memory of `kind`. Checks
/// that each tool ends.
fn assert_that_none_hangs(kind: &str) {
    let unserved = Workload::start("unserved", &[kind]);
    for tool in TOOLS {
        let folder = systemscope_tests::programs::workload::scratch();
        let begun = Instant::now();
        let finished = Tool::new(tool)
            .args(a_second_of(tool))
            .arg(unserved.pid().to_string())
            .in_folder(folder.path())
            .start()
            .finish_within(PATIENCE);
        let took = begun.elapsed();
        assert_eq!(finished.code, Some(0), "{tool}: {}", finished.stderr);
        println!("{kind}: {tool} took {took:?}");
        if tool == "offcputime" {
            let text = finished.stderr;
            let said = "1 processes' memory did not answer in time";
            assert!(text.contains(said), "{text}");
        }
    }
}

#[test]
fn memory_of_a_userfaultfd_that_nobody_serves_hangs_no_tool() {
    let _turn = Turn::share();
    assert_that_none_hangs("userfaultfd");
}

#[test]
fn a_fuse_file_that_never_answers_hangs_no_tool() {
    let _turn = Turn::share();
    assert_that_none_hangs("fuse");
}
