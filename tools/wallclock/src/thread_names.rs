//! Filter of threads by name. The children measure all threads. The last name of a thread decides
//! about all its time.

use profile::{LastNames, Profile};
use regex::Regex;

/// Removes the threads whose last name does not match the expression.
pub(crate) fn retain(expression: &Regex, on_cpu: &mut Profile, off_cpu: &mut Profile) {
    // Only the off-CPU profile has accounts of threads, with their last names.
    let last = LastNames::new(off_cpu);
    for profile in [on_cpu, off_cpu] {
        profile.retain_threads(&last, |name| expression.is_match(name));
    }
}
