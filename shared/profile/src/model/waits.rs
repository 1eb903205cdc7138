//! Waits: their reason, resource, holder and wakers.

mod detail;
mod idleness;
mod reason;
mod resource;

pub use detail::Detail;
pub use idleness::Idleness;
pub use reason::Reason;
pub use resource::{Futex, Peer, Protocol, Resource, Side, Socket, Transport};

use crate::{Id, Name, Profile, Sample, ThreadId, Wakers};

/// Kind of a wait: the reason, and the detail within it, such as `lock: mutex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitKind {
    /// The reason.
    pub reason: Reason,
    /// The detail within the reason.
    pub detail: Detail,
}

impl WaitKind {
    /// Kind of a wait about which nothing is known.
    pub const UNKNOWN: WaitKind = WaitKind::new(Reason::Unknown, Detail::Unknown);

    /// Returns the kind with this reason and this detail.
    #[must_use]
    pub const fn new(reason: Reason, detail: Detail) -> WaitKind {
        WaitKind { reason, detail }
    }
}

/// A wait. Samples with equal waits refer to one row, also samples of different threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// Kind of the wait.
    pub kind: WaitKind,
    /// Resource on which the thread waited, if it is known.
    pub resource: Option<Id<Resource>>,
    /// Thread that held the resource, if it is known.
    pub holder: Option<Holder>,
    /// Waker that ended the wait, if it was recorded.
    pub ended_by: Option<EndedBy>,
    /// Idleness of the thread during the wait.
    pub idleness: Idleness,
}

impl Wait {
    /// Returns a wait of this kind, with nothing else known.
    #[must_use]
    pub const fn new(kind: WaitKind) -> Wait {
        Wait {
            kind,
            resource: None,
            holder: None,
            ended_by: None,
            idleness: Idleness::Unknown,
        }
    }
}

/// A thread that held a resource on which another thread waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// Name of the thread.
    pub comm: Name,
    /// The thread, if the profile distinguishes threads.
    pub thread: Option<ThreadId>,
    /// True if the process has the same name, so that the name does not identify the thread.
    pub shares_name: bool,
}

/// Waker that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndedBy {
    /// A chain of wakers with their stacks.
    Wakers(Id<Wakers>),
    /// Description of a waker, from a capture of version 1.
    Described(Name),
}

impl Profile {
    /// Returns the wait of a sample, if its thread waited and reasons were requested.
    #[must_use]
    pub fn wait(&self, sample: &Sample) -> Option<&Wait> {
        Some(&self.waits[sample.wait?])
    }
}
