//! Processes of which something was seen.

use crate::Text;

/// One run of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its ID in the caller's PID namespace.
    pub pid: u32,
    /// That of its parent; 0 if it is not known.
    pub parent: u32,
    /// When it started, in clock ticks since boot: field 22 of `/proc/PID/stat`. Tells
    /// apart processes that had this ID one after another.
    pub start_ticks: u64,
    /// The path of its program; empty if it is not known.
    pub executable: Text,
    /// Its command line; empty of kernel threads, and if it is not known.
    pub command_line: Vec<Text>,
    /// Its cgroup (version 2), as `/proc/PID/cgroup` has it; empty if it is not known.
    pub cgroup: Text,
    /// Whether it is a thread of the kernel's own.
    pub is_kernel_thread: bool,
}
