//! Output files that cannot be written.

use std::path::Path;

use systemscope_tests::printed::output::files_below;
use systemscope_tests::printed::refusal::{FAILED, assert_ended_with_error, assert_refused};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Finished, Tool, Workload, binary};

use crate::fault::{End, Fault, held};
use crate::run::TOOLS;

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "the output's folder is read-only",
        tools: "all",
        outcome: "exit 1 before anything is measured, names the file or folder",
        body: the_folder_is_read_only,
    },
    Fault {
        name: "the disk is full",
        tools: "all",
        outcome: "exit 1, \"No space left\"; nothing half-written",
        body: the_disk_is_full,
    },
    Fault {
        name: "standard output is full",
        tools: "all but wallclock",
        outcome: "exit 1, \"No space left\"",
        body: stdout_is_full,
    },
];

/// Returns a command line of `tool` that writes to `out` in `folder`.
fn command_line(tool: &str, pid: u32, folder: &Path) -> String {
    let out = folder.join("out");
    let flags = match tool {
        "wallclock" => format!("{pid} -d 1 -o"),
        "cpudist" => format!("-p {pid} 1 1 --hgrm"),
        _ => format!("-p {pid} --duration 1 --per-thread -o"),
    };
    format!("{} {flags} {}", binary(tool).display(), out.display())
}

/// Runs `command` with a tmpfs of `size` on `folder`, after the shell command `prepare`. Standard
/// output lists the files that `command` leaves there.
fn on_disk(folder: &Path, size: &str, prepare: &str, command: &str) -> Finished {
    let shown = folder.display();
    let script = format!(
        "mount -t tmpfs -o size={size} tmpfs {shown} && {prepare} && {command} >&2; status=$?; \
         find {shown} -type f ! -name filler; exit $status"
    );
    Tool::at(Path::new("unshare"))
        .args("--mount sh -c")
        .arg(script)
        .run()
}

fn the_folder_is_read_only() -> End {
    let simple = Workload::plain("simple");
    let folder = scratch();
    for tool in TOOLS {
        let command = command_line(tool, simple.pid(), folder.path());
        let read_only = format!("mount -o remount,ro {}", folder.path().display());
        let finished = on_disk(folder.path(), "1m", &read_only, &command);
        let shown = folder.path().to_string_lossy();
        assert_refused(
            tool,
            &finished,
            &[FAILED],
            &[&shown, "Read-only file system"],
        );
    }
    assert!(files_below(folder.path()).is_empty());
    held("exit 1, \"Read-only file system\"")
}

fn the_disk_is_full() -> End {
    let simple = Workload::plain("simple");
    let folder = scratch();
    for tool in TOOLS {
        let command = command_line(tool, simple.pid(), folder.path());
        let fill = format!(
            "head -c 16384 /dev/zero >{}/filler",
            folder.path().display()
        );
        let finished = on_disk(folder.path(), "16k", &fill, &command);
        assert_ended_with_error(tool, &finished, &["No space left"]);
        let left = String::from_utf8_lossy(&finished.stdout);
        assert!(left.is_empty(), "{tool} left {left}");
    }
    held("exit 1, \"No space left\"; no file")
}

fn stdout_is_full() -> End {
    let simple = Workload::plain("simple");
    for tool in &TOOLS[..4] {
        let flags = crate::run::arguments(tool, simple.pid(), 1.0);
        let running = Tool::new(tool)
            .args(&flags)
            .start_into_file(Path::new("/dev/full"));
        let finished = running.finish_within(std::time::Duration::from_secs(20));
        assert_ended_with_error(tool, &finished, &["No space left"]);
    }
    held("exit 1, \"No space left\"")
}
