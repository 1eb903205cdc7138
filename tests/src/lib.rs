//! Building blocks of the end-to-end tests: workloads that measure themselves, runs of the tools as
//! users run them, and parsers of the tools' output.
//!
//! The parsers follow the documented formats and share no code with the tools. Captures alone are read
//! with the reader of the tools. A function here
//! panics if a result is not the expected one, so the test fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

pub mod machine;
pub mod parts;
pub mod printed;
pub mod programs;
pub mod tries;
pub mod truth;
pub mod turn;

pub use printed::chain::Chain;
pub use printed::clocks::ClockRow;
pub use printed::folded::{Folded, Line};
pub use printed::user_stacks::UserStacks;
pub use programs::binaries::binary;
pub use programs::cgroup::Cgroup;
pub use programs::container::Container;
pub use programs::control::Control;
pub use programs::pinned_map::PinnedMap;
pub use programs::process::{Finished, Running};
pub use programs::tool::{Tool, cpus_online, now_ns};
pub use programs::watch::{Seen, Watch};
pub use programs::workload::{Language, Workload, WorkloadBuilder};
pub use tries::{least_stolen, patiently, undisturbed};
pub use truth::account::{Account, accounts_at_rest};
pub use turn::Turn;
