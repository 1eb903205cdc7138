//! Output that cannot be written. The tool prints one line that names the output, exits with status
//! 1, and leaves no partial file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::output::files_below;
use systemscope_tests::printed::refusal::{
    FAILED, FOLDING, STACKING, assert_ended_with_error, assert_refused, on_target,
};
use systemscope_tests::programs::simple::on;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Finished, Folded, Tool, Turn, Workload, binary};

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let pid = simple.pid().to_string();
    for tool in STACKING {
        for bad in ["/no/such/folder/out", "/proc/out"] {
            let finished = on_target(tool, &pid).arg("-o").arg(bad).run();
            // `-o` of wallclock is the prefix of several files, so the test compares only the
            // folder.
            assert_refused(
                tool,
                &finished,
                &[FAILED],
                &[bad.rsplit_once('/').unwrap().0],
            );
        }
    }
    let flame_graph = on_target("offwaketime", &pid).args("--svg /no/such/folder/out");
    let finished = flame_graph.run();
    assert_refused("offwaketime", &finished, &[FAILED], &["/no/such/folder"]);
}

/// Runs a command in a mount namespace of its own. `folder` has a small file system there, and the
/// file `filler` fills it to the last byte.
fn on_full_disk(folder: &Path, command: &str) -> Finished {
    let script = format!(
        "mount -t tmpfs -o size=16k tmpfs {folder} && head -c 16384 /dev/zero > {folder}/filler && \
         {command}; status=$?; cd {folder} && find . -type f ! -name filler -printf 'left behind: %p\\n'; exit $status",
        folder = folder.display()
    );
    Tool::at(Path::new("unshare"))
        .args("--mount sh -c")
        .arg(script)
        .run()
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let _turn = Turn::share();
    // The program sleeps and computes, so each tool has data to write.
    let simple = Workload::plain("simple");
    let folder = scratch();
    let out = folder.path().join("out");
    for tool in STACKING {
        let target = match tool {
            "wallclock" => "-d 1",
            "oncputime" => "-F 1999 --duration 1 --per-thread -p",
            _ => "--duration 1 --per-thread -p",
        };
        let command = format!(
            "{} {target} {} -o {}",
            binary(tool).display(),
            simple.pid(),
            out.display()
        );
        let finished = on_full_disk(folder.path(), &command);
        assert_ended_with_error(tool, &finished, &["No space left"]);
        assert!(
            finished.stdout.is_empty(),
            "{tool}: {}",
            String::from_utf8_lossy(&finished.stdout)
        );
    }
}

#[test]
fn a_full_device_is_an_error() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    // The test makes its own device. It notices if a tool replaces this device.
    let folder = scratch();
    let device = folder.path().join("full");
    Tool::at(Path::new("mknod"))
        .arg(&device)
        .args("c 1 7")
        .run()
        .succeeded();
    for tool in FOLDING {
        let tool_on_target = || on(tool, &simple).args("--duration 1");
        let to_stdout = tool_on_target()
            .start_into_file(&device)
            .finish_within(PATIENCE);
        assert_ended_with_error(tool, &to_stdout, &["No space left"]);
        let to_file = tool_on_target().arg("-o").arg(&device).run();
        assert_ended_with_error(tool, &to_file, &["No space left"]);
        assert!(
            fs::metadata(&device).unwrap().file_type().is_char_device(),
            "the device was replaced"
        );
    }
    assert_eq!(files_below(folder.path()), [device]);
}

#[test]
fn a_closed_pipe_is_one_line() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in FOLDING {
        let (reader, writer) = std::io::pipe().unwrap();
        let running = on(tool, &simple).args("--duration 1").start_into(writer);
        drop(reader);
        let finished = running.finish_within(PATIENCE);
        assert_ended_with_error(tool, &finished, &["closed"]);
        let own = finished
            .stderr
            .lines()
            .filter(|line| line.starts_with(tool));
        assert_eq!(own.count(), 1, "{}", finished.stderr);
    }
}

#[test]
fn an_output_file_is_whole_or_not_there() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let folder = scratch();
    for tool in FOLDING {
        let out = folder.path().join(tool);
        let running = on(tool, &simple).arg("-o").arg(&out).start_measuring();
        sleep(Duration::from_millis(300));
        assert!(!out.exists(), "{tool} shows a file that is not whole");
        running.signal(Signal::INT);
        let finished = running.finish_within(PATIENCE).succeeded();
        assert!(finished.stdout.is_empty(), "{tool} prints beside -o");
        let text = fs::read(&out).unwrap();
        assert!(Folded::parse(&text).total() > 0);
    }
    assert_eq!(
        files_below(folder.path()).len(),
        FOLDING.len(),
        "temporary files are left"
    );
}
