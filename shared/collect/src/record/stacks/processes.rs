//! Descriptions of the processes in a profile. User space reads a description from `/proc` when it
//! first sees the process, because the process may soon end. Programs that follow children send
//! descriptions even of short-lived processes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use bpf::types::ProcessEvent;
use loader::boottime_offset_ns;
use process::Process;
use profile::Text;
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};

/// Maximum number of processes that are described.
const MOST: usize = 1 << 16;
/// Maximum number of bytes that are read of a file.
const MAX_BYTES: u64 = 16 << 10;
/// ID of kthreadd, which is the parent of all kernel threads (rest_init() of `init/main.c`).
const KTHREADD: u32 = 2;

/// Length of a clock tick, the unit of time in `/proc`, in ns. USER_HZ of
/// include/asm-generic/param.h is 100.
const NANOSECONDS_A_TICK: u64 = 10_000_000;

/// Processes that user space has seen.
#[derive(Default)]
pub(crate) struct Processes {
    seen: HashMap<Process, Seen>,
    /// Program from the last event of a process, by process ID.
    latest: HashMap<u32, Process>,
    /// IDs of processes that exceeded the capacity.
    left_out: HashSet<u32>,
}

#[derive(Default)]
struct Seen {
    /// Description, if user space has one.
    known: Option<profile::Process>,
    /// True once user space has tried to read `/proc`.
    is_read: bool,
}

impl Processes {
    /// Reads the description of a process, if the process is new.
    pub(crate) fn look_up(&mut self, process: Process) {
        if self.seen.len() < MOST || self.seen.contains_key(&process) {
            self.read_once(process);
        } else {
            self.left_out.insert(process.pid);
        }
    }

    fn read_once(&mut self, process: Process) {
        let seen = self.seen.entry(process).or_default();
        if std::mem::replace(&mut seen.is_read, true) {
            return;
        }
        let Ok(found) = read_process(process.pid) else {
            return;
        };
        match &mut seen.known {
            None => seen.known = Some(found),
            // The event describes the process at an earlier moment, so the rest of its description
            // stays.
            Some(known) if known.start_ticks == found.start_ticks => {
                known.executable = found.executable;
                known.cgroup = found.cgroup;
            }
            // Another process has got the ID meanwhile.
            Some(_) => {}
        }
    }

    /// Adds a program's description of a process that was forked, or that executes a new program
    /// with these `arguments`. Each argument ends with a NUL.
    pub(crate) fn add_event(&mut self, event: &ProcessEvent, arguments: &[u8]) {
        if self.seen.len() >= MOST {
            self.left_out.insert(event.pid);
            return;
        }
        let start_ticks = event.started / NANOSECONDS_A_TICK;
        let latest_known = |pid| {
            let latest = self.latest.get(pid)?;
            self.seen.get(latest)?.known.as_ref()
        };
        // The parent is the process that forked this one, even if another process has adopted it
        // since.
        let before = latest_known(&event.pid).filter(|before| before.start_ticks == start_ticks);
        let is_known = before.is_some();
        let parent = before.map_or(event.parent, |before| before.parent);
        // A process has the command line of its parent until it executes a program.
        let command_line = match arguments {
            [] => latest_known(&parent).map_or(Vec::new(), |parent| parent.command_line.clone()),
            arguments => words(&String::from_utf8_lossy(arguments)),
        };
        let process = Process {
            pid: event.pid,
            instance: event.instance,
        };
        let known = profile::Process {
            pid: event.pid,
            parent,
            start_ticks,
            executable: Text::default(),
            command_line,
            cgroup: Text::default(),
            is_kernel_thread: false,
        };
        // The description from before the exec is no longer needed.
        if let Some(last) = is_known.then(|| self.latest.get(&event.pid)).flatten() {
            self.seen.remove(last);
        }
        self.seen.entry(process).or_default().known = Some(known);
        self.latest.insert(event.pid, process);
    }

    /// Returns the number of processes that exceeded the capacity.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.len() as u64
    }

    /// Returns the descriptions of the processes with the IDs in `wanted`, in the order of IDs and
    /// programs. Reads missing descriptions now. `kernel_threads` contains the IDs of kernel
    /// threads, which may have ended.
    pub(crate) fn into_descriptions(
        mut self,
        wanted: &BTreeSet<u32>,
        kernel_threads: &BTreeSet<u32>,
    ) -> Vec<profile::Process> {
        let mut unseen = wanted.clone();
        for process in self.seen.keys() {
            unseen.remove(&process.pid);
        }
        for pid in unseen {
            self.read_once(Process { pid, instance: 0 });
        }
        let seen = self.seen.into_iter();
        let mut described: Vec<_> = seen
            .filter(|(process, _)| wanted.contains(&process.pid))
            .filter_map(|(process, seen)| {
                // A process that runs a program has an instance other than 0.
                let is_kernel_thread =
                    process.instance == 0 && kernel_threads.contains(&process.pid);
                let ended = || is_kernel_thread.then(|| ended_kernel_thread(process.pid));
                let described = seen.known.or_else(ended)?;
                Some((
                    process,
                    profile::Process {
                        is_kernel_thread,
                        ..described
                    },
                ))
            })
            .collect();
        described.sort_by_key(|(process, _)| *process);
        described
            .into_iter()
            .map(|(_, described)| described)
            .collect()
    }
}

/// Returns the description of a kernel thread that has ended.
fn ended_kernel_thread(pid: u32) -> profile::Process {
    profile::Process {
        pid,
        parent: if pid == KTHREADD { 0 } else { KTHREADD },
        ..profile::Process::default()
    }
}

/// Reads the description of a process from `/proc`. The whole description is of one process, even
/// if another process gets the ID meanwhile.
fn read_process(pid: u32) -> io::Result<profile::Process> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty())?;
    let (parent, start_ticks) = parse_stat(&text(&folder, "stat")?)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let living = process::living_thread(pid).filter(|tid| *tid != pid);
    let living = living.map(|tid| openat(CWD, format!("/proc/{tid}"), flags, Mode::empty()));
    let living = living.transpose()?;
    let living = living.as_ref().unwrap_or(&folder);
    let executable = readlinkat(living, "exe", Vec::new());
    let executable = executable.map(|path| path.to_string_lossy().into_owned());
    let command_line = open(living, "cmdline")
        .and_then(|file| process::read_command_line(pid, &file))
        .unwrap_or_default();
    let cgroup = text(&folder, "cgroup").unwrap_or_default();
    let ahead = boottime_offset_ns() / NANOSECONDS_A_TICK.cast_signed();
    Ok(profile::Process {
        pid,
        parent,
        start_ticks: start_ticks.saturating_add_signed(-ahead),
        // A kernel thread has no executable.
        executable: executable.unwrap_or_default().into(),
        command_line: words(&String::from_utf8_lossy(&command_line)),
        cgroup: cgroup
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .unwrap_or_default()
            .into(),
        // The caller sets this, from the records of threads.
        is_kernel_thread: false,
    })
}

/// Splits a command line into its arguments, each of which ends with a NUL.
fn words(command_line: &str) -> Vec<Text> {
    let words = command_line.split_terminator('\0');
    words.map(Text::from).collect()
}

fn open(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::empty())?))
}

/// Returns the start of a file as text.
fn text(folder: &OwnedFd, name: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(folder, name)?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses the parent and the start time from the text of `/proc/PID/stat`, which are fields 4 and
/// 22 (proc(5)). The name before them can contain any characters, and ends at the last `)`.
fn parse_stat(stat: &str) -> Option<(u32, u64)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some((parent, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_of_whoever_had_the_id() {
        let event = |pid, parent, instance, started| ProcessEvent {
            pid,
            parent,
            instance,
            started: started * NANOSECONDS_A_TICK + 3,
            ..ProcessEvent::default()
        };
        let mut processes = Processes::default();
        let (shell, child, other) = (4_194_301, 4_194_302, 4_194_303);
        processes.add_event(&event(shell, 1, 50, 5), b"sh\0-c\0true\0");
        processes.add_event(&event(child, shell, 70, 7), b"");
        // The process, adopted by process 1, executes a program. Its last argument is cut off.
        processes.add_event(&event(child, 1, 71, 7), b"sleep\x001");
        // Another process has got the ID. No event described its parent.
        processes.add_event(&event(child, other, 90, 9), b"");
        let described =
            processes.into_descriptions(&BTreeSet::from([shell, child]), &BTreeSet::new());
        let described: Vec<_> = (described.iter())
            .map(|process| (process.parent, process.command_line.join(" ")))
            .collect();
        let expected = [(1, "sh -c true"), (shell, "sleep 1"), (other, "")];
        assert_eq!(
            described,
            expected.map(|(parent, line)| (parent, line.to_owned()))
        );
    }

    #[test]
    fn a_name_cannot_shift_the_fields_of_stat() {
        let stat = "7 (a) R 1) S 42 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(parse_stat(stat), Some((42, 4242)));
        assert_eq!(parse_stat("7 (a) S 42"), None);
    }
}
