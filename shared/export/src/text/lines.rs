//! Folded lines in order, without holding the text of all lines at once.
//!
//! A line is a thread, its callers and a tail. Callers are the texts of its user frames; a user
//! leaf without kernel frames above it belongs to the tail. Threads, frames and tails are few, and
//! lines share their callers, so each line takes a few numbers. The order of lines is the order of
//! their texts.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use profile::folded::{DELIMITER, WAKER_DELIMITER, state_suffix};
use profile::{
    Id, Name, Profile, Sample, StackId, StackOrder, StackTree, Stacks, State, Table, ThreadId,
    Translation, Wait, Wakers, marker,
};

use super::frames::{FrameNames, reason_frame, thread_field, wakers};
use super::options::Options;

type Text = Id<Box<str>>;

/// A line: a thread, the callers and the tail.
#[derive(Clone, Copy)]
struct Line {
    thread: Text,
    callers: StackId,
    tail: Text,
    sum: u64,
}

/// Key of a tail's text. `leaf` is the last user frame if no kernel frame follows it. `has_user` is
/// set if there are user frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Tail {
    leaf: Option<Text>,
    kernel: StackId,
    has_user: bool,
    state: Option<State>,
    wakers: Option<Id<Wakers>>,
    /// The wait, where reasons are written.
    wait: Option<Id<Wait>>,
}

/// States and waits of leaves, by the texts of the leaves.
pub(crate) type Leaves = HashMap<String, (State, Option<Wait>)>;

/// Ordered lines. Each text is stored once.
pub(crate) struct Lines {
    texts: Table<Box<str>>,
    leaves: Leaves,
    callers: Stacks<Text>,
    lines: Vec<Line>,
}

impl Lines {
    /// Builds the lines of these samples with their sums.
    pub(crate) fn new(
        profile: &Profile,
        samples: impl IntoIterator<Item = (Sample, u64)>,
        options: &Options,
    ) -> Lines {
        let mut builder = Builder::new(profile, options);
        let samples = samples.into_iter();
        let lines = samples.map(|(sample, value)| builder.line(&sample, value));
        let lines = lines.collect();
        let mut lines = builder.lines(lines);
        lines.sort();
        lines
    }

    fn sort(&mut self) {
        let order = Order::new(&self.texts, &self.callers);
        let compare = |one: &Line, other: &Line| order.compare(one, other);
        self.lines.sort_unstable_by(compare);
        self.lines.dedup_by(|line, kept| {
            let is_same = compare(line, kept).is_eq();
            // Sample values can be any number, so sums saturate.
            kept.sum = (kept.sum).saturating_add(if is_same { line.sum } else { 0 });
            is_same
        });
        self.lines.shrink_to_fit();
    }

    /// Returns the leaves of samples that have a state, by their texts.
    pub(crate) fn leaves(&self) -> &Leaves {
        &self.leaves
    }

    /// Passes every line and its sum to `receive`.
    ///
    /// # Errors
    /// Returns the first error of `receive`.
    pub(crate) fn for_each<E>(
        &self,
        mut receive: impl FnMut(&str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut text = String::new();
        for line in &self.lines {
            text.clear();
            text.push_str(&self.texts[line.thread]);
            for caller in self.callers.root_first(line.callers) {
                text.push(';');
                text.push_str(&self.texts[caller]);
            }
            let tail = &self.texts[line.tail];
            if !tail.is_empty() {
                text.push(';');
                text.push_str(tail);
            }
            receive(&text, line.sum)?;
        }
        Ok(())
    }
}

/// Builder of lines from samples.
struct Builder<'a> {
    profile: &'a Profile,
    options: &'a Options,
    texts: Table<Box<str>>,
    callers: StackTree<Text>,
    threads: HashMap<(Name, Option<ThreadId>), Text>,
    tails: HashMap<Tail, Text>,
    leaves: Leaves,
    names: FrameNames<'a>,
    /// Texts of user frames by their index in the profile. `stacks` translates user stacks.
    frames: Vec<Option<Text>>,
    stacks: Translation,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, options: &'a Options) -> Builder<'a> {
        Builder {
            profile,
            options,
            texts: Table::default(),
            callers: StackTree::default(),
            threads: HashMap::new(),
            tails: HashMap::new(),
            leaves: Leaves::new(),
            names: FrameNames::new(profile, options),
            frames: vec![None; profile.frames.len()],
            stacks: Translation::default(),
        }
    }

    /// Builds the lines with the texts and callers that they refer to.
    fn lines(self, lines: Vec<Line>) -> Lines {
        Lines {
            texts: self.texts,
            leaves: self.leaves,
            callers: self.callers.into_stacks(),
            lines,
        }
    }

    fn line(&mut self, sample: &Sample, value: u64) -> Line {
        let user = self.stack(sample.stack.user);
        let kernel = sample.stack.kernel;
        let (callers, leaf) = match self.callers.node(user) {
            Some((callers, leaf)) if kernel.is_empty() => (callers, Some(leaf)),
            _ => (user, None),
        };
        let tail = Tail {
            leaf,
            kernel,
            has_user: !user.is_empty(),
            state: sample.state,
            wakers: sample.wakers,
            wait: sample.wait.filter(|_| self.options.reasons),
        };
        Line {
            thread: self.thread(sample.comm, sample.thread),
            callers,
            tail: self.tail(tail, sample),
            sum: value,
        }
    }

    fn thread(&mut self, comm: Name, thread: Option<ThreadId>) -> Text {
        let Builder {
            profile,
            options,
            texts,
            ..
        } = self;
        let ids = options.ids();
        let thread = ids.select(thread);
        *self
            .threads
            .entry((comm, thread))
            .or_insert_with(|| texts.text(&thread_field(profile, comm, thread, ids)))
    }

    /// Translates a user stack to a stack of texts.
    fn stack(&mut self, stack: StackId) -> StackId {
        let Builder {
            profile,
            texts,
            callers: tree,
            names,
            frames,
            stacks,
            ..
        } = self;
        stacks.stack(&profile.stacks, stack, |callers, leaf| {
            let known = &mut frames[leaf.index()];
            let text = known.get_or_insert_with(|| texts.text(names.name(leaf)));
            tree.called(callers, *text)
        })
    }

    fn tail(&mut self, tail: Tail, sample: &Sample) -> Text {
        if let Some(&known) = self.tails.get(&tail) {
            return known;
        }
        let options = self.options;
        let mut names: Vec<Cow<'_, str>> = Vec::new();
        names.extend(tail.leaf.map(|leaf| (&*self.texts[leaf]).into()));
        if options.delimited && tail.has_user && !tail.kernel.is_empty() {
            names.push(DELIMITER.into());
        }
        names.extend(self.names.part(tail.kernel).map(Cow::from));
        names.extend(reason_frame(self.profile, sample, options).map(Cow::from));
        if let Some(state) = tail.state {
            if names.is_empty() {
                names.push(marker::NO_STACK.into());
            }
            if let Some(leaf) = names.last_mut() {
                leaf.to_mut().push_str(state_suffix(state));
                let known = self.leaves.entry(leaf.to_string());
                known.or_insert((state, tail.wait.map(|wait| self.profile.waits[wait])));
            }
        }
        for waker in wakers(self.profile, sample) {
            names.push(WAKER_DELIMITER.into());
            let frames = self.names.stack(waker.stack).into_iter();
            names.extend(frames.rev().map(Cow::from));
            let (comm, thread) = (waker.comm, waker.thread);
            names.push(thread_field(self.profile, comm, thread, options.ids()).into());
        }
        let text = names.join(";");
        let text = self.texts.text(&text);
        self.tails.insert(tail, text);
        text
    }
}

/// Order of lines as texts: `a b;c` comes before `a;b`, since a space comes before `;`.
struct Order<'a> {
    texts: &'a Table<Box<str>>,
    callers: &'a Stacks<Text>,
    /// Ranks of texts among all texts: `followed` with a `;` at the end, `places` without.
    followed: Vec<u32>,
    places: Vec<u32>,
    stacks: StackOrder,
}

impl<'a> Order<'a> {
    fn new(texts: &'a Table<Box<str>>, callers: &'a Stacks<Text>) -> Order<'a> {
        let all: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let followed = places(&all, |one, other| {
            let followed = |text: &'a str| text.bytes().chain([b';']);
            followed(one).cmp(followed(other))
        });
        let places = places(&all, |one, other| one.cmp(other));
        let stacks = StackOrder::new(callers, |leaf| followed[leaf.index()]);
        Order {
            texts,
            callers,
            followed,
            places,
            stacks,
        }
    }

    fn compare(&self, one: &Line, other: &Line) -> Ordering {
        let by_thread = if self.is_bare(one) || self.is_bare(other) {
            self.head(one).cmp(self.head(other))
        } else {
            let place = |line: &Line| self.followed[line.thread.index()];
            place(one).cmp(&place(other))
        };
        by_thread.then_with(|| self.compare_paths(one, other))
    }

    /// Returns whether a line has nothing but a thread, without a `;` after it.
    fn is_bare(&self, line: &Line) -> bool {
        line.callers.is_empty() && self.texts[line.tail].is_empty()
    }

    /// Returns the bytes of a line's thread, with the `;` that follows it.
    fn head(&self, line: &Line) -> impl Iterator<Item = u8> {
        let delimiter = (!self.is_bare(line)).then_some(b';');
        self.texts[line.thread].bytes().chain(delimiter)
    }

    fn compare_paths(&self, one: &Line, other: &Line) -> Ordering {
        let first = |line: &Line| self.stacks.place(line.callers);
        let place = |line: &Line| self.places[line.tail.index()];
        if one.callers == other.callers {
            place(one).cmp(&place(other))
        } else if self.stacks.calls(one.callers, other.callers) {
            self.texts[one.tail]
                .as_bytes()
                .iter()
                .copied()
                .cmp(self.rest(one.callers, other))
        } else if self.stacks.calls(other.callers, one.callers) {
            let tail = self.texts[other.tail].as_bytes().iter().copied();
            self.rest(other.callers, one).cmp(tail)
        } else {
            first(one).cmp(&first(other))
        }
    }

    /// Returns the bytes of a line that follow the callers `after`.
    fn rest(&self, after: StackId, line: &Line) -> impl Iterator<Item = u8> {
        let mut pieces = vec![&*self.texts[line.tail]];
        let mut stack = line.callers;
        while let Some((callers, leaf)) = self.callers.node(stack)
            && stack != after
        {
            pieces.push(&self.texts[leaf]);
            stack = callers;
        }
        let pieces = pieces.into_iter().rev().enumerate();
        pieces.flat_map(|(index, piece)| {
            let delimiter = (index > 0).then_some(b';');
            delimiter.into_iter().chain(piece.bytes())
        })
    }
}

/// Returns the rank of each text in an order. No two texts are equal.
fn places<'a>(texts: &[&'a str], compare: impl Fn(&'a str, &'a str) -> Ordering) -> Vec<u32> {
    let mut sorted: Vec<usize> = (0..texts.len()).collect();
    sorted.sort_unstable_by(|&one, &other| compare(texts[one], texts[other]));
    let mut places = vec![0; texts.len()];
    for (place, index) in (0..).zip(sorted) {
        places[index] = place;
    }
    places
}
