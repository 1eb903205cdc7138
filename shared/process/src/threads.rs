//! Threads through which `/proc` shows a process.
//!
//! The first thread of a process may end before the others, by `pthread_exit()` in `main()`. It
//! stays as a zombie, without memory, files and namespaces, until the other threads end. Its
//! entries in `/proc` for these are empty or cannot be opened. The entries of any other thread are
//! complete.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Maximum number of threads that are examined in place of a thread that has ended. Further ended
/// threads exist only under a debugger.
const MAX_THREADS: usize = 256;

/// Returns the ID of a living thread of process `pid`, preferably `pid` itself; `None` if no thread
/// lives.
///
/// The thread may end at any time. Later reads through it then fail.
#[must_use]
pub fn living_thread(pid: u32) -> Option<u32> {
    if is_alive(Path::new(&format!("/proc/{pid}"))) {
        return Some(pid);
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut threads = threads.take(MAX_THREADS).flatten();
    threads.find_map(|thread| {
        let tid = thread.file_name().to_str()?.parse().ok()?;
        is_alive(&thread.path()).then_some(tid)
    })
}

/// Returns the folder in `/proc` of a living thread of process `pid`. It shows the memory, the
/// files and the namespaces of the process.
#[must_use]
pub fn living_folder(pid: u32) -> String {
    format!("/proc/{}", living_thread(pid).unwrap_or(pid))
}

/// Returns whether the thread with this folder in `/proc` exists and is not a zombie. The file
/// `stat` has the state after the name, which ends at the last `)`.
#[must_use]
pub fn is_alive(folder: &Path) -> bool {
    // The name can contain bytes that are not UTF-8.
    fs::read(folder.join("stat"))
        .ok()
        .and_then(|stat| {
            let stat = String::from_utf8_lossy(&stat);
            stat.rsplit_once(") ")
                .map(|(_, rest)| !rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}

/// Threads of a process by the IDs that the process itself sees, those of its innermost PID
/// namespace.
#[derive(Debug)]
pub struct InnerThreads {
    pid: u32,
    /// False if the process has one ID only.
    is_apart: bool,
    /// IDs in the PID namespace of this process, by the inner ID.
    known: HashMap<u32, u32>,
}

impl InnerThreads {
    /// Maximum number of threads whose IDs are looked up.
    const MOST: usize = 32 << 10;

    /// Returns the threads of process `pid`; `None` if the process does not exist.
    #[must_use]
    pub fn new(pid: u32) -> Option<InnerThreads> {
        Some(InnerThreads {
            pid,
            is_apart: namespace_ids(&format!("/proc/{pid}/status"))?.len() > 1,
            known: HashMap::new(),
        })
    }

    /// Returns the ID of a thread in the PID namespace of this process. The thread may have ended.
    pub fn outer(&mut self, inner: u32) -> Option<u32> {
        if !self.is_apart {
            return Some(inner);
        }
        let task = format!("/proc/{}/task", self.pid);
        let has_inner = |outer: u32| {
            let ids = namespace_ids(&format!("{task}/{outer}/status"));
            ids.and_then(|ids| ids.last().copied()) == Some(inner)
        };
        if let Some(outer) = self.known.get(&inner).copied().filter(|it| has_inner(*it)) {
            return Some(outer);
        }
        self.known.clear();
        for thread in fs::read_dir(&task).ok()?.take(Self::MOST).flatten() {
            let outer = thread.file_name().to_str()?.parse().ok()?;
            let ids = namespace_ids(&format!("{task}/{outer}/status"));
            if let Some(inner) = ids.and_then(|ids| ids.last().copied()) {
                self.known.insert(inner, outer);
            }
        }
        self.known.get(&inner).copied()
    }
}

/// Returns the IDs of a thread in the PID namespaces that contain it, innermost last, from the
/// file `status`. The kernel escapes line ends in the name before them.
fn namespace_ids(path: &str) -> Option<Vec<u32>> {
    let status = fs::read(path).ok()?;
    let status = String::from_utf8_lossy(&status);
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    let ids = ids.split_ascii_whitespace();
    Some(ids.filter_map(|id| id.parse().ok()).collect())
}
