//! Other profilers, run as their users run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::programs::django::from_pypi;
use crate::programs::workload::scratch;
use crate::truth::account::threads_of;
use crate::truth::statistics::programs;
use crate::{Account, Finished, Running, Tool, binary, programs::tool};

/// Command line of a profiler, in which `PID` stands for the target and `FILE` for a file of the
/// profiler's own.
#[derive(Clone, Debug)]
pub struct Profiler {
    /// Name in the tables.
    pub name: String,
    program: PathBuf,
    arguments: Vec<String>,
    /// True if the profiler prints a line when it measures.
    announces: bool,
}

/// Profiler that is attached.
#[derive(Debug)]
pub struct Attached {
    running: Running,
    folder: TempDir,
}

/// Time in which every profiler that prints no such line attaches.
const UNTIL_ATTACHED: Duration = Duration::from_millis(1200);
/// Longest time to end. perf and bpftrace may print much.
const UNTIL_ENDED: Duration = Duration::from_secs(30);

/// bcc's offcputime as a script, without kprobes: one tracepoint is enough. The script measures the
/// threads for which LEAVES holds.
const BPFTRACE_OFF_CPU: &str = "tracepoint:sched:sched_switch {
	if (LEAVES) { @start[args->prev_pid] = nsecs; @stack[args->prev_pid] = ustack; }
	$start = @start[args->next_pid];
	if ($start != 0) {
		@off[@stack[args->next_pid], args->next_pid] = sum(nsecs - $start);
		delete(@start[args->next_pid]);
		delete(@stack[args->next_pid]);
	}
}
END { clear(@start); clear(@stack); }";

const BPFTRACE_ON_CPU: &str = "profile:hz:HERTZ /FILTER/ { @on[ustack, tid] = count(); }";

impl Profiler {
    /// Returns a tool of this project.
    pub fn ours(tool: &str, arguments: &str) -> Profiler {
        Profiler {
            name: format!("{tool} {arguments}").trim_end().to_owned(),
            program: binary(tool),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            announces: tool != "wallclock",
        }
    }

    /// Returns a tool of libbpf-tools by the name that Debian or Fedora gives it. A program beside
    /// `systemscope` does not count, because `make install` installs the tools of this project
    /// there.
    pub fn libbpf_tools(tool: &str, arguments: &str) -> Option<Profiler> {
        let names = [tool.to_owned(), format!("bpf-{tool}")];
        let is_theirs = |path: &PathBuf| !path.with_file_name("systemscope").exists();
        let program = (names.iter()).find_map(|name| installed(name).filter(is_theirs))?;
        Some(Profiler {
            name: format!("libbpf-tools' {tool} {arguments}")
                .trim_end()
                .to_owned(),
            program,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            announces: false,
        })
    }

    /// Returns `perf` with arguments.
    pub fn perf(arguments: &str) -> Option<Profiler> {
        Some(Profiler {
            name: format!("perf {}", arguments.split(" -o").next()?),
            program: installed("perf")?,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            announces: false,
        })
    }

    /// Returns `perf record` of one process, on the clock that needs no hardware counter.
    pub fn perf_record(hertz: u64, call_graph: &str) -> Option<Profiler> {
        let perf = Profiler::perf(&format!(
            "record -q -e cpu-clock -F {hertz} --call-graph {call_graph} --user-callchains -p PID -o FILE"
        ))?;
        Some(Profiler {
            name: format!("perf {call_graph}"),
            ..perf
        })
    }

    /// Returns bpftrace with user stacks off the CPU, of one process or of all processes.
    pub fn bpftrace_off_cpu(of_one: bool) -> Option<Profiler> {
        let leaves = if of_one {
            "pid == PID"
        } else {
            "args->prev_pid != 0"
        };
        Profiler::bpftrace("bpftrace", BPFTRACE_OFF_CPU.replace("LEAVES", leaves))
    }

    /// Returns bpftrace with user stacks of samples, of one process or of all processes.
    pub fn bpftrace_on_cpu(hertz: u64, of_one: bool) -> Option<Profiler> {
        let filter = if of_one { "pid == PID" } else { "pid != 0" };
        let script = BPFTRACE_ON_CPU.replace("FILTER", filter);
        let script = script.replace("HERTZ", &hertz.to_string());
        Profiler::bpftrace(&format!("bpftrace, {hertz} Hz"), script)
    }

    /// Returns `py-spy record` at its default rate, with more flags.
    pub fn py_spy(flags: &str) -> Profiler {
        let arguments = "record --pid PID --rate 100 --format raw --output FILE";
        let arguments = format!("{arguments} {flags}");
        Profiler {
            name: format!("py-spy {flags}").trim_end().to_owned(),
            program: from_pypi("py-spy"),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            announces: false,
        }
    }

    fn bpftrace(name: &str, script: String) -> Option<Profiler> {
        Some(Profiler {
            name: name.to_owned(),
            program: installed("bpftrace")?,
            arguments: vec!["-q".to_owned(), "-e".to_owned(), script],
            announces: false,
        })
    }

    /// Starts the profiler on a process, and waits until the profiler is attached.
    pub fn attach(&self, pid: u32) -> Attached {
        let mut attached = self.start(pid);
        if self.announces {
            attached
                .running
                .wait_until_said(tool::MEASURING, tool::PATIENCE);
        } else {
            sleep(UNTIL_ATTACHED);
        }
        attached
    }

    /// Starts the profiler on a process, and returns the time until its first BPF program is
    /// loaded. The profiler is not attached yet then. Returns `None` if the profiler ends before:
    /// bpftrace does so if tracefs is not mounted.
    pub fn time_to_load(&self, pid: u32) -> Option<Duration> {
        let others = programs();
        let begun = Instant::now();
        let mut attached = self.start(pid);
        while programs().keys().all(|id| others.contains_key(id)) {
            if !attached.running.is_running() {
                return None;
            }
            sleep(Duration::from_millis(1));
        }
        let took = begun.elapsed();
        sleep(UNTIL_ATTACHED);
        attached.stop();
        Some(took)
    }

    fn start(&self, pid: u32) -> Attached {
        let folder = scratch();
        let file = folder.path().join("data");
        let file = file.to_str().expect("a temporary folder in UTF-8");
        let tool = self
            .arguments
            .iter()
            .fold(Tool::at(&self.program), |tool, argument| {
                tool.arg(
                    argument
                        .replace("PID", &pid.to_string())
                        .replace("FILE", file),
                )
            });
        // The default size of bpftrace's maps is too small.
        let tool = tool.env("BPFTRACE_MAP_KEYS_MAX", "65536");
        let running = tool.in_folder(folder.path()).start();
        Attached { running, folder }
    }
}

/// Calls `work` while `profiler`, if any, watches a process.
pub fn beside<T>(profiler: Option<&Profiler>, pid: u32, work: impl FnOnce() -> T) -> T {
    let attached = profiler.map(|profiler| profiler.attach(pid));
    let done = work();
    attached.map(Attached::stop);
    done
}

impl Attached {
    /// Returns the process ID of the profiler.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Returns the CPU time of the profiler's threads so far, in ns.
    pub fn cpu_ns(&self) -> u64 {
        let pid = self.running.pid();
        let threads = threads_of(pid).into_iter();
        let accounts = threads.filter_map(|tid| Account::read(pid, tid));
        accounts.map(|account| account.running_ns).sum()
    }

    /// Ends the profiler with SIGINT, as Ctrl-C does. Returns the profiler's output and file, or
    /// `None` if the profiler does not end.
    pub fn stop(self) -> Option<(Finished, Recording)> {
        self.running.signal(Signal::INT);
        let finished = self.running.try_finish_within(UNTIL_ENDED).ok()?;
        Some((finished, Recording(self.folder)))
    }
}

/// File that a profiler wrote, removed when dropped.
#[derive(Debug)]
pub struct Recording(TempDir);

impl Recording {
    /// Returns the text of the file. The text is empty if there is no file.
    pub fn text(&self) -> String {
        fs::read_to_string(self.0.path().join("data")).unwrap_or_default()
    }

    /// Returns the output of a `perf` command that reads the file, or `None` if the command fails.
    pub fn perf(&self, arguments: &str) -> Option<String> {
        let tool = Tool::at(&installed("perf")?).args(arguments).arg("-i");
        let finished = tool.arg(self.0.path().join("data")).start();
        let finished = finished.finish_within(Duration::from_secs(120));
        (finished.code == Some(0)).then(|| String::from_utf8_lossy(&finished.stdout).into_owned())
    }
}

/// Returns the path of a program in the directories of root's PATH.
pub fn installed(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    let paths = folders.iter().map(|folder| Path::new(folder).join(name));
    paths
        .into_iter()
        .find(|path| fs::metadata(path).is_ok_and(|data| data.is_file()))
}
