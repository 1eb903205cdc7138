//! PID and mount namespaces, with the tool inside or outside.

use std::path::Path;
use std::process::Command;

use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Container, Tool, Workload, WorkloadBuilder};

use crate::fault::{End, Fault, held};
use crate::run::{Run, TOOLS, arguments, with_each};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "the target is in a PID namespace, the tool outside",
        tools: "all",
        outcome: "exit 0; a sleep is there by name, with all of the window",
        body: outside_of_a_pid_namespace,
    },
    Fault {
        name: "the target and the tool are in a PID namespace",
        tools: "all",
        outcome: "exit 0 by the inner ID; a sleep is there by name, with all of the window",
        body: inside_of_a_pid_namespace,
    },
    Fault {
        name: "the target's files are in a mount namespace, the tool outside",
        tools: "all",
        outcome: "exit 0; a sleep is there by name, with all of the window",
        body: outside_of_a_mount_namespace,
    },
];

fn outside_of_a_pid_namespace() -> End {
    let container = Container::start();
    held(with_each(&TOOLS, |tool| {
        let run = Run::start(tool, container.outer_pid, 1.0);
        run.finish().whole_sleep_us(1.0).to_string()
    }))
}

fn inside_of_a_pid_namespace() -> End {
    let container = Container::start();
    held(with_each(&TOOLS, |tool| {
        // The container does not start the tool in the tool's folder.
        let folder = scratch();
        let out = format!("-o {}/out", folder.path().display());
        let flags = arguments(tool, 1, 1.0).replace("-o out", &out);
        Run::start_in(folder, tool, container.enter(tool).args(&flags))
            .finish()
            .whole_sleep_us(1.0)
            .to_string()
    }))
}

/// The workload runs on a file system that only the workload sees. Outside, another program has the
/// same path.
fn outside_of_a_mount_namespace() -> End {
    let folder = scratch();
    let outside = scratch();
    let simple = WorkloadBuilder::new("simple").build_into(outside.path());
    let naps = WorkloadBuilder::new("naps").build_into(outside.path());
    let path = folder.path().join("simple");
    let copied = Tool::at(Path::new("cp")).arg(&naps).arg(&path).run();
    copied.succeeded();
    let script = format!(
        "mount -t tmpfs tmpfs {0} && cp {1} {2} && exec {2}",
        folder.path().display(),
        simple.display(),
        path.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let workload = Workload::run(command, path, folder);
    held(with_each(&TOOLS, |tool| {
        Run::start(tool, workload.pid(), 1.0)
            .finish()
            .whole_sleep_us(1.0)
            .to_string()
    }))
}
