use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use symbolize::Sources;

use super::*;
use crate::{Detail, Walking};

const RUNNING: u64 = 0;
const RUNNABLE: u64 = 1;
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
fn a_sleeper_is_charged_up_to_the_end() {
    let mut sleeper = thread(100, BLOCKED, 100, 0);
    let tally = close_at(&mut sleeper, None, 1100);
    let expected = Tally {
        events: 1,
        blocked: 1000,
        runnable: 0,
        longest: 1000,
        shortest: 1000,
        squares: 0,
    };
    assert_eq!(tally, Some(expected));
    assert_eq!(
        (sleeper.blocked, sleeper.runnable, sleeper.running),
        (1000, 0, 0)
    );
}

#[test]
fn a_woken_thread_waits_for_a_cpu_to_the_end() {
    let mut woken = thread(400, RUNNABLE, 100, 300);
    let tally = close_at(&mut woken, None, 1100);
    let expected = Tally {
        events: 1,
        blocked: 300,
        runnable: 700,
        longest: 1000,
        shortest: 1000,
        squares: 0,
    };
    assert_eq!(tally, Some(expected));
    assert_eq!((woken.blocked, woken.runnable), (0, 700));
}

#[test]
fn a_running_thread_has_no_interval_to_count() {
    let mut running = thread(400, RUNNING, 100, 0);
    assert_eq!(close_at(&mut running, None, 1100), None);
    assert_eq!(running.running, 700);
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

fn stacks() -> StackChoice {
    StackChoice {
        user: true,
        kernel: true,
        walking: Walking::default(),
        per_thread: true,
        per_process: true,
        detail: Detail::Names,
        sources: Sources::None,
        objects: false,
        of_anyone: false,
        thread_names: None,
    }
}

/// What a thread's record comes to at 1,100 ns that off the CPU since 100 ns.
fn closed(record: Thread, open: Option<OpenInterval>, stacks: &StackChoice) -> StackKey {
    let charge: Charge<'_, Thread> = Box::new(|_, tally, _| Some((tally, 7)));
    let (_, interval) = close_record(&record, record, open.as_ref(), 1100, stacks, &charge);
    interval.unwrap().0
}

#[test]
fn an_open_interval_is_of_who_was_read_then() {
    let record = Thread {
        pid: 3,
        tid: 4,
        user: 5,
        ..thread(100, BLOCKED, 100, 0)
    };
    let open = |off_since| OpenInterval {
        off_since,
        kernel: 6,
        object: 9,
        task_state: 1,
        ..OpenInterval::default()
    };
    let expected = StackKey {
        pid: 3,
        tid: 4,
        user: 5,
        kernel: 6,
        waker: 7,
        object: 9,
        wait_end: WaitEnd::WAIT_END_NONE.0.into(),
        ..StackKey::default()
    };
    assert_eq!(closed(record, Some(open(100)), &stacks()), expected);
    // It was read in another interval.
    let missed = StackKey {
        kernel: STACK_MISSED,
        object: NO_OBJECT,
        ..expected
    };
    assert_eq!(closed(record, Some(open(99)), &stacks()), missed);
    let none = StackChoice {
        user: false,
        kernel: false,
        per_thread: false,
        ..stacks()
    };
    let unwanted = StackKey {
        tid: 0,
        user: 0,
        kernel: 0,
        ..expected
    };
    assert_eq!(closed(record, Some(open(100)), &none), unwanted);
}

#[test]
fn a_wait_that_lasts_is_none_that_never_began() {
    let end = |running, runnable, end: WaitEnd| {
        let mut record = Thread {
            running,
            runnable,
            ..thread(100, BLOCKED, 100, 0)
        };
        record.work.end = end.0 as _;
        WaitEnd(closed(record, None, &stacks()).wait_end as u32)
    };
    let [none, unknown, quota] = [
        WaitEnd::WAIT_END_NONE,
        WaitEnd::WAIT_END_UNKNOWN,
        WaitEnd::WAIT_END_QUOTA,
    ];
    assert_eq!(end(0, 0, unknown), none);
    assert_eq!(end(0, 0, quota), none);
    for (running, runnable) in [(1, 0), (0, 1), (2, 3)] {
        assert_eq!(end(running, runnable, unknown), unknown);
        assert_eq!(end(running, runnable, quota), quota);
    }
}

#[test]
fn every_thread_has_an_account_in_order() {
    let record = |tid, user| Thread {
        pid: 3,
        tid,
        user,
        instance: 1,
        ..thread(100, BLOCKED, 100, 0)
    };
    let clocks = ThreadClocks {
        threads: vec![
            (10, record(9, STACK_AT_RETURN)),
            (11, record(7, STACK_AT_RETURN)),
            (12, record(8, 5)),
        ],
        open: HashMap::new(),
        unreturned: HashMap::from([(10, 50), (12, 60)]),
        stop: 1100,
    };
    let ended = ThreadEnd {
        thread: Thread {
            started: 40,
            instance: 0,
            comm: [b'k'; COMM_LENGTH],
            ..record(6, 0)
        },
        ended: 90,
        ..ThreadEnd::default()
    };
    let departed = Account::new(&record(5, 0), 80);
    let charge: Charge<'_, Thread> = Box::new(|_, tally, _| Some((tally, 0)));
    let mut added = Vec::new();
    let add = |key: StackKey, tally: &Tally| added.push((key.tid, key.user, tally.blocked));
    let (accounts, left_unseen) = clocks.close(&[ended], vec![departed], &stacks(), &charge, add);
    assert_eq!(left_unseen, 0);
    let told = |account: &Account| {
        (
            account.id().tid,
            account.clock.ended_ns,
            account.clock.blocked_ns,
        )
    };
    let told: Vec<_> = accounts.iter().map(told).collect();
    assert_eq!(
        told,
        [
            (5, 80, 0),
            (6, 90, 0),
            (7, 1100, 1000),
            (8, 1100, 1000),
            (9, 1100, 1000)
        ]
    );
    added.sort_unstable();
    // What is taken when a thread is back was read of one, and of one it was not.
    assert_eq!(
        added,
        [(7, STACK_MISSED, 1000), (8, 5, 1000), (9, 50, 1000)]
    );
    assert_eq!(accounts[1].comm(), &[b'k'; COMM_LENGTH]);
    let kernel: Vec<_> = accounts.iter().map(Account::kernel_thread).collect();
    assert_eq!(kernel, [None, Some(3), None, None, None]);
}

#[test]
fn who_left_a_cpu_out_of_sight_is_counted() {
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let pid = child.id();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while !stat().contains("(sleep) S ") {
        sleep(Duration::from_millis(1));
    }
    let record = |pid, state| Thread {
        pid,
        tid: pid,
        instance: 1,
        ..thread(100, state, 100, 0)
    };
    let clocks = ThreadClocks {
        threads: vec![(10, record(pid, RUNNING)), (11, record(pid, BLOCKED))],
        open: HashMap::new(),
        unreturned: HashMap::new(),
        // It has not run for that long.
        stop: 3_600_000_000_000,
    };
    let charge: Charge<'_, Thread> = Box::new(|_, tally, _| Some((tally, 0)));
    let (_, left_unseen) = clocks.close(&[], Vec::new(), &stacks(), &charge, |_, _| ());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left_unseen, 1);
}

#[test]
fn programs_are_told_which_threads_are_chosen() {
    for (kind, chosen) in [
        (ThreadKind::All, bpf::types::ThreadKind::ALL_THREADS),
        (ThreadKind::User, bpf::types::ThreadKind::USER_THREADS),
        (ThreadKind::Kernel, bpf::types::ThreadKind::KERNEL_THREADS),
    ] {
        assert_eq!(kind.of_programs(), chosen);
    }
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
