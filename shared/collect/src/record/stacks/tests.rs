use super::*;
use crate::record::stacks::WalkEnd;

#[test]
fn without_room_others_are_missed_until_ids_are_forgotten() {
    let mut stacks = Stacks::new();
    stacks.keep(10, vec![Location::Unknown], None, None);
    stacks.most_frames = stacks.tree.len() + 2 * FRAMES_OF_A_STACK;
    stacks.keep(11, vec![Location::Vdso { offset: 8 }], None, None);
    let is_there = |stacks: &Stacks| matches!(stacks.captured(10), Some(Captured::Stack(_)));
    assert!(is_there(&stacks));
    assert_eq!(
        [11, 12].map(|id| stacks.captured(id)),
        [Some(Captured::Missed); 2]
    );
    stacks.forget(&HashSet::new());
    assert!(is_there(&stacks));
    assert_eq!(stacks.captured(11), None);
}

#[test]
fn a_process_that_floods_the_stacks_leaves_room_for_others() {
    let mut stacks = Stacks::new();
    stacks.most_frames = 10_000;
    let mut add = |pid, id| {
        let code = vec![Location::Vdso { offset: id }];
        stacks.keep(id, code, None, Some(Process { pid, instance: 1 }));
        stacks.captured(id).is_some()
    };
    let kept = (100..).find(|&id| !add(1, id)).unwrap_or_default() - 100;
    // Each stack takes a frame and an ID. The root of the tree belongs to no process.
    assert_eq!(kept, (7_500 - 1) / (1 + FRAMES_OF_A_STACK as u64));
    assert!((1_000_000..1_000_100).all(|id| add(2, id)));
    assert!(!add(1, 2_000_000));
    assert!(stacks.has_refused());
}

#[test]
fn walks_that_ended_in_other_ways_are_others() {
    let mut stacks = Stacks::new();
    let code = Location::Vdso { offset: 8 };
    let ends = [WalkEnd::Root, WalkEnd::NoRule];
    let outcomes = ends.map(|end| {
        let by_frame_pointer = false;
        Some(Outcome {
            end,
            by_frame_pointer,
        })
    });
    for (id, outcome) in (10..).zip([None, outcomes[0], outcomes[1], outcomes[0]]) {
        stacks.keep(id, vec![code], outcome, None);
    }
    assert_eq!((stacks.count(), stacks.tree.len()), (3, 2));
    assert_ne!(stacks.captured(10), stacks.captured(11));
    assert_eq!(stacks.captured(11), stacks.captured(13));
}

#[test]
fn processes_that_there_is_no_room_for_are_counted() {
    let mut stacks = Stacks::with_detail(Detail::Addresses, Sources::None);
    for pid in 0..=1 << 16 {
        assert_eq!(stacks.undescribed(), 0);
        let event = ProcessEvent {
            pid,
            ..ProcessEvent::default()
        };
        stacks.add_process_event(&event, b"true\0");
    }
    assert_eq!(stacks.undescribed(), 1);
}

#[test]
fn ids_are_used_until_the_program_ends_and_by_nobody_if_they_come_but_once() {
    let mut stacks = Stacks::new();
    let ours = std::process::id();
    let owner = |pid| Some(Process { pid, instance: 1 });
    let owners = [owner(ours), owner(ours), owner(u32::MAX), None];
    for (id, owner) in (10..).zip(owners) {
        stacks.keep(id, vec![Location::Unknown], None, owner);
    }
    let Some(living) = Living::read() else {
        unreachable!("/proc is there")
    };
    let unused: HashSet<u64> = stacks.unused(&living).collect();
    assert_eq!(unused, HashSet::from([12, 13]));
}

#[test]
fn of_a_walk_that_strays_one_address_is_kept() {
    let code = Location::Vdso { offset: 0 };
    let stray = Location::Unknown;
    for (walked, kept) in [
        (
            vec![code, stray, code, stray, stray],
            vec![code, stray, code, stray],
        ),
        (vec![code, stray, code], vec![code, stray, code]),
        (vec![stray, stray], vec![stray]),
        (vec![], vec![]),
    ] {
        let mut locations = walked;
        drop_strays(&mut locations);
        assert_eq!(locations, kept);
    }
}
