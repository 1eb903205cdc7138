//! Waiting for whoever is not there yet.

use clap::Args;
use loader::{AwaitedCgroup, Targets};

use super::{CgroupFlags, ProcessFlags};
use crate::{Processes, usage};

/// Whether to wait for whom other flags name.
#[derive(Args, Clone, Debug, Default)]
pub struct WaitFlags {
    /// Where nobody has a name yet, or nobody is in a cgroup, wait for the first; measured
    /// from its birth. A cgroup that is made anew is measured again
    #[arg(long, conflicts_with_all = ["matching", "command"])]
    wait: bool,

    /// A name that a parent found nobody to have, and waits for
    #[arg(long = "await", value_name = "NAME", hide = true)]
    names: Vec<String>,

    /// Whether a parent found nobody in the cgroups, and waits for the first
    #[arg(long, value_name = "WHETHER", hide = true)]
    await_members: Option<bool>,
}

impl WaitFlags {
    /// Checks that somebody has each name, and that each cgroup is there, or may be waited
    /// for.
    ///
    /// # Errors
    /// The first for which that is not so, and what there is instead: a wrong command line.
    pub fn check(&self, processes: &ProcessFlags, cgroups: &CgroupFlags) -> anyhow::Result<()> {
        let is_name = |processes: &Processes| !matches!(processes, Processes::Given(_));
        if self.wait && !processes.all().any(is_name) && !cgroups.are_given() {
            return Err(usage(
                "--wait waits for a name or a cgroup: give one, such as -n mariadbd",
            ));
        }
        for processes in processes.all() {
            if let Processes::Nobody { name, instead } = processes {
                let shown = name.escape_debug();
                if !self.wait {
                    return Err(usage(format!("`{shown}`: {instead}; --wait waits for it")));
                }
                if name.len() > Targets::LONGEST_AWAITED {
                    return Err(usage(format!(
                        "`{shown}`: names of at most {} bytes can be waited for",
                        Targets::LONGEST_AWAITED
                    )));
                }
            }
        }
        for (flag, cgroups) in cgroups.all() {
            let told = |why: &str| {
                let word = cgroups.word.escape_debug();
                Err(usage(format!("{flag} `{word}`: {why}")))
            };
            match &cgroups.missing {
                Some(missing) if !self.wait => {
                    return told(&format!("{missing}; --wait waits for it"));
                }
                Some(_) if cgroups.later.is_empty() => {
                    return told(
                        "no runtime has a container of that name on file: create it first, give all of its ID, or wait for its cgroup with --cgroup or --unit",
                    );
                }
                _ if self.wait && !cgroups.later.iter().all(AwaitedCgroup::can_come) => {
                    return told(&format!(
                        "cgroups with names of at most {} bytes can be waited for",
                        AwaitedCgroup::LONGEST_NAME
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The names that nobody has yet.
    #[must_use]
    pub fn names(&self, processes: &ProcessFlags) -> Vec<String> {
        let names = processes.all().filter_map(|processes| match processes {
            Processes::Nobody { name, .. } => Some(name.clone()),
            _ => None,
        });
        names.chain(self.names.iter().cloned()).collect()
    }

    /// The cgroups that are measured when they come.
    #[must_use]
    pub fn cgroups(&self, cgroups: &CgroupFlags) -> Vec<AwaitedCgroup> {
        let later = cgroups.all().flat_map(|(_, cgroups)| &cgroups.later);
        later.filter(|_| self.wait).cloned().collect()
    }

    /// Whether the first in one of the cgroups is waited for.
    #[must_use]
    pub fn awaits_members(&self, cgroups: &CgroupFlags) -> bool {
        let finds_nobody = || self.wait && cgroups.are_given() && cgroups.processes().is_empty();
        self.await_members.unwrap_or_else(finds_nobody)
    }

    /// Flags with which another tool measures the same cgroups, and waits for the first in
    /// one if that is so.
    #[must_use]
    pub fn arguments(&self, cgroups: &CgroupFlags, awaits_members: bool) -> Vec<String> {
        if !self.wait || !cgroups.are_given() {
            return cgroups.paths();
        }
        let given = cgroups.all();
        let given = given.flat_map(|(flag, cgroups)| [flag.to_owned(), cgroups.word.clone()]);
        let awaits_members = awaits_members.to_string();
        let more = ["--wait", "--await-members", &awaits_members];
        given.chain(more.map(str::to_owned)).collect()
    }
}
