//! CPU quota of a cgroup, of the cgroup version that has the cpu controller.

use std::fs;
use std::path::{Path, PathBuf};

use crate::programs::cgroup;

/// Period of the quota, in us.
const PERIOD_US: u64 = 100_000;

/// Cgroup with a CPU quota, removed when dropped. Its processes must have ended by then.
#[derive(Debug)]
pub struct Quota {
    folder: PathBuf,
}

impl Quota {
    /// Makes a cgroup with a quota of `percent` of one CPU.
    ///
    /// # Panics
    ///
    /// Panics if no cgroup version has the cpu controller, or without root.
    pub fn of_percent(percent: u64) -> Quota {
        let name = format!("systemscope-{}-quota", std::process::id());
        let quota_us = PERIOD_US * percent / 100;
        let (parent, file, text) = match version_1_mount() {
            Some(mount) => (mount, "cpu.cfs_quota_us", quota_us.to_string()),
            None => (
                version_2_root(),
                "cpu.max",
                format!("{quota_us} {PERIOD_US}"),
            ),
        };
        let folder = parent.join(name);
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let quota = Quota { folder };
        write(&quota.folder.join(file), &text);
        quota
    }

    /// Puts a process under the quota.
    ///
    /// # Panics
    ///
    /// Panics if the process is gone.
    pub fn take(&self, pid: u32) {
        write(&self.folder.join("cgroup.procs"), &pid.to_string());
    }

    /// Returns the time for which the kernel has throttled the cgroup so far, in ns.
    ///
    /// # Panics
    ///
    /// Panics if the kernel does not account this time.
    pub fn used_up_ns(&self) -> u64 {
        let stat = fs::read_to_string(self.folder.join("cpu.stat")).expect("its account");
        let fields = stat.lines().filter_map(|line| line.split_once(' '));
        let times = fields.filter_map(|(name, value)| match name {
            "throttled_time" => value.parse::<u64>().ok(),
            "throttled_usec" => Some(value.parse::<u64>().ok()? * 1000),
            _ => None,
        });
        times.max().expect("throttled time")
    }
}

/// Returns the mount point of the cpu controller of version 1.
fn version_1_mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let has_cpu = |options: &str| options.split(',').any(|option| option == "cpu");
    let mount = mounts.lines().find(|line| {
        let cgroup = line.split_once(" - cgroup ");
        cgroup.is_some_and(|(_, rest)| rest.rsplit(' ').next().is_some_and(has_cpu))
    })?;
    mount.split(' ').nth(4).map(PathBuf::from)
}

/// Gives the cpu controller to the children of the root of version 2, and returns the root.
fn version_2_root() -> PathBuf {
    let mount = cgroup::mount();
    write(&mount.join("cgroup.subtree_control"), "+cpu");
    mount
}

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
