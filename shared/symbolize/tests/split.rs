//! Tests of programs whose debug information is in `.dwo` and `.dwp` files.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Running, Workshop, run, symbolizer};
use symbolize::Sources;

/// Program that prints an address in `inner`, which is inlined into `outer`.
const INLINED: &str = r#"
#include <stdio.h>
#include <unistd.h>
extern char here;
static inline __attribute__((always_inline)) void inner(void) {
    __asm__ volatile(".globl here\nhere: nop");
}
__attribute__((noinline)) void outer(void) {
    inner();
}
int main(void) {
    printf("%p\n", (void *)&here);
    fflush(stdout);
    outer();
    pause();
}
"#;

/// Builds the program, and returns it and its `.dwo` file.
fn build(workshop: &Workshop, version: &str) -> (PathBuf, PathBuf) {
    let program = workshop.build("cc", INLINED, "program", &["-O1", "-gsplit-dwarf", version]);
    let files = std::fs::read_dir(workshop.0.path()).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let dwo = files.find(|file| file.extension().is_some_and(|ending| ending == "dwo"));
    (program, dwo.unwrap())
}

/// Returns the functions at the address with their lines, outermost first.
fn lines(program: &Path, sources: Sources) -> Vec<String> {
    let mut symbolizer = symbolizer(&[]);
    symbolizer.look_up_sources(sources);
    let located = Running::start(program).locate(&mut symbolizer);
    symbolizer.resolve(located.iter().copied());
    let frame = symbolizer.frame(located[0]);
    let inlined = frame.inlined.iter();
    let inlined = inlined.map(|it| (it.name.clone().unwrap_or_default(), &it.source));
    let all = [(frame.name.clone(), &frame.source)]
        .into_iter()
        .chain(inlined);
    let text = |(name, source): (std::sync::Arc<str>, &Option<symbolize::Source>)| {
        format!("{name}:{}", source.as_ref().map_or(0, |source| source.line))
    };
    all.map(text).collect()
}

#[test]
fn inlined_functions_are_in_files_beside_the_program_or_in_a_package() {
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let workshop = Workshop::new();
        let (program, dwo) = build(&workshop, version);
        let inlined = |program: &Path| lines(program, Sources::Inlined);
        assert_eq!(lines(&program, Sources::Lines), ["outer:9"], "{version}");
        assert_eq!(inlined(&program), ["outer:9", "inner:6"], "{version}");

        // The program and its files have moved.
        let moved = workshop.path("moved");
        std::fs::create_dir(&moved).unwrap();
        let new_place = |path: &Path| moved.join(path.file_name().unwrap());
        let [program, dwo] = [program, dwo].map(|path| {
            std::fs::rename(&path, new_place(&path)).unwrap();
            new_place(&path)
        });
        assert_eq!(inlined(&program), ["outer:9", "inner:6"], "{version}");

        // A package has the entries of all units.
        let package = moved.join("program.dwp");
        run(Command::new("llvm-dwp").arg("-o").arg(&package).arg(&dwo));
        std::fs::remove_file(&dwo).unwrap();
        assert_eq!(inlined(&program), ["outer:9", "inner:6"], "{version}");

        // Without these files the lines remain.
        std::fs::remove_file(&package).unwrap();
        assert_eq!(inlined(&program), ["outer:6"], "{version}");
    }
}

#[test]
fn a_file_of_another_build_has_no_inlined_functions() {
    let workshop = Workshop::new();
    let (program, dwo) = build(&workshop, "-gdwarf-5");
    let other = Workshop::new();
    let source = INLINED.replace("inner", "wrong");
    other.build(
        "cc",
        &source,
        "program",
        &["-O1", "-gsplit-dwarf", "-gdwarf-5"],
    );
    let other = other.path(dwo.file_name().unwrap().to_str().unwrap());
    std::fs::copy(other, &dwo).unwrap();
    assert_eq!(lines(&program, Sources::Inlined), ["outer:6"]);
}
