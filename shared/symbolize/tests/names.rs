//! Tests that the names in real processes are right or absent.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::process::Command;

use common::{Running, Workshop, names, symbolizer};
use process::Process;
use profile::FrameKind;
use symbolize::Location;

/// Program that prints addresses of an exported, a static and a libc function. It also prints an
/// address in libc's `start_thread`, which no distribution's libc exports.
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
fn process_whose_main_thread_has_ended() {
    let workshop = Workshop::new();
    let running = Running::start(&threaded(&workshop, "program", &["-DENDS=1"]));
    // The main thread becomes a zombie, which has no mappings of its own.
    let status = format!("/proc/{0}/task/{0}/status", running.pid);
    while !std::fs::read_to_string(&status).unwrap().contains("zombie") {
        std::thread::yield_now();
    }
    let found = running.names(&mut symbolizer(&[]));
    assert_eq!(found, ["shown", "hidden", "getppid", "[libc.so.6]"]);
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
fn labels_calls_at_the_end_and_nested_code() {
    let workshop = Workshop::new();
    // `before` ends with its call, so the return address is in `after`. `label` has no size, so it
    // does not end `outer`.
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
fn functions_of_the_vdso() {
    let workshop = Workshop::new();
    // The program prints the address one byte into a function of the vDSO. It also prints an
    // address in the vDSO's ELF header, which is not code.
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
    // As a return address, this address belongs to the function before it.
    let located = symbolizer.locate_kernel(&[address("do_nanosleep")], false);
    assert_ne!(common::names(&mut symbolizer, &located), ["do_nanosleep"]);
}
