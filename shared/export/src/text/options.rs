//! Options for writing stacks, and counts of the lines written.

use profile::{ThreadId, Unit};

/// Options for writing stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Distinguish threads: the first field is `comm-PID/TID`.
    pub per_thread: bool,
    /// Distinguish processes, unless `per_thread` is set: the first field is `comm-PID`.
    pub per_process: bool,
    /// Put a `-` frame between user and kernel frames.
    pub delimited: bool,
    /// Append `_[k]` to kernel frames and `_[i]` to inlined ones.
    pub annotate: bool,
    /// Append a frame's offset in its function: `read+0x1f`.
    pub symbol_offsets: bool,
    /// Append a frame's file and its address there: `read [libc.so.6+0xf8c4f]`.
    pub addresses: bool,
    /// Append a frame's source file and line: `parse (row.c:17)`.
    pub source_lines: bool,
    /// Put the reason why a thread was blocked on top of its stack: `[lock: mutex]`.
    pub reasons: bool,
    /// Write times as nanoseconds, not as whole microseconds. Sample counts stay as they are.
    pub nanoseconds: bool,
}

/// IDs behind a thread's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// No ID.
    None,
    /// `comm-PID`.
    Process,
    /// `comm-PID/TID`.
    Thread,
}

impl Options {
    /// Returns the IDs behind threads' names.
    pub(crate) fn ids(&self) -> Ids {
        match (self.per_thread, self.per_process) {
            (true, _) => Ids::Thread,
            (false, true) => Ids::Process,
            (false, false) => Ids::None,
        }
    }
}

impl Ids {
    /// Returns the known IDs that distinguish threads. A TID of 0 stands for a whole process.
    pub(crate) fn select(self, thread: Option<ThreadId>) -> Option<ThreadId> {
        match self {
            Ids::None => None,
            Ids::Process => thread.map(|ThreadId { pid, .. }| ThreadId { pid, tid: 0 }),
            Ids::Thread => thread,
        }
    }
}

/// Counts of the lines written and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines written.
    pub lines: u64,
    /// Lines left out because their value is 0 in the written unit.
    pub dropped_lines: u64,
    /// Nanoseconds of the lines left out.
    pub dropped_ns: u64,
}

impl Written {
    /// Returns the value to print for `sum` and counts the line. If the value is 0, counts the line
    /// as left out and returns `None`.
    pub(crate) fn take(&mut self, sum: u64, unit: Unit, options: &Options) -> Option<u64> {
        let value = match unit {
            Unit::Nanoseconds if !options.nanoseconds => sum / 1_000,
            Unit::Nanoseconds | Unit::Samples => sum,
        };
        if value == 0 {
            self.dropped_lines += 1;
            self.dropped_ns += sum;
            return None;
        }
        self.lines += 1;
        Some(value)
    }

    /// Describes the lines left out; `None` if there are none.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let Written {
            dropped_lines,
            dropped_ns,
            ..
        } = self;
        (*dropped_lines > 0).then(|| {
            format!("left out {dropped_lines} stacks of less than 1 us, {dropped_ns} ns in all")
        })
    }
}
