//! When intervals end, and a timer that says so.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use anyhow::Context;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// An end that never comes, in a word that has one bit for something else.
const NEVER: u64 = u64::MAX >> 1;

/// An end is set at least this long before it comes.
const NOTICE_NS: u64 = 1_000_000;

/// Ends of intervals at whole multiples of their length, in nanoseconds of
/// CLOCK_MONOTONIC.
pub(crate) struct Intervals {
    start: u64,
    length: Option<u64>,
    timer: OwnedFd,
}

impl Intervals {
    /// Intervals of `length`, or just one, from `start` on.
    pub(crate) fn new(start: u64, length: Option<Duration>) -> anyhow::Result<Intervals> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .context("cannot create a timer")?;
        let length = length.map(|length| u64::try_from(length.as_nanos()).unwrap_or(NEVER));
        Ok(Intervals {
            start,
            length,
            timer,
        })
    }

    /// The next end that is far enough from `now`, but `stop` at the latest.
    /// From then on the timer is readable.
    pub(crate) fn next_end(&self, now: u64, stop: Option<u64>) -> anyhow::Result<u64> {
        let end = self
            .length
            .map_or(NEVER, |length| next_multiple(self.start, length, now))
            .min(stop.unwrap_or(NEVER));
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
        Ok(end)
    }
}

impl AsFd for Intervals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// The first `start` + n * `length` that is [`NOTICE_NS`] after `now`, or
/// where intervals are shorter, the next but one.
fn next_multiple(start: u64, length: u64, now: u64) -> u64 {
    let soonest = now.saturating_add(NOTICE_NS).saturating_sub(start);
    let passed = (soonest / length).saturating_add(1);
    start
        .saturating_add(passed.saturating_mul(length))
        .min(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_multiples_and_those_missed_are_left_out() {
        const S: u64 = 1_000_000_000;
        assert_eq!(next_multiple(S, S, S - 10_000_000), 2 * S);
        assert_eq!(next_multiple(S, S, 2 * S + 300), 3 * S);
        assert_eq!(next_multiple(S, S, 5 * S - 10), 6 * S);
        assert_eq!(next_multiple(S, u64::MAX, S), NEVER);
    }
}
