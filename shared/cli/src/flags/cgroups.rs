//! Flags that choose threads by cgroup, unit, container or namespace.

use std::path::PathBuf;

use clap::Args;
use loader::{Cgroup, CgroupMount};

use crate::Cgroups;

/// Flags that choose cgroups to measure. The targets are the union of all flags.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "cgroups", multiple = true, conflicts_with = "pids")]
#[command(next_help_heading = super::TARGETS)]
pub struct CgroupFlags {
    /// Only threads in this cgroup or below it: a path in /sys/fs/cgroup
    ///
    /// The cgroup is one of version 2. PATH starts below /sys/fs/cgroup, or is the path in
    /// /proc/PID/cgroup. A thread is measured while it is in the cgroup.
    #[arg(long = "cgroup", value_name = "PATH", value_parser = Cgroups::from_path)]
    pub(super) cgroup_paths: Vec<Cgroups>,

    /// Only this systemd unit: nginx, or nginx.service
    ///
    /// The unit is one of the system's. Give a unit that a user started with --cgroup.
    #[arg(long = "unit", value_name = "NAME", value_parser = Cgroups::from_unit)]
    pub(super) units: Vec<Cgroups>,

    /// Only this container, by its name or the first digits of its ID
    ///
    /// Containers of Docker, Podman, containerd, CRI-O, LXC and systemd-nspawn are known. A
    /// container that a user runs without root is chosen by its whole ID.
    #[arg(long = "container", value_name = "NAME|ID", value_parser = Cgroups::from_container)]
    pub(super) containers: Vec<Cgroups>,
}

/// bcc's filters by pinned map. They restrict the targets of all other flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = super::TARGETS)]
pub struct PinnedMapFlags {
    /// Only threads in cgroups whose IDs are in this pinned BPF map, as in bcc
    #[arg(long, hide_short_help = true, value_name = "PATH")]
    cgroupmap: Option<String>,

    /// Only threads in mount namespaces whose inode numbers are in this pinned BPF map
    #[arg(long, hide_short_help = true, value_name = "PATH")]
    mntnsmap: Option<String>,
}

impl CgroupFlags {
    /// Returns each flag with the cgroups that its value names.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Cgroups)> {
        let all = [
            ("--cgroup", &self.cgroup_paths),
            ("--unit", &self.units),
            ("--container", &self.containers),
        ];
        let all = all.into_iter();
        all.flat_map(|(flag, some)| some.iter().map(move |cgroups| (flag, cgroups)))
    }

    /// Returns whether any of the flags is given.
    #[must_use]
    pub fn are_given(&self) -> bool {
        self.all().next().is_some()
    }

    /// Returns the cgroups that exist, ordered by path, without duplicates.
    #[must_use]
    pub fn cgroups(&self) -> Vec<Cgroup> {
        let all = self.all().flat_map(|(_, cgroups)| &cgroups.found);
        let mut all: Vec<Cgroup> = all.cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns a description such as `cgroup /a.slice,/b.slice`; `None` without any of the flags.
    #[must_use]
    pub fn subject(&self) -> Option<String> {
        let cgroups = self.cgroups();
        let missing = self.all().filter(|(_, cgroups)| cgroups.missing.is_some());
        let paths = cgroups.iter().map(|cgroup| &*cgroup.path);
        let paths: Vec<&str> = paths
            .chain(missing.map(|(_, cgroups)| &*cgroups.word))
            .collect();
        (!paths.is_empty()).then(|| format!("cgroup {}", paths.join(",")))
    }

    /// Returns the processes that are now in the chosen cgroups.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mount = CgroupMount::find().ok();
        let cgroups = self.cgroups();
        let members = |mount: CgroupMount| {
            let pids = cgroups.iter().map(move |cgroup| mount.processes(cgroup));
            pids.flatten().collect()
        };
        mount.map_or(Vec::new(), members)
    }
}

impl PinnedMapFlags {
    /// Returns the path of the pinned map of cgroups.
    #[must_use]
    pub fn cgroups(&self) -> Option<PathBuf> {
        self.cgroupmap.as_ref().map(PathBuf::from)
    }

    /// Returns the path of the pinned map of mount namespaces.
    #[must_use]
    pub fn mount_namespaces(&self) -> Option<PathBuf> {
        self.mntnsmap.as_ref().map(PathBuf::from)
    }

    /// Returns the description of targets `whom`, restricted by the flags.
    #[must_use]
    pub fn subject(&self, whom: String) -> String {
        let maps = [
            ("cgroups", &self.cgroupmap),
            ("mount namespaces", &self.mntnsmap),
        ];
        maps.into_iter()
            .fold(whom, |whom, (what, path)| match path {
                Some(path) => format!("{whom} in the {what} of {path}"),
                None => whom,
            })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::TargetFlags;
    use crate::parse::parse_line;

    #[derive(Debug, clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        target: TargetFlags,
    }

    fn parse(line: &str) -> anyhow::Result<TargetFlags> {
        parse_line(line).map(|arguments: Arguments| arguments.target)
    }

    #[test]
    fn cgroups_can_be_waited_for() {
        let id = "0a".repeat(32);
        for line in [
            "--cgroup no-such/one".to_owned(),
            "--unit no-such".to_owned(),
            format!("--container {id}"),
        ] {
            let target = parse(&format!("{line} --wait")).unwrap();
            assert!(target.validate().is_ok(), "{line}");
            let targets = target.targets(None);
            assert!(targets.are_awaited() && !targets.is_everything(), "{line}");
            assert_eq!(targets.awaited_cgroups.len(), 1, "{line}");
            let word = line.split(' ').next_back().unwrap();
            assert!(target.subject().contains(word), "{line}");
        }
        let long = "long".repeat(40);
        for line in [
            "--container no-such --wait".to_owned(),
            format!("--cgroup {long} --wait"),
            "--wait".to_owned(),
        ] {
            assert!(parse(&line).unwrap().validate().is_err(), "{line}");
        }
        // The root cgroup has members, so nothing has to be waited for.
        let root = parse("--cgroup / --wait").unwrap();
        assert!(root.validate().is_ok() && !root.targets(None).are_awaited());
        assert!(parse("--wait -- true").is_err() && parse("--wait -t 1").is_err());
    }
}
