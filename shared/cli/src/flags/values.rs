//! Value parsers for clap. Each error message says which values are accepted. clap puts the value
//! and the flag before the message.

use std::time::Duration;

use collect::Walking;
use regex::Regex;

/// Maximum process or thread ID: `PID_MAX_LIMIT` of a 64-bit kernel.
const LARGEST_ID: u32 = 4_194_304;
/// Maximum duration in seconds: ten years of 365 days. A longer one is taken for a mistake.
const LONGEST_SECONDS: f64 = 10.0 * 365.0 * 86_400.0;
/// Maximum duration in microseconds: ten years of 365 days.
const LONGEST_MICROSECONDS: u64 = 10 * 365 * 86_400 * 1_000_000;
/// File with the kernel's limit on samples per second.
const SAMPLE_RATE_LIMIT: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// Parses a process ID, 1 to 4194304.
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn process_id(text: &str) -> Result<u32, String> {
    identifier(text).ok_or_else(|| {
        format!("process IDs are numbers from 1 to {LARGEST_ID}; `ps -e` lists those in use")
    })
}

/// Parses a thread ID, 1 to 4194304.
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn thread_id(text: &str) -> Result<u32, String> {
    identifier(text).ok_or_else(|| {
        format!("thread IDs are numbers from 1 to {LARGEST_ID}; `ps -eL` lists those in use")
    })
}

/// Parses a whole number, 1 or more.
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn positive(text: &str) -> Result<u64, String> {
    digits(text)
        .filter(|&number| number > 0)
        .ok_or_else(|| "give a whole number, 1 or more".to_owned())
}

/// Parses a time in seconds, such as `10` or `0.5`, up to ten years.
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.0..=LONGEST_SECONDS).contains(seconds))
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "give seconds above 0 and up to ten years, such as 10 or 0.5".to_owned())
}

/// Returns a time such as `200us`, `500ms`, `10s`, `1m` or `1h`; `None` for any other text.
#[must_use]
pub fn length(text: &str) -> Option<Duration> {
    let unit = text.find(|character: char| !character.is_ascii_digit())?;
    let number: u64 = text[..unit].parse().ok()?;
    let unit_us = match &text[unit..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60 * 1_000_000,
        "h" => 3600 * 1_000_000,
        _ => return None,
    };
    number.checked_mul(unit_us).map(Duration::from_micros)
}

/// Parses a whole number of microseconds, from 0 to ten years. In nanoseconds it fits 64 bits.
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn microseconds(text: &str) -> Result<u64, String> {
    digits(text)
        .filter(|&number| number <= LONGEST_MICROSECONDS)
        .ok_or_else(|| {
            format!("give whole microseconds from 0 to {LONGEST_MICROSECONDS} (ten years)")
        })
}

/// Parses the maximum number of frames of a stack, 1 to [`Walking::MAX_FRAMES`].
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn frames(text: &str) -> Result<usize, String> {
    let most = Walking::MAX_FRAMES;
    digits(text)
        .and_then(|number| usize::try_from(number).ok())
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| format!("give a number of frames from 1 to {most}"))
}

/// Parses a mask of task states, decimal or hexadecimal after `0x`. The bits are `TASK_…` of the
/// kernel's include/linux/sched.h.
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn task_states(text: &str) -> Result<u32, String> {
    let mask = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits(text).and_then(|number| u32::try_from(number).ok()),
    };
    mask.ok_or_else(|| {
        "give a mask of task states such as 1 (interruptible) or 2 (uninterruptible), or 0 for runnable"
            .to_owned()
    })
}

/// Parses a regular expression.
///
/// # Errors
/// The text is no regular expression; the message says why.
pub fn expression(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        // The lines above the last one draw the expression.
        let drawing = error.to_string();
        let last = drawing.lines().next_back().unwrap_or_default();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    })
}

/// Parses a sampling frequency in samples per second, up to the running kernel's limit.
///
/// # Errors
/// The text is not such a value; the message says which values are accepted.
pub fn frequency(text: &str) -> Result<u64, String> {
    // If the limit cannot be read, the kernel itself refuses a frequency above it.
    let limit = std::fs::read_to_string(SAMPLE_RATE_LIMIT)
        .ok()
        .and_then(|text| digits(text.trim()));
    frequency_up_to(text, limit.unwrap_or(u64::MAX))
}

fn frequency_up_to(text: &str, limit: u64) -> Result<u64, String> {
    match digits(text) {
        Some(hertz @ 1..) if hertz <= limit => Ok(hertz),
        Some(1..) => Err(format!(
            "the kernel allows {limit} samples per second at most ({SAMPLE_RATE_LIMIT}); 49 or 99 is usual"
        )),
        _ => Err("give samples per second, 1 or more; 49 or 99 is usual".to_owned()),
    }
}

fn identifier(text: &str) -> Option<u32> {
    let number = u32::try_from(digits(text)?).ok()?;
    (1..=LARGEST_ID).contains(&number).then_some(number)
}

/// Parses a number that consists of digits only, without sign or spaces.
fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        assert_eq!(process_id("1"), Ok(1));
        assert_eq!(thread_id("4194304"), Ok(4_194_304));
        for text in [
            "",
            "abc",
            "-1",
            "+1",
            "0",
            " 1",
            "1.5",
            "4194305",
            "99999999999999999999",
        ] {
            assert!(process_id(text).is_err(), "{text}");
            assert!(thread_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn seconds_with_fractions() {
        assert_eq!(seconds("10"), Ok(Duration::from_secs(10)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("315360000"), Ok(Duration::from_secs(315_360_000)));
        for text in [
            "0",
            "0.0",
            "1e-12",
            "-1",
            "-0.5",
            "nan",
            "inf",
            "315360001",
            "1e300",
            "5s",
            "",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn microseconds_fit_as_nanoseconds() {
        assert_eq!(microseconds("0"), Ok(0));
        assert_eq!(microseconds("1000"), Ok(1000));
        assert!(LONGEST_MICROSECONDS.checked_mul(1000).is_some());
        // 3,650 days.
        assert_eq!(microseconds("315360000000000"), Ok(LONGEST_MICROSECONDS));
        assert!(microseconds("315360000000001").is_err());
        for text in ["-1", "1.5", "18446744073709551615", ""] {
            assert!(microseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn frequencies_end_at_the_kernels_limit() {
        assert_eq!(frequency_up_to("49", 100_000), Ok(49));
        assert_eq!(frequency_up_to("100000", 100_000), Ok(100_000));
        let refused = frequency_up_to("1000000", 100_000);
        assert!(refused.is_err_and(|message| message.contains("100000 samples per second")));
        assert!(frequency_up_to("0", 100_000).is_err());
        assert!(frequency_up_to("-5", 100_000).is_err());
        assert_eq!(frequency("1"), Ok(1));
        // The kernel's limit is a signed number of 32 bits.
        assert!(frequency("2147483648").is_err());
    }
}
