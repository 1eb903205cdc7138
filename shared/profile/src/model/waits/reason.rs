//! Reasons for which threads block.

/// Reason for which a thread is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The thread waits for a user-space lock that another thread holds.
    Lock,
    /// The thread waits for a lock of the kernel.
    KernelLock,
    /// Another thread must signal: a condition variable, a semaphore, a barrier, a queue.
    Condition,
    /// A thread or a process must end.
    Child,
    /// One of several sources must become ready.
    Events,
    /// The other end of a network connection must act.
    Network,
    /// The other end of a pipe, a Unix domain socket or a terminal must act.
    LocalIpc,
    /// Data must be read from a disk.
    DiskRead,
    /// Data must be written to a disk.
    DiskWrite,
    /// The kernel must fill a page that the thread touched.
    PageFault,
    /// The kernel must free memory first.
    Memory,
    /// A limit holds the thread back.
    Throttle,
    /// The thread asked for time to pass.
    Sleep,
    /// A signal, a debugger or a thaw must let the thread go on.
    Stopped,
    /// A driver, a GPU or a guest must act.
    Device,
    /// Another service of the kernel must act.
    Kernel,
    /// The runtime of a language must do something first, such as a garbage collection.
    Runtime,
    /// The reason is unknown.
    Unknown,
}

impl Reason {
    /// All reasons, in the order of the enum.
    pub const ALL: [Reason; 18] = [
        Reason::Lock,
        Reason::KernelLock,
        Reason::Condition,
        Reason::Child,
        Reason::Events,
        Reason::Network,
        Reason::LocalIpc,
        Reason::DiskRead,
        Reason::DiskWrite,
        Reason::PageFault,
        Reason::Memory,
        Reason::Throttle,
        Reason::Sleep,
        Reason::Stopped,
        Reason::Device,
        Reason::Kernel,
        Reason::Runtime,
        Reason::Unknown,
    ];

    /// Returns the name, such as `local IPC`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Lock => "lock",
            Reason::KernelLock => "kernel lock",
            Reason::Condition => "condition",
            Reason::Child => "child",
            Reason::Events => "events",
            Reason::Network => "network",
            Reason::LocalIpc => "local IPC",
            Reason::DiskRead => "disk read",
            Reason::DiskWrite => "disk write",
            Reason::PageFault => "page fault",
            Reason::Memory => "memory",
            Reason::Throttle => "throttle",
            Reason::Runtime => "runtime",
            Reason::Sleep => "sleep",
            Reason::Stopped => "stopped",
            Reason::Device => "device",
            Reason::Kernel => "kernel",
            Reason::Unknown => "unknown",
        }
    }

    /// Returns the reasons that a word selects: a name, also with dashes for spaces, or the
    /// first word of several names (`disk`).
    #[must_use]
    pub fn named(word: &str) -> Vec<Reason> {
        let word = word.replace('-', " ");
        let matching = |is_meant: fn(&str, &str) -> bool| -> Vec<Reason> {
            let all = Reason::ALL.into_iter();
            all.filter(|reason| is_meant(reason.name(), &word))
                .collect()
        };
        let exact = matching(str::eq_ignore_ascii_case);
        if exact.is_empty() {
            matching(|name, word| name.split(' ').next() == Some(word))
        } else {
            exact
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_reason_or_several() {
        assert_eq!(Reason::named("lock"), [Reason::Lock]);
        assert_eq!(Reason::named("kernel-lock"), [Reason::KernelLock]);
        assert_eq!(Reason::named("kernel"), [Reason::Kernel]);
        assert_eq!(Reason::named("disk"), [Reason::DiskRead, Reason::DiskWrite]);
        assert_eq!(Reason::named("local ipc"), [Reason::LocalIpc]);
        assert!(Reason::named("luck").is_empty());
        for reason in Reason::ALL {
            assert_eq!(Reason::named(reason.name()), [reason]);
        }
    }
}
