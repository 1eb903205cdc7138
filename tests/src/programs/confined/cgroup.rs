//! Cgroups of tests, and moves between cgroups.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::now_ns;
use crate::programs::tool::PATIENCE;

/// ID of the user `nobody` and of its group, which every machine has.
const USER: u32 = 65534;

/// Version-2 cgroup that is removed when dropped. Its processes are moved to the test's own cgroup
/// then.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    path: String,
}

/// Bounds on the time of a move, in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Time before the move was requested.
    pub from_ns: u64,
    /// Time after the move was done.
    pub to_ns: u64,
}

/// Returns the mount point of cgroup version 2.
///
/// # Panics
///
/// Panics if cgroup version 2 is not mounted.
pub fn mount() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let folder = mount.and_then(|line| line.split(' ').nth(4));
    folder.expect("a cgroup2 mount").into()
}

impl Cgroup {
    /// Makes a cgroup directly below the mount point, with a path that no other test run uses.
    ///
    /// # Panics
    ///
    /// Panics if the kernel refuses, for instance without root.
    pub fn new(name: &str) -> Cgroup {
        Cgroup::at(format!("/systemscope-{}-{name}", std::process::id()))
    }

    /// Makes a cgroup inside this one.
    ///
    /// # Panics
    ///
    /// Panics if the kernel refuses.
    pub fn inside(&self, name: &str) -> Cgroup {
        Cgroup::at(format!("{}/{name}", self.path))
    }

    /// Makes a threaded cgroup inside this one. A threaded cgroup takes single threads.
    ///
    /// # Panics
    ///
    /// Panics if the kernel refuses.
    pub fn of_threads_inside(&self, name: &str) -> Cgroup {
        let cgroup = self.inside(name);
        fs::write(cgroup.folder.join("cgroup.type"), "threaded").expect("make the cgroup threaded");
        cgroup
    }

    /// Gives the cgroup to an ordinary user, as systemd does for a user's service manager. The user
    /// can then make cgroups in it.
    ///
    /// # Panics
    ///
    /// Panics if the kernel refuses.
    pub fn delegate(&self) {
        chown(&self.folder, Some(USER), Some(USER)).expect("give the cgroup to a user");
    }

    /// Makes a cgroup inside this one, as the user to whom this one was delegated.
    ///
    /// # Panics
    ///
    /// Panics if the user is not allowed to.
    pub fn inside_by_user(&self, name: &str) -> Cgroup {
        let folder = self.folder.join(name);
        let mut mkdir = Command::new("mkdir");
        let made = mkdir.arg(&folder).uid(USER).gid(USER).status();
        assert!(made.is_ok_and(|status| status.success()), "make {name}");
        let path = format!("{}/{name}", self.path);
        Cgroup { folder, path }
    }

    fn at(path: String) -> Cgroup {
        let folder = mount().join(path.trim_start_matches('/'));
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Cgroup { folder, path }
    }

    /// Returns the cgroup's directory in the file system.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the cgroup's path in the form of `/proc/PID/cgroup`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the ID that the kernel gives the cgroup.
    pub fn id(&self) -> u64 {
        fs::metadata(&self.folder).expect("its folder").ino()
    }

    /// Moves a process into the cgroup.
    ///
    /// # Panics
    ///
    /// Panics if the process is gone.
    pub fn take(&self, pid: u32) -> Moved {
        put(&self.folder, "cgroup.procs", pid)
    }

    /// Moves a thread into the cgroup. The thread's process must be in the same domain of cgroups.
    ///
    /// # Panics
    ///
    /// Panics if the thread is gone.
    pub fn take_thread(&self, tid: u32) -> Moved {
        put(&self.folder, "cgroup.threads", tid)
    }

    /// Moves a process to the test's own cgroup.
    ///
    /// # Panics
    ///
    /// Panics if the process is gone.
    pub fn release(&self, pid: u32) -> Moved {
        put(&home(), "cgroup.procs", pid)
    }
}

/// Returns the directory of the test's own cgroup.
fn home() -> PathBuf {
    let own = fs::read_to_string("/proc/self/cgroup").expect("the test's cgroup");
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    mount().join(path.expect("a cgroup of version 2").trim_start_matches('/'))
}

fn put(folder: &Path, file: &str, id: u32) -> Moved {
    let from_ns = now_ns();
    fs::write(folder.join(file), id.to_string())
        .unwrap_or_else(|error| panic!("move {id} to {}: {error}", folder.display()));
    Moved {
        from_ns,
        to_ns: now_ns(),
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        // A process that has ended stays in its cgroup until its parent waits for it.
        while let Err(error) = fs::remove_dir(&self.folder) {
            if error.kind() == ErrorKind::NotFound || Instant::now() > deadline {
                break;
            }
            let inside = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
            for pid in inside.lines() {
                let _ = fs::write(home().join("cgroup.procs"), pid);
            }
            sleep(Duration::from_millis(10));
        }
    }
}
