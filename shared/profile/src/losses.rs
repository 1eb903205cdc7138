//! What a tool could not keep.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use thiserror::Error;

/// Counts of what a tool could not keep. A tool under wallclock's control says
/// them as one line, which this type writes ([`fmt::Display`]) and reads ([`FromStr`]):
/// `lost events=0 stacks=0 threads=0 incomplete_user=0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Scheduler events or samples that were not recorded at all.
    pub events: u64,
    /// Intervals or samples whose stack is missing.
    pub stacks: u64,
    /// Threads without a clock.
    pub threads: u64,
    /// User stacks cut short before the thread's root; their time is kept.
    pub incomplete_user: u64,
}

impl Losses {
    /// Whether anything but the depth of some stacks is missing.
    #[must_use]
    pub fn any(&self) -> bool {
        self.events > 0 || self.stacks > 0 || self.threads > 0
    }
}

impl AddAssign for Losses {
    fn add_assign(&mut self, other: Losses) {
        self.events += other.events;
        self.stacks += other.stacks;
        self.threads += other.threads;
        self.incomplete_user += other.incomplete_user;
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "lost events={} stacks={} threads={} incomplete_user={}",
            self.events, self.stacks, self.threads, self.incomplete_user
        )
    }
}

/// The text is not a line of losses.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("expected `lost events=N stacks=N threads=N incomplete_user=N`, got `{0}`")]
pub struct NotLosses(String);

impl FromStr for Losses {
    type Err = NotLosses;

    /// Fields may come in any order; those absent are 0, those unknown are skipped.
    fn from_str(text: &str) -> Result<Losses, NotLosses> {
        let refuse = || NotLosses(text.to_owned());
        let mut words = text.split_whitespace();
        if words.next() != Some("lost") {
            return Err(refuse());
        }
        let mut losses = Losses::default();
        for word in words {
            let (name, count) = word.split_once('=').ok_or_else(refuse)?;
            let count = count.parse().map_err(|_| refuse())?;
            match name {
                "events" => losses.events = count,
                "stacks" => losses.stacks = count,
                "threads" => losses.threads = count,
                "incomplete_user" => losses.incomplete_user = count,
                _ => {}
            }
        }
        Ok(losses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        let losses = Losses {
            events: 1,
            stacks: 2,
            threads: 3,
            incomplete_user: 4,
        };
        let line = losses.to_string();
        assert_eq!(line, "lost events=1 stacks=2 threads=3 incomplete_user=4");
        assert_eq!(line.parse(), Ok(losses));
    }

    #[test]
    fn each_loss_is_one_and_depth_is_none() {
        let read = |line: &str| line.parse::<Losses>().unwrap_or_default();
        assert!(!read("lost incomplete_user=7").any());
        for line in ["lost events=1", "lost stacks=1", "lost threads=1"] {
            assert!(read(line).any(), "{line}");
        }
    }

    #[test]
    fn losses_add_up() {
        let mut sum = Losses {
            events: 1,
            stacks: 2,
            threads: 3,
            incomplete_user: 4,
        };
        sum += Losses {
            events: 10,
            stacks: 20,
            threads: 30,
            incomplete_user: 40,
        };
        let line = "lost events=11 stacks=22 threads=33 incomplete_user=44";
        assert_eq!(sum.to_string(), line);
    }

    #[test]
    fn absent_is_zero_and_nonsense_is_refused() {
        assert_eq!("lost later=7".parse(), Ok(Losses::default()));
        for text in [
            "",
            "ready",
            "lost events",
            "lost events=x",
            "lost events=-1",
        ] {
            assert!(text.parse::<Losses>().is_err(), "{text}");
        }
    }
}
