//! Variance of the time in a state, relative to intervals that occur at random.

use crate::{Profile, State, Weight};

/// Overdispersion of the time in one state: its variance between parts of the window, relative to
/// independent intervals. For example, preemptions come in bursts, while other threads have work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// The state; `None` if the profile does not distinguish states.
    pub state: Option<State>,
    /// Percent of the variance of independent intervals; at least 100.
    pub percent: u32,
}

/// Minimum parts of a window from which bursts are estimated.
const LEAST_PARTS: usize = 8;
/// Unit of [`Weight::squares`], in ns².
const SQUARE: f64 = (1_u64 << 20) as f64;

impl Weight {
    /// Returns the variance of the value if its intervals or samples occur at random, in squares of
    /// the value's unit. The variance is the sum of their squared lengths, as for any compound
    /// Poisson variable (Feller, An Introduction to Probability Theory and Its Applications, vol.
    /// 1, XII.2). Returns `None` if the lengths are unknown.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        let value = self.value as f64;
        match self {
            Weight { squares: 1.., .. } => Some(self.squares as f64 * SQUARE),
            // Samples, and intervals of unknown lengths, all have the same length.
            Weight { events: 1.., .. } => Some(value * value / self.events as f64),
            _ => None,
        }
    }
}

impl Bursts {
    /// Estimates the bursts of one state. `parts` are the parts of the window, each with its
    /// length in ns and the value in it. Intervals that were `open` at the end of the window
    /// are in no part. Returns `None` if there are too few parts.
    #[must_use]
    pub fn estimate(
        state: Option<State>,
        profile: &Profile,
        parts: &[(u64, u64)],
        open: &[Weight],
    ) -> Option<Bursts> {
        let samples = profile.samples.iter();
        let weights = samples.filter(|(sample, _)| sample.state == state);
        let (value, by_chance) = total(weights.map(|(_, weight)| weight));
        let (open, open_by_chance) = total(open.iter());
        let in_parts: f64 = parts.iter().map(|(_, value)| *value as f64).sum();
        let by_chance = (by_chance - open_by_chance) * in_parts / (value - open).max(1.0);
        let factor = if by_chance > 0.0 {
            variance(parts)? / by_chance
        } else {
            1.0
        };
        Some(Bursts {
            state,
            percent: (factor.max(1.0) * 100.0).round() as u32,
        })
    }
}

/// Returns the sum of the weights, and its variance if intervals occur at random.
fn total<'a>(weights: impl Iterator<Item = &'a Weight>) -> (f64, f64) {
    weights.fold((0.0, 0.0), |(value, variance), weight| {
        let more = weight.variance().unwrap_or_default();
        (value + weight.value as f64, variance + more)
    })
}

/// Returns the variance of the sum of all parts, estimated from their differences. A burst may
/// be longer than a part, so the result is the maximum over groups of one, two, four and more
/// parts.
fn variance(parts: &[(u64, u64)]) -> Option<f64> {
    let mut parts = parts.to_vec();
    let mut most: Option<f64> = None;
    while parts.len() >= LEAST_PARTS {
        most = Some(most.unwrap_or_default().max(variance_of_sum(&parts)));
        let joined = |pair: &[(u64, u64)]| {
            let (lengths, values): (Vec<u64>, Vec<u64>) = pair.iter().copied().unzip();
            (lengths.iter().sum(), values.iter().sum())
        };
        parts = parts.chunks(2).map(joined).collect();
    }
    most
}

fn variance_of_sum(parts: &[(u64, u64)]) -> f64 {
    let parts = parts.iter();
    let parts = parts.map(|&(length, value)| (length as f64, value as f64));
    let length: f64 = parts.clone().map(|(length, _)| length).sum();
    let value: f64 = parts.clone().map(|(_, value)| value).sum();
    // For parts of equal length this is the sample variance, n / (n - 1).
    let even: f64 = parts.clone().map(|(part, _)| (part / length).powi(2)).sum();
    let squares = parts.map(|(part, has)| (has - value / length * part).powi(2));
    squares.sum::<f64>() / (1.0 - even)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Unit, folded};

    /// Returns the percent for parts, each with its length and samples, and for `open` samples
    /// outside all parts.
    fn percent(parts: &[(u64, u64)], open: u64) -> Option<u32> {
        let samples: u64 = parts.iter().map(|(_, samples)| samples).sum();
        let text = format!("a;f {samples}\na;g {open}\n");
        let profile = folded::read(text.as_bytes(), Unit::Samples, false).unwrap();
        let open = Weight {
            value: open,
            events: open,
            ..Weight::default()
        };
        Some(Bursts::estimate(None, &profile, parts, &[open])?.percent)
    }

    fn evenly(count: usize) -> Vec<(u64, u64)> {
        vec![(5, 10); count]
    }

    #[test]
    fn bursts_vary_more_than_chance() {
        // All 80 samples are in one of eight parts: (70² + 7 × 10²) / 80, seven degrees of
        // freedom.
        let mut burst = vec![(5, 0); 8];
        burst[3] = (5, 80);
        assert_eq!(percent(&burst, 0), Some(8000));
        // Regular samples vary less than random samples, and still count as 100 %.
        assert_eq!(percent(&evenly(8), 0), Some(100));
        // A longer part has more samples at the same rate.
        let mut longer = evenly(8);
        longer[3] = (50, 100);
        assert_eq!(percent(&longer, 0), Some(100));
        // Seven parts are too few.
        assert_eq!(percent(&burst[..7], 0), None);
        // In groups of two parts the 80 samples are in one of eight again.
        let mut long = vec![(5, 0); 16];
        long[2..4].fill((5, 40));
        assert_eq!(percent(&long, 0), Some(8000));
    }
}
