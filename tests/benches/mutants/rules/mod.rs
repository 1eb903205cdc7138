//! The rules that the programs follow, each with a change that breaks it.

mod clock;
mod counts;
mod interrupts;
mod short_intervals;
mod spans;
mod stacks;
mod targets;
mod waits;
mod wakers;

use crate::mutant::Mutant;

/// All of them, by idea.
pub(crate) const RULES: [&[Mutant]; 13] = [
    clock::MUTANTS,
    short_intervals::MUTANTS,
    targets::MUTANTS,
    targets::cgroups::MUTANTS,
    stacks::MUTANTS,
    stacks::unwinding::MUTANTS,
    stacks::unwind_cache::MUTANTS,
    stacks::kernel_stack_cache::MUTANTS,
    wakers::MUTANTS,
    interrupts::MUTANTS,
    counts::MUTANTS,
    spans::MUTANTS,
    waits::MUTANTS,
];
