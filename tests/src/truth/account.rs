//! Kernel's own account of a thread, to compare the tools with.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::programs::tool::PATIENCE;

/// Values of `/proc/PID/task/TID/schedstat` and `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Time on a CPU in ns, without the time that the hypervisor took.
    pub running_ns: u64,
    /// Time in a run queue in ns.
    pub runnable_ns: u64,
    /// Number of context switches because the thread blocked.
    pub voluntary: u64,
    /// Number of context switches because the thread was preempted or yielded.
    pub involuntary: u64,
}

impl Account {
    /// Returns the difference to an earlier account.
    pub fn since(self, earlier: Account) -> Account {
        Account {
            running_ns: self.running_ns - earlier.running_ns,
            runnable_ns: self.runnable_ns - earlier.runnable_ns,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
        }
    }

    /// Reads the account of a thread; `None` if the thread is gone.
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

/// Returns the thread IDs of a process.
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

/// Returns the state of a thread, as `/proc/PID/task/TID/stat` shows it: R, S, T, …
pub fn state_of(pid: u32, tid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // The line has the form "TID (name, which may contain anything) S ...".
    stat.rsplit_once(')')?.1.trim().chars().next()
}

/// Reads the accounts of all threads of a process once all threads sleep. The account of a running
/// thread lags by up to a tick.
///
/// # Panics
///
/// Panics if a thread does not fall asleep.
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

/// Returns the idle time of all CPUs since boot, in hundredths of a second.
pub fn idle_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("read /proc/stat");
    let idle = stat.split_whitespace().nth(4);
    idle.expect("the idle column of /proc/stat")
        .parse()
        .unwrap()
}

/// Returns the CPU time of a process and its ended threads in ns, accurate to a tick. Returns
/// `None` if the process is gone.
pub fn process_ns(pid: u32) -> Option<u64> {
    ticks_of(&pid.to_string(), 11)
}

/// Returns the CPU time of all descendants for which this process has waited, in ns, accurate to a
/// tick.
pub fn children_ns() -> u64 {
    ticks_of("self", 13).expect("the account of this process")
}

/// Returns the sum of two fields of `/proc/PID/stat` in ns, counted from the field behind the name.
fn ticks_of(process: &str, field: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split_whitespace().skip(field).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Some(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// Returns the time that the hypervisor took from all CPUs since boot, in ns.
///
/// Clocks include this time. The kernel leaves it out of running time.
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
