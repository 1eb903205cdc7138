//! The rules that the programs follow, each with a change that breaks it.

mod cgroups;
mod clock;
mod counts;
mod interrupts;
mod kernel_stack_cache;
mod short_intervals;
mod spans;
mod stacks;
mod targets;
mod unwind_cache;
mod unwinding;
mod waits;
mod wakers;

use crate::mutant::Mutant;

/// All of them, by idea.
pub(crate) const RULES: [&[Mutant]; 13] = [
    clock::MUTANTS,
    short_intervals::MUTANTS,
    targets::MUTANTS,
    cgroups::MUTANTS,
    stacks::MUTANTS,
    unwinding::MUTANTS,
    unwind_cache::MUTANTS,
    kernel_stack_cache::MUTANTS,
    wakers::MUTANTS,
    interrupts::MUTANTS,
    counts::MUTANTS,
    spans::MUTANTS,
    waits::MUTANTS,
];
