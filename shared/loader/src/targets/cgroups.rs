//! Cgroups of version 2: their mount, paths and IDs.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Mode;

use bpf::types::MAX_CGROUP_LEVELS;

use crate::error::Context;
use crate::{Error, Result};

/// `CGROUP2_SUPER_MAGIC` of include/uapi/linux/magic.h.
const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// Maximum number of users' cgroups in a list.
const MAX_OF_USERS: usize = 1 << 16;
/// Maximum number of bytes read from a file.
const MAX_BYTES: u64 = 16 << 20;

/// Cgroup of version 2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cgroup {
    /// Path below the mount, in the form of `/proc/PID/cgroup`: `/` for the root.
    pub path: String,
    /// ID that is unique until the next boot: `id` of `struct kernfs_node`
    /// (include/linux/kernfs.h). It is the inode number of the cgroup's folder.
    pub id: u64,
    /// True if a cgroup above this one is delegated (cgroup-v2.rst, "Delegation"). Users other
    /// than root can then make cgroups there, with any name.
    pub below_delegated: bool,
}

impl Cgroup {
    /// Returns the last component of the path; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// List of cgroups.
#[derive(Debug, Default)]
pub struct CgroupList {
    /// Cgroups, sorted by path.
    pub cgroups: Vec<Cgroup>,
    /// True if the list is complete. If users make more cgroups than the limit, the list lacks some
    /// of them.
    pub is_whole: bool,
}

/// Mount of cgroups of version 2.
#[derive(Clone, Debug)]
pub struct CgroupMount {
    folder: PathBuf,
    /// Folders of other mounts of the same cgroups.
    others: Vec<PathBuf>,
    /// Folders of mounts of cgroups of version 1.
    old: Vec<PathBuf>,
}

impl CgroupMount {
    /// Finds the mount that the mount namespace of this process shows.
    ///
    /// # Errors
    /// No cgroups of version 2 are mounted.
    pub fn find() -> Result<CgroupMount> {
        const MOUNTS: &str = "/proc/self/mountinfo";
        let mounts = read(Path::new(MOUNTS)).context(format!("read {MOUNTS}"))?;
        CgroupMount::among(&mounts)
    }

    /// Finds the mount in the text of a `mountinfo` file (proc(5)).
    fn among(mounts: &str) -> Result<CgroupMount> {
        let mut whole = Vec::new();
        let mut parts = Vec::new();
        let mut old = Vec::new();
        for line in mounts.lines() {
            let Some((place, source)) = line.split_once(" - ") else {
                continue;
            };
            let mut place = place.split(' ').skip(3);
            let (Some(root), Some(folder)) = (place.next(), place.next()) else {
                continue;
            };
            let folder = PathBuf::from(unescaped(folder));
            match source.split(' ').next() {
                Some("cgroup2") if root == "/" => whole.push(folder),
                Some("cgroup2") => parts.push(folder),
                Some("cgroup") => old.push(folder),
                _ => {}
            }
        }
        whole.append(&mut parts);
        if whole.is_empty() {
            let problem = if old.is_empty() {
                "no cgroups are mounted here: mount them with `mount -t cgroup2 none /sys/fs/cgroup`, or choose processes with -p"
            } else {
                "this machine has cgroups of version 1 only, which is not enough: boot it with systemd.unified_cgroup_hierarchy=1, or choose processes with -p"
            };
            return Err(Error::Unsupported(problem.to_owned()));
        }
        Ok(CgroupMount {
            folder: whole.remove(0),
            others: whole,
            old,
        })
    }

    /// Returns the folder of the mount.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Converts a path to the form of `/proc/PID/cgroup`. The path may be one of the file system,
    /// may be relative to the mount, or may have that form already. The cgroup may not exist yet.
    ///
    /// # Errors
    /// The path is outside of the mount.
    pub fn path(&self, path: &Path) -> Result<String> {
        let outside = |why: &str| {
            Err(Error::Unsupported(format!(
                "`{}` is {why}: give a path below `{}`, or as /proc/PID/cgroup has it",
                path.display(),
                self.folder.display()
            )))
        };
        if path.components().any(|part| part == Component::ParentDir) {
            return outside("a path that goes up again");
        }
        let mounts = || std::iter::once(&self.folder).chain(&self.others);
        let inside = mounts().find_map(|folder| path.strip_prefix(folder).ok());
        // A path in a mount of version 1, and in no mount of version 2, is a cgroup of version 1.
        if inside.is_none() && self.old.iter().any(|folder| path.starts_with(folder)) {
            return outside("a cgroup of version 1");
        }
        let parts = inside.unwrap_or(path).components();
        let parts = parts.filter(|part| matches!(part, Component::Normal(_)));
        let below: PathBuf = parts.collect();
        let Some(below) = below.to_str() else {
            return outside("no text");
        };
        let is_elsewhere = inside.is_none() && path.is_absolute() && path.exists();
        if is_elsewhere && self.cgroup(below).is_none() {
            return outside("outside of the cgroups that are mounted");
        }
        Ok(format!("/{below}"))
    }

    /// Returns the cgroup at a path in the form of `/proc/PID/cgroup`, if it exists.
    #[must_use]
    pub fn cgroup(&self, path: &str) -> Option<Cgroup> {
        let below = path.trim_start_matches('/');
        let found = self.metadata(below)?;
        Some(Cgroup {
            path: format!("/{below}"),
            id: found.ino(),
            below_delegated: self.is_below_delegated(below),
        })
    }

    /// Returns metadata of a cgroup's folder. `below` is the path without a leading `/`.
    fn metadata(&self, below: &str) -> Option<Metadata> {
        let folder = self.folder.join(below);
        let found = fs::symlink_metadata(&folder)
            .ok()
            .filter(Metadata::is_dir)?;
        let system = rustix::fs::statfs(&folder).ok()?;
        // A folder where another file system is mounted is no cgroup.
        (system.f_type.cast_unsigned() == CGROUP2_MAGIC).then_some(found)
    }

    /// Returns whether a folder above a cgroup is delegated. `below` is the path without a leading
    /// `/`.
    fn is_below_delegated(&self, below: &str) -> bool {
        let mut above = Path::new(below).ancestors().skip(1);
        above.any(|above| {
            let metadata = fs::symlink_metadata(self.folder.join(above));
            // A folder that no longer exists counts as delegated.
            !metadata.is_ok_and(|metadata| !is_delegated(&metadata))
        })
    }

    /// Lists all cgroups.
    #[must_use]
    pub fn all(&self) -> CgroupList {
        self.below("", MAX_OF_USERS)
    }

    /// Lists a cgroup and all cgroups below it. `path` has no leading `/`. The list has at most
    /// `most_of_users` cgroups of users.
    fn below(&self, path: &str, most_of_users: usize) -> CgroupList {
        let mut found = Vec::new();
        let mut of_users = 0;
        let mut is_whole = true;
        let mut waiting = vec![(path.to_owned(), 0)];
        // Users can make very many cgroups. Root's cgroups come first, so that the list has all of
        // them.
        let mut waiting_delegated = Vec::new();
        if self.is_below_delegated(path) {
            std::mem::swap(&mut waiting, &mut waiting_delegated);
        }
        loop {
            let below_delegated = waiting.is_empty();
            let Some((path, level)) = waiting.pop().or_else(|| waiting_delegated.pop()) else {
                break;
            };
            let Some(metadata) = self.metadata(&path) else {
                continue;
            };
            if below_delegated {
                if of_users == most_of_users {
                    is_whole = false;
                    break;
                }
                of_users += 1;
            }
            found.push(Cgroup {
                path: format!("/{path}"),
                id: metadata.ino(),
                below_delegated,
            });
            let inside = folders_in(&self.folder.join(&path));
            let mut inside = inside.map(|name| {
                if path.is_empty() {
                    (name, level + 1)
                } else {
                    (format!("{path}/{name}"), level + 1)
                }
            });
            if level >= MAX_CGROUP_LEVELS {
                is_whole &= inside.next().is_none();
            } else if below_delegated || is_delegated(&metadata) {
                let room = (most_of_users + 1).saturating_sub(waiting_delegated.len());
                waiting_delegated.extend(inside.take(room));
            } else {
                waiting.extend(inside);
            }
        }
        found.sort_unstable();
        CgroupList {
            cgroups: found,
            is_whole,
        }
    }

    /// Returns the processes in and below a cgroup, ascending. Leaves out processes that the
    /// caller's PID namespace does not show.
    #[must_use]
    pub fn processes(&self, cgroup: &Cgroup) -> Vec<u32> {
        let mut pids = Vec::new();
        let below = self.below(cgroup.path.trim_start_matches('/'), MAX_OF_USERS);
        for cgroup in below.cgroups {
            let folder = self.folder.join(cgroup.path.trim_start_matches('/'));
            // A cgroup that contains only threads has no processes. A cgroup that no longer exists
            // has none either.
            let listed = read(&folder.join("cgroup.procs")).unwrap_or_default();
            pids.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        // The kernel writes processes of other namespaces as 0.
        pids.retain(|pid| *pid != 0);
        pids.sort_unstable();
        pids.dedup();
        pids
    }
}

/// Returns whether users other than root can make cgroups in this folder, like `is_delegated` of
/// `include/targets/awaited_cgroups.h`.
fn is_delegated(folder: &Metadata) -> bool {
    let by_group = folder.mode() & Mode::WGRP.bits() != 0 && folder.gid() != 0;
    folder.uid() != 0 || by_group || folder.mode() & Mode::WOTH.bits() != 0
}

/// Returns the names of the folders inside a folder.
pub(super) fn folders_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let named = entries.filter(is_folder);
    named.filter_map(|entry| entry.file_name().into_string().ok())
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes the escapes of a path in `mountinfo`: `\040` is a space.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[3..]);
            }
            None => {
                bytes.push(b'\\');
                bytes.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    const OLD: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";

    #[test]
    fn the_mount_is_found_wherever_it_is() {
        let unified = "41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";
        let mount = CgroupMount::among(&format!("{OLD}{unified}")).unwrap();
        assert_eq!(mount.folder(), Path::new("/sys/fs/cgroup/unified"));
        let part = "40 31 0:38 /a.slice /mnt/part rw - cgroup2 none rw\n";
        let spaced = "42 31 0:38 / /mnt/my\\040cgroups rw - cgroup2 none rw\n";
        let mount = CgroupMount::among(&format!("{part}{spaced}nonsense\n - \n")).unwrap();
        assert_eq!(mount.folder(), Path::new("/mnt/my cgroups"));
        assert_eq!(mount.others, [Path::new("/mnt/part")]);
    }

    #[test]
    fn a_machine_without_version_2_is_told_so() {
        let message = |mounts| CgroupMount::among(mounts).unwrap_err().to_string();
        assert!(message(OLD).contains("version 1 only"), "{}", message(OLD));
        assert!(message("").contains("mount -t cgroup2"), "{}", message(""));
    }

    /// Ordinary folders stand for cgroups, since only the owners and modes matter.
    #[test]
    fn a_cgroup_is_below_a_delegated_one_where_others_than_root_can_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let mount = CgroupMount {
            folder: folder.path().to_owned(),
            others: vec![],
            old: vec![],
        };
        let place = |path: &str, uid: u32, gid: u32, mode: u32| {
            let path = folder.path().join(path);
            fs::create_dir(&path).unwrap();
            chown(&path, Some(uid), Some(gid)).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        };
        for (path, uid, gid, mode) in [
            ("root", 0, 0, 0o775),
            ("root/user", 1000, 1000, 0o555),
            ("root/user/any", 0, 0, 0o755),
            ("root/user/any/root", 0, 0, 0o755),
            ("group", 0, 1000, 0o775),
            ("readers", 0, 1000, 0o755),
            ("all", 0, 0, 0o757),
        ] {
            place(path, uid, gid, mode);
        }
        for (path, expected) in [
            ("", false),
            ("root", false),
            // A container's own cgroup, owned by the root of its user namespace.
            ("root/user", false),
            ("root/user/any", true),
            ("root/user/any/root", true),
            ("group/any", true),
            ("readers/any", false),
            ("all/any", true),
            ("gone/any", true),
        ] {
            assert_eq!(mount.is_below_delegated(path), expected, "{path}");
        }
    }

    /// This test needs root.
    #[test]
    fn very_many_cgroups_of_users_leave_out_none_of_roots_and_that_is_told() {
        const OF_EACH: usize = 8;
        let mount = CgroupMount::find().unwrap();
        let name = format!("loader-{}", std::process::id());
        let folder = mount.folder().join(&name);
        let place = |path: &str| fs::create_dir(folder.join(path)).unwrap();
        for path in ["", "user", "root"] {
            place(path);
        }
        chown(folder.join("user"), Some(1000), Some(1000)).unwrap();
        for number in 0..OF_EACH {
            place(&format!("user/{number}"));
            place(&format!("root/{number}"));
        }
        let list = |most| mount.below(&name, most);
        let lists = [OF_EACH, OF_EACH - 1, 0].map(list);
        for path in ["user", "root"] {
            for number in 0..OF_EACH {
                fs::remove_dir(folder.join(format!("{path}/{number}"))).unwrap();
            }
            fs::remove_dir(folder.join(path)).unwrap();
        }
        fs::remove_dir(&folder).unwrap();
        let counts = lists.map(|list| {
            let (of_users, of_root): (Vec<_>, Vec<_>) =
                (list.cgroups.iter()).partition(|cgroup| cgroup.below_delegated);
            (of_users.len(), of_root.len(), list.is_whole)
        });
        let of_root = OF_EACH + 3;
        assert_eq!(
            counts,
            [
                (OF_EACH, of_root, true),
                (OF_EACH - 1, of_root, false),
                (0, of_root, false)
            ]
        );
    }

    #[test]
    fn octal_numbers_in_mounts_are_characters() {
        for (text, path) in [
            ("/a\\040b\\134", "/a b\\"),
            ("/a\\9", "/a\\9"),
            ("\\04", "\\04"),
            ("/\\777é", "/\\777é"),
        ] {
            assert_eq!(unescaped(text), path);
        }
    }
}
