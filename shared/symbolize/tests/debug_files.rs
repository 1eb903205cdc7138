//! Tests of stripped programs and their separate debug files.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Running, Workshop, run, symbolizer};
use symbolize::{DebugFiles, FindBuildId, Frame, Sources};

const SOURCE: &str = r#"
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) static int hidden(int x) { __asm__ volatile(""); return x + 2; }
int main(void) {
    printf("%p\n", (void *)hidden);
    fflush(stdout);
    hidden(1);
    pause();
}
"#;

/// Linker option for a build ID.
const BUILD_ID: &str = "-Wl,--build-id=0xabcdef0123456789abcdef0123456789abcdef01";
/// Path of the debug file with this build ID.
const BY_BUILD_ID: &str = "debug/.build-id/ab/cdef0123456789abcdef0123456789abcdef01.debug";

fn objcopy(arguments: &[&str], paths: &[&Path]) {
    run(Command::new("objcopy").args(arguments).args(paths));
}

/// Builds a program, and moves its symbols to the file `debug`.
fn split(workshop: &Workshop, debug: &Path, build_id: &str) -> PathBuf {
    let program = workshop.build("cc", SOURCE, "program", &["-O1", "-g", build_id]);
    std::fs::create_dir_all(debug.parent().unwrap()).unwrap();
    objcopy(&["--only-keep-debug"], &[&program, debug]);
    objcopy(&["--strip-all"], &[&program]);
    program
}

fn link(program: &Path, debug: &Path) {
    let option = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&[&option], &[program]);
}

#[test]
fn by_debug_link_in_each_place() {
    // The checksum is at different offsets after names of 12 and 13 bytes.
    for place in ["program.debug", ".debug/program.debug", "progra.debug"] {
        let workshop = Workshop::new();
        let debug = workshop.path(place);
        let program = split(&workshop, &debug, "-Wl,--build-id=none");
        link(&program, &debug);
        assert_eq!(
            Running::start(&program).names(&mut symbolizer(&[])),
            ["hidden"]
        );
    }
    let workshop = Workshop::new();
    let folder = workshop.0.path().canonicalize().unwrap();
    let central = workshop.path("debug");
    let debug = central
        .join(folder.strip_prefix("/").unwrap())
        .join("program.debug");
    let program = split(&workshop, &debug, "-Wl,--build-id");
    link(&program, &debug);
    let mut symbolizer = symbolizer(&[&central]);
    assert_eq!(Running::start(&program).names(&mut symbolizer), ["hidden"]);
}

/// Adds the symbols of `debug` to a stripped program with xz, as distributions do. The symbols
/// include the sections about the program's frames if only debuggers use these sections.
fn add_mini_debug_information(workshop: &Workshop, program: &Path, debug: &Path) {
    let mini = workshop.path("mini");
    objcopy(
        &["--strip-debug", "--remove-section=.comment"],
        &[debug, &mini],
    );
    run(Command::new("xz").arg("--force").arg(&mini));
    let option = format!(
        "--add-section=.gnu_debugdata={}",
        workshop.path("mini.xz").display()
    );
    objcopy(&[&option], &[program]);
}

#[test]
fn symbols_in_the_stripped_program_itself_name_what_no_debug_file_does() {
    let workshop = Workshop::new();
    let debug = workshop.path(BY_BUILD_ID);
    let program = split(&workshop, &debug, BUILD_ID);
    add_mini_debug_information(&workshop, &program, &debug);
    let names = |directories: &[&Path]| {
        let mut symbolizer = symbolizer(directories);
        let names = Running::start(&program).names(&mut symbolizer);
        (names, symbolizer.losses().clone())
    };
    assert_eq!(names(&[]).0, ["hidden"]);
    // The debug file has more symbols, so it is preferred.
    objcopy(&["--redefine-sym=hidden=separate"], &[&debug]);
    assert_eq!(names(&[&workshop.path("debug")]).0, ["separate"]);
    // As a control, a section that is not xz data is reported, and no other name is lost.
    std::fs::write(workshop.path("mini.xz"), "neither").unwrap();
    let option = format!(
        "--update-section=.gnu_debugdata={}",
        workshop.path("mini.xz").display()
    );
    objcopy(&[&option], &[&program]);
    let (found, losses) = names(&[]);
    assert_eq!(found, ["[program]"]);
    assert_eq!(losses.unread_files, 1, "{losses:?}");
    assert!(losses.notes[0].contains(".gnu_debugdata"), "{losses:?}");
}

/// Source of one debug file, which arrives as soon as somebody waits for it.
#[derive(Debug)]
struct Remote {
    file: PathBuf,
    requested: Mutex<Vec<Vec<u8>>>,
}

impl DebugFiles for Remote {
    fn request(&self, find: FindBuildId) {
        self.requested.lock().unwrap().extend(find());
    }

    fn get(&self, build_id: &[u8], until: Option<Instant>) -> Option<File> {
        assert_eq!(build_id[0], 0xab);
        until.and_then(|_| File::open(&self.file).ok())
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[test]
fn a_remote_debug_file_is_requested_at_once_if_nothing_here_has_its_symbols() {
    let workshop = Workshop::new();
    let whole = workshop.build("cc", SOURCE, "whole", &["-O1", "-g", BUILD_ID]);
    let debug = workshop.path("remote");
    let stripped = split(&workshop, &debug, BUILD_ID);
    let without_lines = workshop.path("lineless");
    objcopy(&["--strip-debug"], &[&whole, &without_lines]);
    let with_mini = workshop.path("mini_inside");
    std::fs::copy(&stripped, &with_mini).unwrap();
    add_mini_debug_information(&workshop, &with_mini, &debug);
    // The program, whether its debug file is requested without lines and with lines, and its names
    // before the debug file arrives and afterwards.
    for (program, requests, names) in [
        (&stripped, [1, 1], ["[program]", "hidden"]),
        (&whole, [0, 0], ["hidden"; 2]),
        (&without_lines, [0, 1], ["hidden"; 2]),
        (&with_mini, [0, 1], ["hidden"; 2]),
    ] {
        for (sources, requests) in [Sources::None, Sources::Lines].into_iter().zip(requests) {
            let remote = Arc::new(Remote {
                file: debug.clone(),
                requested: Mutex::default(),
            });
            let mut symbolizer = symbolizer(&[]);
            symbolizer.look_up_sources(sources);
            symbolizer.set_debug_files(Arc::<Remote>::clone(&remote));
            let running = Running::start(program);
            let located = running.locate(&mut symbolizer);
            running.locate(&mut symbolizer);
            let requested = remote.requested.lock().unwrap().len();
            assert_eq!(requested, requests, "{program:?}");
            let before = common::names(&mut symbolizer, &located);
            symbolizer.wait_for_debug_files();
            let after = common::names(&mut symbolizer, &located);
            assert_eq!([&*before[0], &*after[0]], names, "{program:?}");
            let line = symbolizer.frame(located[0]).source.map(|it| it.line);
            assert_eq!(
                line,
                (sources == Sources::Lines).then_some(4),
                "{program:?}"
            );
        }
    }
}

/// Compresses a section of a 64-bit file with zlib, as `elfcompress` does. The compressed bytes are
/// at the end of the file.
fn pack_section(program: &Path, wanted: u32) {
    let mut bytes = std::fs::read(program).unwrap();
    let number = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
    };
    let header = number(&bytes, 40) + 64 * wanted as usize;
    let (offset, size) = (number(&bytes, header + 24), number(&bytes, header + 32));
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(&bytes[offset..offset + size], 6);
    let start = [1, size as u64, 8].map(u64::to_le_bytes).concat();
    let place = [bytes.len(), start.len() + packed.len()];
    bytes[offset..offset + size].fill(0);
    bytes[header + 8..][..8].copy_from_slice(&(1_u64 << 11).to_le_bytes());
    bytes[header + 24..][..16]
        .copy_from_slice(&place.map(|n| n as u64).map(u64::to_le_bytes).concat());
    bytes.extend(start);
    bytes.extend(packed);
    std::fs::write(program, bytes).unwrap();
}

#[test]
fn symbols_and_source_lines_are_read_however_their_sections_are_packed() {
    let workshop = Workshop::new();
    let program = workshop.build("cc", SOURCE, "program", &["-O1", "-g"]);
    let frame = || {
        let mut symbolizer = symbolizer(&[]);
        symbolizer.look_up_sources(Sources::Lines);
        let located = Running::start(&program).locate(&mut symbolizer);
        symbolizer.resolve(located.iter().copied());
        let frame = symbolizer.frame(located[0]);
        (
            frame.name.to_string(),
            frame.source.map(|source| source.line),
        )
    };
    for packing in ["zlib-gabi", "zlib-gnu", "zstd"] {
        objcopy(
            &[&format!("--compress-debug-sections={packing}")],
            &[&program],
        );
        assert_eq!(frame(), ("hidden".to_owned(), Some(4)), "{packing}");
    }
    let sections = Command::new("readelf")
        .args(["-SW"])
        .arg(&program)
        .output()
        .unwrap();
    let sections = String::from_utf8(sections.stdout).unwrap();
    for name in [".symtab", ".strtab"] {
        let line = sections
            .lines()
            .find(|line| line.contains(&format!(" {name} ")))
            .unwrap();
        let number = line
            .trim_start_matches([' ', '['])
            .split(']')
            .next()
            .unwrap();
        pack_section(&program, number.parse().unwrap());
        assert_eq!(frame(), ("hidden".to_owned(), Some(4)), "{name}");
    }
}

#[test]
fn a_debug_file_of_another_build_is_not_used() {
    for build_id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let workshop = Workshop::new();
        let debug = workshop.path("program.debug");
        let program = split(&workshop, &debug, build_id);
        link(&program, &debug);
        // The other program differs only in one name.
        let source = SOURCE.replace("hidden", "wrong_");
        let other = workshop.build("cc", &source, "other", &["-O1", "-g", build_id]);
        objcopy(&["--only-keep-debug"], &[&other, &debug]);
        let found = Running::start(&program).names(&mut symbolizer(&[]));
        assert_eq!(found, ["[program]"], "{build_id}");
    }
}

#[test]
fn a_debug_file_of_the_same_build_may_have_been_changed_since() {
    let workshop = Workshop::new();
    let debug = workshop.path("program.debug");
    let program = split(&workshop, &debug, "-Wl,--build-id");
    link(&program, &debug);
    // This changes the checksum of the debug file.
    objcopy(&["--remove-section=.debug_str"], &[&debug]);
    let found = Running::start(&program).names(&mut symbolizer(&[]));
    assert_eq!(found, ["hidden"]);
}

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

#[test]
fn source_lines_are_in_the_program_or_in_its_debug_file() {
    let workshop = Workshop::new();
    let flags = ["-O1", "-g", BUILD_ID];
    let program = workshop.build("cc", INLINED, "program", &flags);
    let frame = |sources: Sources| {
        let running = Running::start(&program);
        let mut symbolizer = symbolizer(&[&workshop.path("debug")]);
        symbolizer.look_up_sources(sources);
        let located = running.locate(&mut symbolizer);
        symbolizer.resolve(located.iter().copied());
        symbolizer.frame(located[0])
    };
    let lines_in = |frame: &Frame| {
        let inlined = frame.inlined.iter();
        let unnamed = |name: &Option<std::sync::Arc<str>>| name.clone().unwrap_or_default();
        let sources = inlined.map(|inlined| (unnamed(&inlined.name), &inlined.source));
        let sources = [(frame.name.clone(), &frame.source)]
            .into_iter()
            .chain(sources);
        let lines = sources.filter_map(|(name, source)| {
            let source = source.as_ref()?;
            assert!(source.file.ends_with("/program.c"), "{source:?}");
            Some(format!("{name}:{}", source.line))
        });
        lines.collect::<Vec<_>>()
    };
    let assert_lines = || {
        let asked = [Sources::None, Sources::Lines, Sources::Inlined];
        let [none, lines, inlined] = asked.map(|sources| lines_in(&frame(sources)));
        assert!(none.is_empty(), "{none:?}");
        assert_eq!(lines, ["outer:9"]);
        assert_eq!(inlined, ["outer:9", "inner:6"]);
    };
    assert_lines();
    // The program and its debug file keep only symbols.
    let debug = workshop.path(BY_BUILD_ID);
    std::fs::create_dir_all(debug.parent().unwrap()).unwrap();
    objcopy(&["--only-keep-debug"], &[&program, &debug]);
    objcopy(&["--strip-debug"], &[&program]);
    assert_lines();
}

/// Program that maps files, and prints an address in each of them.
const MAPPER: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (int file = 1; file < argc; file++)
        printf("%p ", mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[file], O_RDONLY), 0));
    printf("\n");
    fflush(stdout);
    pause();
}
"#;

#[test]
fn sparse_debug_files_take_no_names_from_other_processes() {
    const FILES: usize = 8;
    let workshop = Workshop::new();
    let honest = split(
        &workshop,
        &workshop.path("program.debug"),
        "-Wl,--build-id=none",
    );
    link(&honest, &workshop.path("program.debug"));
    // Each file has a debug file with its symbols, whose checksum must be computed.
    let hostile = workshop.path("hostile");
    std::fs::create_dir(&hostile).unwrap();
    let paths: Vec<PathBuf> = (0..FILES)
        .map(|number| {
            let [path, debug] = ["", ".debug"].map(|end| hostile.join(format!("{number}{end}")));
            std::fs::copy(&honest, &path).unwrap();
            std::fs::copy(workshop.path("program.debug"), &debug).unwrap();
            objcopy(&["--remove-section=.gnu_debuglink"], &[&path]);
            link(&path, &debug);
            let debug = std::fs::File::options().write(true).open(&debug);
            debug.unwrap().set_len(1 << 30).unwrap();
            path
        })
        .collect();
    let mapper = workshop.build("cc", MAPPER, "mapper", &[]);
    let mapping = Running::spawn(Command::new(mapper).args(&paths));
    let running = Running::start(&honest);

    let mut symbolizer = symbolizer(&[]);
    let mut located = mapping.locate(&mut symbolizer);
    located.extend(running.locate(&mut symbolizer));
    let names = common::names(&mut symbolizer, &located);
    assert_eq!(names[FILES], "hidden");
    // The checksum of one file takes as much work as the files of a process may take.
    let losses = symbolizer.losses();
    assert_eq!(losses.costly_files as usize, FILES - 1, "{losses:?}");
    let is_noted = |note: &String| note.contains("/hostile/") && note.ends_with("too much work");
    assert!(losses.notes.iter().all(is_noted), "{losses:?}");
}
