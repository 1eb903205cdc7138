//! Other processes: their identity, which of them live, fair shares of what is kept of each, and
//! reads of their memory that no process can hold up.
//!
//! A read of a target's memory may fault a page in. Where that page belongs to a FUSE file
//! whose server never answers, or to a `userfaultfd` that nobody serves, the reader waits in
//! the kernel, beyond SIGKILL. A helper process does these reads therefore, and the tool waits
//! for it only up to a deadline. A helper that misses it is killed and left behind.

mod arch;
mod helper;
mod identity;
mod interner;
mod living;
mod memory;
mod reads;
mod shares;
mod threads;
mod width;

pub use arch::{ARCHITECTURE, ELF_MACHINE};
pub use identity::Process;
pub use interner::Interner;
pub use living::Living;
pub use memory::ProcessMemory;
pub use reads::{count_unanswered, read_command_line, start_helper, stop_helper};
pub use shares::Shares;
pub use threads::{is_alive, living_folder, living_thread};
pub use width::runs_32_bit_code;
