//! Identity of a process.

/// One run of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The process ID in our own PID namespace.
    pub pid: u32,
    /// Number that distinguishes processes with the same PID. It must grow whenever the PID is
    /// used again and whenever the process executes another program. Readers look up
    /// only the latest instance of a PID in `/proc`.
    pub instance: u64,
}
