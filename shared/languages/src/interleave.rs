//! Where an interpreter's frames belong between native ones.
//!
//! An interpreter leaves something on the native stack where it was entered: an
//! anchor. The native frame that has it among its bytes is the function that
//! runs the frames up to there, and they stand in its place.

/// One entry of an interpreter's chain of frames, leaf first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link<F> {
    /// A frame of the language.
    Frame(F),
    /// The frames since the last anchor are run by the native frame that has
    /// this address on its stack.
    Anchor(u64),
}

/// One frame of a stack made of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixed<F> {
    /// The native frame of this index, leaf first.
    Native(usize),
    /// A frame of the language.
    Frame(F),
    /// Here (towards the root from what stands before) frames of the language
    /// may be missing or misplaced: the native walk ended before the frame that
    /// runs those that follow was reached.
    Unanchored,
}

/// Puts the frames of `chain` between `natives` native frames, leaf first.
///
/// `leaf_sp` is the stack pointer at the leaf, and `cfas[i]` that of native frame
/// `i`'s caller. The last frames of a walk may have none. Frame `i` has the
/// addresses from `cfas[i - 1]`, for the leaf from `leaf_sp`, up to `cfas[i]`;
/// if `reached_root`, then the last frame has all that are above.
///
/// The frames up to an anchor replace the native frame that the anchor is in.
/// With `shows_native` it stays, as what called them. An anchor without frames
/// replaces nothing.
///
/// What cannot be placed so keeps its order all the same:
///
/// - Frames whose anchor is in no native frame, or not above the last one that
///   is, wait for the next one that is, and stand before its own, after
///   [`Mixed::Unanchored`]. If there is none they stand after all native frames.
/// - Frames that no anchor follows are those of a chain that could not be read to
///   its end. They are callers of the frames placed last, and stand next to these,
///   towards the root, before native frames that they may have been called by or
///   have called. If nothing was placed they stand after all native frames, after
///   [`Mixed::Unanchored`].
pub fn interleave<F: Copy>(
    leaf_sp: u64,
    cfas: &[u64],
    natives: usize,
    reached_root: bool,
    chain: &[Link<F>],
    shows_native: bool,
) -> Vec<Mixed<F>> {
    let stack = Stack {
        leaf_sp,
        cfas,
        natives,
        reached_root,
    };
    // What stands in the place of each native frame, or before it.
    let mut places: Vec<Vec<Mixed<F>>> = (0..natives).map(|_| Vec::new()).collect();
    let mut last: Option<(usize, u64)> = None;
    let mut waiting = Vec::new();
    let mut segment = Vec::new();
    for link in chain {
        let address = match *link {
            Link::Frame(frame) => {
                segment.push(Mixed::Frame(frame));
                continue;
            }
            Link::Anchor(address) => address,
        };
        if segment.is_empty() {
            continue;
        }
        let ascends = last.is_none_or(|(_, before)| address > before);
        let from = last.map_or(0, |(index, _)| index);
        let index = stack.frame_of(address, from).filter(|_| ascends);
        let Some((index, place)) = index.and_then(|i| Some((i, places.get_mut(i)?))) else {
            waiting.append(&mut segment);
            continue;
        };
        if !waiting.is_empty() {
            place.push(Mixed::Unanchored);
            place.append(&mut waiting);
        }
        place.append(&mut segment);
        last = Some((index, address));
    }
    // A chain that was cut short goes on where it was last seen.
    let cut_at = last.map(|(index, _)| index).filter(|_| waiting.is_empty());
    let mut mixed = Vec::with_capacity(natives + chain.len());
    for (index, place) in places.into_iter().enumerate() {
        let is_shown = place.is_empty() || shows_native;
        mixed.extend(place);
        mixed.extend(is_shown.then_some(Mixed::Native(index)));
        if cut_at == Some(index) {
            mixed.append(&mut segment);
        }
    }
    waiting.append(&mut segment);
    if !waiting.is_empty() {
        mixed.push(Mixed::Unanchored);
        mixed.append(&mut waiting);
    }
    mixed
}

/// The same of frames that leave no anchors, but of which each is run by a native frame
/// of its own, one that `runs_one`. If both are whole (`are_whole`) and not as many,
/// they cannot be told from each other, and there is none. Else they are paired from the leaf
/// on; frames that are left over follow after [`Mixed::Unanchored`].
pub fn interleave_each<F: Copy>(
    natives: usize,
    runs_one: impl Fn(usize) -> bool,
    are_whole: bool,
    chain: &[Link<F>],
    shows_native: bool,
) -> Option<Vec<Mixed<F>>> {
    let mut frames = chain.iter().filter_map(|link| match link {
        Link::Frame(frame) => Some(Mixed::Frame(*frame)),
        Link::Anchor(_) => None,
    });
    let mut mixed = Vec::with_capacity(natives);
    for index in 0..natives {
        let frame = runs_one(index).then(|| frames.next());
        if are_whole && matches!(frame, Some(None)) {
            return None;
        }
        let frame = frame.flatten();
        let is_shown = frame.is_none() || shows_native;
        mixed.extend(frame);
        mixed.extend(is_shown.then_some(Mixed::Native(index)));
    }
    let rest: Vec<_> = frames.collect();
    if !rest.is_empty() {
        mixed.push(Mixed::Unanchored);
        mixed.extend(&rest);
    }
    (rest.is_empty() || !are_whole).then_some(mixed)
}

/// The native frames' places.
struct Stack<'a> {
    leaf_sp: u64,
    cfas: &'a [u64],
    natives: usize,
    reached_root: bool,
}

impl Stack<'_> {
    /// The first frame, not before `from`, that has `address` among its bytes.
    /// Stacks may be switched on the way: frames are not in order of address.
    fn frame_of(&self, address: u64, from: usize) -> Option<usize> {
        let mut low = match from.checked_sub(1) {
            None => self.leaf_sp,
            Some(before) => *self.cfas.get(before)?,
        };
        for index in from..self.natives {
            let Some(&high) = self.cfas.get(index) else {
                let is_root = self.reached_root && index + 1 == self.natives;
                return (is_root && address >= low).then_some(index);
            };
            if (low..high).contains(&address) {
                return Some(index);
            }
            low = high;
        }
        None
    }
}

#[cfg(test)]
mod tests;
