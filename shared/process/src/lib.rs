//! Identity of processes, checks of which processes live, fair shares of kept data, and reads of
//! processes' memory that no process can block. Also answers of getent(1).
//!
//! A read of a target's memory may fault a page in. The page may belong to a FUSE file or a
//! `userfaultfd` whose server never answers. The reader then waits in the kernel, and SIGKILL does
//! not end it. A helper process therefore reads, and the tool waits for the helper only until a
//! deadline. The tool kills a helper that misses the deadline, and leaves it behind.

mod arch;
mod getent;
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
pub use getent::{Answer, getent};
pub use identity::Process;
pub use interner::Interner;
pub use living::Living;
pub use memory::ProcessMemory;
pub use reads::{count_unanswered, helper_cpu_time, read_command_line, start_helper, stop_helper};
pub use shares::Shares;
pub use threads::{InnerThreads, is_alive, living_folder, living_thread};
pub use width::runs_32_bit_code;
