//! Containers run by Podman.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::programs::workload::scratch;
use crate::{Workload, WorkloadBuilder};

/// Workload in a container, and Podman's files about it.
#[derive(Debug)]
pub struct Podman {
    workload: Workload,
    state: TempDir,
    name: String,
}

/// Script that runs Podman with files of its own below `$1`. The script mounts only cgroup version
/// 2, because container runtimes do not support both versions together. The container has the
/// rights and limits of the test.
const PODMAN: &str = r#"
    state=$1; shift
    mount --make-rprivate / && umount -l /sys/fs/cgroup &&
        mount -t cgroup2 none /sys/fs/cgroup || exit
    exec podman --root "$state/containers/storage" --runroot "$state/run" \
        --storage-driver vfs --runtime runc --cgroup-manager cgroupfs "$@"
"#;
/// Options with which a container runs on any machine.
const RUN: [&str; 12] = [
    "run",
    "--interactive",
    "--rm",
    "--network",
    "none",
    "--pids-limit",
    "0",
    "--ulimit",
    "nofile=1024:1024",
    "--ulimit",
    "nproc=1024:1024",
    "--name",
];

fn podman(state: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", PODMAN, "sh"]);
    command.arg(state);
    command
}

impl Podman {
    /// Runs the workload `simple` in a container with this name.
    ///
    /// # Panics
    ///
    /// Panics if the container does not start.
    pub fn run(name: &str) -> Podman {
        let state = scratch();
        let folder = scratch();
        let root = folder.path().join("root");
        fs::create_dir(&root).expect("the container's root");
        let simple = WorkloadBuilder::new("simple").flag("-static");
        let binary = simple.build_into(&root);
        let mut command = podman(state.path());
        command.args(RUN).arg(name).arg("--rootfs").arg(&root);
        command.arg("/simple");
        Podman {
            workload: Workload::run(command, binary, folder),
            state,
            name: name.to_owned(),
        }
    }

    /// Returns the directory that replaces `/var/lib`, with the files of all containers.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// Returns the ID of the container.
    pub fn id(&self) -> String {
        self.inspect("{{.Id}}")
    }

    /// Returns the process ID of `simple` outside the container.
    pub fn pid(&self) -> u32 {
        let pid = self.inspect("{{.State.Pid}}");
        pid.parse().expect("a PID")
    }

    fn inspect(&self, what: &str) -> String {
        let mut command = podman(self.state());
        command.args(["inspect", "--format", what, &self.name]);
        let output = command.output().expect("start unshare");
        assert!(output.status.success(), "podman inspect: {output:?}");
        let told = String::from_utf8(output.stdout).expect("text");
        told.trim().to_owned()
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        self.workload.kill();
        let mut command = podman(self.state());
        command.args(["rm", "--force", "--time", "0", &self.name]);
        let _ = command.output();
    }
}
