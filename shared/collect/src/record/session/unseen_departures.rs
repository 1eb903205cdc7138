//! Threads that left a CPU without an event.
//!
//! Programs settle the threads that iterators visit at the window's end
//! (`settle_unseen_departure()` of `include/stacks/stack_edges.h`). Some virtual machines also hide
//! threads from iterators. For these threads user space reads the scheduler's account of their
//! running time in `/proc`.

use std::fs;

use bpf::types::{STACK_MISSED, STACK_NONE, Thread, ThreadState};

/// Maximum lag of the scheduler's account, in ns. The kernel updates the account at each tick, at
/// least 100 times a second.
const LAG_NS: u64 = 20_000_000;

/// Returns a corrected record, if the record says that the thread runs at `stop`, but the thread
/// has slept since before `stop`. Returns `None` for other threads.
pub(super) fn settle(mut thread: Thread, stop: u64) -> Option<Thread> {
    let is_long = stop.saturating_sub(thread.since()) > LAG_NS;
    if thread.state() != ThreadState::Running || !is_long {
        return None;
    }
    let ran = ran_by_sleeper(thread.pid, thread.tid)
        .and_then(|ran_ns| ran_ns.checked_sub(thread.ran_before));
    let time = ran.and_then(|ran| departure(&thread, ran, stop))?;
    depart(&mut thread, time);
    Some(thread)
}

/// Returns the time at which a thread left its CPU, in ns of CLOCK_MONOTONIC. The thread got the
/// CPU at the time in its record, ran for `ran` ns, and sleeps now. Returns `None` if the result is
/// not more than [`LAG_NS`] before `stop`, because `ran` may lag behind.
fn departure(thread: &Thread, ran: u64, stop: u64) -> Option<u64> {
    let time = thread.since().saturating_add(ran);
    (time.saturating_add(LAG_NS) < stop).then_some(time)
}

/// Moves the record's thread off the CPU at `time`, like `depart_belatedly()` of
/// `include/clock/thread_clock.h`.
fn depart(thread: &mut Thread, time: u64) {
    thread.running += time - thread.since();
    thread.off_since = time;
    thread.off_blocked = 0;
    thread.woken_early = 0;
    thread.user = match thread.instance {
        0 => STACK_NONE,
        _ => STACK_MISSED,
    };
    thread.set_clock(time, ThreadState::Blocked);
}

/// Returns the total running time of a thread, in ns, if the thread sleeps.
fn ran_by_sleeper(pid: u32, tid: u32) -> Option<u64> {
    let read = |name: &str| fs::read(format!("/proc/{pid}/task/{tid}/{name}")).ok();
    // The state is read before the account. If the thread runs in between, the account includes
    // that run.
    sleeps(&read("stat")?).then_some(())?;
    let account = read("schedstat")?;
    let account = String::from_utf8_lossy(&account);
    account.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns whether a thread waits for something other than a CPU. The state is field 3 of
/// proc_pid_stat(5), after the name, which can contain any bytes.
fn sleeps(stat: &[u8]) -> bool {
    let stat = String::from_utf8_lossy(stat);
    let state = stat.rsplit_once(") ").map(|(_, fields)| fields);
    state.is_some_and(|fields| fields.starts_with(['S', 'D', 'I']))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    const SINCE: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn running(pid: u32) -> Thread {
        let mut thread = Thread::default();
        (thread.pid, thread.tid, thread.instance) = (pid, pid, 1);
        thread.clock = SINCE << 2;
        thread
    }

    #[test]
    fn who_sleeps_ran_no_longer_than_the_scheduler_says() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let asleep = |ran: &mut u64| {
            let now = ran_by_sleeper(child.id(), child.id());
            let stands = now == Some(*ran);
            *ran = now.unwrap_or(0);
            stands
        };
        let mut ran = 0;
        while !asleep(&mut ran) {
            sleep(Duration::from_millis(20));
        }
        let mut thread = running(child.id());
        thread.ran_before = ran - 3;
        let stop = SINCE + 500 * MS;
        let thread = settle(thread, stop).unwrap();
        assert_eq!((thread.running, thread.off_since), (3, SINCE + 3));
        assert_eq!(thread.state(), ThreadState::Blocked);
        assert_eq!((thread.since(), thread.user), (SINCE + 3, STACK_MISSED));
        // The record is settled after the first call.
        assert!(settle(thread, stop).is_none());
        assert!(settle(running(child.id()), SINCE + 10 * MS).is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        // A thread that has ended has no account.
        assert!(settle(running(child.id()), stop).is_none());
    }

    #[test]
    fn what_the_account_may_lag_behind_is_no_departure() {
        let (thread, stop) = (running(1), SINCE + 100 * MS);
        assert_eq!(departure(&thread, 80 * MS, stop), None);
        assert_eq!(departure(&thread, u64::MAX, stop), None);
        let left = departure(&thread, 79 * MS, stop);
        assert_eq!(left, Some(SINCE + 79 * MS));
    }

    #[test]
    fn states_are_told_behind_any_name() {
        for (stat, expected) in [
            ("7 (a) R 1) S 1", true),
            ("7 (a) S 1) R 1", false),
            ("7 (a) D 1", true),
            ("7 (a) Z 1", false),
            ("7 (a", false),
        ] {
            assert_eq!(sleeps(stat.as_bytes()), expected, "{stat}");
        }
    }
}
