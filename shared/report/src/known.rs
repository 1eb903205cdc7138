//! Known facts about processes: parents, command lines, and reused PIDs.

use std::collections::{BTreeMap, HashMap, HashSet};

use profile::{Process, Profile, Text, text};

/// Maximum number of parents searched for a command line. In a file, processes can be each other's
/// parents.
const MAX_PARENTS: usize = 32;

/// The processes of a profile by PID.
pub struct Known<'a> {
    by_pid: HashMap<u32, Entry<'a>>,
    /// Command lines that were read before the window.
    before: &'a BTreeMap<u32, Text>,
}

/// Processes with one PID.
struct Entry<'a> {
    /// The process that started last.
    last: &'a Process,
    /// Known start times of the processes, in clock ticks since boot.
    starts: HashSet<u64>,
    is_kernel_thread: bool,
}

impl<'a> Known<'a> {
    /// Collects the processes of a profile. `before` has the command lines of processes that may
    /// have ended before the profiler read them.
    #[must_use]
    pub fn new(profile: &'a Profile, before: &'a BTreeMap<u32, Text>) -> Known<'a> {
        let mut by_pid: HashMap<u32, Entry<'a>> = HashMap::new();
        for process in &profile.processes {
            let entry = by_pid.entry(process.pid).or_insert_with(|| Entry {
                last: process,
                starts: HashSet::new(),
                is_kernel_thread: false,
            });
            // If one process executes two programs, the later one comes later in the list.
            if process.start_ticks >= entry.last.start_ticks {
                entry.last = process;
            }
            entry.is_kernel_thread |= process.is_kernel_thread;
            entry
                .starts
                .extend((process.start_ticks != 0).then_some(process.start_ticks));
        }
        Known { by_pid, before }
    }

    /// Returns a process's command line on one line. A process without one has the command line of
    /// the process that it was forked from. If no process has one, the function returns the name in
    /// brackets, as `ps` shows kernel threads.
    #[must_use]
    pub fn command_line(&self, pid: u32, name: &str) -> String {
        let mut asked = pid;
        for _ in 0..MAX_PARENTS {
            if let Some(command_line) = self.own_command_line(asked) {
                return command_line;
            }
            match self.by_pid.get(&asked) {
                Some(entry) if !entry.is_kernel_thread && entry.last.parent != 0 => {
                    asked = entry.last.parent;
                }
                _ => break,
            }
        }
        format!("[{name}]")
    }

    fn own_command_line(&self, pid: u32) -> Option<String> {
        let process = self.by_pid.get(&pid).map(|entry| entry.last);
        let words = process.map(|process| process.command_line.join(" "));
        // Brackets mark processes without a command line.
        let words = words.map(|words| text::function(&words).into_owned());
        let known = words
            .into_iter()
            .chain(self.before.get(&pid).map(Text::to_string))
            .chain(process.map(|process| process.executable.to_string()));
        known
            .map(|text| text.trim_end().to_owned())
            .find(|text| !text.is_empty())
    }

    /// Returns whether a process is a kernel thread.
    #[must_use]
    pub fn is_kernel_thread(&self, pid: u32) -> bool {
        let entry = self.by_pid.get(&pid);
        entry.is_some_and(|entry| entry.is_kernel_thread)
    }

    /// Returns the PID of a process's parent; 0 if it is not known.
    pub(super) fn parent(&self, pid: u32) -> u32 {
        self.by_pid.get(&pid).map_or(0, |entry| entry.last.parent)
    }

    /// Returns the start time of a process, in clock ticks since boot; 0 if it is not known.
    pub(super) fn start_ticks(&self, pid: u32) -> u64 {
        let entry = self.by_pid.get(&pid);
        entry.map_or(0, |entry| entry.last.start_ticks)
    }

    /// Returns the number of processes known to have had this PID, one after another.
    pub(super) fn lives(&self, pid: u32) -> u64 {
        let entry = self.by_pid.get(&pid);
        entry.map_or(0, |entry| entry.starts.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use profile::Unit;

    use super::*;

    fn process(pid: u32, parent: u32, start_ticks: u64, words: &[&str]) -> Process {
        Process {
            pid,
            parent,
            start_ticks,
            command_line: words.iter().map(|word| (*word).into()).collect(),
            ..Process::default()
        }
    }

    fn profile_of(processes: Vec<Process>) -> Profile {
        Profile {
            processes,
            ..Profile::new(Unit::Nanoseconds)
        }
    }

    #[test]
    fn a_process_without_a_command_line_runs_what_its_parent_runs() {
        let profile = profile_of(vec![
            process(1, 0, 5, &["make", "-j2", ""]),
            process(2, 1, 6, &[]),
            process(3, 2, 7, &[]),
            process(4, 99, 8, &[]),
            // These two are each other's parents.
            process(5, 6, 9, &[]),
            process(6, 5, 9, &[]),
            Process {
                executable: "/bin/x".into(),
                ..process(7, 1, 9, &[])
            },
            Process {
                is_kernel_thread: true,
                ..process(8, 1, 9, &[])
            },
        ]);
        let before = BTreeMap::from([(4, "sh -c\nx".into()), (10, "early".into())]);
        let known = Known::new(&profile, &before);
        for (pid, command_line) in [
            (1, "make -j2"),
            (2, "make -j2"),
            (3, "make -j2"),
            (4, "sh -c?x"),
            (5, "[a:b]"),
            (7, "/bin/x"),
            (8, "[a:b]"),
            (9, "[a:b]"),
            (10, "early"),
        ] {
            assert_eq!(known.command_line(pid, "a:b"), command_line, "{pid}");
        }
        assert!(known.is_kernel_thread(8) && !known.is_kernel_thread(7));
        assert_eq!([3, 9].map(|pid| known.parent(pid)), [2, 0]);
    }

    #[test]
    fn the_last_process_of_an_id_is_told_of_and_how_many_there_were() {
        let profile = profile_of(vec![
            process(1, 0, 9, &["second"]),
            process(1, 4, 9, &["and", "what", "it", "executes"]),
            process(1, 3, 5, &["first"]),
            process(1, 3, 0, &[]),
        ]);
        let before = BTreeMap::new();
        let known = Known::new(&profile, &before);
        assert_eq!(known.command_line(1, "x"), "and what it executes");
        assert_eq!((known.parent(1), known.start_ticks(1)), (4, 9));
        assert_eq!([1, 2].map(|pid| known.lives(pid)), [2, 0]);
    }
}
