//! Compares variables that are found by name with the output of binutils' readelf. Also looks up
//! variables in images with wrong symbols.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use common::compile;
use elf::Elf;

const SOURCE: &str = "
const unsigned long constant = 0x0102030405060708;
char text[3000] = \"text\";
char zeros[5000];
__attribute__((visibility(\"hidden\"))) int hidden = 7;
extern int elsewhere;
int *function(void) { return &elsewhere + hidden; }
";

#[test]
fn variables_are_found_however_they_are_listed() {
    let shared = ["-shared", "-fPIC"];
    let with = |options: &[&'static str]| [&shared[..], options].concat();
    for (options, has_symtab) in [
        (with(&["-Wl,--hash-style=gnu"]), true),
        (with(&["-Wl,--hash-style=gnu", "-s"]), false),
        (with(&["-Wl,--hash-style=sysv", "-s"]), false),
        (with(&["-Wl,--hash-style=both", "-s"]), false),
        (vec!["-r"], true),
    ] {
        let relocatable = options == ["-r"];
        let image = compile("c", SOURCE, &options);
        let elf = Elf::read_loaded(&image).unwrap();
        let size = |name| elf.variable(name).map(|at| at.end - at.start);
        assert_eq!(size("constant"), Some(8), "{options:?}");
        assert_eq!(size("text"), Some(3000), "{options:?}");
        assert_eq!(size("zeros"), Some(5000), "{options:?}");
        assert_eq!(size("hidden"), has_symtab.then_some(4), "{options:?}");
        for none in ["elsewhere", "function", "constan", "constants", ""] {
            assert_eq!(elf.variable(none), None, "{options:?}: {none}");
        }
        if relocatable {
            continue;
        }
        let start = |name| elf.variable(name).unwrap().start;
        let constant = 0x0102_0304_0506_0708_u64.to_le_bytes();
        assert_eq!(elf.initial_bytes(start("constant"), 8).unwrap(), constant);
        assert_eq!(elf.initial_bytes(start("text") + 1, 4).unwrap(), b"ext\0");
        // The file has no bytes for `zeros`, which consists of zeros.
        assert_eq!(elf.initial_bytes(start("zeros"), 5000), None);
        assert_eq!(elf.initial_bytes(u64::MAX - 3, 8), None);
        assert_eq!(elf.initial_bytes(0, u64::MAX), None);
    }
}

#[test]
fn the_systems_library_has_those_that_readelf_has() {
    let path = library();
    let output = Command::new("readelf")
        .args(["--dyn-syms", "--wide", &path])
        .output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    let mut expected: HashMap<&str, HashSet<Range<u64>>> = HashMap::new();
    let mut others = HashSet::new();
    for line in output.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, value, size, kind, _, _, index, name, ..] = fields[..] else {
            continue;
        };
        let name = name.split('@').next().unwrap();
        match (kind, index) {
            ("OBJECT", index) if index != "UND" && index != "ABS" && size != "0" => {
                let start = u64::from_str_radix(value, 16).unwrap();
                let range = start..start + size.parse::<u64>().unwrap();
                expected.entry(name).or_default().insert(range);
            }
            _ => drop(others.insert(name)),
        }
    }
    assert!(expected.len() > 50 && others.len() > 1000);
    let file = File::open(path).unwrap();
    let elf = Elf::read_loaded(&file).unwrap();
    for (name, ranges) in &expected {
        let found = elf.variable(name);
        assert!(found.is_some_and(|range| ranges.contains(&range)), "{name}");
    }
    for name in others.iter().filter(|name| !expected.contains_key(*name)) {
        assert_eq!(elf.variable(name), None, "{name}");
    }
}

/// Returns the path of the C library that this process uses.
fn library() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    paths.find(|path| path.contains("/libc.so")).unwrap().into()
}

#[test]
fn tampered_images_do_no_harm() {
    let small = ["-nostdlib", "-shared", "-fPIC", "-Wl,-z,noseparate-code"];
    let with = |option| compile("c", SOURCE, &[&small[..], &[option]].concat());
    let seeds = [
        with("-Wl,--hash-style=gnu"),
        with("-Wl,--hash-style=sysv"),
        compile("c", SOURCE, &["-r"]),
    ];
    tamper::tamper("images", &seeds, |bytes| {
        let (_, cost) = tamper::cost(|| {
            let elf = Elf::read_loaded(bytes).ok()?;
            for name in ["constant", "hidden", "elsewhere"] {
                if let Some(at) = elf.variable(name) {
                    assert!(!at.is_empty());
                    elf.initial_bytes(at.start, 8);
                    elf.initial_bytes(at.start, at.end - at.start);
                }
            }
            Some(())
        });
        assert!(cost.time < Duration::from_secs(1), "{cost:?}");
    });
}
