//! Processes in a profile.

use crate::Text;

/// One run of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process ID in the caller's PID namespace.
    pub pid: u32,
    /// PID of the parent; 0 if it is unknown.
    pub parent: u32,
    /// Start time in clock ticks since boot: field 22 of `/proc/PID/stat`. The time distinguishes
    /// processes that had one PID one after another.
    pub start_ticks: u64,
    /// Path of the program; empty if it is unknown.
    pub executable: Text,
    /// Command line; empty for kernel threads, and if it is unknown.
    pub command_line: Vec<Text>,
    /// Path of the cgroup (version 2), as in `/proc/PID/cgroup`; empty if it is unknown.
    pub cgroup: Text,
    /// True for kernel threads.
    pub is_kernel_thread: bool,
}
