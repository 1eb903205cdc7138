//! A command to run and measure, and what it forks.

use std::ffi::OsString;

use clap::Args;

use crate::HeldCommand;
use crate::error::one_line;
use crate::targets::User;

/// A command to measure, and whether to follow children.
#[derive(Args, Clone, Debug, Default)]
pub struct CommandFlags {
    /// Also the processes that they fork or have forked, and those that these fork;
    /// usual with a COMMAND
    #[arg(long)]
    children: bool,

    /// Only the process of the COMMAND
    // That it is required does not count where it conflicts with what is there.
    #[arg(long, requires = "command", conflicts_with_all = ["children", "pids", "cgroups"])]
    no_children: bool,

    /// Run the COMMAND as this user
    #[arg(
        long,
        value_name = "NAME",
        requires = "command",
        conflicts_with_all = ["pids", "cgroups"],
        value_parser = User::named
    )]
    user: Option<User>,

    /// Run this, and measure it from its first instruction to its end
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["pids", "cgroups"])]
    command: Vec<OsString>,
}

impl CommandFlags {
    /// Whether there is a command.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.command.is_empty()
    }

    /// Whether what is forked is measured, too.
    #[must_use]
    pub fn follows_children(&self) -> bool {
        self.children || self.is_given() && !self.no_children
    }

    /// Starts the command, if there is one.
    ///
    /// # Errors
    /// It cannot be executed: see [`HeldCommand::start`].
    pub fn start(&self) -> anyhow::Result<Option<HeldCommand>> {
        match self.is_given() {
            true => HeldCommand::start(&self.command, self.user.as_ref()).map(Some),
            false => Ok(None),
        }
    }

    /// The command in words.
    #[must_use]
    pub fn subject(&self) -> Option<String> {
        let words = self.command.iter().map(|word| word.to_string_lossy());
        let line = words.collect::<Vec<_>>().join(" ");
        self.is_given().then(|| format!("`{}`", one_line(&line)))
    }
}
