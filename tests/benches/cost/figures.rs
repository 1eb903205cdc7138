//! Figures that are measured in turn, round after round. Other load of the machine affects all of
//! them alike.

use loader::Kernel;
use systemscope_tests::printed::output::{median, spread};

/// Cause of a figure: the machine's speed and its other load.
pub(crate) const WALL_CLOCK: &str = "wall clock";
/// Cause of a figure: the machine's speed. Other load changes such a figure only by interrupts and
/// evictions from caches.
pub(crate) const BPF_TIME: &str = "BPF time";
/// Cause of a figure: the same as [`BPF_TIME`].
pub(crate) const CPU_TIME: &str = "CPU time";
/// Cause of a figure: the same as [`BPF_TIME`].
pub(crate) const BPF_AND_CPU_TIME: &str = "BPF and CPU time";

/// Returns whether this kernel lets the tools capture user stacks when threads return. Short waits
/// then need no user stack, and the bounds for the tools are lower.
pub(crate) fn user_stacks_can_wait() -> bool {
    Kernel::probe().expect("probe the kernel").shows_returns
}

/// Values of one subject. There is one for each round.
pub(crate) struct Figures<T> {
    pub(crate) subject: T,
    pub(crate) values: Vec<f64>,
}

/// Measures each of `things` once a round. The order is reversed every other round.
pub(crate) fn in_turn<T>(
    rounds: usize,
    things: impl IntoIterator<Item = T>,
    mut measure: impl FnMut(&T) -> f64,
) -> Vec<Figures<T>> {
    let mut all: Vec<Figures<T>> = things
        .into_iter()
        .map(|subject| Figures {
            subject,
            values: Vec::new(),
        })
        .collect();
    for round in 0..rounds {
        let mut order: Vec<&mut Figures<T>> = all.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for figures in order {
            figures.values.push(measure(&figures.subject));
        }
    }
    all
}

impl<T> Figures<T> {
    pub(crate) fn median(&self) -> f64 {
        median(self.values.clone())
    }

    /// Returns, for each round, the ratio of what these values add to `base` and what `others` add
    /// to `base`.
    pub(crate) fn ratios_of_added<U, V>(&self, others: &Figures<U>, base: &Figures<V>) -> Vec<f64> {
        let pairs = self.added_to(base).into_iter().zip(others.added_to(base));
        pairs.map(|(own, others)| own / others).collect()
    }

    /// Returns, for each round, the ratio of these values to `others`.
    pub(crate) fn ratios<U>(&self, others: &Figures<U>) -> Vec<f64> {
        let pairs = self.values.iter().zip(&others.values);
        pairs.map(|(own, others)| own / others).collect()
    }

    /// Returns, for each round, the difference between these values and `base`.
    pub(crate) fn added_to<U>(&self, base: &Figures<U>) -> Vec<f64> {
        let pairs = self.values.iter().zip(&base.values);
        pairs.map(|(value, base)| value - base).collect()
    }

    /// Returns, for each round, by how many percent these values are below `base`.
    pub(crate) fn percent_below<U>(&self, base: &Figures<U>) -> Vec<f64> {
        let pairs = self.values.iter().zip(&base.values);
        pairs
            .map(|(value, base)| (1.0 - value / base) * 100.0)
            .collect()
    }
}

/// Formats `values` as "median (least to most)".
pub(crate) fn format_spread(values: &[f64], decimals: usize) -> String {
    let least_to_most = spread(values);
    format!(
        "{:.decimals$} ({:.decimals$} to {:.decimals$})",
        median(values.to_vec()),
        least_to_most.0,
        least_to_most.1
    )
}
