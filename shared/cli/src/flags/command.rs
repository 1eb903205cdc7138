//! Flags for a command to run and measure, and for child processes.

use std::ffi::OsString;

use clap::Args;
use clap::builder::Resettable;

use crate::HeldCommand;
use crate::error::one_line;
use crate::targets::User;

/// The command to run and measure, and whether to follow child processes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = super::TARGETS)]
pub struct CommandFlags {
    /// Also descendants of the chosen processes; the default with a COMMAND
    #[arg(long)]
    children: bool,

    /// Only the process of the COMMAND, without its descendants
    // clap does not check `requires` if the required argument conflicts with one that is given, so
    // `conflicts_with_all` repeats the conflicts.
    #[arg(long, hide_short_help = true, requires = "command", conflicts_with_all = ["children", "pids", "cgroups"])]
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

    /// Command to run and measure, from its first instruction to its end
    #[arg(last = true, help_heading = Resettable::Reset, value_name = "COMMAND", conflicts_with_all = ["pids", "cgroups"])]
    command: Vec<OsString>,
}

impl CommandFlags {
    /// Returns whether a command is given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.command.is_empty()
    }

    /// Returns whether descendants are measured.
    #[must_use]
    pub fn follows_children(&self) -> bool {
        self.children || self.is_given() && !self.no_children
    }

    /// Starts the command, if one is given.
    ///
    /// # Errors
    /// The command cannot be executed: see [`HeldCommand::start`].
    pub fn start(&self) -> anyhow::Result<Option<HeldCommand>> {
        if self.is_given() {
            HeldCommand::start(&self.command, self.user.as_ref()).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Returns the command between backticks; `None` without a command.
    #[must_use]
    pub fn subject(&self) -> Option<String> {
        let words = self.command.iter().map(|word| word.to_string_lossy());
        let line = words.collect::<Vec<_>>().join(" ");
        self.is_given().then(|| format!("`{}`", one_line(&line)))
    }
}
