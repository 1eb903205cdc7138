//! Virtual machines of Java on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::versions::{Version, fetched};

/// Oldest version on which the programs of the tests run.
const RELEASE: &str = "8";

/// Folder in which distributions and other packages install virtual machines.
const FOLDER: &str = "/usr/lib/jvm";

/// Oldest version whose functions the tools read.
const OLDEST: Version = (8, 0);

/// Virtual machine.
#[derive(Clone, Debug)]
pub struct Java {
    /// Path of `java`.
    pub path: PathBuf,
}

/// Compiles a source file into a folder, with the distribution's compiler, for all virtual machines.
///
/// # Panics
///
/// Panics if the compiler fails.
pub fn compile(source: &Path, folder: &Path) {
    let mut compiler = Command::new(java().path.with_file_name("javac"));
    compiler.args(["-encoding", "UTF-8", "--release", RELEASE, "-nowarn"]);
    compiler.args(["-Xlint:-options", "-d"]);
    compiler.arg(folder).arg(source);
    // Names of classes, and thus of files, are not ASCII.
    compiler.env("LC_ALL", "C.UTF-8");
    let output = compiler.output().expect("start javac");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "javac {}: {said}",
        source.display()
    );
}

/// Returns the distribution's default virtual machine.
///
/// # Panics
///
/// Panics if there is none.
#[must_use]
pub fn java() -> Java {
    let path = fs::canonicalize("/usr/bin/java").expect("default-jdk-headless");
    Java { path }
}

/// Returns the virtual machines that are installed and those that `scripts/runtimes/fetch.sh` has
/// fetched, each once.
#[must_use]
pub fn javas() -> Vec<Java> {
    let installed = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let installed =
        installed.filter_map(|entry| fs::canonicalize(entry.path().join("bin/java")).ok());
    let mut paths: Vec<PathBuf> = installed.collect();
    paths.sort();
    paths.dedup();
    paths.append(&mut fetched("java", OLDEST));
    paths.into_iter().map(|path| Java { path }).collect()
}
