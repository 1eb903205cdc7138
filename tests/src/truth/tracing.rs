//! Kernel's own tracing of a process through tracefs, while the tools measure it.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::thread::gettid;

use crate::cpus_online;

/// Prefix of the names of tracing instances. Each test thread has an instance, because tests
/// measure side by side.
const INSTANCE: &str = "systemscope-tests-";
/// Size of the buffers of all CPUs in KiB. They hold some two million events.
const BUFFERS_KIB: usize = 128 << 10;

/// Tracing of some threads, until dropped.
#[derive(Debug)]
pub(crate) struct Tracing {
    instance: PathBuf,
    _tracefs: OwnedFd,
}

impl Tracing {
    /// Traces events of some threads. `events` has the directory of each event, and the event's
    /// fields that contain a thread ID.
    ///
    /// # Panics
    ///
    /// Panics on a kernel without tracefs, or without root.
    pub(crate) fn start(threads: &[u32], events: &[(&str, &[&str])]) -> Tracing {
        let tracefs = mounted().expect("mount tracefs, as root");
        let root = PathBuf::from(format!("/proc/self/fd/{}", tracefs.as_raw_fd()));
        let instances = root.join("instances");
        remove_stale_instances(&instances);
        let instance = instances.join(format!("{INSTANCE}{}", gettid().as_raw_nonzero()));
        fs::create_dir(&instance).expect("an instance of tracing");
        let tracing = Tracing {
            instance,
            _tracefs: tracefs,
        };
        tracing.set("trace_clock", "mono");
        let kib_per_cpu = BUFFERS_KIB / cpus_online();
        tracing.set("buffer_size_kb", &kib_per_cpu.to_string());
        for (event, fields) in events {
            let conditions = |field| threads.iter().map(move |tid| format!("{field}=={tid}"));
            let alternatives: Vec<String> = fields.iter().flat_map(conditions).collect();
            tracing.set(&format!("events/{event}/filter"), &alternatives.join("||"));
            tracing.set(&format!("events/{event}/enable"), "1");
        }
        tracing
    }

    /// Stops tracing, and returns the events as the kernel prints them: comments, then one event a
    /// line.
    ///
    /// # Panics
    ///
    /// Panics if the buffers were too small for all events.
    pub(crate) fn stop(self) -> String {
        self.set("tracing_on", "0");
        let path = self.instance.join("trace");
        let trace = fs::read_to_string(path).expect("the kernel's trace");
        let counts = trace
            .lines()
            .find_map(|line| line.strip_prefix("# entries-in-buffer/"));
        let counts = counts.and_then(|line| line.split_whitespace().nth(1));
        let kept = counts.and_then(|counts| counts.split_once('/'));
        let (kept, written) = kept.expect("the number of events");
        assert_eq!(kept, written, "events found no room in the kernel's trace");
        trace
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.instance.join(file), value)
            .unwrap_or_else(|error| panic!("write {value} to {file} of tracefs: {error}"));
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.instance);
    }
}

fn remove_stale_instances(instances: &Path) {
    for instance in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = instance.file_name();
        let thread = name.to_str().and_then(|name| name.strip_prefix(INSTANCE));
        if thread.is_some_and(|thread| !Path::new("/proc").join(thread).exists()) {
            let _ = fs::remove_dir(instance.path());
        }
    }
}

/// Mounts tracefs without a path until the descriptor is closed. Some machines do not have it
/// mounted.
fn mounted() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}
