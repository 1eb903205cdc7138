//! Flags that choose by what threads are in.

use std::path::PathBuf;

use clap::Args;
use loader::{Cgroup, CgroupMount};

use crate::Cgroups;

/// Which cgroups to measure: those of any of the flags.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "cgroups", multiple = true, conflicts_with = "pids")]
pub struct CgroupFlags {
    /// Only threads in this cgroup (version 2) or below it, while they are: a path
    /// below /sys/fs/cgroup, or as /proc/PID/cgroup has it
    #[arg(long = "cgroup", value_name = "PATH", value_parser = Cgroups::at)]
    cgroup_paths: Vec<Cgroups>,

    /// Only this unit of the system's systemd: nginx, or nginx.service; give a user's
    /// with --cgroup
    #[arg(long = "unit", value_name = "NAME", value_parser = Cgroups::of_unit)]
    units: Vec<Cgroups>,

    /// Only this container of Docker, Podman, containerd, CRI-O, LXC or
    /// systemd-nspawn, by its name or the first digits of its ID; one that a user
    /// runs without root by its whole ID
    #[arg(long = "container", value_name = "NAME|ID", value_parser = Cgroups::of_container)]
    containers: Vec<Cgroups>,
}

/// bcc's filters, on top of any other choice.
#[derive(Args, Clone, Debug, Default)]
pub struct PinnedMapFlags {
    /// Only threads in cgroups whose IDs are in the BPF map pinned here, as bcc's
    /// tools have it
    #[arg(long, value_name = "PATH")]
    cgroupmap: Option<String>,

    /// Only threads in mount namespaces whose numbers are in the BPF map pinned here
    #[arg(long, value_name = "PATH")]
    mntnsmap: Option<String>,
}

impl CgroupFlags {
    /// What each of the flags stands for, with the flag.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Cgroups)> {
        let all = [
            ("--cgroup", &self.cgroup_paths),
            ("--unit", &self.units),
            ("--container", &self.containers),
        ];
        let all = all.into_iter();
        all.flat_map(|(flag, some)| some.iter().map(move |cgroups| (flag, cgroups)))
    }

    /// Whether there are any of the flags.
    #[must_use]
    pub fn are_given(&self) -> bool {
        self.all().next().is_some()
    }

    /// The cgroups that there are, each once, by path.
    #[must_use]
    pub fn cgroups(&self) -> Vec<Cgroup> {
        let all = self.all().flat_map(|(_, cgroups)| &cgroups.found);
        let mut all: Vec<Cgroup> = all.cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Which, in words: `cgroup /a.slice,/b.slice`; `None` for none.
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

    /// The processes that are in them now.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mount = CgroupMount::find().ok();
        let cgroups = self.cgroups();
        let in_one = |mount: CgroupMount| {
            let pids = cgroups.iter().map(move |cgroup| mount.processes(cgroup));
            pids.flatten().collect()
        };
        mount.map_or(Vec::new(), in_one)
    }

    /// Flags with which another tool measures those that there are.
    #[must_use]
    pub(super) fn paths(&self) -> Vec<String> {
        let cgroups = self.cgroups().into_iter();
        cgroups
            .flat_map(|cgroup| ["--cgroup".to_owned(), cgroup.path])
            .collect()
    }
}

impl PinnedMapFlags {
    /// Where the cgroups are.
    #[must_use]
    pub fn cgroups(&self) -> Option<PathBuf> {
        self.cgroupmap.as_ref().map(PathBuf::from)
    }

    /// Where the mount namespaces are.
    #[must_use]
    pub fn mount_namespaces(&self) -> Option<PathBuf> {
        self.mntnsmap.as_ref().map(PathBuf::from)
    }

    /// What is left of `whom`, in words.
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

    /// Flags with which another tool does the same.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let maps = [
            ("--cgroupmap", &self.cgroupmap),
            ("--mntnsmap", &self.mntnsmap),
        ];
        let given = maps
            .into_iter()
            .filter_map(|(flag, path)| Some([flag.to_owned(), path.clone()?]));
        given.flatten().collect()
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
        // Somebody is in it, and so it is only to be seen when it is made anew.
        let root = parse("--cgroup / --wait").unwrap();
        assert!(root.validate().is_ok() && !root.targets(None).are_awaited());
        assert!(parse("--wait -- true").is_err() && parse("--wait -t 1").is_err());
    }
}
