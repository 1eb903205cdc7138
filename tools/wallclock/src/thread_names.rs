//! Threads that are chosen by their names: by the last one, so that all that a thread did
//! stays together. The children measure all.

use profile::{LastNames, Profile};
use regex::Regex;

/// Leaves the threads in whose last name the expression is found.
pub(crate) fn retain(expression: &Regex, on_cpu: &mut Profile, off_cpu: &mut Profile) {
    // Only there threads have accounts.
    let last = LastNames::new(off_cpu);
    for profile in [on_cpu, off_cpu] {
        profile.retain_threads(&last, |name| expression.is_match(name));
    }
}
