//! Unwind tables of mapped files. Threads in the background build each table once, for all
//! processes that map the file.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use elf::{Elf, Source};
use languages::{File as CodeFile, Language, Runtime};
use symbolize::{CodeSource, Symbolizer};
use unwind::Built;

use super::kernel_tables::{KernelTables, Placed};
use super::notes::Notes;
use super::space::FileTable;

/// Maximum number of threads that build tables. More threads would slow the machine down
/// noticeably.
const MAX_BUILDERS: usize = 4;

/// Time for which an unused table is kept. Processes close and reopen libraries, and a program may
/// run many times in sequence.
const KEPT: Duration = Duration::from_secs(10);

/// Maximum number of bytes that are read and decompressed for the tables of one process, whatever
/// sizes its files state. A browser's files take a tenth of this.
const MAX_READ: u64 = 1 << 30;

/// Number of bytes that may still be read of the files that one process was the first to map.
#[derive(Clone)]
pub(crate) struct Allowance(Arc<AtomicU64>);

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance(Arc::new(MAX_READ.into()))
    }
}

/// File whose reads are charged to an allowance.
struct Counted {
    file: File,
    allowance: Allowance,
}

impl Source for Counted {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn charge(&self, bytes: u64) -> io::Result<()> {
        let left = &self.allowance.0;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(bytes)
        })
        .map(drop)
        .map_err(|_| {
            let why = "the files of its process take too much work";
            io::Error::new(ErrorKind::QuotaExceeded, why)
        })
    }
}

/// File that a process maps.
struct Entry {
    state: State,
    /// Number of mappings that hold the file.
    holds: usize,
    /// Time at which the last mapping released the file.
    unheld: Instant,
}

/// State of a file's table.
enum State {
    Building,
    Ready(Arc<Built>, Placed, Arc<[Runtime]>),
    /// The file has no table, so its code is unwound by frame pointers.
    Without,
}

type Job = (CodeSource, Counted, String);
type Outcome = (CodeSource, std::result::Result<Read, unwind::Error>);

/// Contents of a file that an unwind needs.
pub(crate) struct Read {
    built: Built,
    /// Runtimes of languages that the file defines.
    runtimes: Arc<[Runtime]>,
}

/// Tables of all files.
pub(crate) struct Files {
    entries: HashMap<CodeSource, Entry>,
    names: HashMap<CodeSource, String>,
    /// Languages whose runtimes are searched for.
    languages: &'static [&'static dyn Language],
    builders: Option<(Sender<Job>, Receiver<Outcome>)>,
    building: usize,
    /// Files whose tables did not fit into the kernel's tables.
    pub(crate) crowded_out: HashSet<CodeSource>,
    /// Files that could not be read, or whose tables could not be written.
    pub(crate) unread: HashSet<CodeSource>,
    /// Reasons why files have no table.
    pub(crate) notes: Notes,
}

impl Files {
    pub(crate) fn new(languages: &'static [&'static dyn Language]) -> Files {
        Files {
            entries: HashMap::new(),
            names: HashMap::new(),
            languages,
            builders: None,
            building: 0,
            crowded_out: HashSet::new(),
            unread: HashSet::new(),
            notes: Notes::default(),
        }
    }

    /// Holds a file for one more mapping. If the file is new, a thread builds its table, and
    /// charges the reads to the process's allowance.
    pub(crate) fn hold(
        &mut self,
        source: CodeSource,
        symbolizer: &Symbolizer,
        allowance: &Allowance,
    ) {
        if let Some(entry) = self.entries.get_mut(&source) {
            entry.holds += 1;
            return;
        }
        let state = match symbolizer.code_file(source) {
            Ok(Some((file, name))) => {
                self.names.insert(source, name.clone());
                let allowance = allowance.clone();
                self.start(source, Counted { file, allowance }, name)
            }
            Ok(None) => State::Without,
            Err(error) => self.note_unread(source, &error),
        };
        let entry = Entry {
            state,
            holds: 1,
            unheld: Instant::now(),
        };
        self.entries.insert(source, entry);
    }

    /// Releases a file for one mapping, which [`Files::hold`] counted.
    pub(crate) fn release(&mut self, source: CodeSource) {
        if let Some(entry) = self.entries.get_mut(&source) {
            entry.holds -= 1;
            entry.unheld = Instant::now();
        }
    }

    /// Removes tables that no mapping has held for [`KEPT`]. If a process maps the file again, its
    /// table is built again.
    pub(crate) fn remove_unused(&mut self, kernel: &mut KernelTables<'_>) {
        let idle = |entry: &Entry| {
            let settled = !matches!(entry.state, State::Building);
            settled && entry.holds == 0 && entry.unheld.elapsed() >= KEPT
        };
        for (_, entry) in self.entries.extract_if(|_, entry| idle(entry)) {
            if let State::Ready(_, placed, _) = entry.state {
                kernel.remove(placed);
            }
        }
    }

    fn start(&mut self, source: CodeSource, file: Counted, name: String) -> State {
        let languages = self.languages;
        let (jobs, _) = (self.builders).get_or_insert_with(|| start_builders(languages));
        if jobs.send((source, file, name)).is_ok() {
            self.building += 1;
            State::Building
        } else {
            self.note_unread(source, &"no thread could be started")
        }
    }

    /// Returns whether the work on a file's table is finished.
    pub(crate) fn is_settled(&self, source: CodeSource) -> bool {
        let entry = self.entries.get(&source);
        entry.is_none_or(|entry| !matches!(entry.state, State::Building))
    }

    /// Returns whether a table is being built.
    pub(crate) fn is_building(&self) -> bool {
        self.building > 0
    }

    /// Takes the finished tables. Waits at most `patience` for the first one.
    pub(crate) fn collect(&mut self, kernel: &mut KernelTables<'_>, patience: Duration) {
        let mut patience = patience;
        while self.building > 0 {
            let Some((_, done)) = &self.builders else {
                return;
            };
            let Ok((source, outcome)) = done.recv_timeout(patience) else {
                return;
            };
            patience = Duration::ZERO;
            self.building -= 1;
            let state = match outcome {
                Ok(read) => self.place(source, read, kernel),
                Err(error) => self.note_unread(source, &error),
            };
            if let Some(entry) = self.entries.get_mut(&source) {
                entry.state = state;
            }
        }
    }

    fn place(&mut self, source: CodeSource, read: Read, kernel: &mut KernelTables<'_>) -> State {
        let Read { built, runtimes } = read;
        let unwind::Notes {
            descriptions,
            unreadable,
        } = built.notes;
        if unreadable > 0 {
            let name = self.name(source);
            self.notes.add(format!(
                "{name}: {unreadable} of {descriptions} frame descriptions have no meaning"
            ));
        }
        match kernel.place(&built.table) {
            Ok(placed) => State::Ready(Arc::new(built), placed, runtimes),
            Err(error @ loader::Error::Unsupported(_)) => {
                self.crowded_out.insert(source);
                self.note_missing(source, &error)
            }
            Err(error) => self.note_unread(source, &error),
        }
    }

    fn note_unread(&mut self, source: CodeSource, why: &dyn Display) -> State {
        self.unread.insert(source);
        self.note_missing(source, why)
    }

    fn note_missing(&mut self, source: CodeSource, why: &dyn Display) -> State {
        let name = self.name(source);
        self.notes
            .add(format!("{name}: unwound by frame pointers only: {why}"));
        State::Without
    }

    fn name(&self, source: CodeSource) -> String {
        self.names.get(&source).cloned().unwrap_or_default()
    }

    /// Returns the table of a file that is held, if the file has a table.
    pub(crate) fn table(&self, source: CodeSource) -> Option<FileTable> {
        match &self.entries.get(&source)?.state {
            State::Ready(built, placed, runtimes) => Some(FileTable {
                built: Arc::clone(built),
                runtimes: Arc::clone(runtimes),
                first_page: placed.first_page,
                page_count: placed.page_count,
            }),
            _ => None,
        }
    }

    /// Returns the number of files with a table, and the total size of these tables in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let ready = self
            .entries
            .values()
            .filter_map(|entry| match &entry.state {
                State::Ready(built, ..) => Some(built.table.size()),
                _ => None,
            });
        ready.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size))
    }
}

/// Returns the runtimes of these languages that a file defines.
fn runtimes(languages: &[&'static dyn Language], file: &dyn Source, name: &str) -> Arc<[Runtime]> {
    let Ok(objects): std::result::Result<CodeFile<'_>, _> = Elf::read_loaded(file) else {
        return Arc::default();
    };
    let found = languages
        .iter()
        .filter_map(|language| language.find(&objects, name));
    found.collect()
}

/// Starts threads that build the tables of the files that they receive.
fn start_builders(languages: &'static [&'static dyn Language]) -> (Sender<Job>, Receiver<Outcome>) {
    let (jobs, waiting) = mpsc::channel::<Job>();
    let (done, outcomes) = mpsc::channel();
    let waiting = Arc::new(Mutex::new(waiting));
    let builders = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(MAX_BUILDERS));
    for _ in 0..builders {
        let (waiting, done) = (Arc::clone(&waiting), done.clone());
        // If no thread starts, sending a job fails.
        let _ = thread::Builder::new()
            .name("unwind-tables".into())
            .spawn(move || {
                loop {
                    let job = waiting
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    let Ok((source, file, name)) = job else {
                        return;
                    };
                    let read = unwind::build(&file).map(|built| Read {
                        built,
                        runtimes: runtimes(languages, &file, &name),
                    });
                    if done.send((source, read)).is_err() {
                        return;
                    }
                }
            });
    }
    (jobs, outcomes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn the_files_of_a_process_are_read_up_to_a_bound_for_all_of_them() {
        let allowance = Allowance::default();
        let charge = |size: u64| {
            let file = File::from(memfd_create("empty", MemfdFlags::CLOEXEC).unwrap());
            let allowance = allowance.clone();
            Counted { file, allowance }.charge(size)
        };
        let refused = |size| charge(size).is_err_and(|e| e.kind() == ErrorKind::QuotaExceeded);
        let size = MAX_READ / 4;
        for _ in 0..3 {
            charge(size).unwrap();
        }
        assert!(refused(size + 1));
        charge(size).unwrap();
        assert!(refused(1));
    }
}
