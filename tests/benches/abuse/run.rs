//! Runs of a tool on the workload `simple`. One of its threads sleeps all the time in
//! `leave_with_test`. The stacks below that function must therefore contain the whole window,
//! whatever else happens.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use systemscope_tests::printed::output::files_below;
use systemscope_tests::printed::spans::Interval;
pub(crate) use systemscope_tests::programs::tool::TOOLS;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::bpf_objects::held_by;
use systemscope_tests::{Finished, Folded, Running, Tool};
use tempfile::TempDir;

/// Largest error of a sleep, in thousandths. The edges of the window cut some of the sleep off.
const TOLERANCE: u64 = 5;

/// Returns arguments with which `tool` watches `pid` for some seconds. wallclock writes the files
/// `out…` in its working directory.
pub(crate) fn arguments(tool: &str, pid: u32, seconds: f32) -> String {
    match tool {
        "wallclock" => format!("{pid} -d {seconds} -f 199 -o out"),
        "cpudist" => format!("-p {pid} -O -L --json {seconds} 1"),
        "oncputime" => format!("-p {pid} -F 199 --duration {seconds}"),
        _ => format!("-p {pid} --duration {seconds}"),
    }
}

/// Running tool with a working directory of its own.
pub(crate) struct Run {
    pub(crate) tool: &'static str,
    pub(crate) running: Running,
    folder: TempDir,
}

/// Finished tool with its working directory.
pub(crate) struct Outcome {
    pub(crate) tool: &'static str,
    pub(crate) finished: Finished,
    folder: TempDir,
}

impl Run {
    /// Starts `tool` on the workload `simple` with the process ID `pid`.
    pub(crate) fn start(tool: &'static str, pid: u32, seconds: f32) -> Run {
        let command = Tool::new(tool).args(&arguments(tool, pid, seconds));
        Run::start_as(tool, command)
    }

    /// Starts `command`, which runs `tool`.
    pub(crate) fn start_as(tool: &'static str, command: Tool) -> Run {
        Run::start_in(scratch(), tool, command)
    }

    /// Starts `command`, which runs `tool`, in `folder`.
    pub(crate) fn start_in(folder: TempDir, tool: &'static str, command: Tool) -> Run {
        open_to_all(folder.path());
        let running = command.in_folder(folder.path()).start();
        Run {
            tool,
            running,
            folder,
        }
    }

    /// Waits for wallclock's child `name`, and returns its process ID.
    pub(crate) fn child(&self, name: &str) -> u32 {
        let pid = self.running.pid();
        within(
            Duration::from_secs(10),
            &format!("{name} below {}", self.tool),
            || {
                let path = format!("/proc/{pid}/task/{pid}/children");
                let children = fs::read_to_string(path).unwrap_or_default();
                children.split_whitespace().find_map(|child| {
                    let comm = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
                    (comm.trim() == name).then(|| child.parse().ok())?
                })
            },
        )
    }

    /// Waits until the tool measures.
    pub(crate) fn attached(self) -> Run {
        let pids = match self.tool {
            "wallclock" => vec![self.child("oncputime"), self.child("offcputime")],
            _ => vec![self.running.pid()],
        };
        for pid in pids {
            within(
                Duration::from_secs(20),
                &format!("{} attached", self.tool),
                || {
                    let held = held_by(pid);
                    held.iter()
                        .any(|(kind, _)| *kind == "link_id")
                        .then_some(())
                },
            );
        }
        // The window opens a moment after the links exist.
        sleep(Duration::from_millis(400));
        self
    }

    /// Waits for the end of the tool.
    pub(crate) fn finish(self) -> Outcome {
        let finished = self.running.finish_within(Duration::from_secs(60));
        Outcome {
            tool: self.tool,
            finished,
            folder: self.folder,
        }
    }
}

impl Outcome {
    /// Checks that the tool succeeded and shows the whole sleep. Returns the sleep in us, or the
    /// number of samples for oncputime.
    ///
    /// # Panics
    ///
    /// Panics if a check fails.
    pub(crate) fn whole_sleep_us(self, seconds: f32) -> u64 {
        let tool = self.tool;
        let asked = (f64::from(seconds) * 1e6) as u64;
        let slept = self.slept_us();
        if tool == "oncputime" {
            return slept;
        }
        let off = slept.abs_diff(asked);
        assert!(
            off * 1000 <= asked * TOLERANCE,
            "{tool}: of a sleep of {asked} us there are {slept}"
        );
        slept
    }

    /// Returns the sleep that the tool shows, in us. For oncputime it returns the number of samples
    /// of the busy thread.
    ///
    /// # Panics
    ///
    /// Panics if the tool failed or left temporary files.
    pub(crate) fn slept_us(self) -> u64 {
        let Outcome {
            tool,
            finished,
            folder,
        } = self;
        let finished = finished.succeeded();
        assert_no_temporaries(tool, folder.path());
        match tool {
            "cpudist" => {
                let text = String::from_utf8(finished.stdout).expect("UTF-8");
                let interval: Interval = serde_json::from_str(&text).expect("one interval");
                let rows = interval.rows.iter().map(|row| row.total_ns / 1000);
                rows.max().expect("a thread")
            }
            "wallclock" => {
                let files = files_below(folder.path());
                let is_whole = |path: &&PathBuf| {
                    path.ends_with("combined.folded") || path.ends_with("out.folded")
                };
                let all = files.iter().find(is_whole);
                let all = all.unwrap_or_else(|| panic!("no folded stacks in {files:?}"));
                asleep(&fs::read(all).expect("folded stacks"))
            }
            "oncputime" => {
                let samples = Folded::parse(&finished.stdout).under("known_burn").total();
                assert!(samples > 0, "no sample of known_burn: {}", finished.stderr);
                samples
            }
            _ => asleep(&finished.stdout),
        }
    }

    /// Checks that the tool failed with an error line that contains all of `words`, and left
    /// neither data nor files. Returns the line.
    ///
    /// # Panics
    ///
    /// Panics if a check fails.
    pub(crate) fn assert_failed(self, words: &[&str]) -> String {
        let stderr = self.finished.stderr.clone();
        systemscope_tests::printed::refusal::assert_ended_with_error(
            self.tool,
            &self.finished,
            words,
        );
        assert!(
            self.finished.stdout.is_empty(),
            "{}: data beside an error",
            self.tool
        );
        let files = files_below(self.folder.path());
        assert!(
            files.is_empty(),
            "{}: files beside an error: {files:?}",
            self.tool
        );
        stderr.lines().last().unwrap_or_default().to_owned()
    }
}

impl Outcome {
    /// Checks that the tool left no files.
    ///
    /// # Panics
    ///
    /// Panics if there are files.
    pub(crate) fn assert_no_files(self) {
        let files = files_below(self.folder.path());
        assert!(files.is_empty(), "{} left {files:?}", self.tool);
    }
}

fn asleep(text: &[u8]) -> u64 {
    Folded::parse(text).under("leave_with_test").total()
}

/// Checks that the tool left no temporary file in `folder`.
///
/// # Panics
///
/// Panics if there is a temporary file.
pub(crate) fn assert_no_temporaries(tool: &str, folder: &Path) {
    let is_temporary = |path: &PathBuf| {
        let path = path.to_string_lossy();
        path.contains(".systemscope-") || path.contains(".tmp")
    };
    let left = files_below(folder).into_iter().find(is_temporary);
    assert_eq!(left, None, "{tool} left a temporary file");
}

/// Lets all users write into a folder.
pub(crate) fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("open a folder");
}

/// Calls `ask` every 5 ms until it returns a value.
///
/// # Panics
///
/// Panics if `ask` has not returned a value after `patience`.
pub(crate) fn within<T>(patience: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not within {patience:?}");
        sleep(Duration::from_millis(5));
    }
}

/// Runs `body` with each of the tools, and joins the texts that `body` returns.
pub(crate) fn with_each(
    tools: &[&'static str],
    mut body: impl FnMut(&'static str) -> String,
) -> String {
    let said: Vec<String> = tools
        .iter()
        .map(|&tool| format!("{tool} {}", body(tool)))
        .collect();
    said.join("; ")
}
