//! Budget of the work of naming on the files of targets, over a whole run.
//!
//! A target chooses its files, and so the time that reads of them take. There may be sparse files
//! of any size, and symbol tables of any length. Sections may expand to thousands of times their
//! size. One [`Budget`] therefore covers all files of a run. Each file has an [`Allowance`] of it,
//! which readers charge before they read. A unit of work is a byte that is read or decompressed, or
//! a nanosecond of CPU time, whichever sum is larger.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Work for the names of a run: 4 GiB, or 4 seconds. The symbols of libLLVM, of 110 MB, take 70 ms
/// of this. A debug file without a build ID costs as much work as it has bytes, because its
/// checksum is computed. Of a debug file with a build ID only the symbols are read, whatever its
/// size.
const FOR_NAMES: u64 = 4 << 30;
/// Work for a run that also looks up source lines: 16 GiB, or 17 seconds. A Rust program with 40 MB
/// of debug information takes a second if addresses are spread over the whole program.
const FOR_SOURCES: u64 = 16 << 30;
/// Work to find out what a file lacks: 64 MiB, or 64 ms.
const FOR_A_REQUEST: u64 = 64 << 20;
/// Minimum work of a file. Otherwise a hundred thousand empty files would take seconds for free.
const EACH_FILE: u64 = 32 << 10;
/// Work of each read, in addition to the bytes that it reads.
const EACH_READ: u64 = 256;

/// Work that remains for naming.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    /// Work on the files of each process so far, by process ID.
    taken: HashMap<u32, u64>,
}

/// Work that may be spent on one file.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// ID of the process that is charged for the file.
    pid: u32,
    work: u64,
    taken: Cell<u64>,
    refused: Cell<Option<&'static str>>,
    begun: Duration,
}

impl Budget {
    /// Returns the budget of a run. It is larger if `with_sources` is true.
    pub(crate) fn new(with_sources: bool) -> Self {
        Self {
            left: if with_sources { FOR_SOURCES } else { FOR_NAMES },
            taken: HashMap::new(),
        }
    }

    /// Returns the allowance of the next file, which the processes `pids` map. Charges the process
    /// whose files took the least work.
    ///
    /// The files of a process take at most as much work as they leave to all other processes. No
    /// process can therefore prevent others from getting names.
    pub(crate) fn allow(&self, pids: &[u32]) -> Allowance {
        let taken = |pid: &u32| self.taken.get(pid).copied().unwrap_or(0);
        let pid = pids.iter().copied().min_by_key(taken).unwrap_or(0);
        Allowance::new(pid, self.left.saturating_sub(taken(&pid)) / 2)
    }

    /// Subtracts the work that a file took.
    pub(crate) fn settle(&mut self, allowance: &Allowance) {
        let taken = allowance.taken();
        self.left = self.left.saturating_sub(taken);
        *self.taken.entry(allowance.pid).or_default() += taken;
    }
}

impl Allowance {
    fn new(pid: u32, work: u64) -> Self {
        Self {
            pid,
            work,
            taken: Cell::new(EACH_FILE),
            refused: Cell::new(None),
            begun: cpu_time(),
        }
    }

    /// Returns half of the budget of a run, for a file that no target chooses or for a reader
    /// without a run.
    pub(crate) fn alone() -> Self {
        Budget::new(true).allow(&[])
    }

    /// Returns the work to find out whether a file needs a debug file that is not on this machine.
    pub(crate) fn brief() -> Self {
        Self::new(0, FOR_A_REQUEST)
    }

    /// Charges the work of a read of this many bytes. Callers charge before they read.
    ///
    /// # Errors
    /// `QuotaExceeded` if too little work remains.
    pub(crate) fn take(&self, bytes: u64) -> Result<()> {
        let charged = self.taken.get().saturating_add(EACH_READ);
        let charged = charged.saturating_add(bytes);
        if charged > self.work {
            return Err(self.refuse("it takes too much work"));
        }
        self.taken.set(charged);
        self.check_time()
    }

    /// Checks that CPU time remains.
    ///
    /// # Errors
    /// `QuotaExceeded` if no CPU time remains.
    pub(crate) fn check_time(&self) -> Result<()> {
        if self.cpu_nanoseconds() > self.work {
            return Err(self.refuse("it takes too much time"));
        }
        Ok(())
    }

    /// Records that a part of the file is left out, and the reason `why`.
    pub(crate) fn refuse(&self, why: &'static str) -> Error {
        self.refused.set(Some(why));
        Error::new(ErrorKind::QuotaExceeded, why)
    }

    /// Returns the reason why a part of the file was left out, if one was.
    pub(crate) fn refused(&self) -> Option<&'static str> {
        self.refused.get()
    }

    fn taken(&self) -> u64 {
        self.taken.get().max(self.cpu_nanoseconds())
    }

    fn cpu_nanoseconds(&self) -> u64 {
        cpu_time().saturating_sub(self.begun).as_nanos() as u64
    }
}

/// Returns the CPU time of this thread. It does not include waits for a slow disk or a busy
/// machine.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_takes_at_most_what_is_left_for_others() {
        let mut budget = Budget::new(false);
        let mut taken_by = |pids: &[u32]| {
            let mut total = 0;
            loop {
                let allowance = budget.allow(pids);
                let refused = (0..8).any(|_| allowance.take(64 << 20).is_err());
                assert_eq!(allowance.refused().is_some(), refused);
                budget.settle(&allowance);
                if refused {
                    return (total, budget.left);
                }
                total += allowance.taken();
            }
        };
        let (greedy, left) = taken_by(&[1]);
        assert!(
            greedy <= left && greedy > FOR_NAMES / 4,
            "{greedy} of {left}"
        );
        // Both processes map this file, so the process with less work is charged.
        let (shared, left) = taken_by(&[1, 2]);
        assert!(
            shared <= left && shared > FOR_NAMES / 8,
            "{shared} of {left}"
        );
    }
}
