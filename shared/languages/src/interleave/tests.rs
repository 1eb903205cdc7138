use proptest::prelude::*;

use super::*;

const LEAF: u64 = 1000;
/// CFAs of four native frames. Their addresses reach up to 1100, 1200 and 1300. The last frame has
/// all addresses above if the unwind reached the root.
const CFAS: [u64; 3] = [1100, 1200, 1300];

use Link::{Anchor, Frame as Python};
use Mixed::{Frame, Native, Unanchored};

/// Merges a whole chain, without and with the native frames that run frames of the language.
fn both(chain: &[Link<u8>]) -> [Vec<Mixed<u8>>; 2] {
    [false, true].map(|shows| interleave(LEAF, &CFAS, 4, true, chain, shows))
}

/// Merges a chain with native frames whose unwind did not reach the root.
fn cut(chain: &[Link<u8>]) -> Vec<Mixed<u8>> {
    interleave(LEAF, &CFAS, 4, false, chain, false)
}

#[test]
fn frames_stand_in_place_of_what_runs_them() {
    let chain = [Python(1), Python(2), Anchor(1100), Python(3), Anchor(1299)];
    let [replaced, shown] = both(&chain);
    let expected = [Native(0), Frame(1), Frame(2), Frame(3), Native(3)];
    assert_eq!(replaced, expected);
    let expected = [
        Native(0),
        Frame(1),
        Frame(2),
        Native(1),
        Frame(3),
        Native(2),
        Native(3),
    ];
    assert_eq!(shown, expected);
    assert_eq!(cut(&chain), replaced);
}

#[test]
fn anchors_that_do_not_ascend_are_in_no_native_frame() {
    for forged in [0, 999, 1040, 1150] {
        let chain = [
            Python(1),
            Anchor(1150),
            Python(2),
            Anchor(forged),
            Python(3),
            Anchor(1250),
        ];
        let expected = [
            Native(0),
            Frame(1),
            Unanchored,
            Frame(2),
            Frame(3),
            Native(3),
        ];
        assert_eq!(both(&chain)[0], expected);
        let expected = [
            Native(0),
            Frame(1),
            Native(2),
            Native(3),
            Unanchored,
            Frame(2),
        ];
        assert_eq!(both(&chain[..4])[0], expected);
    }
    // No native frame is below the leaf.
    assert_eq!(
        both(&[Python(1), Anchor(999)])[0][4..],
        [Unanchored, Frame(1)]
    );
}

#[test]
fn frames_on_a_stack_that_was_switched_to_have_their_places() {
    let cfas = [1100, 90, 200];
    let chain = [Python(1), Anchor(1010), Python(2), Anchor(150)];
    let mixed = interleave(LEAF, &cfas, 4, true, &chain, false);
    // The second anchor is below the first one, so it may be forged.
    let expected = [
        Frame(1),
        Native(1),
        Native(2),
        Native(3),
        Unanchored,
        Frame(2),
    ];
    assert_eq!(mixed, expected);
    let mixed = interleave(LEAF, &cfas, 4, true, &chain[2..], false);
    assert_eq!(mixed, [Native(0), Native(1), Frame(2), Native(3)]);
}

fn links() -> impl Strategy<Value = Vec<Link<u16>>> {
    let address = prop_oneof![900..1500_u64, any::<u64>()];
    let anchor = (
        address,
        prop_oneof![Just(None), (0..400_u64).prop_map(Some)],
    );
    let link = prop_oneof![Just(None), anchor.prop_map(Some)];
    prop::collection::vec(link, 0..40).prop_map(|links| {
        let number = |(index, anchor)| match anchor {
            Some((address, None)) => Anchor(address),
            Some((address, Some(length))) => Link::Span(address, address.wrapping_add(length)),
            None => Python(index as u16),
        };
        links.into_iter().enumerate().map(number).collect()
    })
}

proptest! {
    #[test]
    fn nothing_is_lost_or_out_of_order(
        chain in links(),
        steps in prop::collection::vec(-50..200_i64, 0..12),
        more in 0..3_usize,
        reached_root in any::<bool>(),
        shows_native in any::<bool>(),
    ) {
        let mut sp = LEAF as i64;
        let cfas = steps.iter().map(|step| { sp += step; sp as u64 });
        let cfas: Vec<u64> = cfas.collect();
        let natives = cfas.len() + more;
        let mixed = interleave(LEAF, &cfas, natives, reached_root, &chain, shows_native);

        let frames = chain.iter().filter_map(|link| match link {
            Python(frame) => Some(*frame),
            Anchor(_) | Link::Span(..) => None,
        });
        let shown = mixed.iter().filter_map(|frame| match frame {
            Frame(frame) => Some(*frame),
            _ => None,
        });
        prop_assert!(shown.eq(frames));
        let native = mixed.iter().filter_map(|frame| match frame {
            Native(index) => Some(*index),
            _ => None,
        });
        let native: Vec<usize> = native.collect();
        prop_assert!(native.is_sorted_by(|one, next| one < next));
        prop_assert!(native.iter().all(|index| *index < natives));
        // Each segment may replace one native frame, and the native frames of a span.
        let anchors = chain.iter().filter(|link| matches!(link, Anchor(_))).count();
        let has_spans = chain.iter().any(|link| matches!(link, Link::Span(..)));
        let least = match (shows_native, has_spans) {
            (true, _) => natives,
            (false, true) => 0,
            (false, false) => natives.saturating_sub(anchors),
        };
        prop_assert!(native.len() >= least);
        let ends_so = mixed.last() == Some(&Unanchored);
        prop_assert!(!ends_so && !mixed.windows(2).any(|two| two == [Unanchored; 2]));
    }
}

#[test]
fn frames_of_a_span_replace_its_native_frames() {
    let cfas = [1000, 1100, 1200, 1300, 1400];
    let mixed = |natives: usize, chain: &[Link<u16>]| {
        interleave(LEAF, &cfas[..natives.min(5)], natives, true, chain, false)
    };
    let chain = [Python(1), Python(2), Link::Span(1050, 1250)];
    let [one, two] = [1, 2].map(Frame);
    let placed = [Native(0), one, two, Native(4), Native(5)];
    assert_eq!(mixed(6, &chain), placed);
    // A span without frames replaces its native frames, too.
    let empty = [Link::Span(1050, 1150), Python(1), Link::Span(1250, 1350)];
    assert_eq!(mixed(6, &empty), [Native(0), one, Native(5)]);
    // The native unwind ended within the span, or before it.
    let beyond = [
        Python(1),
        Link::Span(1150, 9000),
        Python(2),
        Link::Span(9100, 9200),
    ];
    let cut = interleave(LEAF, &cfas[..3], 3, false, &beyond, false);
    assert_eq!(cut, [Native(0), Native(1), one, Unanchored, two]);
}

#[test]
fn frames_that_are_run_one_by_one_stand_for_those_that_run_them() {
    let chain = [1, 2].map(Link::Frame);
    let runs_one = |index: usize| index % 2 == 1;
    let each = |natives, are_whole, shows_native| {
        interleave_each(natives, runs_one, are_whole, &chain, shows_native)
    };
    let [one, two] = [1, 2].map(Mixed::Frame);
    let native = Mixed::Native;
    let placed = vec![native(0), one, native(2), two, native(4)];
    assert_eq!(each(5, true, false), Some(placed));
    let shown = vec![native(0), one, native(1), native(2), two, native(3)];
    assert_eq!(each(4, true, true), Some(shown));
    // With one native frame too few or too many, the pairs are unknown.
    assert_eq!((each(3, true, false), each(6, true, false)), (None, None));
    let rest = vec![native(0), one, native(2), Mixed::Unanchored, two];
    assert_eq!(each(3, false, false), Some(rest));
    let more = vec![native(0), one, native(2), two, native(4), native(5)];
    assert_eq!(each(6, false, false), Some(more));
}
