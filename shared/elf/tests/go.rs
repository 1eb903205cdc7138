//! Compares the functions that Go's runtime knows with the symbol table of the same program. Also
//! reads tables with wrong numbers.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use elf::{Elf, Error};

/// Offset in the table after its header, in bytes.
const HEADER: usize = 72;

fn build(folder: &Path) -> Vec<u8> {
    let source = folder.join("empty.go");
    fs::write(&source, "package main\n\nfunc main() {}\n").unwrap();
    let output = Command::new("go")
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
    fs::read(folder.join("empty")).unwrap()
}

/// Returns the names of the functions that the runtime knows, by address.
fn known(image: &[u8]) -> Option<BTreeMap<u64, String>> {
    let elf = Elf::read_loaded(image).ok()?;
    let table = elf.go_functions()?;
    let mut found = BTreeMap::new();
    let visited = table.for_each(|symbol| {
        if let Some(name) = table.name(symbol.name) {
            found.insert(symbol.address, name);
        }
        Ok::<(), Error>(())
    });
    visited.ok()?;
    Some(found)
}

#[test]
fn the_runtimes_table_has_the_functions_of_the_symbol_table() {
    let folder = tempfile::tempdir().unwrap();
    let image = build(folder.path());
    let known_functions = known(&image).unwrap();
    assert!(known_functions.len() > 500, "{}", known_functions.len());
    let elf = Elf::read_loaded(&image[..]).unwrap();
    let mut symbols: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    elf.for_each_function(|name, range| {
        let name = String::from_utf8_lossy(name).into_owned();
        symbols.entry(range.start).or_default().push(name);
    });
    for (address, name) in &known_functions {
        let names = symbols.get(address);
        let is_same =
            |other: &String| other.trim_end_matches(".abi0") == name.trim_end_matches(".abi0");
        // The table and the symbols differ in how they abbreviate type arguments.
        let is_named = names.is_some_and(|names| names.iter().any(is_same) || name.contains('['));
        assert!(is_named, "{address:#x}: {name} is {names:?}");
    }

    // No number in the table or its first entries causes a panic or a long read.
    let section = elf.section(".gopclntab").unwrap();
    let start = section.offset as usize;
    for at in (start..start + HEADER + 64).step_by(4) {
        for value in [0, 1, 0x7fff_ffff, u32::MAX] {
            let mut image = image.clone();
            image[at..at + 4].copy_from_slice(&value.to_le_bytes());
            known(&image);
        }
    }
}
