//! Virtual machines of Java on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Oldest version that has what the programs of the tests use.
const RELEASE: &str = "11";

/// Folders in which distributions and other packages install JDKs.
const FOLDERS: [&str; 2] = ["/usr/lib/jvm", ".cache/systemscope/javas"];

/// Virtual machine with its compiler.
#[derive(Clone, Debug)]
pub struct Java {
    /// Path of `java`.
    pub path: PathBuf,
}

impl Java {
    /// Compiles a source file into a folder.
    ///
    /// # Panics
    ///
    /// Panics if the compiler fails.
    pub fn compile(&self, source: &Path, folder: &Path) {
        let mut compiler = Command::new(self.path.with_file_name("javac"));
        compiler.args(["-encoding", "UTF-8", "--release", RELEASE, "-nowarn", "-d"]);
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

/// Returns all virtual machines with a compiler, each once.
#[must_use]
pub fn javas() -> Vec<Java> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let folders = FOLDERS.map(|folder| home.join(folder)).into_iter();
    let machines = folders
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten();
    let paths = machines.filter_map(|entry| {
        let bin = fs::canonicalize(entry.ok()?.path().join("bin")).ok()?;
        bin.join("javac").exists().then(|| bin.join("java"))
    });
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths.dedup();
    paths.into_iter().map(|path| Java { path }).collect()
}
