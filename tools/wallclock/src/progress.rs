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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_moves_five_times_a_second() {
        let progress = Progress(Some(ProgressBar::hidden()));
        assert_eq!(progress.patience(), Some(Duration::from_millis(200)));
        assert_eq!(Progress(None).patience(), None);
    }

    #[test]
    fn it_says_how_much_has_passed_and_then_what_takes_the_rest() {
        let bar = ProgressBar::hidden();
        let progress = Progress(Some(bar.clone()));
        progress.begin(Duration::from_secs(3));
        progress.advance(Duration::from_millis(1500));
        assert_eq!(bar.message(), "measuring 1.5 of 3.0 s");
        for seconds in [3, 4] {
            progress.advance(Duration::from_secs(seconds));
            assert_eq!(bar.message(), "naming the stacks");
            assert_eq!(bar.position(), 3000);
        }
    }
}
