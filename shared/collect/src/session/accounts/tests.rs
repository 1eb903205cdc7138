use super::*;

const BLOCKED: u64 = 2;

fn thread(since: u64, state: u64, off_since: u64, off_blocked: u64) -> Thread {
    Thread {
        clock: since << 2 | state,
        off_since,
        off_blocked,
        ..Thread::default()
    }
}

#[test]
fn nothing_is_added_for_what_began_after_the_end() {
    let mut late = thread(2000, BLOCKED, 2000, 0);
    assert_eq!(close_at(&mut late, None, 1100), None);
    assert_eq!(late.blocked, 0);
}

#[test]
fn an_unseen_wake_up_makes_it_a_wait_for_a_cpu() {
    let mut early = Thread {
        woken_early: 1,
        ..thread(100, BLOCKED, 100, 0)
    };
    assert_eq!(
        close_at(&mut early, None, 200).map(|tally| tally.runnable),
        Some(100)
    );
    let open = OpenInterval::default();
    assert_eq!(open.task_state, 0);
    let mut unseen = thread(100, BLOCKED, 100, 0);
    assert_eq!(
        close_at(&mut unseen, Some(&open), 200).map(|tally| tally.runnable),
        Some(100)
    );
}

#[test]
fn the_filter_takes_both_bounds_and_states_as_bcc_does() {
    let filter = OffCpuFilter {
        kind: ThreadKind::All,
        min_ns: 10,
        max_ns: 20,
        states: None,
    };
    assert!(filter.admits(10, 0) && filter.admits(20, 1));
    assert!(!filter.admits(9, 0) && !filter.admits(21, 0));
    let freezable = 0x2001;
    let masked = OffCpuFilter {
        states: Some(1),
        ..filter
    };
    assert!(masked.admits(10, freezable) && !masked.admits(10, 2));
    let runnable = OffCpuFilter {
        states: Some(0),
        ..filter
    };
    assert!(runnable.admits(10, 0) && !runnable.admits(10, 1));
}
