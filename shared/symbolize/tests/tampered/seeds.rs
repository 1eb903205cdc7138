//! Small seed files, one for each path through the readers.

use std::process::Command;

use crate::common::Workshop;

const ASSEMBLY: &str = ".text
.globl _start, _ZN3foo3barEv, _RNvCs1234_7mycrate3foo
.type _start, @function
_start: nop
.size _start, 1
.type _ZN3foo3barEv, @function
_ZN3foo3barEv: .fill 16, 1, 0x90
.size _ZN3foo3barEv, . - _ZN3foo3barEv
.type _RNvCs1234_7mycrate3foo, @function
_RNvCs1234_7mycrate3foo: .fill 16, 1, 0x90
.size _RNvCs1234_7mycrate3foo, . - _RNvCs1234_7mycrate3foo
alias: .fill 16, 1, 0x90
.size alias, . - alias
.section .gnu_debuglink
.asciz \"none.debug\"
.balign 4
.long 0x12345678
";

/// Returns programs and libraries of about 1 KiB.
pub(crate) fn elf() -> Vec<Vec<u8>> {
    let workshop = Workshop::new();
    let source = workshop.path("seed.s");
    std::fs::write(&source, ASSEMBLY).unwrap();
    let small = ["-nostdlib", "-Wl,-n", "-Wl,--build-id"];
    let build = |name: &str, options: &[&str]| {
        let path = workshop.path(name);
        let mut cc = std::process::Command::new("cc");
        cc.args(small).args(options).arg("-o").arg(&path);
        crate::common::run(cc.arg(&source));
        std::fs::read(&path).unwrap()
    };
    let library = build("library", &["-shared"]);
    let run = crate::common::run;
    run(Command::new("xz")
        .arg("--keep")
        .arg(workshop.path("library")));
    let mut add = Command::new("objcopy");
    let packed = workshop.path("library.xz").display().to_string();
    let mini = workshop.path("mini");
    add.args([
        "--strip-all",
        &format!("--add-section=.gnu_debugdata={packed}"),
    ]);
    run(add.arg(workshop.path("library")).arg(&mini));
    vec![
        build("static", &["-static", "-no-pie"]),
        library,
        build("stripped", &["-shared", "-s"]),
        std::fs::read(mini).unwrap(),
    ]
}

const INLINED: &str = "static inline __attribute__((always_inline)) int inner(int a)
{
	volatile int b = a * a;
	return b;
}
__attribute__((noinline)) int outer(int a)
{
	int sum = inner(a);
	return sum + inner(sum);
}
void _start(void) { for (;;) outer(1); }
";

/// Returns programs of a few KiB with debug information.
pub(crate) fn sources() -> Vec<Vec<u8>> {
    let workshop = Workshop::new();
    let source = workshop.path("seed.c");
    std::fs::write(&source, INLINED).unwrap();
    let build = |name: &str, options: &[&str]| {
        let path = workshop.path(name);
        let mut cc = std::process::Command::new("cc");
        cc.args(["-nostdlib", "-static", "-Wl,-n", "-O2"])
            .args(options);
        crate::common::run(cc.arg("-o").arg(&path).arg(&source));
        std::fs::read(&path).unwrap()
    };
    vec![
        build("five", &["-gdwarf-5"]),
        build("four", &["-gdwarf-4"]),
        build("packed", &["-gdwarf-5", "-gz"]),
    ]
}

/// Returns a program with these sections next to its own. `objcopy` compresses them with the method
/// `packing`. Its code has the address of code in a static program that is linked for address 0.
pub(crate) fn with_sections(sections: &[(&str, &[u8])], packing: &str) -> Vec<u8> {
    let workshop = Workshop::new();
    let program = workshop.path("program");
    let source = workshop.path("program.c");
    std::fs::write(&source, INLINED).unwrap();
    let mut cc = std::process::Command::new("cc");
    cc.args([
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,-n,-Ttext-segment=0",
        "-O2",
    ]);
    crate::common::run(cc.arg("-o").arg(&program).arg(&source));
    let objcopy = || std::process::Command::new("objcopy");
    let mut add = objcopy();
    for (name, contents) in sections {
        let path = workshop.path(&name[1..]);
        std::fs::write(&path, contents).unwrap();
        add.arg("--add-section")
            .arg(format!("{name}={}", path.display()));
    }
    crate::common::run(add.arg(&program));
    let packing = format!("--compress-debug-sections={packing}");
    crate::common::run(objcopy().arg(packing).arg(&program));
    std::fs::read(&program).unwrap()
}

/// Returns maps in the form that JIT compilers write.
pub(crate) fn perf_map() -> Vec<Vec<u8>> {
    let maps = [
        "7f0000000000 20 LazyCompile:~f /a b.js:1\n7f0000000010 20 JS:*g\n",
        "0x7f0000000000 0x100 prefixed\n7f0000000000 40 py::f:/x.py\n\n",
        "7f0000000000 10 \u{e9}t\u{e9}\n7f0000000040 ffffffff most\nunfinished",
    ];
    maps.map(|map| map.as_bytes().to_vec()).to_vec()
}
