//! The progress bar on stderr, if that is a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two updates of the bar.
const TICK: Duration = Duration::from_millis(200);

/// A progress bar, or none. The library removes the bar from the screen when it is dropped.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Returns a bar if stderr is a terminal that wallclock has to itself.
    pub(crate) fn new(is_ours: bool) -> Progress {
        Progress((is_ours && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_message("attaching");
            bar
        }))
    }

    /// Returns the maximum sleep between two updates; `None` without a bar.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.0.as_ref().map(|_| TICK)
    }

    /// Starts the bar for a window of this length.
    pub(crate) fn begin(&self, duration: Duration) {
        if let Some(bar) = &self.0 {
            if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_length(milliseconds(duration));
        }
    }

    /// Moves the bar to the time that has passed.
    pub(crate) fn advance(&self, passed: Duration) {
        if let Some(bar) = &self.0 {
            let whole = Duration::from_millis(bar.length().unwrap_or(0));
            let passed = passed.min(whole);
            bar.set_message(if passed < whole {
                format!(
                    "measuring {:.1} of {:.1} s",
                    passed.as_secs_f64(),
                    whole.as_secs_f64()
                )
            } else {
                "naming the stacks".to_owned()
            });
            bar.set_position(milliseconds(passed));
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
