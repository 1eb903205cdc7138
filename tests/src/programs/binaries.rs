//! Paths of the tools under test.

use std::env;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::programs::workload::{install, scratch};

/// Returns the directory of the release binaries: `SYSTEMSCOPE_BIN_DIR`, or else `release` in the
/// target directory that contains this test.
pub fn folder() -> PathBuf {
    if let Some(folder) = env::var_os("SYSTEMSCOPE_BIN_DIR") {
        return folder.into();
    }
    // This path has the form `target/release/deps/accounting-0123456789abcdef`.
    let test = env::current_exe().expect("the path of this test");
    let target = test.ancestors().nth(3).expect("a target folder");
    target.join("release")
}

/// Returns the path of a tool.
///
/// # Panics
///
/// Panics if the tool is not built.
pub fn binary(name: &str) -> PathBuf {
    let path = folder().join(name);
    assert!(
        path.is_file(),
        "{} does not exist: run `make build` first, or name its folder in SYSTEMSCOPE_BIN_DIR",
        path.display()
    );
    path
}

/// Copies tools to a directory that every user can enter. The build's own directory may be closed
/// to other users.
pub fn copies(tools: &[&str]) -> TempDir {
    let folder = scratch();
    for tool in tools {
        install(&binary(tool), &folder.path().join(tool));
    }
    folder
}
