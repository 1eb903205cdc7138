//! Versions of interpreters: those that `scripts/runtimes/fetch.sh` has fetched from releases of
//! Debian, and the version that a program tells.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::pythons::ALL_VERSIONS;

/// Returns the launchers of the fetched versions of a program, such as `php`; none unless
/// [`ALL_VERSIONS`] is set.
pub(super) fn fetched(program: &str) -> Vec<PathBuf> {
    if env::var_os(ALL_VERSIONS).is_none() {
        return Vec::new();
    }
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let folders = fs::read_dir(cache.join("systemscope/runtimes").join(program));
    let launchers = folders.into_iter().flatten().flatten();
    let launchers = launchers.map(|folder| folder.path().join("bin").join(program));
    let mut launchers: Vec<PathBuf> = launchers.filter(|path| path.exists()).collect();
    launchers.sort();
    launchers
}

/// Returns the first two words that a program tells of its version, such as "PHP 8.4.1".
///
/// # Panics
///
/// Panics if the program cannot be started.
#[must_use]
pub fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let output = output.expect("start a program for its version");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().take(2).collect();
    words.join(" ")
}
