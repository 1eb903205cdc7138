//! Figures taken in turn, round after round, so that what the machine does
//! meanwhile hits all of them alike.

use loader::Kernel;
use systemscope_tests::printed::output::{median, spread};

/// What figures depend on: the machine's speed, and on what else it does.
pub(crate) const WALL_CLOCK: &str = "wall clock";
/// The machine's speed, but for interrupts and what is evicted from caches not on
/// what else it does.
pub(crate) const BPF_TIME: &str = "BPF time";
/// The same.
pub(crate) const CPU_TIME: &str = "CPU time";
/// The same.
pub(crate) const BPF_AND_CPU_TIME: &str = "BPF and CPU time";

/// Whether this kernel lets user stacks be taken when threads are back, so that short waits
/// need none: more is asked of the tools then.
pub(crate) fn user_stacks_can_wait() -> bool {
    Kernel::probe().expect("ask the kernel").shows_returns
}

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

    /// Round by round, what these add to `base` over what others add to it.
    pub(crate) fn ratios_of_added<U, V>(&self, others: &Figures<U>, base: &Figures<V>) -> Vec<f64> {
        let pairs = self.added_to(base).into_iter().zip(others.added_to(base));
        pairs.map(|(own, others)| own / others).collect()
    }

    /// Round by round, of another's.
    pub(crate) fn ratios<U>(&self, others: &Figures<U>) -> Vec<f64> {
        let pairs = self.values.iter().zip(&others.values);
        pairs.map(|(own, others)| own / others).collect()
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
