//! Names of threads that a runtime keeps itself, such as those of Java. The kernel has at most 15
//! bytes of them.
//!
//! A name counts for the time in which the thread had the kernel's name that it had when the name
//! was read. If a thread had two names of its own under one name of the kernel, neither counts.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use bpf::types::COMM_LENGTH;
use languages::{Class, FoundThread, ThreadNames};
use process::{InnerThreads, Living, Process, ProcessMemory};
use profile::{Text, ThreadId};
use unwind_tables::MappedRuntime;
use waits::Runtimes;

/// Interval between searches for new threads.
const INTERVAL: Duration = Duration::from_millis(100);
/// Interval between reads of all names.
const INTERVAL_OF_ALL: Duration = Duration::from_secs(10);
/// Maximum number of names that are kept.
const MAX_NAMES: usize = 1 << 17;
/// Maximum number of names of one thread.
const MAX_OF_THREAD: usize = 64;
/// Maximum length of a name, in characters.
const MAX_CHARACTERS: usize = 256;

/// Name of a thread in the kernel's format.
pub(crate) type Comm = [u8; COMM_LENGTH];

/// Kernel's name of a thread, and the thread, if its runtime may have another name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KernelName {
    pub(crate) comm: Comm,
    pub(crate) thread: Option<ThreadId>,
}

/// Names that runtimes have for threads.
#[derive(Default)]
pub(crate) struct RuntimeNames {
    runtimes: HashMap<u32, Named>,
    names: HashMap<ThreadId, Vec<(Comm, Option<Text>)>>,
    count: usize,
    searched: Option<Instant>,
    read: Option<Instant>,
}

/// Process whose runtime names its threads.
struct Named {
    process: Process,
    reader: Box<dyn ThreadNames>,
    memory: ProcessMemory,
    threads: InnerThreads,
}

impl RuntimeNames {
    /// Adds a runtime that was found in a process, and reads the names of its threads.
    pub(crate) fn add(&mut self, process: Process, runtime: &MappedRuntime) {
        let known = self.runtimes.get(&process.pid);
        if known.is_some_and(|known| known.process == process) {
            return;
        }
        let reader = runtime.language.thread_names(&runtime.attached);
        let (Some(reader), Some(threads)) = (reader, InnerThreads::new(process.pid)) else {
            return;
        };
        if known.is_some() {
            self.names.retain(|thread, _| thread.pid != process.pid);
            self.count = self.names.values().map(Vec::len).sum();
        }
        let mut named = Named {
            process,
            reader,
            memory: ProcessMemory::new(process.pid),
            threads,
        };
        named.read(true, |thread, comm, name| self.keep(thread, comm, name));
        self.runtimes.insert(process.pid, named);
    }

    /// Reads the names of new threads, if it is time.
    pub(crate) fn refresh(&mut self) {
        if self.runtimes.is_empty() {
            return;
        }
        let now = Instant::now();
        let reads_all = self.read.is_some_and(|it| it.elapsed() > INTERVAL_OF_ALL);
        if reads_all || self.read.is_none() {
            self.read = Some(now);
        }
        if reads_all || self.searched.is_none_or(|it| it.elapsed() > INTERVAL) {
            self.searched = Some(now);
            self.read(reads_all);
        }
    }

    /// Reads the names of new threads, or of all threads.
    pub(crate) fn read(&mut self, all: bool) {
        let mut runtimes = std::mem::take(&mut self.runtimes);
        for named in runtimes.values_mut() {
            named.read(all, |thread, comm, name| self.keep(thread, comm, name));
        }
        self.runtimes = runtimes;
    }

    fn keep(&mut self, thread: ThreadId, comm: Comm, name: Text) {
        if self.count >= MAX_NAMES {
            return;
        }
        let names = self.names.entry(thread).or_default();
        let is_full = names.len() >= MAX_OF_THREAD;
        match names.iter_mut().find(|(known, _)| *known == comm) {
            Some((_, known)) if known.as_ref() != Some(&name) => *known = None,
            Some(_) => {}
            None if !is_full => {
                names.push((comm, Some(name)));
                self.count += 1;
            }
            None => {}
        }
    }

    /// Returns the kernel's name of a thread for a key of counts.
    pub(crate) fn kernel_name(&self, thread: ThreadId, comm: Comm) -> KernelName {
        let has_names = thread.tid != 0 && self.runtimes.contains_key(&thread.pid);
        KernelName {
            comm,
            thread: has_names.then_some(thread),
        }
    }

    /// Returns the runtime's name of a thread with this name of the kernel, if it is known.
    pub(crate) fn get(&self, thread: ThreadId, comm: &Comm) -> Option<&Text> {
        let names = self.names.get(&thread)?;
        let (_, name) = names.iter().find(|(known, _)| known == comm)?;
        name.as_ref()
    }

    /// Returns the name of a thread as it is printed.
    pub(crate) fn printed(&self, thread: ThreadId, comm: &Comm) -> Text {
        let own = self.get(thread, comm).cloned();
        own.unwrap_or_else(|| profile::text::comm(comm))
    }

    /// Forgets the runtimes of processes that have ended, but not the names of their threads.
    pub(crate) fn forget_ended(&mut self, living: &Living) {
        self.runtimes.retain(|pid, _| living.has(*pid));
    }
}

impl Runtimes for RuntimeNames {
    fn thread_name(&self, thread: ThreadId, comm: &Comm) -> Text {
        self.printed(thread, comm)
    }

    fn class(&self, process: Process, class: u64) -> Option<Class<Text>> {
        let named = self.runtimes.get(&process.pid)?;
        let is_same = named.process == process;
        let class = is_same.then(|| named.reader.class(&named.memory, class))??;
        Some(Class {
            name: profile::text::function(&class.name).as_ref().into(),
            is_lock: class.is_lock,
        })
    }
}

impl Named {
    /// Passes the names of new threads, or of all threads, to `found`.
    fn read(&mut self, all: bool, mut found: impl FnMut(ThreadId, Comm, Text)) {
        let Named {
            process,
            reader,
            memory,
            threads,
        } = self;
        let pid = process.pid;
        let must_extend = reader.must_extend_comm();
        memory.forget();
        // A process that has ended has no threads to read.
        let _ = reader.read(memory, all, &mut |thread: FoundThread<'_>| {
            let Some(tid) = threads.outer(thread.tid) else {
                return;
            };
            let Some(before) = comm(pid, tid) else {
                return;
            };
            let Some(name) = (thread.name)() else {
                return;
            };
            let extends = !must_extend || is_beginning(&before, &name);
            if comm(pid, tid) == Some(before) && extends && !name.is_empty() {
                let name: String = name.chars().take(MAX_CHARACTERS).collect();
                let name = profile::text::thread(&name).as_ref().into();
                found(ThreadId { pid, tid }, before, name);
            }
        });
    }
}

/// Reads the kernel's name of a thread.
fn comm(pid: u32, tid: u32) -> Option<Comm> {
    let mut name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    name.pop_if(|last| *last == b'\n');
    let mut comm = [0; COMM_LENGTH];
    let length = name.len().min(COMM_LENGTH - 1);
    comm[..length].copy_from_slice(&name[..length]);
    Some(comm)
}

/// Returns whether the kernel's name is the beginning of `name`.
fn is_beginning(comm: &Comm, name: &str) -> bool {
    let length = comm.iter().position(|byte| *byte == 0);
    let comm = &comm[..length.unwrap_or(comm.len())];
    !comm.is_empty() && name.as_bytes().starts_with(comm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(name: &str) -> Comm {
        let mut comm = [0; COMM_LENGTH];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        comm
    }

    #[test]
    fn a_name_counts_under_the_name_of_the_kernel_that_it_was_read_with() {
        let mut names = RuntimeNames::default();
        let thread = ThreadId { pid: 7, tid: 8 };
        let (short, other) = (comm("http-nio-8080-e"), comm("other"));
        names.keep(thread, short, "http-nio-8080-exec-1".into());
        assert_eq!(&*names.printed(thread, &short), "http-nio-8080-exec-1");
        assert_eq!(&*names.printed(thread, &other), "other");
        let stranger = ThreadId { pid: 7, tid: 9 };
        assert_eq!(&*names.printed(stranger, &short), "http-nio-8080-e");
        // The same name again changes nothing, and another one leaves none.
        names.keep(thread, short, "http-nio-8080-exec-1".into());
        assert!(names.get(thread, &short).is_some());
        names.keep(thread, short, "http-nio-8080-exec-2".into());
        names.keep(thread, short, "http-nio-8080-exec-2".into());
        assert_eq!(&*names.printed(thread, &short), "http-nio-8080-e");
    }
}
