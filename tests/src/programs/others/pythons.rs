//! Python versions of this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of an environment variable. If it is set, tests run every installed version of Python.
/// Otherwise they run the distribution's and the newest version.
pub const ALL_VERSIONS: &str = "SYSTEMSCOPE_ALL_VERSIONS";

/// Python interpreter.
#[derive(Debug)]
pub struct Python {
    /// Path of the program.
    pub path: PathBuf,
    /// True if the interpreter has the names of its static functions, as an interpreter that was
    /// built on this machine has.
    pub has_symbols: bool,
}

/// Returns the distribution's Python and the newest of the versions 3.8 to 3.14 that pyenv or
/// `scripts/pythons/fetch.sh` has installed. With [`ALL_VERSIONS`] all installed versions are
/// returned.
///
/// # Panics
///
/// Panics if the distribution has no Python.
pub fn pythons() -> Vec<Python> {
    let path = PathBuf::from("/usr/bin/python3");
    assert!(path.exists(), "no {}", path.display());
    let distributions = Python {
        path,
        has_symbols: false,
    };
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let mut others = versions(&home.join(".pyenv/versions"), true);
    others.extend(versions(&cache.join("systemscope/pythons"), false));
    others.sort_by_key(|(minor, _)| *minor);
    if env::var_os(ALL_VERSIONS).is_none() {
        others.drain(..others.len().saturating_sub(1));
    }
    let others = others.into_iter().map(|(_, python)| python);
    [distributions].into_iter().chain(others).collect()
}

/// Returns the versions in a directory with one subdirectory for each version, with their minor
/// versions.
fn versions(folder: &Path, has_symbols: bool) -> Vec<(u32, Python)> {
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    let pythons = folders.filter_map(|folder| {
        let minor = minor_version(folder.file_name().to_str()?)?;
        let path = folder.path().join(format!("bin/python3.{minor}"));
        let python = Python { path, has_symbols };
        python.path.exists().then_some((minor, python))
    });
    pythons.collect()
}

/// Returns the distribution's Python, and the oldest and the newest of the others. Tests use these
/// versions if they depend on how frames are read, but not on the layout of each version.
pub fn some_pythons() -> Vec<Python> {
    let mut pythons = pythons();
    if pythons.len() > 3 {
        pythons.drain(2..pythons.len() - 1);
    }
    pythons
}

/// Returns Y for a supported version 3.Y.Z.
fn minor_version(version: &str) -> Option<u32> {
    let (minor, patch) = version.strip_prefix("3.")?.split_once('.')?;
    patch.parse::<u32>().ok()?;
    minor.parse().ok().filter(|minor| (8..=14).contains(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_by_their_folders() {
        for (version, minor) in [
            ("3.8.18", Some(8)),
            ("3.14.0", Some(14)),
            ("3.7.16", None),
            ("2.7.18", None),
            // The free-threaded build is another interpreter.
            ("3.13.0t", None),
        ] {
            assert_eq!(minor_version(version), minor, "{version}");
        }
    }
}
