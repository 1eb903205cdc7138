//! Checks which processes live.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Processes that live at one moment, in the PID namespace of this process.
pub struct Living(HashSet<u32>);

impl Living {
    /// Reads `/proc` once. The cost of checking each known process would grow with the number of
    /// ended processes. Returns `None` if `/proc` cannot be read. The caller then knows of no
    /// process that has ended.
    #[must_use]
    pub fn read() -> Option<Living> {
        let entries = fs::read_dir("/proc").ok()?;
        let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        Some(Living(entries.flatten().filter_map(pid).collect()))
    }

    /// Returns the processes of `pids` that live. For up to 64 processes this costs less than
    /// [`Living::read`].
    pub fn among<'a>(pids: impl ExactSizeIterator<Item = &'a u32>) -> Option<Living> {
        const FEW: usize = 64;
        if pids.len() > FEW {
            return Living::read();
        }
        let lives = |pid: &u32| Path::new("/proc").join(pid.to_string()).exists();
        Some(Living(pids.copied().filter(lives).collect()))
    }

    /// Returns whether a process lives. Process 0 never ends.
    #[must_use]
    pub fn has(&self, pid: u32) -> bool {
        pid == 0 || self.0.contains(&pid)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn we_live_and_one_who_was_reaped_does_not() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let living = Living::read().unwrap();
        assert!(living.has(std::process::id()) && living.has(0));
        assert!(!living.has(child.id()));
        let living = Living::among([std::process::id(), child.id()].iter()).unwrap();
        assert!(living.has(std::process::id()) && living.has(0));
        assert!(!living.has(child.id()));
    }
}
