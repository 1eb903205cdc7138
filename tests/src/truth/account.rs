//! The kernel's own account of a thread, to compare with.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::programs::tool::PATIENCE;

/// What `/proc/PID/task/TID/schedstat` and `status` say of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Time on a CPU in nanoseconds. Time that the hypervisor stole is not in it.
    pub running_ns: u64,
    /// Time in a run queue in nanoseconds.
    pub runnable_ns: u64,
    /// Context switches because the thread blocked.
    pub voluntary: u64,
    /// Context switches because it was preempted or yielded.
    pub involuntary: u64,
}

impl Account {
    /// What was booked since `earlier`.
    pub fn since(self, earlier: Account) -> Account {
        Account {
            running_ns: self.running_ns - earlier.running_ns,
            runnable_ns: self.runnable_ns - earlier.runnable_ns,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
        }
    }

    /// Reads the account of one thread, or `None` when it is gone.
    pub fn read(pid: u32, tid: u32) -> Option<Account> {
        let folder = format!("/proc/{pid}/task/{tid}");
        let schedstat = fs::read_to_string(format!("{folder}/schedstat")).ok()?;
        let status = fs::read_to_string(format!("{folder}/status")).ok()?;
        Some(parse(&schedstat, &status))
    }
}

fn parse(schedstat: &str, status: &str) -> Account {
    let mut times = schedstat
        .split_whitespace()
        .map(|field| field.parse().unwrap());
    let switches = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_else(|| panic!("no {key} in status"))
            .trim()
            .parse()
            .unwrap()
    };
    Account {
        running_ns: times.next().unwrap(),
        runnable_ns: times.next().unwrap(),
        voluntary: switches("voluntary_ctxt_switches:"),
        involuntary: switches("nonvoluntary_ctxt_switches:"),
    }
}

/// The threads of a process, by TID.
pub fn threads_of(pid: u32) -> Vec<u32> {
    let folder = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap_or_else(|error| panic!("the threads of {pid}: {error}"));
    folder
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect()
}

/// The state of a thread as `/proc/PID/task/TID/stat` has it: R, S, T, …
pub fn state_of(pid: u32, tid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // "TID (name, which may hold anything) S ..."
    stat.rsplit_once(')')?.1.trim().chars().next()
}

/// The accounts of all threads of a process, read once all of them sleep: the
/// figures of a running thread lag by up to a tick.
///
/// # Panics
///
/// When they do not come to rest.
pub fn accounts_at_rest(pid: u32) -> BTreeMap<u32, Account> {
    let read = || -> BTreeMap<u32, Account> {
        let threads = threads_of(pid).into_iter();
        threads
            .filter_map(|tid| Some((tid, Account::read(pid, tid)?)))
            .collect()
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let earlier = read();
        sleep(Duration::from_millis(10));
        let asleep = threads_of(pid)
            .iter()
            .all(|&tid| state_of(pid, tid) == Some('S'));
        if asleep && read() == earlier {
            return earlier;
        }
        assert!(
            Instant::now() < deadline,
            "process {pid} does not come to rest"
        );
    }
}

/// How long all CPUs together were idle since boot, in hundredths of a second.
pub fn idle_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("read /proc/stat");
    let idle = stat.split_whitespace().nth(4);
    idle.expect("the idle column of /proc/stat")
        .parse()
        .unwrap()
}

/// The CPU time of a process, with that of its threads that have ended, in nanoseconds,
/// to a tick. `None` when it is gone.
pub fn process_ns(pid: u32) -> Option<u64> {
    ticks_of(&pid.to_string(), 11)
}

/// The CPU time of the processes that this one has waited for, with that of those that
/// they have waited for, in nanoseconds, to a tick.
pub fn children_ns() -> u64 {
    ticks_of("self", 13).expect("the account of this process")
}

/// Two fields of `/proc/PID/stat`, counted from the one behind the name.
fn ticks_of(process: &str, field: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split_whitespace().skip(field).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Some(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// Time that the hypervisor took from all CPUs since boot, in nanoseconds.
///
/// A clock on the wall cannot see it; the kernel leaves it out of what it
/// books as running.
pub fn stolen_ns() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("read /proc/stat");
    let steal = stat
        .split_whitespace()
        .nth(8)
        .expect("the steal column of /proc/stat");
    steal.parse::<u64>().unwrap() * 1_000_000_000 / rustix::param::clock_ticks_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_schedstat_and_status() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n";
        let account = parse("123456 789 42\n", status);
        assert_eq!(
            account,
            Account {
                running_ns: 123_456,
                runnable_ns: 789,
                voluntary: 7,
                involuntary: 3
            }
        );
        let later = parse("223456 1789 52\n", &status.replace('7', "10"));
        assert_eq!(
            later.since(account),
            Account {
                running_ns: 100_000,
                runnable_ns: 1000,
                voluntary: 3,
                involuntary: 0
            }
        );
    }

    #[test]
    fn the_time_of_processes_that_have_ended_is_known() {
        let before = children_ns();
        let loops = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let shell = std::process::Command::new("sh")
            .args(["-c", loops])
            .status();
        assert!(shell.unwrap().success());
        assert!(children_ns() > before);
        assert!(process_ns(std::process::id()).is_some());
        assert_eq!(process_ns(u32::MAX), None);
    }

    #[test]
    fn this_thread_has_an_account() {
        let pid = std::process::id();
        assert!(threads_of(pid).contains(&pid));
        let account = Account::read(pid, pid).unwrap();
        assert!(account.running_ns > 0, "{account:?}");
        assert_eq!(
            Account::read(pid, 1),
            None,
            "process 1 is no thread of this one"
        );
    }
}
