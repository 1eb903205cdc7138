//! Cgroups that tests make, and moves between them.

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

/// ID of `nobody` and its group, which every machine has.
const USER: u32 = 65534;

/// A cgroup of version 2, removed when dropped. Whoever is in it then goes to where the
/// test is.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    path: String,
}

/// When a process was moved: between these, CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Before it was asked for.
    pub from_ns: u64,
    /// After it was done.
    pub to_ns: u64,
}

/// Where cgroups of version 2 are mounted.
///
/// # Panics
///
/// When they are not.
pub fn mount() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let folder = mount.and_then(|line| line.split(' ').nth(4));
    folder.expect("a cgroup2 mount").into()
}

impl Cgroup {
    /// One below the mount, at a path of this test run's own.
    ///
    /// # Panics
    ///
    /// When it cannot be made, as without root.
    pub fn new(name: &str) -> Cgroup {
        Cgroup::at(format!("/systemscope-{}-{name}", std::process::id()))
    }

    /// One inside.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    pub fn inside(&self, name: &str) -> Cgroup {
        Cgroup::at(format!("{}/{name}", self.path))
    }

    /// One inside, which threads are put into, each for itself.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    pub fn of_threads_inside(&self, name: &str) -> Cgroup {
        let cgroup = self.inside(name);
        fs::write(cgroup.folder.join("cgroup.type"), "threaded").expect("one of threads");
        cgroup
    }

    /// Lets an ordinary user make cgroups in it, as systemd lets a user's service manager.
    ///
    /// # Panics
    ///
    /// When it cannot be given away.
    pub fn delegate(&self) {
        chown(&self.folder, Some(USER), Some(USER)).expect("give the cgroup to a user");
    }

    /// One inside that the ordinary user makes, whom this one was delegated to.
    ///
    /// # Panics
    ///
    /// When the user may not.
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

    /// Its folder in the file system.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its path as `/proc/PID/cgroup` has it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the kernel calls it.
    pub fn id(&self) -> u64 {
        fs::metadata(&self.folder).expect("its folder").ino()
    }

    /// Moves a process into it.
    ///
    /// # Panics
    ///
    /// When the process is gone.
    pub fn take(&self, pid: u32) -> Moved {
        put(&self.folder, "cgroup.procs", pid)
    }

    /// Moves a thread into it, whose process is in the same cgroup of processes.
    ///
    /// # Panics
    ///
    /// When the thread is gone.
    pub fn take_thread(&self, tid: u32) -> Moved {
        put(&self.folder, "cgroup.threads", tid)
    }

    /// Moves a process to where the test is.
    ///
    /// # Panics
    ///
    /// When the process is gone.
    pub fn release(&self, pid: u32) -> Moved {
        put(&home(), "cgroup.procs", pid)
    }
}

/// The cgroup of the test itself.
fn home() -> PathBuf {
    let own = fs::read_to_string("/proc/self/cgroup").expect("the test's cgroup");
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    mount().join(path.expect("one of version 2").trim_start_matches('/'))
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
        // Whoever has ended is in it until its parent knows.
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
