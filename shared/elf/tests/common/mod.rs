//! ELF files for several tests.
#![allow(dead_code)] // Each test uses some of the functions.

use std::fs;
use std::io::Write;
use std::path::Path;
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

/// Runs objcopy on a program and returns the resulting program.
pub(crate) fn objcopy(program: &[u8], options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    fs::write(&path, program).unwrap();
    run(Command::new("objcopy").args(options).arg(&path));
    fs::read(path).unwrap()
}

/// Strips a program, and adds the whole program as `.gnu_debugdata`.
pub(crate) fn with_mini_debug_information(program: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mini");
    fs::write(&path, program).unwrap();
    run(Command::new("xz").arg("--keep").arg(&path));
    let section = format!("--add-section=.gnu_debugdata={}", xz(&path));
    objcopy(program, &["--strip-all", &section])
}

fn xz(path: &Path) -> String {
    path.with_extension("xz").display().to_string()
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// Section for a file that [`made`] makes.
pub(crate) struct Made<'b> {
    pub(crate) name: &'b str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    /// Contents in the file.
    pub(crate) contents: &'b [u8],
    /// Size that the header claims, in bytes.
    pub(crate) size: u64,
    pub(crate) link: u32,
}

/// Returns a 64-bit file with these sections, which have indexes from 1 on. The section with their
/// names follows them.
pub(crate) fn made(sections: &[Made<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut names = vec![0];
    let mut add = |bytes: &mut Vec<u8>, section: &Made<'_>| {
        headers.extend((names.len() as u32).to_le_bytes());
        headers.extend(section.kind.to_le_bytes());
        let places = [section.flags, 0, bytes.len() as u64, section.size];
        headers.extend(places.map(u64::to_le_bytes).concat());
        headers.extend([section.link, 0].map(u32::to_le_bytes).concat());
        headers.extend([0; 16]);
        bytes.extend(section.contents);
        names.extend(section.name.as_bytes());
        names.push(0);
        names.clone()
    };
    let mut all = Vec::new();
    for section in sections {
        all = add(&mut bytes, section);
    }
    let own = Made {
        name: "",
        kind: 3,
        flags: 0,
        contents: &all,
        size: all.len() as u64,
        link: 0,
    };
    add(&mut bytes, &own);
    let at = bytes.len() as u64;
    bytes.extend(headers);
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[40..48].copy_from_slice(&at.to_le_bytes());
    let count = sections.len() as u16 + 2;
    let counts = [64, count, count - 1].map(u16::to_le_bytes).concat();
    bytes[58..64].copy_from_slice(&counts);
    bytes
}
