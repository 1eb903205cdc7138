use super::*;
use crate::stacks::WalkEnd;

#[test]
fn frames_of_two_stacks_that_are_the_same_are_kept_once() {
    let mut stacks = Stacks::new();
    for id in [10, 11] {
        let walked = vec![Location::Vdso { offset: 8 }; 20];
        stacks.keep(id, walked, None, None);
    }
    assert_eq!((stacks.count(), stacks.tree.len()), (1, 21));
    assert_eq!(stacks.captured(10), stacks.captured(11));
    assert_eq!(stacks.captured(12), None);
}

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
fn a_stack_has_room_if_its_new_frames_have() {
    let code = Location::Vdso { offset: 8 };
    let mut stacks = Stacks::new();
    stacks.keep(10, vec![code; 20], None, None);
    // The leaf is new.
    let mut called = vec![code; 20];
    called.insert(0, Location::Unknown);
    stacks.most_frames = stacks.tree.len() + 2 * FRAMES_OF_A_STACK + 1;
    stacks.keep(11, called, None, None);
    assert!(matches!(stacks.captured(11), Some(Captured::Stack(_))));
    // All are new, and there is room for one less.
    stacks.most_frames = stacks.tree.len() + 3 * FRAMES_OF_A_STACK + 2;
    stacks.keep(12, vec![Location::Unknown; 3], None, None);
    assert_eq!(stacks.captured(12), Some(Captured::Missed));
}

#[test]
fn ids_are_forgotten_once_no_more_come() {
    let mut stacks = Stacks::new();
    stacks.keep(10, vec![Location::Unknown], None, None);
    stacks.are_all_there();
    assert_eq!(stacks.captured(10), None);
    assert_eq!((stacks.count(), stacks.tree.len()), (1, 2));
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
fn every_way_in_which_walks_end_is_counted_apart() {
    let mut stacks = Stacks::new();
    let ends = [
        WalkEnd::Root,
        WalkEnd::NoMapping,
        WalkEnd::ReadFailed,
        WalkEnd::TooDeep,
        WalkEnd::NoRule,
    ];
    let outcomes = ends.into_iter().flat_map(|end| {
        [false, true].map(|by_frame_pointer| Outcome {
            end,
            by_frame_pointer,
        })
    });
    for (id, outcome) in (10..).zip(outcomes.map(Some).chain([None])) {
        stacks.keep(id, vec![Location::Unknown], outcome, None);
    }
    assert_eq!(stacks.count(), 11);
}

#[test]
fn processes_are_told_of_where_addresses_are() {
    let event = ProcessEvent {
        pid: 10_000_000,
        ..ProcessEvent::default()
    };
    for (detail, told) in [(Detail::Addresses, &["true"][..]), (Detail::Names, &[])] {
        let mut stacks = Stacks::with_detail(detail, Sources::None);
        stacks.tell(&event, b"true\0");
        let processes = stacks.processes(&BTreeSet::from([event.pid]), &BTreeSet::new());
        let words = processes
            .iter()
            .flat_map(|process| &process.command_line)
            .collect::<Vec<_>>();
        assert_eq!(words, told, "{detail:?}");
    }
}

#[test]
fn processes_that_there_is_no_room_for_are_counted() {
    let mut stacks = Stacks::with_detail(Detail::Addresses, Sources::None);
    for pid in 0..=1 << 16 {
        assert_eq!(stacks.note(), None);
        let event = ProcessEvent {
            pid,
            ..ProcessEvent::default()
        };
        stacks.tell(&event, b"true\0");
    }
    let note = stacks.note().unwrap_or_default();
    assert!(
        note.starts_with("1 processes more than are described"),
        "{note}"
    );
}

#[test]
fn a_process_is_looked_at_where_addresses_are_asked_for() {
    for (detail, is_known) in [(Detail::Addresses, true), (Detail::Names, false)] {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("1000").spawn().unwrap();
        let event = StackEvent {
            hash: 10,
            pid: child.id(),
            instance: 1,
            ..StackEvent::default()
        };
        let mut stacks = Stacks::with_detail(detail, Sources::None);
        stacks.add(&event, &[]);
        child.kill().unwrap();
        child.wait().unwrap();
        let processes = stacks.processes(&BTreeSet::from([event.pid]), &BTreeSet::new());
        assert_eq!(!processes.is_empty(), is_known, "{detail:?}");
    }
}

#[test]
fn an_interpreter_is_missed_where_it_was_asked_for() {
    for (languages, missed) in [
        (Languages::Known, 0),
        (Languages::Python, 1),
        (Languages::None, 0),
    ] {
        let mut stacks = Stacks::new();
        stacks.are_walked(&Walking {
            languages,
            ..Walking::default()
        });
        let notes = stacks.python_notes();
        let says = |note: &&String| note.contains("no process that was measured has a Python");
        assert_eq!(notes.iter().filter(says).count(), missed, "{languages:?}");
        assert_eq!(notes.len(), missed, "{notes:?}");
    }
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
