//! Metadata about the run, for its profile.

use std::env;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use loader::monotonic_ns;
use profile::{Meta, Text, Window};

/// Returns the metadata known before measuring: the command line and the machine.
pub(crate) fn describe_run() -> Meta {
    let fact = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim_end().into()
    };
    Meta {
        tool_version: env!("CARGO_PKG_VERSION").into(),
        command_line: own_command_line(),
        host: fact("hostname"),
        kernel: fact("osrelease"),
        cpus: loader::online_cpus().map_or(0, |cpus| cpus.len() as u32),
        ..Meta::default()
    }
}

/// Returns the words of this program's command line, its name first.
#[must_use]
pub fn own_command_line() -> Vec<Text> {
    let words = env::args_os().map(|word| Text::from(&*word.to_string_lossy()));
    words.collect()
}

/// Returns a window that has closed; `start` and `stop` are in ns of CLOCK_MONOTONIC.
pub(crate) fn window(start: u64, stop: u64) -> Window {
    // The present offset between the two clocks gives the UTC of the start.
    let since = monotonic_ns().saturating_sub(start);
    let utc = SystemTime::now().duration_since(UNIX_EPOCH);
    let utc = utc.map_or(0, |utc| u64::try_from(utc.as_nanos()).unwrap_or(u64::MAX));
    Window {
        start_ns: start,
        start_utc_ns: utc.saturating_sub(since),
        length_ns: stop.saturating_sub(start),
        ..Window::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_at_its_time_of_day() {
        let start = monotonic_ns() - 5_000_000_000;
        let window = window(start, start + 2_000_000_000);
        assert_eq!((window.start_ns, window.length_ns), (start, 2_000_000_000));
        let utc = SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(window.start_utc_ns);
        let ago = utc.elapsed().map_or(0.0, |ago| ago.as_secs_f64());
        assert!((5.0..6.0).contains(&ago), "{ago} s");
    }
}
