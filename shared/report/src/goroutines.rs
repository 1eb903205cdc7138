//! Time of waiting goroutines, which no thread has.

/// Goroutines of one Go program, from samples of its memory. Their times are estimates, and no part
/// of the threads' times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goroutines {
    /// ID of the process.
    pub pid: u32,
    /// Number of samples.
    pub samples: u64,
    /// Time for which the samples stand, in ns.
    pub measured_ns: u64,
    /// Most goroutines in one sample.
    pub most: u64,
    /// Number and time in ns of the goroutines of Go's runtime, which are in no wait.
    pub system: (u64, u64),
    /// Time of goroutines that waited for a thread, in ns.
    pub runnable_ns: u64,
    /// Waits, in any order.
    pub waits: Vec<GoroutineWait>,
    /// Remarks about what the samples lack; empty if they lack nothing.
    pub losses: Vec<String>,
}

/// Time of goroutines with one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoroutineWait {
    /// Reason as Go states it, such as `chan receive`; empty if Go states none.
    pub reason: String,
    /// Functions, innermost first; empty if they are not known.
    pub functions: Vec<String>,
    /// Function that created the goroutines, if it is known.
    pub creator: Option<String>,
    /// Time in ns.
    pub ns: u64,
}
