//! Merges the frames of an interpreter with native frames.
//!
//! An interpreter leaves an anchor on the native stack each time it is entered. The native frame
//! that contains the anchor belongs to the function that runs the frames up to the anchor. These
//! frames replace the native frame.

/// Link of an interpreter's chain of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link<F> {
    /// Frame of the language.
    Frame(F),
    /// The native frame that contains this address runs the frames since the last anchor.
    Anchor(u64),
    /// The native frames from the one that contains the first address up to the one that contains
    /// the second run the frames since the last anchor.
    Span(u64, u64),
}

/// Frame of a stack with native frames and frames of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixed<F> {
    /// Native frame with this index, counted from the leaf.
    Native(usize),
    /// Frame of the language.
    Frame(F),
    /// From here towards the root, frames of the language may be missing or misplaced. The native
    /// unwind ended before it reached the native frame that runs the next frames.
    Unanchored,
}

/// Merges the frames of `chain` with `natives` native frames. All are from leaf to root.
///
/// `leaf_sp` is the stack pointer at the leaf. `cfas[i]` is the stack pointer of the caller of
/// native frame `i`. The last frames of an unwind may have no CFA. Frame `i` contains the addresses
/// from `cfas[i - 1]` (for the leaf, from `leaf_sp`) up to `cfas[i]`. If `reached_root` is true,
/// the last frame contains all addresses above.
///
/// The frames up to an anchor replace the native frame that contains the anchor. If `shows_native`
/// is true, the native frame stays as their caller. An anchor without frames replaces nothing.
///
/// The frames up to a span replace all native frames of the span, with or without frames. If the
/// native unwind ended within the span, they replace the native frames from its first address on.
///
/// Some frames have no place. They keep their order:
///
/// - A native frame may be missing for their anchor, or the anchor may not be above the last placed
///   anchor. These frames come before the frames of the next anchor with a place, after
///   [`Mixed::Unanchored`]. If there is no such anchor, they come after all native frames.
/// - Frames without an anchor after them belong to a chain that could not be read to its end. They
///   are callers of the frames placed last, and come next to these frames, towards the root. The
///   native frames after them may be their callers or their callees. If no frame was placed, they
///   come after all native frames, after [`Mixed::Unanchored`].
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
    // Frames that replace each native frame, or come before it.
    let mut places: Vec<Vec<Mixed<F>>> = (0..natives).map(|_| Vec::new()).collect();
    // Native frames that a span replaces.
    let mut replaced = vec![false; natives];
    let mut last: Option<(usize, u64)> = None;
    let mut waiting = Vec::new();
    let mut segment = Vec::new();
    for link in chain {
        let (address, end) = match *link {
            Link::Frame(frame) => {
                segment.push(Mixed::Frame(frame));
                continue;
            }
            Link::Anchor(address) => (address, None),
            Link::Span(first, last) => (first, Some(last)),
        };
        if segment.is_empty() && end.is_none() {
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
        if let Some(end) = end.filter(|end| *end >= address) {
            let until = stack.frame_of(end, index).unwrap_or(natives - 1);
            replaced[index..=until].fill(true);
            last = Some((until, end));
        }
    }
    // The rest of a truncated chain follows the last frame with a place.
    let cut_at = last.map(|(index, _)| index).filter(|_| waiting.is_empty());
    let mut mixed = Vec::with_capacity(natives + chain.len());
    for (index, place) in places.into_iter().enumerate() {
        let is_shown = place.is_empty() && !replaced[index] || shows_native;
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

/// Merges frames without anchors, of which a native frame runs each. `runs_one` returns whether a
/// native frame with this index runs a frame.
///
/// Pairs native frames with frames, from leaf to root. Surplus frames follow after
/// [`Mixed::Unanchored`]. If both stacks are whole (`are_whole`) and the numbers differ, the pairs
/// are unknown and the result is `None`.
pub fn interleave_each<F: Copy>(
    natives: usize,
    runs_one: impl Fn(usize) -> bool,
    are_whole: bool,
    chain: &[Link<F>],
    shows_native: bool,
) -> Option<Vec<Mixed<F>>> {
    let mut frames = chain.iter().filter_map(|link| match link {
        Link::Frame(frame) => Some(Mixed::Frame(*frame)),
        Link::Anchor(_) | Link::Span(..) => None,
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

/// Addresses that native frames contain.
struct Stack<'a> {
    leaf_sp: u64,
    cfas: &'a [u64],
    natives: usize,
    reached_root: bool,
}

impl Stack<'_> {
    /// Returns the first frame from index `from` on that contains `address`. A thread may switch
    /// stacks, so frames are not in order of addresses.
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

pub mod activations;

#[cfg(test)]
mod tests;
