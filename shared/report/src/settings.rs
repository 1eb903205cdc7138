//! Line on the window and the settings.

use std::time::Duration;

use profile::Ending;

use crate::Run;

/// Returns one line on the window and the settings.
pub(super) fn settings(run: &Run) -> String {
    // The line has the requested time only if the window ended early. Without a requested time,
    // `requested` is the measured time.
    let asked = if run.requested > run.measured {
        format!(" of {} asked for", span(run.requested))
    } else {
        String::new()
    };
    let ending = match run.ending {
        Ending::Elapsed => String::new(),
        Ending::Interrupted => format!("{asked}, ended by the user"),
        Ending::TargetGone => format!("{asked}, since every process had ended"),
    };
    let shorter = if run.short_are_sampled {
        ", shorter ones sampled"
    } else {
        ""
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
