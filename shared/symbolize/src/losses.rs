//! What could not be read, and so prints as `[unknown]` or `[module]`.

use std::fmt::Display;

/// Reasons kept word for word; the rest is only counted.
const MOST_NOTES: usize = 16;

/// What could not be read, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Processes that were gone, or whose mappings could not be read, when
    /// their first address was to be located.
    pub processes: u64,
    /// Mapped files that could not be opened.
    pub unopened_files: u64,
    /// Files whose symbols could not be read.
    pub unread_files: u64,
    /// Files of which names or source lines were left out, as reading them takes too much work
    /// or memory.
    pub costly_files: u64,
    /// Mapped files that were not opened as too many are open.
    pub crowded_files: u64,
    /// Processes with more executable mappings than are read.
    pub crowded_processes: u64,
    /// Frames of interpreters' functions whose names found no room.
    pub interpreted: u64,
    /// `/proc/kallsyms` could not be read or hides its addresses, so that
    /// kernel frames have no names.
    pub kernel_hidden: bool,
    /// The first reasons, with what targets call their files.
    pub notes: Vec<String>,
}

impl Losses {
    /// Keeps a reason, as far as there is room.
    pub(crate) fn note(&mut self, what: &str, reason: impl Display) {
        if self.notes.len() < MOST_NOTES {
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
        assert_eq!(losses.notes.len(), MOST_NOTES);
        assert_eq!(losses.notes[0], "/tmp/a: no");
    }
}
