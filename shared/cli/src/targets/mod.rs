//! Targets that a command line can name: processes, cgroups, a command.

mod cgroups;
mod command;
mod processes;

pub use cgroups::Cgroups;
pub(crate) use command::User;
pub use command::{HeldCommand, conclude};
pub use processes::Processes;
