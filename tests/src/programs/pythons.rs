//! The versions of Python that this machine has.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// An interpreter.
#[derive(Debug)]
pub struct Python {
    /// What to execute.
    pub path: PathBuf,
    /// It has the names of its static functions, as one that was built here.
    pub has_symbols: bool,
}

/// The distribution's, and those of pyenv from 3.8 to 3.14.
///
/// # Panics
///
/// When the distribution's is not there.
pub fn pythons() -> Vec<Python> {
    let path = PathBuf::from("/usr/bin/python3");
    assert!(path.exists(), "no {}", path.display());
    let distributions = Python {
        path,
        has_symbols: false,
    };
    let versions = Path::new(&env::var_os("HOME").unwrap_or_default()).join(".pyenv/versions");
    let folders = fs::read_dir(versions).into_iter().flatten().flatten();
    let mut of_pyenv: Vec<(u32, PathBuf)> = folders
        .filter_map(|folder| {
            let minor = minor_version(folder.file_name().to_str()?)?;
            let path = folder.path().join(format!("bin/python3.{minor}"));
            path.exists().then_some((minor, path))
        })
        .collect();
    of_pyenv.sort();
    let of_pyenv = of_pyenv.into_iter().map(|(_, path)| Python {
        path,
        has_symbols: true,
    });
    [distributions].into_iter().chain(of_pyenv).collect()
}

/// The distribution's, and the oldest and the newest of the others: for what depends on how
/// frames are read, and not on where each version has them.
pub fn some_pythons() -> Vec<Python> {
    let mut pythons = pythons();
    if pythons.len() > 3 {
        pythons.drain(2..pythons.len() - 1);
    }
    pythons
}

/// The Y of 3.Y.Z, where Y is of those that have support.
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
            // Without the lock, it is another interpreter.
            ("3.13.0t", None),
        ] {
            assert_eq!(minor_version(version), minor, "{version}");
        }
    }
}
