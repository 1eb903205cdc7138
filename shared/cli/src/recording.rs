//! Recordings of the last part of a window: what ends them, and what they say.

use std::time::Duration;

use collect::{Delay, Fired, Recorder, Session, Verdicts};

use crate::Next;
use crate::flags::trigger_text;

/// Maximum time between two checks of the triggers.
const PATIENCE: Duration = Duration::from_millis(20);
/// Minimum length of a recording that shows something, in ns.
const ENOUGH_NS: u64 = 1_000_000_000;

/// Watch on the waits that end a recording.
pub(crate) struct Triggers {
    is_needed: bool,
    verdicts: Verdicts,
}

impl Triggers {
    /// Starts a watch on the triggers of the recorder, if there is one.
    pub(crate) fn new(recorder: Option<&Recorder>) -> Triggers {
        Triggers {
            is_needed: recorder.is_some_and(|recorder| !recorder.triggers.is_empty()),
            verdicts: Verdicts::default(),
        }
    }

    /// Returns the step after `next`: the end of the recording, if a wait has set off a trigger.
    /// The watch ends with the first such wait.
    pub(crate) fn check(&mut self, session: &mut impl Session, next: Next) -> Next {
        if !self.is_needed {
            return next;
        }
        let mut fired = None;
        session.with_collector(&mut |collector| fired = self.verdicts.find_trigger(collector));
        match fired {
            Some(fired) => {
                self.is_needed = false;
                Next::Triggered(describe(&fired))
            }
            None => match next {
                Next::In(patience) => Next::In(patience.min(PATIENCE)),
                end => end,
            },
        }
    }
}

/// Returns a line about the wait that ended a recording.
fn describe(fired: &Fired) -> String {
    let Fired {
        trigger,
        thread,
        comm,
        length_ns,
        kind,
    } = fired;
    let waited = match trigger.delay {
        Delay::Blocked => "was blocked",
        Delay::Runnable => "waited for a CPU",
    };
    let reason = kind.map_or(String::new(), |kind| format!(" ({})", kind.reason.name()));
    format!(
        "trigger {}: thread {} ({comm}) of process {} {waited} for {:.1} ms{reason}",
        trigger_text(trigger),
        thread.tid,
        thread.pid,
        *length_ns as f64 / 1e6,
    )
}

/// Returns a line about how far back a recording reaches. `length_ns` is its length, and
/// `measured_ns` the length of the window.
#[must_use]
pub fn reach(recorder: &Recorder, length_ns: u64, measured_ns: u64) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let asked_ns = recorder.length_ns.min(measured_ns);
    let mut line = format!("kept the last {:.2} s", seconds(length_ns));
    if length_ns < asked_ns {
        line.push_str(&format!(
            " of {:.2} s: the timeline needs more than {} MiB{}",
            seconds(asked_ns),
            recorder.max_bytes >> 20,
            if length_ns < ENOUGH_NS {
                ", too little for a second"
            } else {
                ""
            }
        ));
        line.push_str("; give --last-memory more, or --timeline-min a larger number");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_reaches_less_far_says_why() {
        let recorder = Recorder {
            length_ns: 5_000_000_000,
            max_bytes: 1 << 20,
            triggers: Vec::new(),
            counts_runnable: true,
        };
        let reach = |length_ns| reach(&recorder, length_ns, 60_000_000_000);
        assert_eq!(reach(5_000_000_000), "kept the last 5.00 s");
        let short = reach(400_000_000);
        assert!(
            short.starts_with("kept the last 0.40 s of 5.00 s: the timeline needs more than 1 MiB, too little for a second;"),
            "{short}"
        );
    }
}
