//! Flags that wait for targets which do not exist yet.

use clap::Args;
use loader::{AwaitedCgroup, Targets};

use super::{CgroupFlags, ProcessFlags};
use crate::{Processes, usage};

/// Flags that wait for the processes and cgroups of other flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = super::TARGETS)]
pub struct WaitFlags {
    /// Wait for the first process with the name, or in the cgroup
    ///
    /// The process is measured from its start. A cgroup that is removed and made anew is measured
    /// again.
    #[arg(long, conflicts_with_all = ["matching", "command"])]
    pub(super) wait: bool,

    /// Name of awaited processes, from a controlling parent
    #[arg(long = "await", value_name = "NAME", hide = true)]
    names: Vec<String>,

    /// Wait for the first process in the cgroups, from a controlling parent
    #[arg(long, value_name = "WHETHER", hide = true)]
    await_members: Option<bool>,
}

impl WaitFlags {
    /// Checks that each name has a process and that each cgroup exists, or that `--wait` can wait
    /// for it.
    ///
    /// # Errors
    /// A usage error for the first name or cgroup that fails the check, with similar names.
    pub fn check(&self, processes: &ProcessFlags, cgroups: &CgroupFlags) -> anyhow::Result<()> {
        let is_name = |processes: &Processes| !matches!(processes, Processes::Given(_));
        if self.wait && !processes.all().any(is_name) && !cgroups.are_given() {
            return Err(usage(
                "--wait needs a name or a cgroup to wait for: give one, such as -n mariadbd",
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
                        "cannot wait for `{shown}`: the name is longer than {} bytes; give the name of its first thread",
                        Targets::LONGEST_AWAITED
                    )));
                }
            }
        }
        for (flag, cgroups) in cgroups.all() {
            let refuse = |why: &str| {
                let word = cgroups.word.escape_debug();
                Err(usage(format!("{flag} `{word}`: {why}")))
            };
            match &cgroups.missing {
                Some(missing) if !self.wait => {
                    return refuse(&format!("{missing}; --wait waits for it"));
                }
                Some(_) if cgroups.awaited.is_empty() => {
                    return refuse(
                        "cannot wait for the container: no runtime has one of this name on file; create it first, give its whole ID, or wait for its cgroup with --cgroup or --unit",
                    );
                }
                _ if self.wait && !cgroups.awaited.iter().all(AwaitedCgroup::can_come) => {
                    return refuse(&format!(
                        "cannot wait for a cgroup whose name is longer than {} bytes; start it first",
                        AwaitedCgroup::LONGEST_NAME
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the names that no process has yet.
    #[must_use]
    pub fn names(&self, processes: &ProcessFlags) -> Vec<String> {
        let names = processes.all().filter_map(|processes| match processes {
            Processes::Nobody { name, .. } => Some(name.clone()),
            _ => None,
        });
        names.chain(self.names.iter().cloned()).collect()
    }

    /// Returns the cgroups that are measured once they are created.
    #[must_use]
    pub fn cgroups(&self, cgroups: &CgroupFlags) -> Vec<AwaitedCgroup> {
        let awaited = cgroups.all().flat_map(|(_, cgroups)| &cgroups.awaited);
        awaited.filter(|_| self.wait).cloned().collect()
    }

    /// Returns whether the tool waits for the first process in one of the cgroups.
    #[must_use]
    pub fn awaits_members(&self, cgroups: &CgroupFlags) -> bool {
        let is_empty = || self.wait && cgroups.are_given() && cgroups.processes().is_empty();
        self.await_members.unwrap_or_else(is_empty)
    }
}
