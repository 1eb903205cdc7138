//! Scales a thread's stacks to its clock: in each state they add up to the clock's time.

use super::MICROSECOND;
use crate::name_order::NameOrder;
use crate::{Sample, Weight};

pub(super) type Weighted = Vec<(Sample, Weight)>;

/// A thread's stacks in one off-CPU state.
#[derive(Default)]
pub(super) struct Waits {
    /// Stacks of measured intervals.
    measured: Weighted,
    /// Stacks of sampled intervals.
    sampled: Weighted,
}

/// Stacks of one off-CPU state, scaled to the clock.
pub(super) struct SettledWaits {
    pub(super) stacks: Weighted,
    /// Time of sampled intervals in ns.
    pub(super) sampled_ns: u64,
    pub(super) intervals: u64,
    /// Time without a stack in ns.
    pub(super) unseen_ns: u64,
    /// Time of stacks beyond the clock's time in ns.
    pub(super) excess_ns: u64,
}

impl Waits {
    pub(super) fn stacks_mut(&mut self, is_sampled: bool) -> &mut Weighted {
        if is_sampled {
            &mut self.sampled
        } else {
            &mut self.measured
        }
    }

    /// Scales measured stacks down to the clock's time if they exceed it, and sampled stacks to the
    /// rest. Sampling misses `slack_ns` at most. Any further missing time was lost, and sampled
    /// stacks do not get it.
    pub(super) fn settle(
        self,
        clock_ns: u64,
        slack_ns: u64,
        order: &NameOrder<'_>,
    ) -> SettledWaits {
        let (measured, sampled) = (total(&self.measured), total(&self.sampled));
        let slack_ns = if sampled > 0 { slack_ns } else { 0 };
        let rest = clock_ns.saturating_sub(measured);
        let sampled_ns = rest.min(sampled.saturating_add(slack_ns));
        let intervals = self.sampled.iter().map(|(_, weight)| weight.events).sum();
        let mut stacks = scaled(self.measured, measured.min(clock_ns), order);
        stacks.extend(scaled(self.sampled, sampled_ns, order));
        SettledWaits {
            stacks,
            sampled_ns,
            intervals,
            unseen_ns: rest - sampled_ns,
            excess_ns: (measured.saturating_add(sampled))
                .saturating_sub(clock_ns.saturating_add(slack_ns)),
        }
    }
}

pub(super) fn total(stacks: &Weighted) -> u64 {
    stacks.iter().map(|(_, weight)| weight.value).sum()
}

/// Scales weights in proportion, so that they add up to `target`.
pub(super) fn scaled(mut stacks: Weighted, target: u64, order: &NameOrder<'_>) -> Weighted {
    let whole = u128::from(total(&stacks));
    if whole == 0 || whole == u128::from(target) {
        return stacks;
    }
    // The order in which stacks were read must not affect the rounding.
    stacks.sort_by(|(one, _), (other, _)| order.compare(one, other));
    let mut seen = 0_u128;
    let mut given = 0_u64;
    for (_, weight) in &mut stacks {
        seen += u128::from(weight.value);
        // `seen` is at most `whole`, so this is at most `target`.
        let due = u64::try_from(seen * u128::from(target) / whole).unwrap_or(target);
        weight.value = due - given;
        given = due;
    }
    stacks
}

/// Rounds stacks to whole microseconds, and joins stacks with the same texts. The next stack gets
/// the remainder of a stack, so the sum of all stacks and of each state is off by less than one
/// microsecond.
pub(super) fn rounded(mut stacks: Weighted, order: &NameOrder<'_>) -> Weighted {
    stacks.sort_by(|(one, _), (other, _)| {
        let by_state = one.state.cmp(&other.state);
        by_state.then_with(|| order.compare(one, other))
    });
    stacks.dedup_by(|(sample, weight), (kept, sum)| {
        let is_alike = order.compare(sample, kept).is_eq();
        if is_alike {
            *sum += *weight;
        }
        is_alike
    });
    // Samples with the same texts apart from their waits and labels share one stack, too.
    for at in 1..stacks.len() {
        let without_wait = |(sample, _): &(Sample, Weight)| Sample {
            wait: None,
            is_sampled: false,
            labels: None,
            ..*sample
        };
        let [one, other] = [at - 1, at].map(|at| without_wait(&stacks[at]));
        if order.compare(&one, &other).is_eq() {
            stacks[at].0.stack = one.stack;
        }
    }
    let mut carried = 0;
    for (_, weight) in &mut stacks {
        let due = carried + weight.value;
        carried = due % MICROSECOND;
        weight.value = due - carried;
    }
    stacks.retain(|(_, weight)| weight.value > 0);
    stacks.shrink_to_fit();
    stacks
}
