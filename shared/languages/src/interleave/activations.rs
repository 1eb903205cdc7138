//! Merges the frames of a runtime that leaves no anchors on the native stack. Its chain tells which
//! frames each activation of the interpreting function runs.

use super::{Link, Mixed};

/// Anchor after the frames of one activation: `ANCHOR_ACTIVATION` of
/// `bpf/include/languages/language.h`.
pub const ACTIVATION: u64 = 0;
/// Anchor after the last frame of this native stack: `ANCHOR_OTHER_STACK`. The frames behind it are
/// callers on another native stack, as those of a coroutine.
pub const OTHER_STACK: u64 = 1;

/// Merges the frames of `chain` with `natives` native frames. All are from leaf to root.
///
/// `runs` returns whether a native frame is an activation of the interpreting function. The frames
/// of each activation replace its native frame, or stand before it if `shows_native` is true.
/// `reached_root` is true if the native unwind is whole, and `is_whole` if the chain is.
///
/// If both are whole, they are paired from the root. The numbers may then differ by one, because an
/// activation that begins or ends at the leaf has a frame on one side only. If they differ by more,
/// the pairs are unknown. The frames then come after all native frames, after
/// [`Mixed::Unanchored`]. Otherwise they are paired from the leaf.
pub fn interleave_activations<F: Copy>(
    natives: usize,
    runs: impl Fn(usize) -> bool,
    reached_root: bool,
    is_whole: bool,
    chain: &[Link<F>],
    shows_native: bool,
) -> Vec<Mixed<F>> {
    let switch = |link: &Link<F>| matches!(link, Link::Anchor(OTHER_STACK));
    let switched = chain.iter().position(switch);
    let (own, others) = chain.split_at(switched.unwrap_or(chain.len()));
    let mut segments: Vec<&[Link<F>]> = own
        .split_inclusive(|link| matches!(link, Link::Anchor(_)))
        .collect();
    let activations: Vec<usize> = (0..natives).filter(|&index| runs(index)).collect();
    let ends_whole = is_whole || switched.is_some();
    let frames = |links: &[Link<F>]| {
        let frames = links.iter().filter_map(|link| match link {
            Link::Frame(frame) => Some(Mixed::Frame(*frame)),
            Link::Anchor(_) | Link::Span(..) => None,
        });
        frames.collect::<Vec<_>>()
    };

    // Frames that replace each native frame, and frames that come first and last.
    let mut places: Vec<Vec<Mixed<F>>> = (0..natives).map(|_| Vec::new()).collect();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let mut paired = activations.as_slice();
    if reached_root && ends_whole {
        match (segments.len(), activations.len()) {
            (frames_of, natives_of) if frames_of == natives_of => {}
            (frames_of, natives_of) if frames_of == natives_of + 1 => {
                first = frames(segments.remove(0));
            }
            (frames_of, natives_of) if frames_of + 1 == natives_of => {
                paired = &activations[1..];
            }
            _ => paired = &[],
        }
    }
    let mut rest = segments.iter();
    for (&native, segment) in paired.iter().zip(rest.by_ref()) {
        if let Some(place) = places.get_mut(native) {
            *place = frames(segment);
        }
    }
    for segment in rest {
        if last.is_empty() {
            last.push(Mixed::Unanchored);
        }
        last.extend(frames(segment));
    }
    last.extend(frames(others));

    let mut mixed = first;
    for (index, place) in places.into_iter().enumerate() {
        let is_shown = place.is_empty() || shows_native;
        mixed.extend(place);
        mixed.extend(is_shown.then_some(Mixed::Native(index)));
    }
    mixed.append(&mut last);
    mixed
}

#[cfg(test)]
mod tests {
    use super::Link::{Anchor, Frame as Php};
    use super::Mixed::{Frame, Native, Unanchored};
    use super::*;

    /// Merges with four native frames, of which number 1 and number 3 are activations.
    fn merged(reached_root: bool, is_whole: bool, chain: &[Link<u8>]) -> Vec<Mixed<u8>> {
        let runs = |index| index % 2 == 1;
        interleave_activations(4, runs, reached_root, is_whole, chain, false)
    }

    #[test]
    fn the_frames_of_an_activation_replace_it() {
        let chain = [Php(1), Php(2), Anchor(0), Php(3), Anchor(0)];
        let expected = [Native(0), Frame(1), Frame(2), Native(2), Frame(3)];
        for wholes in [(true, true), (true, false), (false, true), (false, false)] {
            assert_eq!(merged(wholes.0, wholes.1, &chain), expected);
        }
        let shown = interleave_activations(4, |at| at == 1, true, true, &chain[..3], true);
        let natives = [
            Native(0),
            Frame(1),
            Frame(2),
            Native(1),
            Native(2),
            Native(3),
        ];
        assert_eq!(shown, natives);
    }

    #[test]
    fn an_activation_at_the_leaf_may_have_one_side_only() {
        let more = [Php(1), Anchor(0), Php(2), Anchor(0), Php(3), Anchor(0)];
        let expected = [Frame(1), Native(0), Frame(2), Native(2), Frame(3)];
        assert_eq!(merged(true, true, &more), expected);
        let fewer = [Php(1), Anchor(0)];
        let expected = [Native(0), Native(1), Native(2), Frame(1)];
        assert_eq!(merged(true, true, &fewer), expected);
    }

    #[test]
    fn pairs_that_are_unknown_are_not_placed() {
        let chain: Vec<Link<u8>> = (1..5).flat_map(|at| [Php(at), Anchor(0)]).collect();
        let natives = [Native(0), Native(1), Native(2), Native(3), Unanchored];
        let frames = [Frame(1), Frame(2), Frame(3), Frame(4)];
        assert_eq!(merged(true, true, &chain), [&natives[..], &frames].concat());
        // The native unwind ended early.
        let expected = [
            Native(0),
            Frame(1),
            Native(2),
            Frame(2),
            Unanchored,
            Frame(3),
            Frame(4),
        ];
        assert_eq!(merged(false, true, &chain), expected);
        // The chain ended early.
        let cut = [Php(1), Anchor(0), Php(2)];
        let expected = [Native(0), Frame(1), Native(2), Frame(2)];
        assert_eq!(merged(true, false, &cut), expected);
        assert_eq!(
            merged(true, true, &[]),
            [Native(0), Native(1), Native(2), Native(3),][..]
        );
    }

    #[test]
    fn callers_on_another_stack_come_last() {
        let chain = [
            Php(1),
            Anchor(0),
            Php(2),
            Anchor(0),
            Anchor(1),
            Php(3),
            Anchor(0),
        ];
        let expected = [Native(0), Frame(1), Native(2), Frame(2), Frame(3)];
        assert_eq!(merged(true, true, &chain), expected);
    }
}
