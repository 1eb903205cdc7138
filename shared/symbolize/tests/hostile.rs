//! Tests of JIT-compiled code, its perf maps, and files that are made to mislead.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::fs::{File, FileTimes};
use std::os::unix::fs::{chown, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use common::{Running, Workshop, symbolizer};

/// Program that maps a page for code, as JIT compilers do. With an argument, it also writes its
/// perf map.
const JIT: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc > 1) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
        FILE *map = fopen(path, "w");
        fprintf(map, "%lx 10 jit function\n", (long)page);
        fclose(map);
    }
    printf("%p %p\n", (void *)page, (void *)(page + 4096));
    fflush(stdout);
    pause();
}
"#;

/// File under `/tmp`, which is removed when this value is dropped.
struct PerfMap(PathBuf);

impl PerfMap {
    fn new(running: &Running) -> Self {
        Self(format!("/tmp/perf-{}.map", running.pid).into())
    }

    fn write(&self, running: &Running) {
        std::fs::write(&self.0, format!("{:x} 10 jitted\n", running.addresses[0])).unwrap();
    }
}

impl Drop for PerfMap {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn jit_code_without_a_map_is_unknown_until_the_map_is_written() {
    let workshop = Workshop::new();
    let mut running = Running::start(&workshop.build("cc", JIT, "jit", &[]));
    let mut early = symbolizer(&[]);
    assert_eq!(running.names(&mut early), ["[unknown]"; 2]);
    let mut late = symbolizer(&[]);
    let located = running.locate(&mut late);
    running.kill();
    let map = PerfMap::new(&running);
    map.write(&running);
    assert_eq!(common::names(&mut late, &located), ["jitted", "[unknown]"]);
}

#[test]
fn maps_that_are_not_the_process_s_own_are_ignored() {
    let workshop = Workshop::new();
    let running = Running::start(&workshop.build("cc", JIT, "jit", &[]));
    let map = PerfMap::new(&running);
    let unknown = || {
        assert_eq!(running.names(&mut symbolizer(&[])), ["[unknown]"; 2]);
    };

    // A symbolic link is refused, even if it leads to a valid map.
    let target = PerfMap(workshop.path("target"));
    target.write(&running);
    symlink(&target.0, &map.0).unwrap();
    unknown();
    std::fs::remove_file(&map.0).unwrap();

    // A file of another user is refused.
    map.write(&running);
    chown(&map.0, Some(4321), None).unwrap();
    unknown();
    chown(&map.0, Some(0), None).unwrap();

    // A file of a former process is refused.
    let times = FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(3600));
    File::options()
        .write(true)
        .open(&map.0)
        .unwrap()
        .set_times(times)
        .unwrap();
    unknown();
    std::fs::remove_file(&map.0).unwrap();

    // A directory is refused.
    std::fs::create_dir(&map.0).unwrap();
    unknown();
    std::fs::remove_dir(&map.0).unwrap();

    map.write(&running);
    assert_eq!(running.names(&mut symbolizer(&[])), ["jitted", "[unknown]"]);
}

/// Program that maps the first page of a file as code.
const MAPPER: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDONLY);
    char *page = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    printf("%p\n", (void *)(page + 64));
    fflush(stdout);
    pause();
}
"#;

#[test]
fn files_that_are_no_programs_have_only_their_own_name() {
    let workshop = Workshop::new();
    let mapper = workshop.build("cc", MAPPER, "mapper", &[]);
    let own = std::fs::read(&mapper).unwrap();
    let mut endless = own[..4096].to_vec();
    endless[60..62].fill(0); // the number of sections is in the first section
    let text = vec![b'x'; 4096];
    let mut garbage = vec![0xff; 4096];
    garbage[..4].copy_from_slice(b"\x7fELF");
    for (name, contents) in [("text", text), ("garbage", garbage), ("cut", endless)] {
        let path = workshop.path(name);
        std::fs::write(&path, contents).unwrap();
        let running = Running::spawn(Command::new(&mapper).arg(&path));
        let mut symbolizer = symbolizer(&[]);
        assert_eq!(running.names(&mut symbolizer), [format!("[{name}]")]);
        // A file that claims to be a program counts as a loss.
        let unread = u64::from(name != "text");
        assert_eq!(symbolizer.losses().unread_files, unread, "{name}");
    }
}

#[test]
fn a_program_that_shrinks_is_no_danger() {
    let workshop = Workshop::new();
    let mapper = workshop.build("cc", MAPPER, "mapper", &[]);
    let victim = workshop.path("victim");
    std::fs::copy(&mapper, &victim).unwrap();
    let running = Running::spawn(Command::new(&mapper).arg(&victim));
    let mut symbolizer = symbolizer(&[]);
    let located = running.locate(&mut symbolizer);
    File::options()
        .write(true)
        .open(&victim)
        .unwrap()
        .set_len(100)
        .unwrap();
    assert_eq!(common::names(&mut symbolizer, &located), ["[victim]"]);
    assert_eq!(symbolizer.losses().unread_files, 1);
}

/// Program that pretends to have JIT-compiled code at a known address. The name of the process is a
/// line of a perf map.
const NAMED_AS_MAP: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
    mmap((void *)0x10000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    prctl(PR_SET_NAME, "10000000 10 eat");
    printf("0x10000000\n");
    fflush(stdout);
    pause();
}
"#;

#[test]
fn a_map_that_the_kernel_makes_up_is_not_read() {
    let workshop = Workshop::new();
    let program = workshop.build("cc", NAMED_AS_MAP, "program", &[]);
    let start = |mount: &str| {
        let script = format!(
            "echo 10000000 10 plain >/tmp/perf-$$.map; {mount}; exec {}",
            program.display()
        );
        let running = Running::spawn(Command::new("unshare").args(["-m", "sh", "-c", &script]));
        let _map = PerfMap::new(&running);
        running.names(&mut symbolizer(&[]))
    };
    assert_eq!(start("true"), ["plain"]);
    // In its mount namespace the process sees its own name at the path of the map. This test sees
    // the real map.
    let made_up = "mount --bind /proc/$$/comm /tmp/perf-$$.map";
    assert_eq!(start(made_up), ["plain"]);
}
