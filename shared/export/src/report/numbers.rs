//! How figures and stacks read in reports.

use std::borrow::Cow;
use std::time::Duration;

use profile::Ending;

use super::Run;

/// Seconds with milliseconds.
pub(super) fn seconds(nanoseconds: u64) -> String {
    format!("{:.3}", nanoseconds as f64 / 1e9)
}

/// A part of a whole in per cent, `-` where there is no whole.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.1}", part as f64 / whole as f64 * 100.0)
    }
}

/// A coverage in per cent, `-` where there is none. Cut, not rounded: 100.0
/// means that nothing is missing.
pub(super) fn coverage(share: Option<f64>) -> String {
    match share {
        Some(share) => format!("{:.1}", (share * 1000.0).floor() / 10.0),
        None => "-".to_owned(),
    }
}

/// `1 thread`, `2 threads`, `2 processes`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = match (number, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {noun}{plural}")
}

/// A text of at most so many characters.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        // The last one says that there are more.
        Some(_) => {
            let kept = text.chars().take(most.saturating_sub(1));
            Cow::Owned(kept.chain(['…']).collect())
        }
        None => Cow::Borrowed(text),
    }
}

/// One line on the window and the settings.
pub(super) fn settings(run: &Run) -> String {
    // A command is measured to its end if nobody says how long.
    let asked = match run.requested > run.measured {
        true => format!(" of {} asked for", span(run.requested)),
        false => String::new(),
    };
    let ending = match run.ending {
        Ending::Elapsed => String::new(),
        Ending::Interrupted => format!("{asked}, ended by the user"),
        Ending::TargetGone => format!("{asked}, since every process had ended"),
    };
    let shorter = match run.short_are_sampled {
        true => ", shorter ones sampled",
        false => "",
    };
    format!(
        "{} measured{ending}; {} samples per second; off-CPU stacks kept from {} µs on{shorter}",
        span(run.measured),
        run.frequency,
        run.min_block_us
    )
}

fn span(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
