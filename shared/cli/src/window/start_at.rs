//! Starts of windows at multiples of wall-clock time, so that windows on several hosts line up.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loader::monotonic_ns;

use crate::flags::values;

/// Multiple of wall-clock time at which a window starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartAt {
    period: Duration,
}

impl StartAt {
    /// Parses a slash and a period, such as `/10s`, `/500ms`, `/1m` or `/1h`.
    ///
    /// # Errors
    /// The text is not such a period; the message says which periods are accepted.
    pub fn parse(text: &str) -> Result<StartAt, String> {
        let period = text.strip_prefix('/').and_then(values::length);
        period
            .filter(|period| !period.is_zero() && *period <= Duration::from_secs(24 * 3600))
            .map(|period| StartAt { period })
            .ok_or_else(|| {
                "give a slash and up to 24 hours, such as /10s, /500ms or /1m".to_owned()
            })
    }

    /// Returns the next multiple that is at least `lead_ns` away, in ns of CLOCK_MONOTONIC. A later
    /// change of the wall clock does not move it.
    #[must_use]
    pub fn next(self, lead_ns: u64) -> u64 {
        let now = monotonic_ns();
        let utc = SystemTime::now().duration_since(UNIX_EPOCH);
        let utc = utc.unwrap_or_default().as_nanos();
        now.saturating_add(self.until_next(utc, lead_ns))
    }

    /// Returns the ns from `utc_ns` to the next multiple that is at least `lead_ns` away.
    fn until_next(self, utc_ns: u128, lead_ns: u64) -> u64 {
        let earliest = utc_ns.saturating_add(u128::from(lead_ns));
        let next = earliest.next_multiple_of(self.period.as_nanos());
        u64::try_from(next - utc_ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_a_slash_and_a_unit() {
        let period = |text| StartAt::parse(text).map(|it| it.period);
        assert_eq!(period("/10s"), Ok(Duration::from_secs(10)));
        assert_eq!(period("/500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(period("/1m"), Ok(Duration::from_secs(60)));
        assert_eq!(period("/24h"), Ok(Duration::from_secs(24 * 3600)));
        for text in [
            "",
            "/",
            "10s",
            "/10",
            "/0s",
            "/s",
            "/-1s",
            "/25h",
            "/4294967296s",
            "/1d",
        ] {
            assert!(period(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_next_multiple_leaves_time_to_prepare() {
        let every = StartAt::parse("/10s").unwrap();
        let second = 1_000_000_000;
        let until = |utc_s: u64, lead_ns| every.until_next(u128::from(utc_s * second), lead_ns);
        assert_eq!(until(1_003, 0), 7 * second);
        assert_eq!(until(1_000, 0), 0);
        assert_eq!(until(1_000, 1), 10 * second);
        assert_eq!(until(1_009, 2 * second), 11 * second);
    }
}
