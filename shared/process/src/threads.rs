//! Threads through which `/proc` shows a process.
//!
//! The first thread of a process may end before the others, by `pthread_exit()` in `main()`. It
//! stays until they end, as a zombie without memory, files and namespaces: its entries in `/proc`
//! for these are empty or refuse to open. Those of any other thread have all of them.

use std::fs;
use std::path::Path;

/// Maximum threads that are looked at in place of one that has ended. Threads that have ended
/// stay only where a debugger traces them.
const MOST_THREADS: usize = 256;

/// Returns the ID of a thread of process `pid` that has not ended, `pid` itself if it can be, or
/// `None` if there is none.
///
/// The thread may end at any time: what is then read of it fails.
#[must_use]
pub fn living_thread(pid: u32) -> Option<u32> {
    if is_alive(Path::new(&format!("/proc/{pid}"))) {
        return Some(pid);
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut threads = threads.take(MOST_THREADS).flatten();
    threads.find_map(|thread| {
        let tid = thread.file_name().to_str()?.parse().ok()?;
        is_alive(&thread.path()).then_some(tid)
    })
}

/// Returns the folder in `/proc` in which the memory, the files and the namespaces of process
/// `pid` can be read: that of a living thread.
#[must_use]
pub fn living_folder(pid: u32) -> String {
    format!("/proc/{}", living_thread(pid).unwrap_or(pid))
}

/// Whether the thread with this folder in `/proc` exists and is no zombie: the state follows
/// the name, which ends at the last `)`.
#[must_use]
pub fn is_alive(folder: &Path) -> bool {
    // Not text: the name is any bytes.
    fs::read(folder.join("stat"))
        .ok()
        .and_then(|stat| {
            let stat = String::from_utf8_lossy(&stat);
            stat.rsplit_once(") ")
                .map(|(_, rest)| !rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}
