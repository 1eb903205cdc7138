//! Helpers for several tests.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// Compiles `source` and returns the program.
pub(crate) fn compile(language: &str, source: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("program");
    let mut compiler = Command::new("cc")
        .args(["-x", language, "-", "-o"])
        .arg(&output)
        .args(options)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = compiler.stdin.take().unwrap();
    input.write_all(source.as_bytes()).unwrap();
    drop(input);
    let said = compiler.wait_with_output().unwrap();
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    fs::read(output).unwrap()
}
