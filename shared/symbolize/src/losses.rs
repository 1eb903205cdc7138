//! Counts of data that could not be read, so that frames stay `[unknown]` or `[module]`.

use std::fmt::Display;

/// Maximum number of reasons whose text is kept. Further reasons are only counted.
const MAX_NOTES: usize = 16;

/// Counts of data that could not be read, and the first reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Processes that had exited, or whose mappings could not be read, when their first address was
    /// located.
    pub processes: u64,
    /// Mapped files that could not be opened.
    pub unopened_files: u64,
    /// Files whose symbols could not be read.
    pub unread_files: u64,
    /// Files with names or source lines that were left out, because they take too much work or
    /// memory to read.
    pub costly_files: u64,
    /// Mapped files that were not opened, because this process has too many open files.
    pub crowded_files: u64,
    /// Processes with more executable mappings than the maximum that is read.
    pub crowded_processes: u64,
    /// Frames of interpreters' functions whose names exceeded the capacity.
    pub interpreted: u64,
    /// `true` if `/proc/kallsyms` could not be read or hides its addresses. Kernel frames then have
    /// no names.
    pub kernel_hidden: bool,
    /// First reasons, with file names as the targets' mount namespaces show them.
    pub notes: Vec<String>,
}

impl Losses {
    /// Adds a reason, up to the maximum number.
    pub(crate) fn note(&mut self, what: &str, reason: impl Display) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(format!("{what}: {reason}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_few() {
        let mut losses = Losses::default();
        for _ in 0..1000 {
            losses.note("/tmp/a", "no");
        }
        assert_eq!(losses.notes.len(), MAX_NOTES);
        assert_eq!(losses.notes[0], "/tmp/a: no");
    }
}
