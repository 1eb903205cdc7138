//! Workload in a PID namespace of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::programs::workload::scratch;
use crate::{Tool, Workload, WorkloadBuilder, binary};

/// Workload in a PID namespace of its own, in which tools can be started.
#[derive(Debug)]
pub struct Container {
    workload: Workload,
    /// Process ID of the workload outside the namespace. Inside the namespace the ID is 1.
    pub outer_pid: u32,
}

impl Container {
    /// Starts the workload `simple` in a new PID namespace.
    pub fn start() -> Container {
        let folder = scratch();
        let binary = WorkloadBuilder::new("simple").build_into(folder.path());
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(&binary);
        let workload = Workload::run(command, binary, folder);
        let children =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", workload.pid())).unwrap();
        let outer_pid = children.trim().parse().expect("one child of unshare");
        Container {
            workload,
            outer_pid,
        }
    }

    /// Returns a tool that starts inside the namespace, in the root directory.
    pub fn enter(&self, tool: &str) -> Tool {
        assert_ne!(self.workload.pid(), self.outer_pid);
        Tool::at(Path::new("nsenter"))
            .args("--pid --mount --target")
            .arg(self.outer_pid.to_string())
            .arg(binary(tool))
    }
}
