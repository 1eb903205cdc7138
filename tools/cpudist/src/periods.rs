//! The ends of periods, and a timer for them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use anyhow::Context;
use collect::NEVER;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Minimum time between setting the end of a period and that end.
const NOTICE_NS: u64 = 1_000_000;

/// Periods of equal length from the start of the window on, in ns of CLOCK_MONOTONIC.
pub(crate) struct Periods {
    start: u64,
    length: Option<u64>,
    timer: OwnedFd,
}

impl Periods {
    /// Returns periods of `length` from `start` on; one endless period without a length.
    ///
    /// # Errors
    /// The timer cannot be created.
    pub(crate) fn new(start: u64, length: Option<Duration>) -> anyhow::Result<Periods> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .context("cannot create a timer")?;
        let length = length.map(|length| u64::try_from(length.as_nanos()).unwrap_or(NEVER));
        Ok(Periods {
            start,
            length,
            timer,
        })
    }

    /// Returns the end of the present period, or `stop` if that comes first; at least
    /// [`NOTICE_NS`] after `now`.
    pub(crate) fn next_end(&self, now: u64, stop: Option<u64>) -> u64 {
        let soonest = now.saturating_add(NOTICE_NS);
        self.length
            .map_or(NEVER, |length| next_multiple(self.start, length, soonest))
            .min(stop.unwrap_or(NEVER))
            .max(soonest)
    }

    /// Sets the timer, which is readable from `end` on.
    ///
    /// # Errors
    /// The timer cannot be set.
    pub(crate) fn wake_at(&self, end: u64) -> anyhow::Result<()> {
        let at = Timespec {
            tv_sec: (end / 1_000_000_000) as i64,
            tv_nsec: (end % 1_000_000_000) as i64,
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: at,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
            .context("cannot set a timer")?;
        Ok(())
    }
}

impl AsFd for Periods {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// Returns the first `start` + n * `length` after `soonest`.
fn next_multiple(start: u64, length: u64, soonest: u64) -> u64 {
    let passed = (soonest.saturating_sub(start) / length).saturating_add(1);
    start
        .saturating_add(passed.saturating_mul(length))
        .min(NEVER)
}
