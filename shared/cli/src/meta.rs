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

/// Returns a window that starts at `start`, in ns of CLOCK_MONOTONIC, and has no length yet. Its
/// time of day is by the wall clock as it is now: a later change of that clock changes nothing.
pub(crate) fn begin_window(start: u64) -> Window {
    let utc = SystemTime::now().duration_since(UNIX_EPOCH);
    let utc = utc.map_or(0, |utc| u64::try_from(utc.as_nanos()).unwrap_or(u64::MAX));
    let ahead = start.wrapping_sub(monotonic_ns()).cast_signed();
    Window {
        start_ns: start,
        start_utc_ns: utc.saturating_add_signed(ahead),
        ..Window::default()
    }
}

/// Returns the same window with another start and stop, in ns of CLOCK_MONOTONIC.
pub(crate) fn end_window(begun: Window, start: u64, stop: u64) -> Window {
    let later = start.wrapping_sub(begun.start_ns).cast_signed();
    Window {
        start_ns: start,
        start_utc_ns: begun.start_utc_ns.saturating_add_signed(later),
        length_ns: stop.saturating_sub(start),
        ..begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_at_its_time_of_day() {
        // The window starts shortly after the programs are told of it.
        let begun = begin_window(monotonic_ns() + 10_000_000);
        let start = begun.start_ns - 5_000_000_000;
        let window = end_window(begun, start, start + 2_000_000_000);
        assert_eq!((window.start_ns, window.length_ns), (start, 2_000_000_000));
        let utc = SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(window.start_utc_ns);
        let ago = utc.elapsed().map_or(0.0, |ago| ago.as_secs_f64());
        assert!((4.9..6.0).contains(&ago), "{ago} s");
    }
}
