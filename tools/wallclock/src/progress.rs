//! The progress bar, where stderr is a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(200);

/// A bar, or nothing at all. It is taken off the screen when dropped, as its library does.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar if there is a terminal to draw it on, and nobody else does.
    pub(crate) fn new(is_ours: bool) -> Progress {
        Progress((is_ours && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_message("attaching");
            bar
        }))
    }

    /// How long to sleep at most between two movements.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.0.as_ref().map(|_| TICK)
    }

    /// Measuring begins, for so long.
    pub(crate) fn begin(&self, duration: Duration) {
        if let Some(bar) = &self.0 {
            if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}]") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_length(milliseconds(duration));
        }
    }

    /// So much of it has passed.
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
