//! Small seed images, one for each path through the reader.

use std::fs;

use crate::common::compile;

/// Assembly with a signal frame, a realigned stack, a return address in a register, an end, and
/// code without a description.
const ASSEMBLY: &str = ".globl _start
_start:
.cfi_startproc; .cfi_undefined rip; nop; .cfi_endproc
.cfi_startproc; .cfi_personality 0x1b, _start; .cfi_lsda 0x1b, _start
push %rbp; .cfi_def_cfa_offset 16; .cfi_offset rbp, -16
.cfi_remember_state; pop %rbp; .cfi_def_cfa_offset 8; .cfi_restore rbp; ret
.cfi_restore_state; .fill 300, 1, 0x90; .cfi_def_cfa_register rbp; nop; .cfi_endproc
.cfi_startproc; .cfi_signal_frame
.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06
.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0
.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1
nop; .cfi_endproc
.cfi_startproc; .cfi_register rip, rdi; nop
.cfi_escape 0x0f, 5, 0x76, 0x78, 0x06, 0x23, 0x10
nop; .cfi_escape 0x0f, 0x0b, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
nop; .cfi_escape 0x12, 7, 0x78; .cfi_escape 0x01, 0xff, 0, 0, 0; .cfi_endproc
.type function, @function
function: push %rbx; sub $16, %rsp; test %eax, %eax; je function.cold; call function
1: add $16, %rsp; pop %rbx; ret
.size function, . - function
.type function.cold, @function
function.cold: push %rax; call _start; pop %rax; jmp 1b
.size function.cold, . - function.cold
";
const DEBUG_FRAME: &str = ".globl _start
.cfi_sections .debug_frame
_start:
.cfi_startproc; nop; .cfi_def_cfa_offset 32; nop; .cfi_endproc
.cfi_startproc; .cfi_signal_frame; nop; .cfi_endproc
";
const C: &str = "int puts(const char *);
int main(void) { return puts(\"\"); }
";

/// Returns all seeds.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    // Without alignment to pages, the files have about 1 KiB.
    let small = [
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,-n",
        "-Wl,--build-id=none",
    ];
    let with = |options: &[&'static str]| [&small[..], options].concat();
    let plain = compile("assembler", ASSEMBLY, &with(&["-Wl,--eh-frame-hdr"]));
    let mut headerless = plain.clone();
    // These bytes are e_shoff, and e_shnum with e_shstrndx.
    headerless[40..48].fill(0);
    headerless[60..64].fill(0);
    vec![
        plain,
        headerless,
        compile("assembler", DEBUG_FRAME, &with(&[])),
        compile(
            "assembler",
            DEBUG_FRAME,
            &with(&["-Wl,--compress-debug-sections=zlib"]),
        ),
        compile("c", C, &["-Wl,-z,lazy", "-s"]),
        vdso(),
    ]
}

/// Returns the vDSO, which the kernel maps into every process.
fn vdso() -> Vec<u8> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
    // SAFETY: the mapping is readable, and stays as long as the process lives.
    unsafe { std::slice::from_raw_parts(start as *const u8, end - start) }.to_vec()
}
