//! The profile: weighted stacks, the waits of threads, and the clocks of threads.
//!
//! All measurements of the suite pass through [`Profile`]. The tools produce profiles, the `export`
//! crate writes them, and [`folded`] reads folded text into one. [`merge`] joins the profiles that
//! two tools made of the same threads in the same window. Times are in nanoseconds; only printing
//! divides.
//!
//! A profile is plain data in tables. Rows refer to each other by number: a sample to its
//! stack, a stack to its frames, a frame to its name. Each distinct row is stored once.

pub mod diff;
pub mod folded;
mod import;
pub mod join;
pub mod marker;
pub mod merge;
mod model;
mod name_order;
pub mod spans;
mod tables;
pub mod text;

pub use import::Import;
pub use model::{
    Bursts, Clock, Detail, Disagreement, EndedBy, Ending, Frame, FrameKind, Function, Futex,
    Holder, Idleness, Interval, Label, Labels, LanguageName, LastNames, Lengths, Losses, Meta,
    Module, ModuleKind, Peer, Process, Protocol, Rate, Reason, RequestSpan, RequestSpans, Resource,
    Sample, Sampling, Shares, Side, Socket, Stack, State, Thread, ThreadChange, ThreadEvent,
    ThreadId, TimedSample, Times, Transport, Unit, Wait, WaitKind, Waker, Wakers, WalkEnds, Weight,
    Window,
};
pub use name_order::NameOrder;
pub use tables::{Id, RowMap, StackId, StackOrder, StackTree, Stacks, Table, Translation};
pub use text::Text;

/// The number of a text in the profile's table of names.
pub type Name = Id<Text>;

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Circumstances of the measurement: tool, machine, window, targets.
    pub meta: Meta,
    /// Unit of the weights.
    pub unit: Unit,
    /// Numbers of events, stacks and threads that the tool lost.
    pub losses: Losses,
    /// Numbers of user stacks by how their unwind ended.
    pub walk_ends: WalkEnds,
    /// Every text, safe to print.
    pub names: Table<Text>,
    /// Sources of code: files, the kernel, generated code.
    pub modules: Table<Module>,
    /// Every function that has a symbol.
    pub functions: Table<Function>,
    /// Every frame.
    pub frames: Table<Frame>,
    /// Every stack, user stacks and kernel stacks.
    pub stacks: StackTree<Id<Frame>>,
    /// Every chain of wakers.
    pub wakers: Table<Wakers>,
    /// Every resource that threads waited on.
    pub resources: Table<Resource>,
    /// Every wait.
    pub waits: Table<Wait>,
    /// Every set of labels.
    pub labels: Table<Labels>,
    /// Every sample with its weight.
    pub samples: RowMap<Sample, Weight>,
    /// Accounts of all threads, if a thread clock ran.
    pub threads: Vec<Thread>,
    /// Processes of samples and threads that the tool examined.
    pub processes: Vec<Process>,
    /// Timeline; empty if none was recorded.
    pub times: Times,
}

impl Profile {
    /// Returns an empty profile.
    #[must_use]
    pub fn new(unit: Unit) -> Profile {
        Profile {
            meta: Meta::default(),
            unit,
            losses: Losses::default(),
            walk_ends: WalkEnds::default(),
            names: Table::default(),
            modules: Table::default(),
            functions: Table::default(),
            frames: Table::default(),
            stacks: StackTree::default(),
            wakers: Table::default(),
            resources: Table::default(),
            waits: Table::default(),
            labels: Table::default(),
            samples: RowMap::default(),
            threads: Vec::new(),
            processes: Vec::new(),
            times: Times::default(),
        }
    }

    /// Adds a weight to a sample and returns the sample's number. Equal samples become one.
    pub fn add(&mut self, sample: Sample, weight: Weight) -> Id<Sample> {
        self.samples.add(sample, weight)
    }

    /// Replaces each sample by the result of `new`. If the result is `None`, removes the sample and
    /// the rows of time that refer to it. Equal samples become one. Returns the new number of each
    /// sample, in the order of the old numbers.
    pub fn replace_samples(
        &mut self,
        mut new: impl FnMut(&mut Profile, &Sample) -> Option<Sample>,
    ) -> Vec<Option<Id<Sample>>> {
        let mut numbers = Vec::with_capacity(self.samples.len());
        let mut samples = std::mem::take(&mut self.samples);
        samples.replace_keys(|sample| new(self, sample), |number| numbers.push(number));
        self.samples = samples;
        self.times
            .renumber_samples(|sample| numbers.get(sample.index()).copied().flatten());
        numbers
    }

    /// Returns the frame of this name without a module; adds the frame if it is new.
    pub fn frame(&mut self, name: &str, kind: FrameKind) -> Id<Frame> {
        let name = self.names.text(name);
        self.frames.id(Frame::named(name, kind))
    }

    /// Returns a stack of one frame that is not code, such as the ones in [`marker`].
    pub fn marker(&mut self, name: &str) -> Stack {
        let frame = self.frame(name, FrameKind::Marker);
        Stack {
            user: self.stacks.add([frame]),
            kernel: StackId::EMPTY,
        }
    }

    /// Returns every sample with its value.
    pub fn values(&self) -> impl Iterator<Item = (Sample, u64)> {
        let samples = self.samples.iter();
        samples.map(|(sample, weight)| (*sample, weight.value))
    }

    /// Returns a stack's frames, root first.
    pub fn frames_of(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> {
        let frames = self.stacks.root_first(stack).into_iter();
        frames.map(|frame| &self.frames[frame])
    }

    /// Returns a frame's name.
    #[must_use]
    pub fn name(&self, frame: &Frame) -> &str {
        &self.names[frame.name]
    }
}
