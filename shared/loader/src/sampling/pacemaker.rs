//! Keeps clocks at their pace, on a thread that does nothing else: what a reader of events
//! does can take it seconds where a machine is busy, and a clock would go on meanwhile at a
//! period that was meant for a few samples.

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

/// Clocks that are due within this time are attended to together: there may be hundreds.
const PAUSE: Duration = Duration::from_millis(5);

/// Paces the clocks of some CPUs, all at one frequency, while it lives.
pub(super) struct Pacemaker {
    shared: Arc<Shared>,
    /// None once it ends.
    thread: Option<JoinHandle<()>>,
    frequency: u64,
}

struct Shared {
    clocks: Mutex<Clocks>,
    /// There is another clock, or the end.
    changed: Condvar,
}

#[derive(Default)]
struct Clocks {
    /// By CPU. Descriptors are open as long as they are here.
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

    /// Paces the clock of `cpu`, which is to stay open until it is removed.
    pub(super) fn add(&self, cpu: u32, clock: RawFd) {
        let pace = Pace::new(self.frequency, monotonic_ns());
        self.shared.clocks().paces.insert(cpu, (clock, pace));
        self.shared.changed.notify_one();
    }

    /// Leaves the clock of `cpu` alone from here on.
    pub(super) fn remove(&self, cpu: u32) {
        self.shared.clocks().paces.remove(&cpu);
    }

    /// Has all clocks begin anew, with nothing to make up for.
    pub(super) fn begin(&self) {
        let mut clocks = self.shared.clocks();
        for (_, pace) in clocks.paces.values_mut() {
            *pace = Pace::new(self.frequency, monotonic_ns());
        }
        clocks.attend();
        self.shared.changed.notify_one();
    }

    /// Why a clock could not be paced, if that was not told yet.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        self.shared.clocks().failure.take()
    }
}

impl Drop for Pacemaker {
    fn drop(&mut self) {
        self.shared.clocks().has_ended = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // All that it could leave behind is its memory.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
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
    /// Gives another period to the clocks for which it is time.
    fn attend(&mut self) {
        for (clock, pace) in self.paces.values_mut() {
            let now = monotonic_ns();
            if now < pace.until() {
                continue;
            }
            let period = pace.next(now);
            // SAFETY: the descriptor is open, and the period lives through the call.
            if unsafe { libc::ioctl(*clock, SET_PERIOD, &raw const period) } != 0 {
                self.failure = Some(io::Error::last_os_error());
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::time::Instant;

    use super::*;

    /// Whether something that is no clock is given another period, soon.
    fn is_attended_to(pacemaker: &Pacemaker) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(60) {
            if let Some(failure) = pacemaker.take_failure() {
                assert_eq!(failure.raw_os_error(), Some(libc::ENOTTY));
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    #[test]
    fn clocks_are_attended_to_from_when_they_come_until_they_go() {
        let no_clock = File::open("/dev/null").unwrap();
        let pacemaker = Pacemaker::start(1).unwrap();
        pacemaker.add(0, no_clock.as_raw_fd());
        assert!(is_attended_to(&pacemaker));
        // One sample a second: by itself it is due again in three seconds at the earliest.
        pacemaker.begin();
        assert!(pacemaker.take_failure().is_some());
        pacemaker.remove(0);
        pacemaker.take_failure();
        pacemaker.begin();
        assert!(pacemaker.take_failure().is_none());
        let shared = Arc::downgrade(&pacemaker.shared);
        drop(pacemaker);
        assert!(shared.upgrade().is_none(), "its thread goes on");
    }

    #[test]
    fn a_clock_that_is_not_due_is_left_alone() {
        let no_clock = File::open("/dev/null").unwrap();
        let pace = Pace::new(1, u64::MAX);
        let mut clocks = Clocks::default();
        clocks.paces.insert(0, (no_clock.as_raw_fd(), pace));
        clocks.attend();
        assert!(clocks.failure.is_none());
    }

    #[test]
    fn clocks_are_attended_to_again_and_again() {
        let no_clock = File::open("/dev/null").unwrap();
        let pacemaker = Pacemaker::start(1000).unwrap();
        pacemaker.add(0, no_clock.as_raw_fd());
        assert!((0..3).all(|_| is_attended_to(&pacemaker)));
    }
}
