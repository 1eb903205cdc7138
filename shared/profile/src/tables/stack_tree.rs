//! Tree of stacks. Each stack is a leaf frame and the stack of its callers.
//!
//! Stacks share common callers, and one number identifies a stack of any depth.

use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;
use std::ops::Deref;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Number of a stack in a [`StackTree`], which is the number of its leaf. An `Option` of a number
/// takes no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(NonZeroU32);

impl StackId {
    /// The stack without a frame.
    pub const EMPTY: StackId = StackId(NonZeroU32::MIN);

    /// Returns the place of the stack: 0 for the empty stack. Callers have lower places than
    /// the stacks that they call.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Returns the stack at a place in [`Stacks`].
    fn new(place: u32) -> StackId {
        StackId(NonZeroU32::MIN.saturating_add(place).saturating_add(1))
    }

    /// Returns whether the stack has no frame.
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

/// All stacks of frames of one type: the callers and the leaf of each, except the empty stack.
#[derive(Clone, Debug)]
pub struct Stacks<Frame>(Vec<(StackId, Frame)>);

/// [`Stacks`] to which stacks can be added.
#[derive(Clone, Debug)]
pub struct StackTree<Frame> {
    stacks: Stacks<Frame>,
    /// Places in `stacks`, by callers and leaf.
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
    /// Returns the stack in which `callers` call `leaf`; adds it if it is new.
    pub fn called(&mut self, callers: StackId, leaf: Frame) -> StackId {
        let StackTree {
            stacks: Stacks(nodes),
            places,
            hasher,
        } = self;
        let node = (callers, leaf);
        let is_same = |&place: &u32| nodes[place as usize] == node;
        let hash = |&place: &u32| hasher.hash_one(nodes[place as usize]);
        let entry = places.entry(hasher.hash_one(node), is_same, hash);
        // A tree of 2^32 stacks exceeds the memory limit of profiles.
        let next = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let place = *entry.or_insert(next).get();
        if place == next {
            nodes.push(node);
        }
        StackId::new(place)
    }

    /// Returns the stack in which `callers` call `leaf`, if it exists.
    #[must_use]
    pub fn get(&self, callers: StackId, leaf: Frame) -> Option<StackId> {
        let node = (callers, leaf);
        let hash = self.hasher.hash_one(node);
        let place = self
            .places
            .find(hash, |&place| self.stacks.0[place as usize] == node);
        place.map(|place| StackId::new(*place))
    }

    /// Returns the stack of these frames, root first; adds it if it is new.
    pub fn add(&mut self, frames: impl IntoIterator<Item = Frame>) -> StackId {
        self.extend(StackId::EMPTY, frames)
    }

    /// Returns the stack in which `callers` call the first frame, the first frame the second,
    /// and so on; adds it if it is new.
    pub fn extend(&mut self, callers: StackId, frames: impl IntoIterator<Item = Frame>) -> StackId {
        let frames = frames.into_iter();
        frames.fold(callers, |callers, frame| self.called(callers, frame))
    }

    /// Frees the hash table, which is half of the memory. Call this function when no stack will be
    /// added or looked up by its frames. Afterwards each added stack is new.
    pub fn forget_places(&mut self) {
        self.places = HashTable::new();
    }

    /// Returns the stacks without the hash table, which is half of the memory.
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
    /// Returns a stack's callers and leaf; `None` for the empty stack.
    #[must_use]
    pub fn node(&self, stack: StackId) -> Option<(StackId, Frame)> {
        self.0.get(stack.index().checked_sub(1)?).copied()
    }

    /// Returns a stack's frames, leaf first.
    pub fn leaf_first(&self, stack: StackId) -> impl Iterator<Item = Frame> {
        let mut rest = stack;
        std::iter::from_fn(move || {
            let (callers, leaf) = self.node(rest)?;
            rest = callers;
            Some(leaf)
        })
    }

    /// Returns a stack's frames, root first.
    #[must_use]
    pub fn root_first(&self, stack: StackId) -> Vec<Frame> {
        let mut frames: Vec<Frame> = self.leaf_first(stack).collect();
        frames.reverse();
        frames
    }

    /// Returns all stacks except the empty one, each with its callers and its leaf. Callers
    /// come before the stacks that they call.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (StackId, Frame)> + ExactSizeIterator {
        self.0.iter().copied()
    }

    /// Returns the IDs of all stacks in the same order, the empty one first.
    pub fn ids(&self) -> impl Iterator<Item = StackId> + use<Frame> {
        let number = |index| u32::try_from(index).unwrap_or(u32::MAX);
        (0..number(self.len())).map(|index| StackId(NonZeroU32::MIN.saturating_add(index)))
    }

    /// Returns the number of stacks, the empty one included.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.0.len() + 1
    }
}

/// Places of stacks in an order in which each stack precedes the stacks that it calls.
#[derive(Clone, Debug)]
pub struct StackOrder {
    first: Vec<u32>,
    /// Places of the last stacks that each stack calls.
    last: Vec<u32>,
}

impl StackOrder {
    /// Orders the stacks with the same callers by `key` of their leaves.
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
        // Callers come first, so they have their places already. The stacks that one stack
        // calls are adjacent: each follows the whole subtree of the one before.
        last[0] -= 1;
        let (mut parent, mut next) = (StackId::EMPTY, 1);
        for stack in ordered {
            let Some((callers, _)) = stacks.node(stack) else {
                continue;
            };
            if callers != parent {
                (parent, next) = (callers, first[callers.index()] + 1);
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

    /// Returns whether `callers` are callers of `stack`, or the same stack.
    #[must_use]
    pub fn calls(&self, callers: StackId, stack: StackId) -> bool {
        let callers = callers.index();
        (self.first[callers]..=self.last[callers]).contains(&self.place(stack))
    }
}

/// Stacks of one tree by the stacks of another tree, as far as they were translated.
#[derive(Clone, Debug, Default)]
pub struct Translation(Vec<Option<StackId>>);

impl Translation {
    /// Returns the translation of a stack, if it is known.
    #[must_use]
    pub fn get(&self, stack: StackId) -> Option<StackId> {
        self.0.get(stack.index()).copied().flatten()
    }

    /// Stores the translation of a stack.
    pub fn put(&mut self, stack: StackId, translation: StackId) {
        if self.0.len() <= stack.index() {
            self.0.resize(stack.index() + 1, None);
        }
        self.0[stack.index()] = Some(translation);
    }

    /// Translates a stack of `tree`, and stores the results. `called` returns the stack of the
    /// other tree in which a stack calls a frame.
    pub fn stack<Frame: Copy + Eq + Hash>(
        &mut self,
        tree: &StackTree<Frame>,
        stack: StackId,
        mut called: impl FnMut(StackId, Frame) -> StackId,
    ) -> StackId {
        // The loop goes up to the first callers with a known translation, then down to the
        // leaf.
        let mut rest = stack;
        let mut leaves = Vec::new();
        let mut translation = loop {
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
            translation = called(translation, leaf);
            self.put(stack, translation);
        }
        translation
    }
}
