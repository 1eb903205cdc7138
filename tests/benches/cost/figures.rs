//! Figures taken in turn, round after round, so that what the machine does
//! meanwhile hits all of them alike.

use systemscope_tests::output::{median, spread};

/// Something that is measured once a round.
pub(crate) struct Figures<T> {
    pub(crate) of: T,
    pub(crate) values: Vec<f64>,
}

/// Measures each of `things` once a round, every other round backwards.
pub(crate) fn in_turn<T>(
    rounds: usize,
    things: impl IntoIterator<Item = T>,
    mut measure: impl FnMut(&T) -> f64,
) -> Vec<Figures<T>> {
    let mut all: Vec<Figures<T>> = things
        .into_iter()
        .map(|of| Figures {
            of,
            values: Vec::new(),
        })
        .collect();
    for round in 0..rounds {
        let mut order: Vec<&mut Figures<T>> = all.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for figures in order {
            figures.values.push(measure(&figures.of));
        }
    }
    all
}

impl<T> Figures<T> {
    pub(crate) fn median(&self) -> f64 {
        median(self.values.clone())
    }

    /// Round by round more than `base`.
    pub(crate) fn added_to<U>(&self, base: &Figures<U>) -> Vec<f64> {
        let pairs = self.values.iter().zip(&base.values);
        pairs.map(|(value, base)| value - base).collect()
    }

    /// Round by round, in percent of `base` how much less.
    pub(crate) fn percent_below<U>(&self, base: &Figures<U>) -> Vec<f64> {
        let pairs = self.values.iter().zip(&base.values);
        pairs
            .map(|(value, base)| (1.0 - value / base) * 100.0)
            .collect()
    }
}

/// "median (least to most)".
pub(crate) fn shown(values: &[f64], decimals: usize) -> String {
    let least_to_most = spread(values);
    format!(
        "{:.decimals$} ({:.decimals$} to {:.decimals$})",
        median(values.to_vec()),
        least_to_most.0,
        least_to_most.1
    )
}
