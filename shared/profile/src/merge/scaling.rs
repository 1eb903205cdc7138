//! A thread's stacks scaled to its clock: in each state they add up to what that says.

use super::MICROSECOND;
use crate::name_order::NameOrder;
use crate::{Sample, Weight};

pub(super) type Weighted = Vec<(Sample, Weight)>;

/// A thread's stacks in one state off the CPU.
#[derive(Default)]
pub(super) struct Waits {
    /// Of intervals that were measured, each for itself.
    measured: Weighted,
    /// Of intervals that were sampled.
    sampled: Weighted,
}

/// The same, scaled to the clock.
pub(super) struct SettledWaits {
    pub(super) stacks: Weighted,
    /// Nanoseconds that sampled intervals stand for, and how many these are.
    pub(super) sampled_ns: u64,
    pub(super) intervals: u64,
    /// Nanoseconds without a stack.
    pub(super) unseen_ns: u64,
    /// Nanoseconds of stacks beyond what the clock allows.
    pub(super) excess_ns: u64,
}

impl Waits {
    pub(super) fn of(&mut self, is_sampled: bool) -> &mut Weighted {
        match is_sampled {
            true => &mut self.sampled,
            false => &mut self.measured,
        }
    }

    /// Scales what was measured down to the clock's time if it is more, and what was
    /// sampled to the rest. By design samples are off that by `slack_ns` at most: what is
    /// missing beyond that was lost, and is none of theirs.
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

/// The stacks with weights in the same proportions that add up to `target`.
pub(super) fn scaled(mut stacks: Weighted, target: u64, order: &NameOrder<'_>) -> Weighted {
    let whole = u128::from(total(&stacks));
    if whole == 0 || whole == u128::from(target) {
        return stacks;
    }
    // The rounding must not depend on the order in which stacks were read.
    stacks.sort_by(|(one, _), (other, _)| order.compare(one, other));
    let mut seen = 0_u128;
    let mut given = 0_u64;
    for (_, weight) in &mut stacks {
        seen += u128::from(weight.value);
        // At most `target`, since `seen` is at most `whole`.
        let due = u64::try_from(seen * u128::from(target) / whole).unwrap_or(target);
        weight.value = due - given;
        given = due;
    }
    stacks
}

/// The stacks in whole microseconds, those that read alike as one. What is cut off one
/// is carried to the next, so that the sums, of all and of each state, are off by less
/// than one.
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
    // Samples that read alike but for their waits and labels are in one stack, too.
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
