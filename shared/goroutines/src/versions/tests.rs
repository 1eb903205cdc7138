use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

#[test]
fn a_version_is_known_by_its_second_number_alone() {
    let minor = |text: &str| {
        let version = Version(text.to_owned());
        version.known().map(|known| known.minor)
    };
    for (text, expected) in [
        ("go1.19", Some(19)),
        ("go1.24.4 X:noswissmap", Some(24)),
        ("go1.27rc1", Some(27)),
        ("go1.2", None),
        ("go1.99", None),
        ("go1.", None),
        ("go1.99999999999", None),
    ] {
        assert_eq!(minor(text), expected, "{text}");
    }
}

/// Returns the Go of this machine and, if all versions are to be tested, those that
/// `scripts/runtimes/fetch.sh` has installed.
fn compilers() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("go")];
    if env::var_os("SYSTEMSCOPE_ALL_VERSIONS").is_some() {
        let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
        let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), Into::into);
        let folders = fs::read_dir(cache.join("systemscope/runtimes/go"));
        let folders = folders.into_iter().flatten().flatten();
        found.extend(folders.map(|folder| folder.path().join("bin/go")));
    }
    found
}

fn build(go: &Path, folder: &Path) -> Elf<File> {
    let source = folder.join("empty.go");
    fs::write(&source, "package main\n\nfunc main() {}\n").unwrap();
    let output = Command::new(go)
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "")
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", folder.join("cache"))
        .env("GOPATH", folder)
        .args(["build", "-o"])
        .args([folder.join("empty"), source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Elf::read(File::open(folder.join("empty")).unwrap()).unwrap()
}

#[test]
fn each_known_version_has_the_layout_of_its_debug_information() {
    for go in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let elf = build(&go, folder.path());
        // The file has the version itself, or its address in the file.
        let version = Version::read(&elf, 0, &InFile(&elf)).unwrap();
        let Some(known) = version.known() else {
            println!("{version} is not known");
            continue;
        };
        println!("{version}");
        assert_eq!(Some(known.layout), Layout::read(&elf), "{version}");
        let reasons = elf.variable("runtime.waitReasonStrings").unwrap();
        let size = (reasons.end - reasons.start) as usize;
        assert_eq!(known.reasons * 16, size, "{version}");
    }
}

/// Memory as the file has it.
struct InFile<'e>(&'e Elf<File>);

impl Memory for InFile<'_> {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let bytes = self.0.initial_bytes(start, most as u64);
        bytes.unwrap_or_default()
    }
}
