//! Paces clocks on a thread of its own. The reader of events can be held up for seconds on a busy
//! machine. A clock would then keep a period that was meant for a few samples.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::pace::Pace;
use crate::monotonic_ns;

/// `PERF_EVENT_IOC_PERIOD` of include/uapi/linux/perf_event.h, `_IOW('$', 4, __u64)`.
const SET_PERIOD: libc::Ioctl = 0x4008_2404;

/// Pause between two rounds of the thread. A round handles all clocks that are due, which may be
/// hundreds.
const PAUSE: Duration = Duration::from_millis(5);

/// Thread that paces the clocks of some CPUs at one frequency, until this value is dropped.
pub(super) struct Pacemaker {
    shared: Arc<Shared>,
    /// `None` once the thread has ended.
    thread: Option<JoinHandle<()>>,
    frequency: u64,
}

struct Shared {
    clocks: Mutex<Clocks>,
    /// Signals a new clock, or the end.
    changed: Condvar,
}

#[derive(Default)]
struct Clocks {
    /// Descriptor and pace of each clock, by CPU. A descriptor stays open as long as it is here.
    paces: BTreeMap<u32, (RawFd, Pace)>,
    failure: Option<io::Error>,
    has_ended: bool,
}

impl Pacemaker {
    pub(super) fn start(frequency: u64) -> io::Result<Pacemaker> {
        let shared = Arc::new(Shared {
            clocks: Mutex::default(),
            changed: Condvar::new(),
        });
        let thread = Builder::new().name("sampling-pace".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.keep_pace()
        })?;
        Ok(Pacemaker {
            shared,
            thread: Some(thread),
            frequency,
        })
    }

    /// Paces the clock of `cpu`, whose descriptor must stay open until the clock is removed.
    pub(super) fn add(&self, cpu: u32, clock: RawFd) {
        let pace = Pace::new(self.frequency, monotonic_ns());
        self.shared.clocks().paces.insert(cpu, (clock, pace));
        self.shared.changed.notify_one();
    }

    /// Stops the pacing of the clock of `cpu`.
    pub(super) fn remove(&self, cpu: u32) {
        self.shared.clocks().paces.remove(&cpu);
    }

    /// Restarts all clocks without samples to compensate for.
    pub(super) fn begin(&self) {
        let mut clocks = self.shared.clocks();
        for (_, pace) in clocks.paces.values_mut() {
            *pace = Pace::new(self.frequency, monotonic_ns());
        }
        clocks.attend();
        self.shared.changed.notify_one();
    }

    /// Returns the error with which the kernel refused a period. Returns each error once.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        self.shared.clocks().failure.take()
    }
}

impl Drop for Pacemaker {
    fn drop(&mut self) {
        self.shared.clocks().has_ended = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked leaves nothing that needs to be cleaned up.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets periods as they fall due, until the pacemaker ends. The thread runs this function.
    fn keep_pace(&self) {
        let mut clocks = self.clocks();
        while !clocks.has_ended {
            clocks.attend();
            let until = clocks.paces.values().map(|(_, pace)| pace.until()).min();
            let left = until.map_or(u64::MAX, |until| until.saturating_sub(monotonic_ns()));
            let patience = Duration::from_nanos(left).max(PAUSE);
            let waited = self.changed.wait_timeout(clocks, patience);
            (clocks, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Clocks {
    /// Sets the next period of the clocks that are due.
    fn attend(&mut self) {
        for (clock, pace) in self.paces.values_mut() {
            let now = monotonic_ns();
            if now < pace.until() {
                continue;
            }
            let period = pace.next(now);
            // SAFETY: the descriptor is open, and the period lives until the call returns.
            if unsafe { libc::ioctl(*clock, SET_PERIOD, &raw const period) } != 0 {
                self.failure = Some(io::Error::last_os_error());
            }
        }
    }
}
