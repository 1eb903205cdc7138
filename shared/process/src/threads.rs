//! Threads through which `/proc` shows a process.
//!
//! The first thread of a process may end before the others, by `pthread_exit()` in `main()`. It
//! stays as a zombie, without memory, files and namespaces, until the other threads end. Its
//! entries in `/proc` for these are empty or cannot be opened. The entries of any other thread are
//! complete.

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
