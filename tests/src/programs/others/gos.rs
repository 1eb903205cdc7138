//! Go compilers of this machine.

use super::versions::{Version, fetched};

/// Oldest version whose goroutines the tools read.
const OLDEST: Version = (1, 15);

/// Returns the distribution's Go and the versions that `scripts/runtimes/fetch.sh` has installed.
pub fn gos() -> Vec<String> {
    let fetched = fetched("go", OLDEST).into_iter();
    let paths = fetched.map(|path| path.display().to_string());
    [String::from("go")].into_iter().chain(paths).collect()
}
