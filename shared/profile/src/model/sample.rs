//! Samples: thread, stack, state and weight.

use std::ops::AddAssign;

use std::num::NonZeroU64;

use crate::{Id, Name, StackId, ThreadId, Wait};

/// The state of a thread while a sample's time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting for anything else.
    Blocked,
}

/// A call path: a user stack, a kernel stack, or both. The two are separate because each user stack
/// occurs with several kernel stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stack {
    /// Stack in user space.
    pub user: StackId,
    /// Stack in the kernel.
    pub kernel: StackId,
}

/// A waker, with its stack at the wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waker {
    /// Name of the thread at that time. If the waker was not a thread, one of
    /// [`marker`](crate::marker)'s names for wakers.
    pub comm: Name,
    /// The thread, if the waker was one.
    pub thread: Option<ThreadId>,
    /// Stack of the waker.
    pub stack: Stack,
}

/// Chain of wakers: the waker that ended the wait, then the waker of that waker, and so on.
pub type Wakers = Box<[Waker]>;

/// A key and a value of a sample, besides its own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The key.
    pub key: Name,
    /// The value.
    pub value: Name,
}

/// All labels of a sample, in the order in which the tool gave them.
pub type Labels = Box<[Label]>;

/// The key by which a profile sums up weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    /// The thread's name while the time passed.
    pub comm: Name,
    /// The thread, if the profile distinguishes threads.
    pub thread: Option<ThreadId>,
    /// Stack of the thread.
    pub stack: Stack,
    /// State of the thread, if the profile distinguishes states.
    pub state: Option<State>,
    /// Chain of wakers, if stacks of wakers are drawn with the stacks of sleepers.
    pub wakers: Option<Id<Wakers>>,
    /// Wait of the thread, if reasons were requested.
    pub wait: Option<Id<Wait>>,
    /// True for sampled intervals. A sampled interval also stands for other intervals. It was drawn
    /// with a probability proportional to its length.
    pub is_sampled: bool,
    /// Labels, if the sample has any.
    pub labels: Option<Id<Labels>>,
}

impl Sample {
    /// Returns a sample of a thread at a stack, with nothing else known.
    #[must_use]
    pub const fn new(comm: Name, thread: Option<ThreadId>, stack: Stack) -> Sample {
        Sample {
            comm,
            thread,
            stack,
            state: None,
            wakers: None,
            wait: None,
            is_sampled: false,
            labels: None,
        }
    }
}

/// Weight of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Value in ns or samples: see [`Unit`](crate::Unit).
    pub value: u64,
    /// Number of intervals or samples in the value. Sampled intervals count only themselves,
    /// not the intervals that they stand for.
    pub events: u64,
    /// Longest interval in ns; 0 for samples.
    pub longest: u64,
    /// Shortest interval in ns; 0 for samples.
    pub shortest: u64,
    /// Sum of the squared lengths of intervals, in units of 2^20 ns². The variance follows from
    /// this sum. The sum is 0 for samples, for sampled intervals, and if the lengths are unknown.
    pub squares: u64,
}

impl Weight {
    /// Converts the weight to the weight of sampled intervals: one for each `period` ns of the
    /// value, all of the same length.
    #[must_use]
    pub fn as_sampled(self, period: NonZeroU64) -> Weight {
        Weight {
            events: self.value / period,
            squares: 0,
            ..self
        }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.shortest = if *self == Weight::default() {
            other.shortest
        } else {
            self.shortest.min(other.shortest)
        };
        self.value = self.value.saturating_add(other.value);
        self.events = self.events.saturating_add(other.events);
        self.longest = self.longest.max(other.longest);
        self.squares = self.squares.saturating_add(other.squares);
    }
}
