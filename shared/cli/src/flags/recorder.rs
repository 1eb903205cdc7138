//! Flags of a recorder, which keeps only the last part of a window.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use collect::{Delay, Recorder, Trigger};

use super::request::flag;
use super::values;
use crate::usage;

/// Flags that choose what a recorder keeps, and when it ends.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Timeline")]
pub struct RecorderFlags {
    /// Keep only the last LENGTH of time, such as 30s, 500ms or 5m, and write it at the end
    ///
    /// Implies --timeline. Intervals below --timeline-min have no stack. SIGUSR1 writes the files
    /// and starts a new recording.
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub last: Option<Duration>,

    /// Memory for the timeline of --last, in MiB
    #[arg(
        long, value_name = "MIB", default_value_t = 64, requires = "last", hide_short_help = true,
        value_parser = clap::value_parser!(u64).range(1..=1 << 20)
    )]
    pub last_memory: u64,

    /// End when a thread waits that long: blocked:50ms or runnable:20ms
    ///
    /// `blocked` means blocked while the thread had work, not idle. `runnable` means a wait for a
    /// CPU.
    #[arg(
        long = "trigger", value_name = "STATE:LENGTH", requires = "last", value_delimiter = ',',
        value_parser = trigger
    )]
    pub triggers: Vec<Trigger>,
}

impl RecorderFlags {
    /// Returns the recorder, if the flags ask for one.
    #[must_use]
    pub fn recorder(&self) -> Option<Recorder> {
        let last = self.last?;
        Some(Recorder {
            length_ns: u64::try_from(last.as_nanos()).unwrap_or(u64::MAX),
            max_bytes: self.last_memory << 20,
            triggers: self.triggers.clone(),
            counts_runnable: true,
        })
    }

    /// Checks that every wait that sets off a trigger has a stack. `least_us` is the minimum length
    /// of such a wait, in µs.
    ///
    /// # Errors
    /// A usage error if a trigger's length is below the minimum.
    pub fn check(&self, least_us: u64) -> anyhow::Result<()> {
        let least_ns = least_us.saturating_mul(1000);
        if self
            .triggers
            .iter()
            .any(|trigger| trigger.least_ns < least_ns)
        {
            return Err(usage(format!(
                "--trigger needs at least {least_us} us, the minimum length of recorded waits: give it more, or lower -m and --timeline-min"
            )));
        }
        Ok(())
    }
}

/// Returns a recorder as flags.
pub(super) fn encode(recorder: &Recorder) -> Vec<OsString> {
    let Recorder {
        length_ns,
        max_bytes,
        triggers,
        counts_runnable: _,
    } = recorder;
    let triggers = triggers.iter();
    let triggers = triggers.map(|trigger| flag("--trigger", trigger_text(trigger)));
    let length = flag("--last", format!("{}us", length_ns / 1000));
    let memory = flag("--last-memory", (max_bytes >> 20).to_string());
    [length, memory].into_iter().chain(triggers).collect()
}

/// Returns a trigger as users write it.
pub(crate) fn trigger_text(trigger: &Trigger) -> String {
    let name = trigger.delay.name();
    match trigger.least_ns {
        least_ns if least_ns.is_multiple_of(1_000_000) => {
            format!("{name}:{}ms", least_ns / 1_000_000)
        }
        least_ns => format!("{name}:{}us", least_ns / 1000),
    }
}

/// Parses the length of a recording.
fn length(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(24 * 3600);
    values::length(text)
        .filter(|length| !length.is_zero() && *length <= LONGEST)
        .ok_or_else(|| "give a time up to 24 hours, such as 30s, 500ms, 5m or 1h".to_owned())
}

/// Parses a trigger.
fn trigger(text: &str) -> Result<Trigger, String> {
    let trigger = text.split_once(':').and_then(|(name, length)| {
        let delays = [Delay::Blocked, Delay::Runnable];
        let delay = delays.into_iter().find(|delay| delay.name() == name)?;
        let length = values::length(length).filter(|length| !length.is_zero())?;
        let least_ns = u64::try_from(length.as_nanos()).ok()?;
        Some(Trigger { delay, least_ns })
    });
    trigger.ok_or_else(|| "give a state and a time, such as blocked:50ms or runnable:20ms".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_a_state_and_a_time() {
        let blocked = Trigger {
            delay: Delay::Blocked,
            least_ns: 50_000_000,
        };
        assert_eq!(trigger("blocked:50ms").unwrap(), blocked);
        assert_eq!(trigger("runnable:200us").unwrap().least_ns, 200_000);
        for text in [
            "",
            "blocked",
            "blocked:",
            "running:5ms",
            "blocked:0s",
            "blocked:-5ms",
        ] {
            assert!(trigger(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_trigger_below_the_recorded_waits_is_refused() {
        let flags = RecorderFlags {
            triggers: vec![trigger("runnable:200us").unwrap()],
            ..RecorderFlags::default()
        };
        assert!(flags.check(200).is_ok());
        assert!(flags.check(201).is_err());
    }

    #[test]
    fn a_length_has_a_unit() {
        assert_eq!(length("30s").unwrap(), Duration::from_secs(30));
        for text in ["30", "0s", "25h", "1.5s", "s"] {
            assert!(length(text).is_err(), "{text}");
        }
    }
}
