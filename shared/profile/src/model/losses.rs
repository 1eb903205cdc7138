//! Events, stacks and threads that a tool lost.

use std::fmt;
use std::ops::AddAssign;

/// Numbers of events, stacks and threads that a tool lost. The text is one line, which a tool
/// prints for another program: `lost events=0 stacks=0 threads=0 incomplete_user=0`, and
/// ` times=1` after it if rows of a timeline were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Scheduler events or samples that were not recorded.
    pub events: u64,
    /// Intervals or samples whose stack is missing.
    pub stacks: u64,
    /// Threads without a clock.
    pub threads: u64,
    /// User stacks cut short before the thread's root; the profile has their time.
    pub incomplete_user: u64,
    /// Rows of a timeline that were not recorded; the sums have their time.
    pub times: u64,
}

impl Losses {
    /// Returns whether anything was lost apart from the depth of some stacks.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.events > 0 || self.stacks > 0 || self.threads > 0 || self.times > 0
    }
}

impl AddAssign for Losses {
    fn add_assign(&mut self, other: Losses) {
        self.events = self.events.saturating_add(other.events);
        self.stacks = self.stacks.saturating_add(other.stacks);
        self.threads = self.threads.saturating_add(other.threads);
        self.incomplete_user = self.incomplete_user.saturating_add(other.incomplete_user);
        self.times = self.times.saturating_add(other.times);
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "lost events={} stacks={} threads={} incomplete_user={}",
            self.events, self.stacks, self.threads, self.incomplete_user
        )?;
        if self.times > 0 {
            write!(formatter, " times={}", self.times)?;
        }
        Ok(())
    }
}
