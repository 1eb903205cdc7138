//! Names in real processes: right, or absent.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::os::unix::fs::FileExt;
use std::process::Command;

use common::{Running, Workshop, names, symbolizer};
use profile::FrameKind;
use symbolize::{CodeSource, Location, Process};

/// Prints addresses of an exported, a static and a libc function, and one in
/// libc's `start_thread`, which no distribution's libc exports.
const THREADED: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int shown(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) static int hidden(int x) { __asm__ volatile(""); return x + 2; }
static void *thread(void *unused) {
    char *caller = __builtin_extract_return_addr(__builtin_return_address(0));
    printf("%p %p %p %p\n", (void *)shown, (void *)hidden, (void *)getppid, (void *)(caller - 1));
    fflush(stdout);
    hidden(shown(1));
    pause();
    return unused;
}
int main(void) {
    pthread_t id;
    pthread_create(&id, 0, thread, 0);
    if (ENDS) pthread_exit(0);
    pthread_join(id, 0);
}
"#;

fn threaded(workshop: &Workshop, name: &str, flags: &[&str]) -> std::path::PathBuf {
    let flags = [&["-O1", "-pthread", "-fcf-protection=none"], flags].concat();
    workshop.build("cc", THREADED, name, &flags)
}

#[test]
fn functions_of_program_and_library() {
    let workshop = Workshop::new();
    let running = Running::start(&threaded(&workshop, "program", &["-DENDS=0"]));
    let mut symbolizer = symbolizer(&[]);
    let located = running.locate(&mut symbolizer);
    let found = names(&mut symbolizer, &located);
    assert_eq!(found, ["shown", "hidden", "getppid", "[libc.so.6]"]);
    let frames = symbolizer.frames(&located);
    assert!(frames.iter().all(|frame| frame.kind == FrameKind::User));
    let modules: Vec<_> = frames
        .iter()
        .rev()
        .map(|frame| &*frame.module.as_ref().unwrap().name)
        .collect();
    assert_eq!(modules, ["program", "program", "libc.so.6", "libc.so.6"]);
}

/// Of the same file `nm` and `readelf` say the same.
#[test]
fn addresses_and_build_ids_are_those_of_the_file() {
    let workshop = Workshop::new();
    let flags = ["-DENDS=0", "-Wl,--build-id"];
    let program = threaded(&workshop, "program", &flags);
    let running = Running::start(&program);
    let mut symbolizer = symbolizer(&[]);
    let located = running.locate(&mut symbolizer);
    symbolizer.resolve(located.iter().copied());
    let frames = located.iter().map(|location| symbolizer.frame(*location));
    let frames: Vec<_> = frames.collect();
    let said = |tool: &str, flag: &str| {
        let output = Command::new(tool).arg(flag).arg(&program).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let symbols = said("nm", "--defined-only");
    for frame in &frames[..2] {
        let symbol = |line: &&str| line.ends_with(&format!(" {}", frame.name));
        let line = symbols.lines().find(symbol).unwrap();
        let value = u64::from_str_radix(line.split(' ').next().unwrap(), 16);
        assert_eq!((frame.address, frame.has_symbol), (value.ok(), true));
    }
    let module = frames[0].module.as_ref().unwrap();
    assert_eq!(&*module.path, program.to_str().unwrap());
    let notes = said("readelf", "-n");
    let build_id = notes.split("Build ID: ").nth(1).unwrap().trim_end();
    assert_eq!(module.build_id.as_deref(), build_id.lines().next());
    // What no symbol covers is somewhere, too.
    assert!(!frames[3].has_symbol && frames[3].address.is_some());
}

#[test]
fn process_whose_main_thread_has_ended() {
    let workshop = Workshop::new();
    let running = Running::start(&threaded(&workshop, "program", &["-DENDS=1"]));
    // Until it is a zombie, with no mappings of its own.
    let status = format!("/proc/{0}/task/{0}/status", running.pid);
    while !std::fs::read_to_string(&status).unwrap().contains("zombie") {
        std::thread::yield_now();
    }
    let found = running.names(&mut symbolizer(&[]));
    assert_eq!(found, ["shown", "hidden", "getppid", "[libc.so.6]"]);
}

#[test]
fn code_of_a_process_and_the_files_it_is_from() {
    let workshop = Workshop::new();
    let running = Running::start(&threaded(&workshop, "program", &["-DENDS=0"]));
    let mut symbolizer = symbolizer(&[]);
    assert_eq!(symbolizer.code(running.process()), []);
    symbolizer.watch(running.process());
    let code = symbolizer.code(running.process());
    assert!(code.is_sorted_by_key(|mapping| mapping.start));
    let file = |source| symbolizer.code_file(source).unwrap();
    let named = |address: u64| {
        let mut mappings = code.iter();
        let around = mappings.find(|mapping| (mapping.start..mapping.end).contains(&address));
        file(around.unwrap().source).unwrap().1
    };
    let [shown, _, libc, _] = *running.addresses else {
        unreachable!("four addresses")
    };
    assert_eq!([shown, libc].map(named), ["program", "libc.so.6"]);
    let vdso = code
        .iter()
        .find(|mapping| mapping.source == CodeSource::Vdso);
    let (image, name) = file(vdso.unwrap().source).unwrap();
    let mut magic = [0; 4];
    image.read_exact_at(&mut magic, 0).unwrap();
    assert_eq!((&magic, &*name), (b"\x7fELF", "[vdso]"));
    assert!(file(CodeSource::Other).is_none());
}

#[test]
fn process_that_is_gone_when_named() {
    let workshop = Workshop::new();
    let mut running = Running::start(&threaded(&workshop, "program", &["-DENDS=0"]));
    let mut symbolizer = symbolizer(&[]);
    symbolizer.watch(running.process());
    running.kill();
    std::fs::remove_file(workshop.path("program")).unwrap();
    let found = running.names(&mut symbolizer);
    assert_eq!(found, ["shown", "hidden", "getppid", "[libc.so.6]"]);
    assert_eq!(symbolizer.losses().processes, 0);
}

#[test]
fn process_that_is_gone_at_first_sight() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let process = Process {
        pid: child.id(),
        instance: 1,
    };
    let mut symbolizer = symbolizer(&[]);
    for _ in 0..3 {
        let located = symbolizer.locate(process, &[0x40_1000, 0x40_2000], true);
        assert_eq!(located, [Location::Unknown; 2]);
        assert_eq!(names(&mut symbolizer, &located), ["[unknown]"; 2]);
    }
    assert_eq!(symbolizer.losses().processes, 1);
}

#[test]
fn deleted_and_replaced_programs() {
    let workshop = Workshop::new();
    let program = threaded(&workshop, "program", &["-DENDS=0"]);
    let deleted = Running::start(&program);
    // Another program takes its place, with other names at the same offsets.
    let other = threaded(
        &workshop,
        "other",
        &["-DENDS=0", "-Dshown=wrong", "-Dhidden=false_"],
    );
    std::fs::rename(other, &program).unwrap();
    let replaced = Running::start(&program);
    std::fs::remove_file(&program).unwrap();
    let mut symbolizer = symbolizer(&[]);
    assert_eq!(deleted.names(&mut symbolizer)[..2], ["shown", "hidden"]);
    assert_eq!(replaced.names(&mut symbolizer)[..2], ["wrong", "false_"]);
}

#[test]
fn program_that_executes_another() {
    let workshop = Workshop::new();
    let program = threaded(&workshop, "program", &["-DENDS=0"]);
    let mut shell = Command::new("sh");
    // The shell waits for a byte before it becomes the program.
    shell.args(["-c", "read go; exec \"$0\""]).arg(&program);
    let mut child = shell
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut symbolizer = symbolizer(&[]);
    let pid = child.id();
    let process = |instance| Process { pid, instance };
    // `spawn` returns when the shell's image is in place.
    symbolizer.watch(process(1));
    use std::io::{BufRead, BufReader, Write};
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let shown = u64::from_str_radix(&line[2..line.find(' ').unwrap()], 16).unwrap();
    let after = symbolizer.locate(process(2), &[shown], true);
    assert_eq!(names(&mut symbolizer, &after), ["shown"]);
    // The shell's addresses are not looked up in the program.
    let before = symbolizer.locate(process(1), &[shown], true);
    assert_ne!(names(&mut symbolizer, &before), ["shown"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn names_of_cpp_and_rust() {
    let workshop = Workshop::new();
    let cpp = r#"
#include <cstdio>
#include <unistd.h>
namespace space { template <class T> __attribute__((noinline)) T twice(T x) { asm volatile(""); return x * 2; } }
int main() { std::printf("%p\n", (void *)&space::twice<int>); std::fflush(stdout); pause(); }
"#;
    let rust = r#"
mod space { #[inline(never)] pub fn thrice(x: u64) -> u64 { std::hint::black_box(x) * 3 } }
fn main() {
    println!("{:p}", space::thrice as fn(u64) -> u64);
    loop { std::thread::sleep(std::time::Duration::from_secs(space::thrice(1000))); }
}
"#;
    let mut symbolizer = symbolizer(&[]);
    let running = Running::start(&workshop.build("g++", cpp, "cpp", &["-O1"]));
    assert_eq!(
        running.names(&mut symbolizer),
        ["int space::twice<int>(int)"]
    );
    let v0 = "-Csymbol-mangling-version=v0";
    for (name, flags) in [("default", &["-O"][..]), ("v0", &["-O", v0])] {
        let program = workshop.build("rustc", rust, name, flags);
        let found = Running::start(&program).names(&mut symbolizer);
        assert_eq!(found, [format!("{name}::space::thrice")]);
    }
}

#[test]
fn labels_calls_at_the_end_and_nested_code() {
    let workshop = Workshop::new();
    // `before` ends with its call, so the return address is in `after`;
    // `label` has no size and does not end `outer`.
    let source = r#"
#include <stdio.h>
#include <unistd.h>
__asm__(".text\n"
    ".globl before\n.type before,@function\nbefore: nop\nnop\n.size before,.-before\n"
    ".globl after\n.type after,@function\nafter: nop\nnop\n.size after,.-after\n"
    ".globl outer\n.type outer,@function\nouter: nop\nnop\n"
    ".globl label\nlabel: nop\nnop\n.size outer,.-outer\n"
    ".globl datum\n.type datum,@object\ndatum: nop\nnop\n.size datum,.-datum\n"
    ".globl sizeless\n.type sizeless,@function\nsizeless: nop\nnop\nnop\n");
extern char after, label, datum, sizeless;
int main(void) {
    printf("%p %p %p %p\n", (void *)&after, (void *)(&label + 1), (void *)(&sizeless + 1),
        (void *)&datum);
    fflush(stdout);
    pause();
}
"#;
    let running = Running::start(&workshop.build("cc", source, "program", &[]));
    let mut symbolizer = symbolizer(&[]);
    assert_eq!(
        running.names(&mut symbolizer),
        ["after", "outer", "[program]", "[program]"]
    );
    let stack = [running.addresses[1], running.addresses[0]];
    let located = symbolizer.locate(running.process(), &stack, false);
    assert_eq!(names(&mut symbolizer, &located), ["outer", "before"]);
}

#[test]
fn library_that_is_loaded_later() {
    let workshop = Workshop::new();
    let library = "int late(int x) { return x + 1; }";
    let flags = ["-shared", "-fPIC"];
    let library = workshop.build("cc", library, "liblate.so", &flags);
    let source = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    printf("%p\n", (void *)main);
    fflush(stdout);
    getchar();
    printf("%p\n", dlsym(dlopen(argv[1], RTLD_NOW), "late"));
    fflush(stdout);
    pause();
}
"#;
    let program = workshop.build("cc", source, "program", &["-ldl"]);
    let mut command = Command::new(program);
    command.arg(library).stdin(std::process::Stdio::piped());
    let mut running = Running::spawn(&mut command);
    let mut symbolizer = symbolizer(&[]);
    assert_eq!(running.names(&mut symbolizer), ["main"]);
    use std::io::{BufRead, BufReader, Write};
    running
        .child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"\n")
        .unwrap();
    let mut line = String::new();
    BufReader::new(running.child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    running.addresses = vec![u64::from_str_radix(line[2..].trim(), 16).unwrap()];
    assert_eq!(running.names(&mut symbolizer), ["late"]);
}

#[test]
fn functions_of_the_vdso() {
    let workshop = Workshop::new();
    // The first function that the vDSO's own symbol table lists, one byte in,
    // and an address in its ELF header, which is no code.
    let source = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <dlfcn.h>
int main(void) {
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    char *clock = vdso ? dlsym(vdso, "__vdso_clock_gettime") : 0;
    printf("%p %p\n", clock + 1, (void *)(getauxval(AT_SYSINFO_EHDR) + 8));
    fflush(stdout);
    pause();
}
"#;
    let running = Running::start(&workshop.build("cc", source, "program", &["-ldl"]));
    let mut symbolizer = symbolizer(&[]);
    let located = running.locate(&mut symbolizer);
    assert_eq!(
        names(&mut symbolizer, &located),
        ["clock_gettime", "[vdso]"]
    );
    let frames = symbolizer.frames(&located);
    assert!(
        frames
            .iter()
            .all(|frame| &*frame.module.as_ref().unwrap().path == "[vdso]")
    );
}

#[test]
fn kernel_stacks_lose_the_tracer_and_nothing_else() {
    let address = |name: &str| {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let line = symbols
            .lines()
            .find(|line| line.split(' ').nth(2) == Some(name))
            .unwrap();
        u64::from_str_radix(&line[..16], 16).unwrap()
    };
    let mut symbolizer = symbolizer(&[]);
    let stack = [
        address("__traceiter_sched_switch") + 5,
        address("schedule") + 5,
        address("do_nanosleep") + 5,
        0xffff_8000_0000_0000,
    ];
    let located = symbolizer.locate_kernel(&stack, true);
    symbolizer.resolve(located.iter().copied());
    let frames = symbolizer.frames(&located);
    let names: Vec<_> = frames.iter().map(|frame| &*frame.name).collect();
    assert_eq!(names, ["[unknown]", "do_nanosleep", "schedule"]);
    assert!(frames.iter().all(|frame| frame.kind == FrameKind::Kernel));
    assert_eq!(frames[2].address, Some(stack[1] - 1));
    let notes = std::fs::read("/sys/kernel/notes").unwrap();
    let build_id = frames[2].module.as_ref().unwrap().build_id.as_deref();
    let bytes = (0..build_id.unwrap().len() / 2)
        .map(|at| u8::from_str_radix(&build_id.unwrap()[2 * at..2 * at + 2], 16).unwrap());
    let bytes: Vec<u8> = bytes.collect();
    assert!(notes.windows(bytes.len()).any(|part| part == bytes));
    // A return address is in the function before it.
    let located = symbolizer.locate_kernel(&[address("do_nanosleep")], false);
    assert_ne!(common::names(&mut symbolizer, &located), ["do_nanosleep"]);
}
