//! How much more time in a state varies than chance has it.

use crate::{Profile, State, Weight};

/// How much more the time in a state varied from one part of the window to the next than
/// intervals vary that come by chance, each for itself: preemptions come in bursts, when
/// somebody else has work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// The state, where states are told apart.
    pub state: Option<State>,
    /// The variance in percent of that by chance; 100 where there is no more.
    pub percent: u32,
}

/// Fewer parts tell nothing.
const LEAST_PARTS: usize = 8;
/// Square nanoseconds of [`Weight::squares`].
const SQUARE: f64 = (1_u64 << 20) as f64;

impl Weight {
    /// The variance of a value that intervals or samples make up that come by chance, in
    /// squares of its unit: the sum of their squared lengths, as of any compound Poisson
    /// variable (Feller, An Introduction to Probability Theory and Its Applications, vol.
    /// 1, XII.2). `None` if nothing is known of them.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        let value = self.value as f64;
        match self {
            Weight { squares: 1.., .. } => Some(self.squares as f64 * SQUARE),
            // Of one length each, as samples are.
            Weight { events: 1.., .. } => Some(value * value / self.events as f64),
            _ => None,
        }
    }
}

impl Bursts {
    /// Of what is in the profile in a state, and the parts of the window, each with its
    /// length in nanoseconds and how much was in it. What was still open at the end is in
    /// no part. `None` if there are too few parts to tell.
    #[must_use]
    pub fn of(
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
        let factor = match by_chance > 0.0 {
            true => variance(parts)? / by_chance,
            false => 1.0,
        };
        Some(Bursts {
            state,
            percent: (factor.max(1.0) * 100.0).round() as u32,
        })
    }
}

/// The sum of the weights, and its variance by chance.
fn total<'a>(weights: impl Iterator<Item = &'a Weight>) -> (f64, f64) {
    weights.fold((0.0, 0.0), |(value, variance), weight| {
        let more = weight.variance().unwrap_or_default();
        (value + weight.value as f64, variance + more)
    })
}

/// Of the sum of all parts, by how they differ: the most of what parts of one, two, four and
/// more of them tell, as a burst may be longer than a part.
fn variance(parts: &[(u64, u64)]) -> Option<f64> {
    let mut parts = parts.to_vec();
    let mut most: Option<f64> = None;
    while parts.len() >= LEAST_PARTS {
        most = Some(most.unwrap_or_default().max(of_sum(&parts)));
        let joined = |pair: &[(u64, u64)]| {
            let (lengths, values): (Vec<u64>, Vec<u64>) = pair.iter().copied().unzip();
            (lengths.iter().sum(), values.iter().sum())
        };
        parts = parts.chunks(2).map(joined).collect();
    }
    most
}

fn of_sum(parts: &[(u64, u64)]) -> f64 {
    let parts = parts.iter();
    let parts = parts.map(|&(length, value)| (length as f64, value as f64));
    let length: f64 = parts.clone().map(|(length, _)| length).sum();
    let value: f64 = parts.clone().map(|(_, value)| value).sum();
    // Of parts of one length it is the sample variance, n / (n - 1).
    let even: f64 = parts.clone().map(|(part, _)| (part / length).powi(2)).sum();
    let squares = parts.map(|(part, has)| (has - value / length * part).powi(2));
    squares.sum::<f64>() / (1.0 - even)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Unit, folded};

    /// Of parts, each with its length and how many samples it has, and of samples in none.
    fn percent(parts: &[(u64, u64)], open: u64) -> Option<u32> {
        let samples: u64 = parts.iter().map(|(_, samples)| samples).sum();
        let text = format!("a;f {samples}\na;g {open}\n");
        let profile = folded::read(text.as_bytes(), Unit::Samples, false).unwrap();
        let open = Weight {
            value: open,
            events: open,
            ..Weight::default()
        };
        Some(Bursts::of(None, &profile, parts, &[open])?.percent)
    }

    fn evenly(count: usize) -> Vec<(u64, u64)> {
        vec![(5, 10); count]
    }

    #[test]
    fn bursts_vary_more_than_chance() {
        // All 80 in one of eight parts: 70² + 7 × 10² of 80, of seven degrees of freedom.
        let mut burst = vec![(5, 0); 8];
        burst[3] = (5, 80);
        assert_eq!(percent(&burst, 0), Some(8000));
        // What comes regularly varies less, and still counts as if by chance.
        assert_eq!(percent(&evenly(8), 0), Some(100));
        // A longer part has more of the same.
        let mut longer = evenly(8);
        longer[3] = (50, 100);
        assert_eq!(percent(&longer, 0), Some(100));
        // Too few to tell, and nothing to tell of.
        assert_eq!(percent(&burst[..7], 0), None);
        // In parts of two the same 80 are in one of eight again.
        let mut long = vec![(5, 0); 16];
        long[2..4].fill((5, 40));
        assert_eq!(percent(&long, 0), Some(8000));
    }
}
