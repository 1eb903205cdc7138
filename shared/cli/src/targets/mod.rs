//! Targets that a user can name on the command line: processes, cgroups, or a command to run.

mod cgroups;
mod command;
mod processes;

pub use cgroups::Cgroups;
pub(crate) use command::User;
pub use command::{HeldCommand, conclude};
pub use processes::Processes;
