#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use super::*;

/// Compiles a library from `source`, and returns its bytes.
fn compile(source: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let [input, output] = ["library.c", "library.so"].map(|name| directory.path().join(name));
    fs::write(&input, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC"]).args(options);
    let status = compiler.arg("-o").arg(&output).arg(&input).status();
    assert!(status.unwrap().success());
    fs::read(output).unwrap()
}

fn version(source: &str, file_name: &str) -> Option<String> {
    let found = find(&compile(source, &[]), file_name)?;
    Some(found.version.to_string())
}

#[test]
fn versions_are_what_the_file_says_first() {
    const STATED: &str = "const unsigned long Py_Version = 0x030c01f0;";
    const PLAIN: &str = "int _PyRuntime[100] = { 1 };";
    let offsets = |version, free_threaded| {
        format!(
            "struct {{ char cookie[8]; unsigned long version, free_threaded; }} _PyRuntime =
            {{ {{'x','d','e','b','u','g','p','y'}}, {version}, {free_threaded} }};"
        )
    };
    for (source, name, expected) in [
        (format!("{STATED}{PLAIN}"), "libpython3.9.so", Some("3.12")),
        (offsets("0x030d00f0", 0), "any", Some("3.13")),
        (offsets("0x030d00f0", 1), "any", Some("3.13t")),
        (offsets("0x030e02c1", 1), "libpython3.9.so", Some("3.14t")),
        (offsets("0x040000b1", 0), "any", Some("4.0")),
        (PLAIN.into(), "/usr/lib/libpython3.9.so.1.0", Some("3.9")),
        (PLAIN.into(), "python3.8", Some("3.8")),
        (PLAIN.into(), "python3", None),
        (PLAIN.into(), "/opt/python3.9/bin/program", None),
        // Later versions have the word that says whether there is a global lock.
        (PLAIN.into(), "libpython3.13.so.1.0", None),
        (offsets("0", 0), "libpython3.13.so.1.0", None),
        (offsets("0x1030d00f0", 0), "libpython3.8.so", Some("3.8")),
        // These files contain no interpreter.
        (
            "int _PyRuntime(void) { return 1; }".into(),
            "python3.8",
            None,
        ),
        (
            "extern int _PyRuntime; int *f(void) { return &_PyRuntime; }".into(),
            "python3.8",
            None,
        ),
        (STATED.into(), "python3.12", None),
    ] {
        assert_eq!(
            version(&source, name).as_deref(),
            expected,
            "{source} in {name}"
        );
    }
    // The library has no debug symbols, and its data are at another address.
    let stripped = compile(PLAIN, &["-s", "-Wl,--section-start=.data=0x123000"]);
    let found = find(&stripped, "libpython3.8.so").unwrap();
    let near = found.runtime.abs_diff(0x12_3000);
    assert!(near < 64, "{found:?}");
    assert_eq!(find(&b"no image"[..], "python3.8"), None);
}

#[test]
fn what_belongs_to_an_interpreter_is_none() {
    // Extension modules of the interpreter refer to its symbols.
    let python = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    let output = Command::new("/usr/bin/python3")
        .args(["-I", "-c", python])
        .output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    let modules = fs::read_dir(Path::new(output.trim()).join("lib-dynload")).unwrap();
    let mut seen = 0;
    for module in modules {
        let path = module.unwrap().path();
        let file = File::open(&path).unwrap();
        assert_eq!(find(&file, "python3.11"), None, "{}", path.display());
        seen += 1;
    }
    assert!(seen > 20);
}
