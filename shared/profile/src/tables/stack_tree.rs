//! Stacks as a tree: each is a frame and the stack of its callers.
//!
//! Stacks share what they have in common, and a stack of any depth is one number.

use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;
use std::ops::Deref;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// A stack in a [`StackTree`]: the number of its leaf. An optional one takes no more
/// room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(NonZeroU32);

impl StackId {
    /// The stack without a frame.
    pub const EMPTY: StackId = StackId(NonZeroU32::MIN);

    /// The stack's place: 0 for the one without a frame, and a caller's is less than
    /// that of what it calls.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// That of a place in [`Stacks`].
    fn new(place: u32) -> StackId {
        StackId(NonZeroU32::MIN.saturating_add(place).saturating_add(1))
    }

    /// Whether it has no frame.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == StackId::EMPTY
    }
}

impl Default for StackId {
    fn default() -> Self {
        StackId::EMPTY
    }
}

/// All stacks, of frames of one type: of each but the empty one the callers and the leaf.
#[derive(Clone, Debug)]
pub struct Stacks<Frame>(Vec<(StackId, Frame)>);

/// [`Stacks`] to which more can be added.
#[derive(Clone, Debug)]
pub struct StackTree<Frame> {
    stacks: Stacks<Frame>,
    /// Places in `stacks`, by what is there.
    places: HashTable<u32>,
    hasher: RandomState,
}

impl<Frame> Default for StackTree<Frame> {
    fn default() -> Self {
        StackTree {
            stacks: Stacks(Vec::new()),
            places: HashTable::new(),
            hasher: RandomState::default(),
        }
    }
}

impl<Frame: Copy + Eq + Hash> StackTree<Frame> {
    /// The stack in which `callers` call `leaf`; added if it is new.
    pub fn called(&mut self, callers: StackId, leaf: Frame) -> StackId {
        let StackTree {
            stacks: Stacks(nodes),
            places,
            hasher,
        } = self;
        let node = (callers, leaf);
        let is_it = |&place: &u32| nodes[place as usize] == node;
        let hash = |&place: &u32| hasher.hash_one(nodes[place as usize]);
        let entry = places.entry(hasher.hash_one(node), is_it, hash);
        // A tree of 2^32 stacks has no room in the memory that profiles may take.
        let next = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let place = *entry.or_insert(next).get();
        if place == next {
            nodes.push(node);
        }
        StackId::new(place)
    }

    /// The stack in which `callers` call `leaf`, if it is there.
    #[must_use]
    pub fn get(&self, callers: StackId, leaf: Frame) -> Option<StackId> {
        let node = (callers, leaf);
        let hash = self.hasher.hash_one(node);
        let place = self
            .places
            .find(hash, |&place| self.stacks.0[place as usize] == node);
        place.map(|place| StackId::new(*place))
    }

    /// The stack of these frames, root first; added if it is new.
    pub fn add(&mut self, frames: impl IntoIterator<Item = Frame>) -> StackId {
        self.extend(StackId::EMPTY, frames)
    }

    /// The stack in which `callers` call the first of these frames, and so on; added
    /// if it is new.
    pub fn extend(&mut self, callers: StackId, frames: impl IntoIterator<Item = Frame>) -> StackId {
        let frames = frames.into_iter();
        frames.fold(callers, |callers, frame| self.called(callers, frame))
    }

    /// Frees half of the memory, once no stack is to be added or asked for by its frames any
    /// more: from now on it would be a new one.
    pub fn forget_places(&mut self) {
        self.places = HashTable::new();
    }

    /// The stacks, once none is to be added any more: they take half of the memory then.
    #[must_use]
    pub fn into_stacks(self) -> Stacks<Frame> {
        self.stacks
    }
}

impl<Frame> Deref for StackTree<Frame> {
    type Target = Stacks<Frame>;

    fn deref(&self) -> &Stacks<Frame> {
        &self.stacks
    }
}

impl<Frame: Copy> Stacks<Frame> {
    /// A stack's callers and its leaf; `None` of the empty one.
    #[must_use]
    pub fn node(&self, stack: StackId) -> Option<(StackId, Frame)> {
        self.0.get(stack.index().checked_sub(1)?).copied()
    }

    /// A stack's frames, leaf first.
    pub fn leaf_first(&self, stack: StackId) -> impl Iterator<Item = Frame> {
        let mut rest = stack;
        std::iter::from_fn(move || {
            let (callers, leaf) = self.node(rest)?;
            rest = callers;
            Some(leaf)
        })
    }

    /// A stack's frames, root first.
    #[must_use]
    pub fn root_first(&self, stack: StackId) -> Vec<Frame> {
        let mut frames: Vec<Frame> = self.leaf_first(stack).collect();
        frames.reverse();
        frames
    }

    /// All stacks but the empty one, each with its callers and its leaf; callers come
    /// before what they call.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (StackId, Frame)> + ExactSizeIterator {
        self.0.iter().copied()
    }

    /// The IDs of all stacks, in the same order, the empty one first.
    pub fn ids(&self) -> impl Iterator<Item = StackId> + use<Frame> {
        let number = |index| u32::try_from(index).unwrap_or(u32::MAX);
        (0..number(self.len())).map(|index| StackId(NonZeroU32::MIN.saturating_add(index)))
    }

    /// How many stacks there are, the empty one included.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.0.len() + 1
    }
}

/// The places of stacks when each is followed by those that it calls.
#[derive(Clone, Debug)]
pub struct StackOrder {
    first: Vec<u32>,
    /// The places of the last stacks that are called.
    last: Vec<u32>,
}

impl StackOrder {
    /// Orders the stacks that have the same callers by `key` of their leaves.
    pub fn new<Frame: Copy, Key: Ord>(
        stacks: &Stacks<Frame>,
        key: impl Fn(Frame) -> Key,
    ) -> StackOrder {
        let mut first = vec![0; stacks.len()];
        // `last` first holds the size of each subtree. Callers come before callees, so a pass
        // from the end sees each subtree whole.
        let mut last = vec![1; stacks.len()];
        for (stack, (callers, _)) in (1..last.len()).zip(stacks.nodes()).rev() {
            last[callers.index()] += last[stack];
        }
        let mut ordered: Vec<StackId> = stacks.ids().skip(1).collect();
        ordered.sort_unstable_by_key(|&stack| {
            let node = stacks.node(stack);
            node.map(|(callers, leaf)| (callers, key(leaf)))
        });
        // A caller comes before what it calls, so it has its number by then. What it
        // calls comes together: the next of these is after all of the one before.
        last[0] -= 1;
        let (mut of, mut next) = (StackId::EMPTY, 1);
        for stack in ordered {
            let Some((callers, _)) = stacks.node(stack) else {
                continue;
            };
            if callers != of {
                (of, next) = (callers, first[callers.index()] + 1);
            }
            let (size, stack) = (last[stack.index()], stack.index());
            first[stack] = next;
            next += size;
            last[stack] = next - 1;
        }
        StackOrder { first, last }
    }

    /// Returns a stack's place, counted from 0.
    #[must_use]
    pub fn place(&self, stack: StackId) -> u32 {
        self.first[stack.index()]
    }

    /// Whether `stack` is that of callers of `of`, or the same.
    #[must_use]
    pub fn calls(&self, stack: StackId, of: StackId) -> bool {
        let stack = stack.index();
        (self.first[stack]..=self.last[stack]).contains(&self.place(of))
    }
}

/// What stacks of one tree are in another, as far as that was asked.
#[derive(Clone, Debug, Default)]
pub struct Translation(Vec<Option<StackId>>);

impl Translation {
    /// What a stack is, if that is known.
    #[must_use]
    pub fn get(&self, stack: StackId) -> Option<StackId> {
        self.0.get(stack.index()).copied().flatten()
    }

    /// Says what a stack is.
    pub fn put(&mut self, stack: StackId, is: StackId) {
        if self.0.len() <= stack.index() {
            self.0.resize(stack.index() + 1, None);
        }
        self.0[stack.index()] = Some(is);
    }

    /// What a stack of `tree` is. `called` makes a stack of one of the other tree and of
    /// a frame that it calls.
    pub fn stack<Frame: Copy + Eq + Hash>(
        &mut self,
        tree: &StackTree<Frame>,
        stack: StackId,
        mut called: impl FnMut(StackId, Frame) -> StackId,
    ) -> StackId {
        // From the first callers that are known, to the leaf.
        let mut rest = stack;
        let mut leaves = Vec::new();
        let mut is = loop {
            if let Some(known) = self.get(rest) {
                break known;
            }
            let Some((callers, leaf)) = tree.node(rest) else {
                break StackId::EMPTY;
            };
            leaves.push((rest, leaf));
            rest = callers;
        };
        for (stack, leaf) in leaves.into_iter().rev() {
            is = called(is, leaf);
            self.put(stack, is);
        }
        is
    }
}
