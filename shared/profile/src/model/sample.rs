//! What was counted: whose, where, in which state, and how much of it.

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

/// A call path: into the kernel, if it went there, by way of a user stack, if it has
/// one. The two are apart as every user stack comes with a few kernel stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stack {
    /// In user space.
    pub user: StackId,
    /// In the kernel.
    pub kernel: StackId,
}

/// One who ended a wait, and where it was when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waker {
    /// The thread's name at the time; where there was no thread, one of
    /// [`marker`](crate::marker)'s for wakers.
    pub comm: Name,
    /// The thread, if it was one.
    pub thread: Option<ThreadId>,
    /// Where it was.
    pub stack: Stack,
}

/// Who ended a wait, and who had woken that one before: the waker first.
pub type Wakers = Box<[Waker]>;

/// A key and a value that a sample carries beside what has a field of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The key.
    pub key: Name,
    /// The value.
    pub value: Name,
}

/// All labels of a sample, in the order in which the tool gave them.
pub type Labels = Box<[Label]>;

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    /// The thread's name while the time passed.
    pub comm: Name,
    /// The thread, where threads are told apart.
    pub thread: Option<ThreadId>,
    /// Where it was.
    pub stack: Stack,
    /// The state, where states are told apart.
    pub state: Option<State>,
    /// Who ended the wait, where the stacks of wakers are drawn with those of sleepers.
    pub wakers: Option<Id<Wakers>>,
    /// What the thread waited for, where that was asked for.
    pub wait: Option<Id<Wait>>,
    /// Whether the intervals were sampled: each stands for others, too, and was drawn with a
    /// probability in proportion to its length.
    pub is_sampled: bool,
    /// Labels, if the sample has any.
    pub labels: Option<Id<Labels>>,
}

impl Sample {
    /// Returns a sample of a thread at a stack of which nothing else is known.
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

/// How much there was of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Nanoseconds, or samples: see [`Unit`](crate::Unit).
    pub value: u64,
    /// How many intervals or samples make up the value: of intervals that were sampled those
    /// that were.
    pub events: u64,
    /// The longest single interval in nanoseconds; 0 for samples.
    pub longest: u64,
    /// The shortest single interval in nanoseconds; 0 for samples.
    pub shortest: u64,
    /// The squares of the lengths of intervals, in units of 2^20 ns²: how much chance
    /// there is in the sum. 0 for samples, also of intervals, and where it is not known.
    pub squares: u64,
}

impl Weight {
    /// The weight of intervals that were sampled, each for a period of nanoseconds: as many
    /// as the value has periods, and of one length each.
    #[must_use]
    pub fn of_sampled(self, period: NonZeroU64) -> Weight {
        Weight {
            events: self.value / period,
            squares: 0,
            ..self
        }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.shortest = match *self == Weight::default() {
            true => other.shortest,
            false => self.shortest.min(other.shortest),
        };
        self.value = self.value.saturating_add(other.value);
        self.events = self.events.saturating_add(other.events);
        self.longest = self.longest.max(other.longest);
        self.squares = self.squares.saturating_add(other.squares);
    }
}
