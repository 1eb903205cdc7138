//! Waits: why a thread was blocked, on what, who held that, and who ended the wait.

mod detail;
mod idleness;
mod reason;
mod resource;

pub use detail::Detail;
pub use idleness::Idleness;
pub use reason::Reason;
pub use resource::{Futex, Peer, Protocol, Resource, Side, Socket, Transport};

use crate::{Id, Name, Profile, Sample, ThreadId, Wakers};

/// What a thread waited for: the reason, and the detail within it, such as `lock: mutex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitKind {
    /// The reason.
    pub reason: Reason,
    /// The detail within the reason.
    pub detail: Detail,
}

impl WaitKind {
    /// The kind of a wait of which nothing is known.
    pub const UNKNOWN: WaitKind = WaitKind::new(Reason::Unknown, Detail::Unknown);

    /// Returns the kind with this reason and this detail.
    #[must_use]
    pub const fn new(reason: Reason, detail: Detail) -> WaitKind {
        WaitKind { reason, detail }
    }
}

/// A wait. Samples of all threads that waited alike refer to one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// What the thread waited for.
    pub kind: WaitKind,
    /// What it waited on, if that is known.
    pub resource: Option<Id<Resource>>,
    /// The thread that held the resource, if that is known.
    pub holder: Option<Holder>,
    /// Who ended the wait, if that was noted beside the reason.
    pub ended_by: Option<EndedBy>,
    /// Whether the thread had work meanwhile.
    pub idleness: Idleness,
}

impl Wait {
    /// Returns a wait of this kind of which nothing else is known.
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

/// A thread that held what another waited on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// Its name.
    pub comm: Name,
    /// The thread, where threads are told apart.
    pub thread: Option<ThreadId>,
    /// Whether the process has the same name, so that the name does not tell which thread it is.
    pub shares_name: bool,
}

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndedBy {
    /// Wakers with their stacks.
    Wakers(Id<Wakers>),
    /// A waker in the words of a capture of version 1.
    Described(Name),
}

impl Profile {
    /// Returns the wait of a sample, if its thread waited and the reason was asked for.
    #[must_use]
    pub fn wait(&self, sample: &Sample) -> Option<&Wait> {
        Some(&self.waits[sample.wait?])
    }
}
