//! How long this machine takes from the wake-up of a thread to the switch to it,
//! where the CPU was idle.
//!
//! A wake-up that preempts the idle task has the kernel skip the next update of
//! the run queue's clock: from the wake-up on it books *running*, though the
//! interrupt has yet to end and the CPU has yet to leave idle. The clock of the
//! tools begins at the switch. That is where the two may differ, by as much as
//! is measured here, and on no other side.
//!
//! Measured without the tools, by the kernel's own tracing, of the same threads
//! at the same time: from `sched_waking` to `sched_switch` away from the idle task.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::account::threads_of;

/// Ours alone, as one test at a time measures.
const INSTANCE: &str = "systemscope-tests";
/// Of each CPU, for some 100,000 events.
const BUFFER_KIB: u32 = 8192;

/// Tracing of the wake-ups of some threads, until dropped.
#[derive(Debug)]
pub struct IdleExits {
    instance: PathBuf,
    _tracefs: OwnedFd,
}

/// A thread's ways out of idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// Switches to it on a CPU that had been idle.
    pub count: u64,
    /// From its wake-ups to those switches, nanoseconds.
    pub ns: u64,
}

impl IdleExits {
    /// Watches the threads that a process has now.
    ///
    /// # Panics
    ///
    /// On a kernel without tracefs, or without root.
    pub fn watch(pid: u32) -> IdleExits {
        let tracefs = mounted().expect("mount tracefs, as root");
        let root = PathBuf::from(format!("/proc/self/fd/{}", tracefs.as_raw_fd()));
        let instance = root.join("instances").join(INSTANCE);
        // Of a test that was killed.
        let _ = fs::remove_dir(&instance);
        fs::create_dir(&instance).expect("an instance of tracing");
        let exits = IdleExits {
            instance,
            _tracefs: tracefs,
        };
        exits.set("trace_clock", "mono");
        exits.set("buffer_size_kb", &BUFFER_KIB.to_string());
        let one_of = |field: &str| {
            let threads = threads_of(pid).into_iter();
            let alternatives: Vec<String> = threads.map(|tid| format!("{field}=={tid}")).collect();
            alternatives.join("||")
        };
        exits.enable("sched_waking", &one_of("pid"));
        exits.enable("sched_switch", &one_of("next_pid"));
        exits
    }

    /// The ways since, by thread.
    ///
    /// # Panics
    ///
    /// When there were more events than find room.
    pub fn stop(self) -> BTreeMap<u32, Ways> {
        self.set("tracing_on", "0");
        let path = self.instance.join("trace");
        let trace = fs::read_to_string(path).expect("the kernel's trace");
        let counts = trace
            .lines()
            .find_map(|line| line.strip_prefix("# entries-in-buffer/"));
        let counts = counts.and_then(|line| line.split_whitespace().nth(1));
        let kept = counts.and_then(|counts| counts.split_once('/'));
        let (kept, written) = kept.expect("how many events there were");
        assert_eq!(kept, written, "events of wake-ups found no room");
        ways(&trace)
    }

    fn enable(&self, event: &str, filter: &str) {
        self.set(&format!("events/sched/{event}/filter"), filter);
        self.set(&format!("events/sched/{event}/enable"), "1");
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.instance.join(file), value)
            .unwrap_or_else(|error| panic!("write {value} to {file} of tracefs: {error}"));
    }
}

impl Drop for IdleExits {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.instance);
    }
}

/// What all threads had together.
pub fn all(ways: &BTreeMap<u32, Ways>) -> Ways {
    ways.values().fold(Ways::default(), |sum, of| Ways {
        count: sum.count + of.count,
        ns: sum.ns + of.ns,
    })
}

/// tracefs in a place of its own, gone with the descriptor: not every machine
/// has it mounted.
fn mounted() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

/// `  <idle>-0 [001] d..2. 932.765534: sched_switch: … next_pid=19070 next_prio=120`
fn ways(trace: &str) -> BTreeMap<u32, Ways> {
    let mut woken: BTreeMap<u32, u64> = BTreeMap::new();
    let mut ways: BTreeMap<u32, Ways> = BTreeMap::new();
    for line in trace.lines() {
        let Some((head, what)) = line.rsplit_once(": sched_") else {
            continue;
        };
        let number = |field: &str| -> Option<u32> {
            let word = what
                .split_whitespace()
                .find_map(|word| word.strip_prefix(field));
            word?.parse().ok()
        };
        let time = head.rsplit(' ').next().and_then(nanoseconds);
        let time = time.unwrap_or_else(|| panic!("no time in {line:?}"));
        if what.starts_with("waking:") {
            woken.extend(number("pid=").map(|tid| (tid, time)));
        } else if let Some(tid) = number("next_pid=")
            && let Some(wake) = woken.remove(&tid)
            && number("prev_pid=") == Some(0)
        {
            let of = ways.entry(tid).or_default();
            of.count += 1;
            of.ns += time.saturating_sub(wake);
        }
    }
    ways
}

/// Seconds with six decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.')?;
    let micros: u64 = micros.parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + micros * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Turn, Workload, accounts_at_rest};

    #[test]
    fn a_thread_that_sleeps_leaves_idle_no_more_often_than_it_slept() {
        let _turn = Turn::take();
        let mut naps = Workload::start("naps", &[1]);
        let pid = naps.pid();
        let before = accounts_at_rest(pid)[&pid];
        let exits = IdleExits::watch(pid);
        naps.go();
        naps.wait_done();
        let ways = exits.stop();
        let booked = accounts_at_rest(pid)[&pid].since(before);
        let way = all(&ways);
        assert!(way.count <= booked.voluntary, "{way:?}, {booked:?}");
        assert!(way.ns < 1_000_000_000, "{way:?}");
    }

    #[test]
    fn a_way_begins_at_the_wake_up_and_ends_at_the_switch_from_idle() {
        let trace = "# entries-in-buffer/entries-written: 5/5   #P:2\n\
            a b-19 [000] d.h2.   932.765100: sched_waking: comm=x: y pid=7 prio=120 target_cpu=001\n\
            <idle>-0 [001] d..2.   932.765134: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=x: y next_pid=7 next_prio=120\n\
            a b-19 [000] d.h2.   932.765500: sched_waking: comm=x: y pid=7 prio=120 target_cpu=001\n\
            a b-19 [001] d..2.   932.765510: sched_switch: prev_comm=a b prev_pid=19 prev_prio=120 prev_state=R ==> next_comm=x: y next_pid=7 next_prio=120\n\
            <idle>-0 [001] d..2.   932.766000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=x: y next_pid=7 next_prio=120\n";
        let found = ways(trace);
        let one = Ways {
            count: 1,
            ns: 34_000,
        };
        assert_eq!(found, BTreeMap::from([(7, one)]));
    }
}
