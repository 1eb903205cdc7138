//! Helper process of this program, and the processes whose memory missed the deadline.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::Duration;

use parking_lot::Mutex;

use crate::helper::{Helper, Source};

/// Deadline of an answer. A page from a busy disk takes tens of milliseconds.
const DEADLINE: Duration = Duration::from_millis(200);
/// Maximum number of helpers that are left behind. After that many, this program reads no memory
/// any more. Targets therefore delay it by at most this many times `DEADLINE`.
const MAX_LEFT_BEHIND: usize = 4;
/// Maximum number of bytes that are read of a command line. The kernel allows gigabytes.
const LONGEST_COMMAND_LINE: usize = 64 << 10;

static READS: Mutex<Reads> = Mutex::new(Reads {
    helper: None,
    unanswered: BTreeSet::new(),
    left_behind: 0,
});

struct Reads {
    helper: Option<Helper>,
    /// Processes whose memory missed the deadline. Their memory is not read again.
    unanswered: BTreeSet<u32>,
    left_behind: usize,
}

/// Starts the helper process now, while this process is small. Without this call, the first read
/// starts it.
pub fn start_helper() {
    let mut reads = READS.lock();
    if reads.helper.is_none() {
        reads.helper = Helper::start().ok();
    }
}

/// Ends the helper process. A later read starts another helper.
pub fn stop_helper() {
    READS.lock().helper = None;
}

/// Returns the CPU time that the helper process has taken so far; `None` if no helper runs, or if the
/// kernel does not tell.
#[must_use]
pub fn helper_cpu_time() -> Option<Duration> {
    let pid = READS.lock().helper.as_ref()?.pid();
    // The first number is the time on CPUs in ns (Documentation/scheduler/sched-stats.rst).
    let times = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let ran = times.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ran))
}

/// Returns the number of processes whose memory missed the deadline.
#[must_use]
pub fn count_unanswered() -> usize {
    READS.lock().unanswered.len()
}

/// Reads the command line of process `pid` from `file`, which must be its `/proc/PID/cmdline`.
/// Returns words that end in NUL, cut after 64 KiB. The kernel reads them from the memory of the
/// process.
///
/// # Errors
/// `TimedOut` if that memory misses the deadline. Other errors if no helper can be started, or if
/// the helper ends.
pub fn read_command_line(pid: u32, file: &File) -> io::Result<Vec<u8>> {
    let mut words = vec![0; LONGEST_COMMAND_LINE];
    let count = READS
        .lock()
        .read(pid, Source::File(file.as_fd()), &mut words)?;
    words.truncate(count);
    Ok(words)
}

/// Reads memory of process `pid` through its thread `tid` up to the first unreadable page. Returns
/// the number of bytes.
pub(crate) fn read_memory(pid: u32, tid: u32, address: u64, buffer: &mut [u8]) -> usize {
    let source = Source::Memory { tid, address };
    READS.lock().read(pid, source, buffer).unwrap_or(0)
}

impl Reads {
    fn read(&mut self, pid: u32, source: Source<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unanswered.contains(&pid) || self.left_behind >= MAX_LEFT_BEHIND {
            self.unanswered.insert(pid);
            return Err(ErrorKind::TimedOut.into());
        }
        let helper = match self.helper.take() {
            Some(helper) => helper,
            None => Helper::start()?,
        };
        let outcome = helper.read(source, buffer, DEADLINE);
        match &outcome {
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                self.unanswered.insert(pid);
                self.left_behind += 1;
            }
            // The next read starts a new helper in place of a killed one.
            Err(_) => {}
            Ok(_) => self.helper = Some(helper),
        }
        outcome
    }
}
