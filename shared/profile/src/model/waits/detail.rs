//! The detail of a wait, within its reason.

use crate::{Name, Profile};

macro_rules! details {
    ($($variant:ident $text:literal,)*) => {
        /// Detail of a wait within its [`Reason`](crate::Reason): the mutex of a lock, the read
        /// of a pipe.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Detail {
            $(#[doc = $text] $variant,)*
            /// A detail that this version does not know, by its name in a capture.
            Named(Name),
        }

        /// All details that this version knows, with their names.
        const KNOWN: &[(Detail, &str)] = &[$((Detail::$variant, $text)),*];
    };
}

details! {
    Accept "accept",
    Aio "aio",
    Barrier "barrier",
    ByDebugger "by a debugger",
    BySignal "by a signal",
    Channel "channel",
    Close "close",
    Completion "completion",
    ConditionVariable "condition variable",
    Connect "connect",
    CpuQuota "CPU quota",
    DeadlineBudget "deadline budget",
    DeviceQueue "device queue",
    Direct "direct",
    DirectoryEntry "directory entry",
    DirtyPages "dirty pages",
    DiskBandwidth "disk bandwidth",
    Epoll "epoll",
    Eventfd "eventfd",
    File "file",
    FileNotification "file notification",
    FileSystem "file system",
    ForTime "for a time",
    Frozen "frozen",
    FuseServer "FUSE server",
    Futex "futex",
    Gil "GIL",
    GarbageCollection "garbage collection",
    GoroutineToRun "goroutine to run",
    Gpu "GPU",
    Guest "guest",
    Gvl "GVL",
    IoUring "io_uring",
    RingWorker "io_uring worker",
    Ioctl "ioctl",
    JavaLock "Java lock",
    JavaMonitor "Java monitor",
    Journal "journal",
    JvmMonitor "JVM monitor",
    KernelThread "kernel thread",
    KernelHelper "kernel's helper",
    MemoryHigh "memory.high",
    MessageQueue "message queue",
    Migration "migration",
    Mutex "mutex",
    Netlink "netlink",
    Once "once",
    OtherThreads "other threads of the process",
    PageCache "page cache",
    Park "park",
    Pause "pause",
    PercpuRwsem "percpu rwsem",
    PerfEvent "perf event",
    PipeOpen "pipe, open",
    PipeRead "pipe, read",
    PipeSplice "pipe, splice",
    PipeWrite "pipe, write",
    Poll "poll",
    PriorityInheritanceMutex "priority-inheritance mutex",
    Process "process",
    PythonCondition "Python condition",
    PythonLock "Python lock",
    RcuGracePeriod "RCU grace period",
    RealTimeLimit "real-time limit",
    Receive "receive",
    Reclaim "reclaim",
    RtMutex "rt_mutex",
    RuntimeLock "runtime lock",
    RuntimeTask "task of the runtime",
    Rwlock "rwlock",
    Rwsem "rwsem",
    Safepoint "safepoint",
    Select "select",
    Semaphore "semaphore",
    Send "send",
    Signalfd "signalfd",
    Socket "socket",
    Swap "swap",
    Sync "sync",
    SystemVSemaphore "System V semaphore",
    Terminal "terminal",
    Thread "thread",
    Timerfd "timerfd",
    Unknown "unknown",
    UntilSignal "until a signal",
    UntilNextPeriod "until its next period",
    CoreDump "until the core dump is written",
    Userfaultfd "userfaultfd",
    Vfork "vfork",
    VmOperation "VM operation",
    VhostWorker "vhost worker",
    WorkQueue "work queue",
    Writes "writes",
}

impl Detail {
    /// Returns the name of a detail that this version knows.
    #[must_use]
    pub fn known_name(self) -> Option<&'static str> {
        let known = KNOWN.iter().find(|(detail, _)| *detail == self);
        known.map(|(_, name)| *name)
    }

    /// Returns the detail with a name, if this version knows it.
    #[must_use]
    pub fn named(name: &str) -> Option<Detail> {
        let known = KNOWN.iter().find(|(_, known)| *known == name);
        known.map(|(detail, _)| *detail)
    }
}

impl Profile {
    /// Returns the name of a detail.
    #[must_use]
    pub fn detail_name(&self, detail: Detail) -> &str {
        match detail {
            Detail::Named(name) => &self.names[name],
            known => known.known_name().unwrap_or_default(),
        }
    }

    /// Returns the detail with a name of this profile.
    #[must_use]
    pub fn detail(&self, name: Name) -> Detail {
        Detail::named(&self.names[name]).unwrap_or(Detail::Named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_detail_has_a_name_of_its_own() {
        for (detail, name) in KNOWN {
            assert_eq!(Detail::named(name), Some(*detail));
            assert_eq!(detail.known_name(), Some(*name));
        }
        assert_eq!(Detail::named("nothing"), None);
    }
}
