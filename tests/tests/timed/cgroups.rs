//! Processes that move into and out of a measured cgroup. Only their time inside counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::output::{assert_close, per_mille};
use systemscope_tests::printed::spans::{Interval, close, watch};
use systemscope_tests::programs::cgroup::Moved;
use systemscope_tests::truth::account::threads_of;
use systemscope_tests::{
    Account, Cgroup, ClockRow, PinnedMap, Running, Seen, Tool, Turn, Watch, Workload, now_ns,
    patiently,
};

/// Stay of a process in a cgroup.
#[derive(Clone, Copy, Debug)]
struct Stay {
    begun: Moved,
    ended: Moved,
}

impl Stay {
    /// Moves processes into a cgroup, sleeps for `time`, and moves them out.
    fn spend(cgroup: &Cgroup, pids: &[u32], time: Duration) -> Vec<Stay> {
        let begun: Vec<Moved> = pids.iter().map(|&pid| cgroup.take(pid)).collect();
        sleep(time);
        let ended = pids.iter().map(|&pid| cgroup.release(pid));
        let stays = begun.into_iter().zip(ended);
        stays.map(|(begun, ended)| Stay { begun, ended }).collect()
    }

    /// Returns the length of the stay. A move takes effect shortly before the system call returns.
    fn length_ns(&self) -> u64 {
        self.ended.to_ns - self.begun.to_ns
    }

    #[track_caller]
    fn assert_is(&self, row: &ClockRow) {
        let Stay { begun, ended } = self;
        assert!(
            (begun.from_ns..=begun.to_ns).contains(&row.started_ns)
                && (ended.from_ns..=ended.to_ns).contains(&row.ended_ns),
            "{self:?}: {row:?}"
        );
        assert_eq!(row.accounted_ns(), row.lifetime_ns(), "{row:?}");
        let length = self.length_ns();
        let tolerance = per_mille(length, 10);
        assert_close("ns inside", row.lifetime_ns(), length, tolerance);
    }
}

fn offcputime_of(cgroup: &Cgroup) -> Watch {
    let tool = Tool::new("offcputime");
    Watch::with_clocks(tool.arg("--cgroup").arg(cgroup.folder()))
}

/// Returns the accounts of a thread, sorted by their start.
fn rows(seen: &Seen, tid: u32) -> Vec<&ClockRow> {
    let mut rows: Vec<_> = seen.clocks.iter().filter(|row| row.tid == tid).collect();
    rows.sort_by_key(|row| row.started_ns);
    rows
}

#[test]
fn only_the_time_inside_counts() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("stays");
        let mut spinners = Workload::start("spinners", &[1, 60]);
        spinners.go();
        let sleeper = Running::asleep();
        let bystander = Running::asleep();
        let pids = [spinners.pid(), sleeper.pid()];
        let mut watch = offcputime_of(&cgroup);
        watch.open();
        sleep(Duration::from_millis(100));
        let first = Stay::spend(&cgroup, &pids, Duration::from_secs(2));
        sleep(Duration::from_millis(300));
        let second = Stay::spend(&cgroup, &pids, Duration::from_secs(1));
        sleep(Duration::from_millis(100));
        let threads = threads_of(spinners.pid());
        let seen = watch.close();

        assert_eq!(threads.len(), 2);
        for (index, tid) in [(0, threads[0]), (0, threads[1]), (1, sleeper.pid())] {
            let rows = rows(&seen, tid);
            assert_eq!(rows.len(), 2, "{:#?}", seen.clocks);
            first[index].assert_is(rows[0]);
            second[index].assert_is(rows[1]);
        }
        assert_eq!(rows(&seen, bystander.pid()).len(), 0);

        // A sleeper that moves has no event, so all of its time is in one stack.
        let slept = rows(&seen, sleeper.pid());
        let inside: u64 = slept.iter().map(|row| row.blocked_ns).sum();
        let folded = seen.folded.of_thread(sleeper.pid());
        assert_eq!(folded.total(), inside, "{folded}");
        assert!(
            folded
                .lines
                .iter()
                .all(|line| line.has("hrtimer_nanosleep") && line.frames.len() > 4),
            "{folded}"
        );
        // The spinner never sleeps.
        let spinner = threads.iter().find(|&&tid| tid != spinners.pid()).unwrap();
        for row in rows(&seen, *spinner) {
            assert!(row.blocked_ns * 100 < row.lifetime_ns(), "{row:?}");
        }
    });
}

#[test]
fn who_is_inside_from_the_start_or_to_the_end_has_that_part() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("edges");
        let (early, late) = (Running::asleep(), Running::asleep());
        cgroup.take(early.pid());
        let mut watch = offcputime_of(&cgroup);
        watch.open();
        sleep(Duration::from_millis(500));
        let left = cgroup.release(early.pid());
        let joined = cgroup.take(late.pid());
        sleep(Duration::from_millis(500));
        let seen = watch.close();
        let [early] = rows(&seen, early.pid())[..] else {
            panic!("{:#?}", seen.clocks)
        };
        let [late] = rows(&seen, late.pid())[..] else {
            panic!("{:#?}", seen.clocks)
        };
        assert_eq!(early.started_ns, seen.started_ns);
        assert!((left.from_ns..=left.to_ns).contains(&early.ended_ns));
        assert!((joined.from_ns..=joined.to_ns).contains(&late.started_ns));
        assert_eq!(late.ended_ns, seen.stopped_ns);
        for row in [early, late] {
            assert_eq!(row.blocked_ns, row.lifetime_ns(), "{row:?}");
        }
    });
}

/// The leader is in the cgroup already when its whole process moves there.
#[test]
fn threads_that_move_to_where_their_leader_is_count_from_then_on() {
    let _turn = Turn::share();
    patiently(|| {
        let processes = Cgroup::new("processes");
        let cgroup = processes.of_threads_inside("inside");
        let outside = processes.of_threads_inside("outside");
        let mut spinners = Workload::start("spinners", &[1, 60]);
        spinners.go();
        let leader = spinners.pid();
        outside.take(leader);
        cgroup.take_thread(leader);
        let mut watch = offcputime_of(&cgroup);
        watch.open();
        sleep(Duration::from_millis(100));
        let begun = cgroup.take(leader);
        sleep(Duration::from_millis(500));
        let left = outside.take_thread(leader);
        sleep(Duration::from_millis(100));
        let ended = outside.take(leader);
        sleep(Duration::from_millis(100));
        let threads = threads_of(leader);
        let seen = watch.close();

        let spinner = threads.iter().find(|&&tid| tid != leader).unwrap();
        let [spinner] = rows(&seen, *spinner)[..] else {
            panic!("{:#?}", seen.clocks)
        };
        Stay { begun, ended }.assert_is(spinner);
        let [leader] = rows(&seen, leader)[..] else {
            panic!("{:#?}", seen.clocks)
        };
        assert_eq!(leader.started_ns, seen.started_ns);
        assert!((left.from_ns..=left.to_ns).contains(&leader.ended_ns));
    });
}

/// A process is killed right after it left. It has no more time than it had inside. A child that is
/// forked inside counts from its birth.
#[test]
fn lives_begin_and_end_inside_and_out() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("lives");
        let leaving = Running::asleep();
        let dying = Running::asleep();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 0.4; sleep 0.1; sleep 1000"]);
        let mut watch = offcputime_of(&cgroup);
        watch.open();
        let joined: Vec<Moved> = [leaving.pid(), dying.pid()]
            .map(|pid| cgroup.take(pid))
            .into();
        let shell = Running::spawn(shell, true);
        let pid = shell.pid();
        cgroup.take(pid);
        sleep(Duration::from_millis(1000));
        let left = cgroup.release(leaving.pid());
        drop(leaving);
        let killed = now_ns();
        drop(dying);
        sleep(Duration::from_millis(200));
        let seen = watch.close();

        let brief = |row: &&ClockRow| {
            let life = row.lifetime_ns() / 1_000_000;
            row.comm == "sleep" && (95..250).contains(&life)
        };
        assert_eq!(seen.clocks.iter().filter(brief).count(), 1);
        let ended = |time: u64| {
            let mut rows = seen.clocks.iter();
            rows.find(|row| row.ended_ns.abs_diff(time) < 50_000_000 && row.comm == "sleep")
                .unwrap_or_else(|| panic!("no thread ended at {time}: {:#?}", seen.clocks))
        };
        let stay = Stay {
            begun: joined[0],
            ended: left,
        };
        stay.assert_is(ended(left.to_ns));
        let row = ended(killed);
        assert_eq!(row.accounted_ns(), row.lifetime_ns());
        // The shell has one account. The processes that it ran and the two sleepers have their own.
        assert!(rows(&seen, pid).len() == 1, "{:#?}", seen.clocks);
        drop(shell);
    });
}

/// Threads sleep, wake and compute while the tool is stopped. One thread ends.
#[test]
#[ignore = "stops a tool for seconds"]
fn a_tool_that_is_late_takes_the_time_from_the_kernel() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("late");
        let mut spinners = Workload::start("spinners", &[1, 60]);
        spinners.go();
        let mut naps = Workload::start("naps", &[60, 5000]);
        naps.go();
        let (sleeper, dying) = (Running::asleep(), Running::asleep());
        let pids = [spinners.pid(), naps.pid(), sleeper.pid(), dying.pid()];
        let mut watch = offcputime_of(&cgroup);
        watch.open();
        let held = || sleep(Duration::from_millis(300));
        watch.signal(Signal::STOP);
        let begun = pids.map(|pid| cgroup.take(pid));
        held();
        watch.signal(Signal::CONT);
        sleep(Duration::from_secs(1));
        watch.signal(Signal::STOP);
        let ended = pids.map(|pid| cgroup.release(pid));
        held();
        drop(dying);
        let threads = threads_of(spinners.pid());
        watch.signal(Signal::CONT);
        let seen = watch.close();

        let stays: Vec<Stay> = (begun.into_iter().zip(ended))
            .map(|(begun, ended)| Stay { begun, ended })
            .collect();
        let of_process = |index: usize| (stays[index], pids[index]);
        let of_spinners = threads.iter().map(|&tid| (stays[0], tid));
        for (stay, tid) in of_spinners.chain([1, 2, 3].map(of_process)) {
            let [row] = rows(&seen, tid)[..] else {
                panic!("{tid}: {:#?}", seen.clocks)
            };
            stay.assert_is(row);
        }
    });
}

/// The thread is asleep when the window opens. It leaves the cgroup, and sleeps in another function
/// after it comes back.
#[test]
fn who_comes_again_has_the_stack_that_it_has_then() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("again");
        let mut naps = Workload::start("naps", &[60, 60_000_000]);
        let pid = naps.pid();
        cgroup.take(pid);
        let mut watch = offcputime_of(&cgroup);
        watch.open();
        sleep(Duration::from_millis(300));
        cgroup.release(pid);
        // After this time the tool has read the thread's stack.
        sleep(Duration::from_millis(100));
        naps.go();
        sleep(Duration::from_millis(100));
        cgroup.take(pid);
        sleep(Duration::from_millis(300));
        let seen = watch.close();
        let [before, after] = rows(&seen, pid)[..] else {
            panic!("{:#?}", seen.clocks)
        };
        let folded = seen.folded.of_thread(pid);
        let napped = folded.under("nap");
        assert_eq!(napped.total(), after.lifetime_ns(), "{folded}");
        assert_eq!(
            folded.total() - napped.total(),
            before.lifetime_ns(),
            "{folded}"
        );
        seen.assert_nothing_lost();
    });
}

#[test]
fn cpudist_counts_the_time_off_the_cpu_inside() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("spans");
        let sleeper = Running::asleep();
        let tool = watch(&format!("--cgroup {} -O -L 0.7", cgroup.path()));
        sleep(Duration::from_millis(100));
        let stays = [1000, 500].map(|time| {
            let stays = Stay::spend(&cgroup, &[sleeper.pid()], Duration::from_millis(time));
            sleep(Duration::from_millis(200));
            stays[0]
        });
        let spans = close(tool);
        let rows = spans.intervals.iter().flat_map(|interval| &interval.rows);
        let total: u64 = rows.map(|row| row.total_ns).sum();
        let inside = stays.iter().map(Stay::length_ns).sum();
        assert_close("ns off the CPU", total, inside, per_mille(inside, 10));
        assert_eq!(spans.lost_switches, 0);
    });
}

/// The sleeper leaves after the end of an interval, before the tool has read that interval.
#[test]
fn cpudist_counts_the_time_inside_whichever_interval_it_lies_in() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("late-spans");
        let sleeper = Running::asleep();
        let tool = watch(&format!("--cgroup {} -O -L 0.5", cgroup.path()));
        sleep(Duration::from_millis(100));
        let begun = cgroup.take(sleeper.pid());
        sleep(Duration::from_millis(100));
        tool.signal(Signal::STOP);
        // At least one interval ends in this time, well before the sleeper leaves.
        sleep(Duration::from_millis(800));
        let ended = cgroup.release(sleeper.pid());
        tool.signal(Signal::CONT);
        sleep(Duration::from_millis(700));
        let spans = close(tool);
        let total: u64 = spans.intervals.iter().map(Interval::total_ns).sum();
        let inside = Stay { begun, ended }.length_ns();
        assert_close("ns off the CPU", total, inside, per_mille(inside, 10));
    });
}

#[test]
fn oncputime_samples_inside() {
    const HERTZ: u64 = 199;
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("samples");
        let mut spinners = Workload::start("spinners", &[1, 60]);
        spinners.go();
        let pid = spinners.pid();
        let running_ns = || -> u64 {
            let threads = threads_of(pid).into_iter();
            threads
                .map(|tid| Account::read(pid, tid).unwrap().running_ns)
                .sum()
        };
        let tool = Tool::new("oncputime").args(&format!("-F {HERTZ} --cgroup"));
        let mut watch = Watch::apart_samples(tool.arg(cgroup.path()));
        watch.open();
        sleep(Duration::from_millis(500));
        let before = running_ns();
        Stay::spend(&cgroup, &[pid], Duration::from_secs(2));
        let expected = (running_ns() - before) * HERTZ / 1_000_000_000;
        sleep(Duration::from_millis(500));
        let seen = watch.close();
        let tolerance = expected / 20 + 4 * expected.isqrt() + 2;
        assert_close("samples", seen.folded.total(), expected, tolerance);
    });
}

/// The tool reads a pinned map every second, and also at some events of threads.
#[test]
#[ignore = "waits for a map that the tool reads every second"]
fn a_pinned_map_may_change_while_it_is_used() {
    let _turn = Turn::share();
    patiently(|| {
        let cgroup = Cgroup::new("mapped");
        let sleeper = Running::asleep();
        cgroup.take(sleeper.pid());
        let map = PinnedMap::of_ids();
        let tool = Tool::new("offcputime").arg("--cgroupmap").arg(map.path());
        let mut watch = Watch::with_clocks(tool);
        watch.open();
        sleep(Duration::from_millis(500));
        let added = now_ns();
        map.add(cgroup.id());
        sleep(Duration::from_millis(2500));
        let removed = now_ns();
        map.remove(cgroup.id());
        sleep(Duration::from_millis(1500));
        let seen = watch.close();
        let [row] = rows(&seen, sleeper.pid())[..] else {
            panic!("{:#?}", seen.clocks)
        };
        let late = |time: u64, since: u64| time >= since && time < since + 1_300_000_000;
        assert!(
            late(row.started_ns, added) && late(row.ended_ns, removed),
            "added {added}, removed {removed}: {row:?}"
        );
        assert_eq!(row.blocked_ns, row.lifetime_ns());
    });
}
