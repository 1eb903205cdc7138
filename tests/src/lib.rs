//! What the end-to-end tests are made of: workloads whose truth is known, the
//! tools run as a user runs them, and readers for what they print.
//!
//! The readers are written from the documented formats and share no code with
//! the tools. Everything here panics when something is not as it should be:
//! that is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod account;
pub mod binaries;
pub mod chain;
pub mod clocks;
pub mod container;
pub mod control;
pub mod elf;
pub mod folded;
pub mod gdb;
pub mod known_chains;
pub mod machine;
pub mod mariadb;
pub mod output;
pub mod parts;
pub mod peers;
pub mod phases;
pub mod process;
pub mod refusal;
pub mod samples;
pub mod simple;
pub mod spans;
pub mod statistics;
pub mod table;
pub mod tool;
mod tracing;
pub mod tries;
pub mod turn;
pub mod user_stacks;
pub mod wake_ups;
pub mod wakers;
pub mod wallclock;
pub mod watch;
pub mod workload;

pub use account::{Account, accounts_at_rest};
pub use binaries::binary;
pub use chain::Chain;
pub use clocks::ClockRow;
pub use container::Container;
pub use control::Control;
pub use folded::{Folded, Line};
pub use process::{Finished, Running};
pub use tool::{Tool, cpus_online, now_ns};
pub use tries::{least_stolen, patiently, undisturbed};
pub use turn::Turn;
pub use user_stacks::UserStacks;
pub use watch::{Seen, Watch};
pub use workload::{Language, Workload, WorkloadBuilder};
