//! Merge of an interpreter's frames with native ones.
//!
//! An interpreter leaves a mark on the native stack where it is entered: an anchor. The native
//! frame whose bytes contain the anchor belongs to the function that runs the frames up to the
//! anchor. These frames replace the native frame.

/// Link of an interpreter's chain of frames, leaf first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link<F> {
    /// A frame of the language.
    Frame(F),
    /// The native frame with this address on its stack runs the frames since the last anchor.
    Anchor(u64),
}

/// Frame of a stack that has both kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixed<F> {
    /// The native frame of this index, leaf first.
    Native(usize),
    /// A frame of the language.
    Frame(F),
    /// Frames of the language may be missing or misplaced towards the root from here. The native
    /// unwind ended before it reached the native frame that runs the frames that follow.
    Unanchored,
}

/// Merges the frames of `chain` with `natives` native frames, leaf first.
///
/// `leaf_sp` is the stack pointer at the leaf, and `cfas[i]` the stack pointer of native frame
/// `i`'s caller. The last frames of an unwind may have no CFA. Frame `i` has the addresses from
/// `cfas[i - 1]`, for the leaf from `leaf_sp`, up to `cfas[i]`. If `reached_root`, the last frame
/// has all addresses above.
///
/// The frames up to an anchor replace the native frame that contains the anchor. With
/// `shows_native`, the native frame stays as their caller. An anchor without frames replaces
/// nothing.
///
/// Frames without a place keep their order:
///
/// - If no native frame contains their anchor, or the anchor is not above the last placed one,
///   the frames wait for the next anchor with a place. They stand before the frames of that
///   anchor, after [`Mixed::Unanchored`]. If there is no such anchor, they stand after all native
///   frames.
/// - Frames that no anchor follows belong to a chain that could not be read to its end. They are
///   callers of the frames placed last, and stand next to these, towards the root. The native
///   frames after them may be their callers or their callees. If no frame was placed, they stand
///   after all native frames, after [`Mixed::Unanchored`].
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
    // Frames that replace each native frame, or stand before it.
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
    // The rest of a chain that was cut short follows the last frame with a place.
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

/// Merges frames that leave no anchors, where a native frame runs each of them. `runs_one`
/// returns whether a native frame runs one.
///
/// Frames are paired from the leaf on; the frames left over follow after [`Mixed::Unanchored`].
/// If both stacks are whole (`are_whole`) and the numbers differ, the pairs are unknown and the
/// result is `None`.
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

/// Places of the native frames.
struct Stack<'a> {
    leaf_sp: u64,
    cfas: &'a [u64],
    natives: usize,
    reached_root: bool,
}

impl Stack<'_> {
    /// Returns the first frame, from index `from` on, that contains `address`. Stacks may be
    /// switched on the way, so frames are not in order of address.
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
