//! What a profile tells of processes. Each is looked at when it is first seen, as it may
//! soon be gone.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use symbolize::Process;

/// Processes that are told of at most.
const MOST: usize = 1 << 16;
/// What is read of a file at most, in bytes.
const MOST_BYTES: u64 = 16 << 10;

/// The processes seen so far.
#[derive(Default)]
pub(crate) struct Processes(HashMap<Process, Option<profile::Process>>);

impl Processes {
    /// Looks at a process, if it is new.
    pub(crate) fn see(&mut self, process: Process) {
        if self.0.len() < MOST {
            let look = || look(process.pid).ok();
            self.0.entry(process).or_insert_with(look);
        }
    }

    /// Those with these IDs, in the order of their IDs and programs. One that was not
    /// seen is looked at now.
    pub(crate) fn told(mut self, wanted: &BTreeSet<u32>) -> Vec<profile::Process> {
        let mut unseen = wanted.clone();
        for process in self.0.keys() {
            unseen.remove(&process.pid);
        }
        for pid in unseen {
            self.see(Process { pid, instance: 0 });
        }
        let seen = self.0.into_iter();
        let mut told: Vec<_> = seen
            .filter(|(process, _)| wanted.contains(&process.pid))
            .filter_map(|(process, told)| Some((process, told?)))
            .collect();
        told.sort_by_key(|(process, _)| *process);
        told.into_iter().map(|(_, told)| told).collect()
    }
}

/// What `/proc` says of a process. All of it is of one, whoever has its ID later.
fn look(pid: u32) -> io::Result<profile::Process> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty())?;
    let (parent, start_ticks) = parse_stat(&text(&folder, "stat")?)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let executable = readlinkat(&folder, "exe", Vec::new());
    let executable = executable.map(|path| path.to_string_lossy().into_owned());
    let command_line = text(&folder, "cmdline").unwrap_or_default();
    let cgroup = text(&folder, "cgroup").unwrap_or_default();
    Ok(profile::Process {
        pid,
        parent,
        start_ticks,
        // A kernel thread has none.
        executable: executable.unwrap_or_default(),
        command_line: command_line
            .split_terminator('\0')
            .map(str::to_owned)
            .collect(),
        cgroup: cgroup
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .unwrap_or_default()
            .to_owned(),
    })
}

/// The start of a file.
fn text(folder: &OwnedFd, name: &str) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parent and start: fields 4 and 22 of proc(5). The name before them may have any
/// characters, and ends at the last `)`.
fn parse_stat(stat: &str) -> Option<(u32, u64)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some((parent, start))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_told_of_though_it_has_ended() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id();
        let mut processes = Processes::default();
        // Not before it sleeps, and so has its command line.
        let asleep = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.contains("(sleep) S ")
        };
        while !asleep() {
            std::thread::yield_now();
        }
        processes.see(Process { pid, instance: 1 });
        child.kill().unwrap();
        child.wait().unwrap();
        processes.see(Process { pid, instance: 1 });
        let ours = std::process::id();
        let told = processes.told(&BTreeSet::from([pid, ours, u32::MAX]));
        let of = |pid| told.iter().find(|process| process.pid == pid).unwrap();
        assert_eq!(told.len(), 2);
        assert_eq!(of(pid).command_line, ["sleep", "100"]);
        assert_eq!(of(pid).parent, ours);
        assert!(of(pid).executable.starts_with('/'));
        assert!(of(pid).start_ticks >= of(ours).start_ticks);
    }

    #[test]
    fn a_name_cannot_shift_the_fields_of_stat() {
        let stat = "7 (a) R 1) S 42 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(parse_stat(stat), Some((42, 4242)));
        assert_eq!(parse_stat("7 (a) S 42"), None);
    }
}
