//! The profile: threads, their clocks, and weighted stacks of named frames.
//!
//! Everything the suite measures passes through [`Profile`]: the tools produce
//! one, the `export` crate writes one, and [`folded`] text reads back into one.
//! [`merge`] joins what two tools saw of the same threads in the same window.
//! Times are nanoseconds throughout; only printing divides.

use std::collections::HashMap;
use std::sync::Arc;

pub mod folded;
mod losses;
pub mod marker;
pub mod merge;
pub mod spans;
pub mod text;

pub use losses::Losses;

/// A thread as the caller's PID namespace names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// Thread group (process) ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
}

/// The state of a thread while a stack's time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for anything else.
    Blocked,
}

/// Where a frame's code lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// User space: an ELF file, the vDSO or JIT-compiled code.
    User,
    /// The kernel and its modules.
    Kernel,
    /// Not code: a frame that a tool puts in, such as `[Missed User Stack]`.
    Marker,
}

/// One named frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Function, or `[module]` or `[unknown]` where no symbol covers the address.
    pub name: Arc<str>,
    /// File name of the ELF file or kernel module that holds the code.
    pub module: Option<Arc<str>>,
    /// Where the code lives.
    pub kind: FrameKind,
}

impl Frame {
    /// A frame that is not code, such as those in [`marker`].
    #[must_use]
    pub fn marker(name: &str) -> Frame {
        Frame {
            name: name.into(),
            module: None,
            kind: FrameKind::Marker,
        }
    }
}

/// A call path of one thread (or of all threads of that name).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stack {
    /// The thread's name while the time passed.
    pub comm: Arc<str>,
    /// The thread, where threads are told apart.
    pub thread: Option<ThreadId>,
    /// Frames from the root (`_start`) to the leaf, user before kernel; shared
    /// by all threads that were seen there.
    pub frames: Arc<[Frame]>,
    /// The state, where states are told apart.
    pub state: Option<State>,
    /// Who ended the wait, and who had woken that one before, where that is
    /// known: the waker first.
    pub wakers: Vec<Waker>,
}

/// One who ended a wait, and where it was when it did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waker {
    /// The thread's name at the time, or one of [`marker`]'s for wakers.
    pub comm: Arc<str>,
    /// The thread, if it was one.
    pub thread: Option<ThreadId>,
    /// Frames from the root to the leaf, user before kernel.
    pub frames: Arc<[Frame]>,
}

/// What a stack weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Nanoseconds, or samples: see [`Unit`].
    pub value: u64,
    /// How many intervals or samples make up the value.
    pub events: u64,
    /// The longest single interval in nanoseconds; 0 for samples.
    pub longest: u64,
}

/// What a profile's values count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Number of samples.
    Samples,
    /// Nanoseconds of wall-clock time.
    Nanoseconds,
}

/// A thread's account: where its life inside the window went.
///
/// `running_ns + runnable_ns + blocked_ns` is `ended_ns - started_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// When the thread's life in the window began, CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// When it ended, CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// On a CPU.
    pub running_ns: u64,
    /// Waiting for a CPU.
    pub runnable_ns: u64,
    /// Waiting for anything else.
    pub blocked_ns: u64,
    /// Context switches because the thread blocked.
    pub voluntary: u64,
    /// Context switches because it was preempted or yielded.
    pub involuntary: u64,
}

impl Clock {
    /// How long the thread lived inside the window, in nanoseconds.
    #[must_use]
    pub fn lifetime_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.started_ns)
    }
}

/// A thread that was seen in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its IDs.
    pub id: ThreadId,
    /// Its name when last seen.
    pub comm: Arc<str>,
    /// Its account.
    pub clock: Clock,
}

/// What a tool measured.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What the weights count.
    pub unit: Unit,
    /// Every stack with its weight.
    pub stacks: HashMap<Stack, Weight>,
    /// Every thread's account, where a thread clock ran.
    pub threads: Vec<Thread>,
}

impl Profile {
    /// A profile of nothing.
    #[must_use]
    pub fn new(unit: Unit) -> Profile {
        Profile {
            unit,
            stacks: HashMap::new(),
            threads: Vec::new(),
        }
    }

    /// Adds a weight to a stack; equal stacks become one.
    pub fn add(&mut self, stack: Stack, weight: Weight) {
        let sum = self.stacks.entry(stack).or_default();
        sum.value = sum.value.saturating_add(weight.value);
        sum.events = sum.events.saturating_add(weight.events);
        sum.longest = sum.longest.max(weight.longest);
    }
}
