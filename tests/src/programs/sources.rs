//! Paths of the workloads' sources, in directories by topic.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the directory of all sources.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads")
}

/// Returns the paths of all sources.
///
/// # Panics
///
/// Panics if a directory cannot be read.
#[must_use]
pub fn all() -> Vec<PathBuf> {
    let folders = entries(&folder()).into_iter().filter(|path| path.is_dir());
    folders.flat_map(|folder| entries(&folder)).collect()
}

/// Returns the path of the source with this name.
///
/// # Panics
///
/// Panics if there is no such source.
#[must_use]
pub fn source(name: &str) -> PathBuf {
    let mut all = all().into_iter();
    let found = all.find(|path| path.file_name().is_some_and(|found| found == name));
    found.unwrap_or_else(|| panic!("no workload is called {name}"))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let entries = read.map(|entry| entry.expect("an entry of a folder of workloads"));
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_workloads_have_one_name() {
        let all = all();
        let names: BTreeSet<_> = all.iter().filter_map(|path| path.file_name()).collect();
        assert!(all.len() > 50, "{all:?}");
        assert_eq!(names.len(), all.len(), "{all:?}");
    }
}
