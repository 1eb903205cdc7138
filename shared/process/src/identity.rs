//! Identity of a process.

/// Run of one program in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Process ID in the PID namespace of this process.
    pub pid: u32,
    /// Number that distinguishes runs with the same PID. It must grow whenever the PID is used
    /// again, and whenever the process executes another program. Readers look up only the latest
    /// instance of a PID in `/proc`.
    pub instance: u64,
}
