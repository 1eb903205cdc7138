//! What was counted: whose, where, in which state, and how much of it.

use std::ops::AddAssign;

use std::num::NonZeroU64;

use crate::{Id, Name, Profile, StackId, ThreadId};

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

/// Something that is said of samples, such as why a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// What is said.
    pub key: Name,
    /// And what it is.
    pub value: Name,
}

/// All that is said of samples beside what has a place of its own, ordered by whoever
/// says it.
pub type Labels = Box<[Label]>;

/// The key and the value of the label on intervals that are not all there are: each stands
/// for others, too, and was drawn with a probability in proportion to its length.
const SAMPLED: [&str; 2] = ["interval", "sampled"];

impl Profile {
    /// The label of samples whose intervals were sampled.
    pub(super) fn label_of_sampled(&mut self) -> Label {
        let [key, value] = SAMPLED.map(|text| self.names.text(text));
        Label { key, value }
    }

    /// Whether a sample's intervals were sampled.
    #[must_use]
    pub fn is_sampled(&self, sample: &Sample) -> bool {
        let labels = sample.labels.map_or(&[][..], |labels| &self.labels[labels]);
        let texts = |label: &Label| [label.key, label.value].map(|name| &*self.names[name]);
        labels.iter().any(|label| texts(label) == SAMPLED)
    }
}

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
    /// Who ended the wait, where that is known.
    pub wakers: Option<Id<Wakers>>,
    /// What else is said of it, if anything is.
    pub labels: Option<Id<Labels>>,
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
