//! Identity of a process.

/// One run of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The process ID in our own PID namespace.
    pub pid: u32,
    /// Number that tells apart what had this PID: it must grow whenever the PID is used again
    /// and whenever the process executes another program. Of a PID only the latest instance
    /// seen is looked up in `/proc`.
    pub instance: u64,
}
