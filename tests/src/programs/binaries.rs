//! Where the tools under test are.

use std::env;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::programs::workload::{install, scratch};

/// The folder that holds the release binaries: `SYSTEMSCOPE_BIN_DIR`, else
/// `release` in the target folder this test was built in.
pub fn folder() -> PathBuf {
    if let Some(folder) = env::var_os("SYSTEMSCOPE_BIN_DIR") {
        return folder.into();
    }
    // target/release/deps/accounting-0123456789abcdef
    let test = env::current_exe().expect("the path of this test");
    let target = test.ancestors().nth(3).expect("a target folder");
    target.join("release")
}

/// The path of a tool.
///
/// # Panics
///
/// When it is not built.
pub fn binary(name: &str) -> PathBuf {
    let path = folder().join(name);
    assert!(
        path.is_file(),
        "{} is not there: run `make build` first, or name its folder in SYSTEMSCOPE_BIN_DIR",
        path.display()
    );
    path
}

/// Some tools in a folder that everyone may enter, which those of a build need
/// not be.
pub fn copies(tools: &[&str]) -> TempDir {
    let folder = scratch();
    for tool in tools {
        install(&binary(tool), &folder.path().join(tool));
    }
    folder
}
