//! Runs with capabilities instead of root, and runs with one capability missing.

use std::path::Path;

use systemscope_tests::printed::refusal::{FAILED, assert_refused};
use systemscope_tests::programs::binaries::copies;
use systemscope_tests::{Folded, Tool, Workload};
use tempfile::TempDir;

use crate::fault::{End, Fault, held};
use crate::limits::Setting;
use crate::run::{Run, TOOLS, arguments, with_each};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "no root, only CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
        tools: "all",
        outcome: "exit 0 on another user's process; a sleep is there with all of the window",
        body: capabilities_suffice,
    },
    Fault {
        name: "the same, and perf_event_paranoid is 3",
        tools: "all",
        outcome: "exit 0 on another user's process; a sleep is there with all of the window",
        body: paranoia_is_no_matter,
    },
    Fault {
        name: "the same without CAP_BPF",
        tools: "all",
        outcome: "exit 1, names it",
        body: || refused_without("CAP_BPF", "+perfmon,+sys_ptrace"),
    },
    Fault {
        name: "the same without CAP_PERFMON",
        tools: "all",
        outcome: "exit 1, names it",
        body: || refused_without("CAP_PERFMON", "+bpf,+sys_ptrace"),
    },
    Fault {
        name: "the same without CAP_SYS_PTRACE, on another user's process",
        tools: "oncputime, offcputime, offwaketime",
        outcome: "exit 0 with all of the time; no wrong name; says how many files could not be opened",
        body: without_a_look_into_processes,
    },
    Fault {
        name: "no capability at all",
        tools: "all",
        outcome: "exit 1, names CAP_BPF and CAP_PERFMON",
        body: || refused_without("CAP_BPF and CAP_PERFMON", "-bpf"),
    },
];

/// Copies of the tools that any user can execute. They run as nobody with some capabilities.
struct Nobody {
    tools: TempDir,
    capabilities: &'static str,
}

impl Nobody {
    fn with(capabilities: &'static str) -> Nobody {
        Nobody {
            tools: copies(&TOOLS),
            capabilities,
        }
    }

    fn start(&self, tool: &'static str, flags: &str) -> Run {
        let sets = ["inh-caps", "ambient-caps", "bounding-set"];
        let sets = sets.map(|set| format!("--{set}=-all,{}", self.capabilities));
        let command = Tool::at(Path::new("setpriv"))
            .args("--reuid=65534 --regid=65534 --clear-groups")
            .args(&sets.join(" "))
            .arg(self.tools.path().join(tool))
            .args(flags);
        Run::start_as(tool, command)
    }
}

fn capabilities_suffice() -> End {
    let simple = Workload::plain("simple");
    let nobody = Nobody::with("+bpf,+perfmon,+sys_ptrace");
    held(with_each(&TOOLS, |tool| {
        let run = nobody.start(tool, &arguments(tool, simple.pid(), 1.0));
        run.finish().whole_sleep_us(1.0).to_string()
    }))
}

fn paranoia_is_no_matter() -> End {
    const PATH: &str = "/proc/sys/kernel/perf_event_paranoid";
    match Setting::set(PATH, "3") {
        Ok(_setting) => capabilities_suffice(),
        Err(error) => End::CannotHere(format!("{PATH}: {error}")),
    }
}

fn refused_without(missing: &str, capabilities: &'static str) -> End {
    let simple = Workload::plain("simple");
    let nobody = Nobody::with(capabilities);
    for tool in TOOLS {
        let run = nobody.start(tool, &arguments(tool, simple.pid(), 1.0));
        assert_refused(tool, &run.finish().finished, &[FAILED], &[missing]);
    }
    held(format!("exit 1, names {missing}"))
}

fn without_a_look_into_processes() -> End {
    let nobody = Nobody::with("+bpf,+perfmon");
    held(with_each(&TOOLS[..3], |tool| {
        let busy_us = if tool == "oncputime" { 5000 } else { 10 };
        let crowd = Workload::start("crowd", &[5, busy_us, 100]);
        let flags = arguments(tool, crowd.pid(), 1.0);
        let finished = nobody.start(tool, &flags).finish().finished.succeeded();
        let folded = Folded::parse(&finished.stdout);
        let named = ["busy", "idle", "member"].map(|function| folded.under(function).total());
        // "member" is the name of the threads, and of no frame.
        assert_eq!(
            named, [0; 3],
            "{tool} knows names that it cannot: {folded:.9}"
        );
        assert!(
            folded.total() > 0,
            "{tool} shows nothing: {}",
            finished.stderr
        );
        if tool == "offcputime" {
            // The five threads are off the CPU for nearly all of the second.
            let total = folded.total();
            assert!(
                (4_500_000..=5_000_000).contains(&total),
                "{total} us of 5 s"
            );
        }
        let said = finished.stderr.contains("could not be opened");
        assert!(
            said,
            "{tool} does not say what it could not see: {}",
            finished.stderr
        );
        "says so".to_owned()
    }))
}
