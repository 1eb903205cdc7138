//! Versions of interpreters: those that `scripts/runtimes/fetch.sh` has fetched from releases of
//! Debian, and the version that a program tells.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::pythons::ALL_VERSIONS;

/// Major and minor version.
pub type Version = (u32, u32);

/// Returns the launchers of the fetched versions of a program, such as `php`, from a version on;
/// none unless [`ALL_VERSIONS`] is set.
pub(super) fn fetched(program: &str, oldest: Version) -> Vec<PathBuf> {
    if env::var_os(ALL_VERSIONS).is_none() {
        return Vec::new();
    }
    let launchers = all_fetched(program).into_iter();
    let launchers = launchers.filter(|(version, _)| *version >= oldest);
    launchers.map(|(_, launcher)| launcher).collect()
}

/// Returns the launchers of all fetched versions of a program, oldest first.
pub fn all_fetched(program: &str) -> Vec<(Version, PathBuf)> {
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let folders = fs::read_dir(cache.join("systemscope/runtimes").join(program));
    let folders = folders.into_iter().flatten().flatten();
    let launchers = folders.filter_map(|folder| {
        let version = parse(folder.file_name().to_str()?)?;
        let launcher = folder.path().join("bin").join(program);
        launcher.exists().then_some((version, launcher))
    });
    let mut launchers: Vec<_> = launchers.collect();
    launchers.sort();
    launchers
}

/// Parses a version such as "8.4" or "21".
fn parse(version: &str) -> Option<Version> {
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the first two words that a program tells of its version, such as "PHP 8.4.1".
///
/// # Panics
///
/// Panics if the program cannot be started.
#[must_use]
pub fn version(program: &Path) -> String {
    let tell = |flag: &str| {
        let output = Command::new(program).arg(flag).output();
        output.expect("start a program for its version")
    };
    let output = tell("--version");
    // Java 8 knows only `-version`, and tells it on stderr: `openjdk version "1.8.0_504"`.
    let text = if output.status.success() {
        output.stdout
    } else {
        tell("-version").stderr
    };
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default().replace('"', "");
    let words = line.split_whitespace().filter(|word| *word != "version");
    words.take(2).collect::<Vec<_>>().join(" ")
}
