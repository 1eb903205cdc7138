//! Ruby versions of this machine.

use std::path::PathBuf;

use super::versions::{Version, fetched};

/// Oldest version whose functions the tools read.
const OLDEST: Version = (3, 0);

/// Returns the distribution's Ruby and the versions that `scripts/runtimes/fetch.sh` has installed.
///
/// # Panics
///
/// Panics if the distribution has no Ruby.
pub fn rubies() -> Vec<PathBuf> {
    let path = PathBuf::from("/usr/bin/ruby");
    assert!(path.exists(), "no {}", path.display());
    [vec![path], fetched("ruby", OLDEST)].concat()
}
