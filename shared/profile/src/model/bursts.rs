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
    /// length in nanoseconds and how much was in it.
    #[must_use]
    pub fn of(state: Option<State>, profile: &Profile, parts: &[(u64, u64)]) -> Bursts {
        let samples = profile.samples.iter();
        let weights = samples.filter(|(sample, _)| sample.state == state);
        let (mut value, mut by_chance) = (0.0, 0.0);
        for (_, weight) in weights {
            value += weight.value as f64;
            by_chance += weight.variance().unwrap_or_default();
        }
        let in_parts: f64 = parts.iter().map(|(_, value)| *value as f64).sum();
        let factor = match by_chance > 0.0 && in_parts > 0.0 && parts.len() >= LEAST_PARTS {
            true => variance(parts) / (by_chance * in_parts / value),
            false => 1.0,
        };
        Bursts {
            state,
            percent: (factor.max(1.0) * 100.0).round() as u32,
        }
    }
}

/// Of the sum of all parts, by how they differ.
fn variance(parts: &[(u64, u64)]) -> f64 {
    let parts = parts.iter();
    let parts = parts.map(|&(length, value)| (length as f64, value as f64));
    let (length, value) = parts
        .clone()
        .fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    let count = parts.len() as f64;
    let squares = parts.map(|(part, has)| (has - value / length * part).powi(2));
    squares.sum::<f64>() * count / (count - 1.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Unit, folded};

    /// Parts of the lengths  with as many samples each.
    fn percent(parts: &[(u64, u64)]) -> u32 {
        let samples: u64 = parts.iter().map(|(_, samples)| samples).sum();
        let text = format!("a;f {samples}\n");
        let profile = folded::read(text.as_bytes(), Unit::Samples, false).unwrap();
        Bursts::of(None, &profile, parts).percent
    }

    #[test]
    fn bursts_vary_more_than_chance() {
        // All 80 in one of eight parts: 70² + 7 × 10² of 80, of seven degrees of freedom.
        let burst: Vec<_> = (0..8).map(|at| (5, if at == 3 { 80 } else { 0 })).collect();
        assert_eq!(percent(&burst), 8000);
        // What comes regularly varies less, and still counts as if by chance.
        assert_eq!(percent(&[(5, 10); 8]), 100);
        // A longer part has more of the same.
        let mut longer = [(5, 10); 8];
        longer[3] = (50, 100);
        assert_eq!(percent(&longer), 100);
        // Too few to tell, and nothing to tell of.
        assert_eq!(percent(&burst[..7]), 100);
        assert_eq!(percent(&[(5, 0); 8]), 100);
    }

    #[test]
    fn intervals_vary_as_their_squares() {
        let weight = |value, squares| Weight {
            value,
            squares,
            events: 2,
            ..Weight::default()
        };
        assert_eq!(weight(10, 3).variance(), Some(3.0 * SQUARE));
        assert_eq!(weight(10, 0).variance(), Some(50.0));
        assert_eq!(Weight::default().variance(), None);
    }
}
