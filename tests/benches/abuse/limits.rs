//! Limits that the kernel or the user sets.

use std::fs;
use std::path::Path;

use systemscope_tests::printed::refusal::{WRONG_COMMAND_LINE, assert_refused};
use systemscope_tests::{Tool, Workload, binary};

use crate::fault::{End, Fault, held};
use crate::run::{Run, TOOLS, arguments, with_each};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "perf_event_max_sample_rate below what is asked for",
        tools: "oncputime, wallclock",
        outcome: "exit 2, names the limit; with a rate below it all is well",
        body: samples_are_limited,
    },
    Fault {
        name: "too few open files (16)",
        tools: "all",
        outcome: "exit 1, says so",
        body: files_are_limited,
    },
    Fault {
        name: "memlock limit of 0, without CAP_SYS_RESOURCE and CAP_IPC_LOCK",
        tools: "all",
        outcome: "exit 0; a sleep is there with all of the window",
        body: locked_memory_is_limited,
    },
];

/// Changed kernel setting. `drop` restores the old value.
pub(crate) struct Setting {
    path: &'static str,
    before: String,
}

impl Setting {
    pub(crate) fn set(path: &'static str, value: &str) -> std::io::Result<Setting> {
        let before = fs::read_to_string(path)?.trim().to_owned();
        fs::write(path, value)?;
        Ok(Setting { path, before })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(self.path, &self.before) {
            eprintln!(
                "abuse: {} was {}, and is not put back: {error}",
                self.path, self.before
            );
        }
    }
}

fn samples_are_limited() -> End {
    const PATH: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
    let simple = Workload::plain("simple");
    let limited = match Setting::set(PATH, "50") {
        Ok(limited) => limited,
        Err(error) => return End::CannotHere(format!("{PATH}: {error}")),
    };
    let pid = simple.pid();
    for (tool, flags) in [
        ("oncputime", format!("-F 99 --duration 1 -p {pid}")),
        ("wallclock", format!("-f 99 -d 1 {pid}")),
    ] {
        let finished = Tool::new(tool).args(&flags).run();
        assert_refused(
            tool,
            &finished,
            &[WRONG_COMMAND_LINE],
            &["50", "perf_event_max_sample_rate"],
        );
    }
    let below = Tool::new("oncputime")
        .args(&format!("-F 49 -p {pid}"))
        .folded(1.0);
    assert!(
        below.under("known_burn").total() > 0,
        "no samples at 49 a second"
    );
    drop(limited);
    held("exit 2; at 49 a second there are samples")
}

/// Returns `tool` under `prlimit`.
fn limited(tool: &str, limit: &str, pid: u32) -> Tool {
    Tool::at(Path::new("prlimit"))
        .arg(limit)
        .arg(binary(tool))
        .args(&arguments(tool, pid, 1.0))
}

fn files_are_limited() -> End {
    let simple = Workload::plain("simple");
    for tool in TOOLS {
        let run = Run::start_as(tool, limited(tool, "--nofile=16", simple.pid()));
        run.finish().assert_failed(&["Too many open files"]);
    }
    held("exit 1, \"Too many open files\"")
}

fn locked_memory_is_limited() -> End {
    let simple = Workload::plain("simple");
    held(with_each(&TOOLS, |tool| {
        let command = Tool::at(Path::new("prlimit"))
            .args("--memlock=0 setpriv --bounding-set=-sys_resource,-ipc_lock")
            .arg(binary(tool))
            .args(&arguments(tool, simple.pid(), 1.0));
        Run::start_as(tool, command)
            .finish()
            .whole_sleep_us(1.0)
            .to_string()
    }))
}
