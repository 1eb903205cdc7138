//! The rules of code that was written for one purpose each.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::Cell;
use std::fs;
use std::io;

use common::compile;
use unwind::{Built, Error, Rule, Source, build, cfa, frame_pointer};

/// Where the linker is told to put `.text`.
const TEXT: u64 = 0x41_0000;

/// A program of nothing but this assembly, at [`TEXT`], where it starts.
fn assemble(source: &str) -> Vec<u8> {
    assemble_for(&format!(".globl _start\n_start:\n{source}"), TEXT)
}

/// The same, but it starts at `entry`.
fn assemble_for(source: &str, entry: u64) -> Vec<u8> {
    let text = format!("-Wl,-Ttext={TEXT:#x}");
    let entry = format!("-Wl,-e,{entry:#x}");
    compile(
        "assembler",
        &format!("{source}\n"),
        &[
            "-nostdlib",
            "-static",
            "-no-pie",
            "-Wl,--eh-frame-hdr",
            &text,
            &entry,
        ],
    )
}

fn built(source: &str) -> Built {
    build(&assemble(source)).unwrap()
}

/// The rule that holds so many bytes into the code.
fn rule(built: &Built, offset: u64) -> Rule {
    built.table.rule(TEXT + offset)
}

const CALLED: Rule = Rule::at(cfa::STACK_POINTER, 8);

#[test]
fn an_ordinary_function() {
    let built = built(
        ".cfi_startproc; push %rbp; .cfi_def_cfa_offset 16; .cfi_offset rbp, -16
         mov %rsp, %rbp; .cfi_def_cfa_register rbp
         pop %rbp; .cfi_def_cfa rsp, 8; .cfi_restore rbp; ret; .cfi_endproc; nop",
    );
    let saved = Rule {
        frame_pointer: frame_pointer::AT_CFA,
        frame_pointer_offset: -16,
        ..Rule::at(cfa::STACK_POINTER, 16)
    };
    assert_eq!(rule(&built, 0), CALLED);
    assert_eq!(rule(&built, 1), saved);
    assert_eq!(
        rule(&built, 4),
        Rule {
            cfa: cfa::FRAME_POINTER,
            ..saved
        }
    );
    assert_eq!(rule(&built, 5), CALLED);
    assert_eq!(rule(&built, 6), Rule::NONE);
    assert_eq!(built.table.rule(TEXT - 1), Rule::NONE);
    assert_eq!(built.notes.descriptions, 1);
    assert_eq!(built.notes.unreadable, 0);
}

#[test]
fn a_remembered_state_comes_back() {
    let built = built(
        ".cfi_startproc; push %rax; .cfi_def_cfa_offset 16; nop; .cfi_remember_state
         pop %rax; .cfi_def_cfa_offset 8; ret; .cfi_restore_state; nop; .cfi_endproc",
    );
    assert_eq!(rule(&built, 2).cfa_offset, 16);
    assert_eq!(rule(&built, 3).cfa_offset, 8);
    assert_eq!(rule(&built, 4).cfa_offset, 16);
}

/// As glibc describes `__restore_rt`: every register is in the context that
/// the kernel put on the stack.
#[test]
fn a_signal_frame() {
    let described = |rsp: &str| {
        format!(
            "nop; nop; .cfi_startproc; .cfi_signal_frame
             .cfi_escape 0x0f, 4, 0x77, {rsp}, 1, 0x06
             .cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0
             .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1
             mov $15, %rax; syscall; .cfi_endproc; nop"
        )
    };
    // rsp at 160, rbp at 120, rip at 168.
    let signal = built(&described("0xa0"));
    let frame = Rule::at(cfa::SIGNAL_FRAME, 40);
    // A libc begins it one byte early itself: the handler's return address is
    // looked up there.
    assert_eq!(rule(&signal, 1), Rule::NONE);
    assert_eq!(rule(&signal, 2), frame);
    assert_eq!(rule(&signal, 10), frame);
    assert_eq!(rule(&signal, 11), Rule::NONE);
    // rsp elsewhere than in the kernel's struct.
    assert_eq!(rule(&built(&described("0xa8")), 2), Rule::NONE);
}

/// As glibc's vfork, which keeps its return address in a register: the child
/// returns first and overwrites the stack.
#[test]
fn a_return_address_in_a_register() {
    let built = built(
        ".cfi_startproc; pop %rdi; .cfi_adjust_cfa_offset -8; .cfi_register rip, rdi
         nop; .cfi_endproc",
    );
    assert_eq!(rule(&built, 0), CALLED);
    assert_eq!(rule(&built, 1), Rule::at(cfa::RETURN_IN_REGISTER + 5, 0));
}

/// As GCC describes functions that align their stack: the frame has what the
/// stack pointer was.
#[test]
fn a_realigned_stack() {
    let built = built(
        ".cfi_startproc; lea 8(%rsp), %r10; .cfi_def_cfa r10, 0
         and $-32, %rsp; push -8(%r10); push %rbp
         .cfi_escape 0x10, 6, 2, 0x76, 0
         mov %rsp, %rbp; push %r10
         .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06
         nop; .cfi_escape 0x0f, 4, 0x77, 0x90, 0x01, 0x06
         nop; .cfi_escape 0x0f, 5, 0x76, 0x78, 0x06, 0x23, 0x10
         nop; .cfi_endproc",
    );
    let at_frame_pointer = |rule: Rule| Rule {
        frame_pointer: frame_pointer::AT_FRAME_POINTER,
        ..rule
    };
    let word =
        |kind, offset, addend| at_frame_pointer(Rule::at(kind, Rule::with_halves(offset, addend)));
    assert_eq!(rule(&built, 5), Rule::at(cfa::REGISTER + 10, 0));
    assert_eq!(
        rule(&built, 14),
        at_frame_pointer(Rule::at(cfa::REGISTER + 10, 0))
    );
    assert_eq!(rule(&built, 19), word(cfa::WORD_AT_FRAME_POINTER, -8, 0));
    assert_eq!(rule(&built, 20), word(cfa::WORD_AT_STACK_POINTER, 144, 0));
    assert_eq!(rule(&built, 21), word(cfa::WORD_AT_FRAME_POINTER, -8, 16));
}

#[test]
fn a_frame_address_that_is_computed() {
    // breg7 16; lit8; plus. breg7 48; lit8; minus. breg7 16; const1s -8; minus.
    // breg7 16; breg6 8; plus.
    let built = built(
        ".cfi_startproc; .cfi_escape 0x0f, 4, 0x77, 16, 0x38, 0x22; nop
         .cfi_escape 0x0f, 4, 0x77, 48, 0x38, 0x1c; nop
         .cfi_escape 0x0f, 5, 0x77, 8, 0x09, 0xf8, 0x1c; nop
         .cfi_escape 0x0f, 5, 0x77, 16, 0x76, 8, 0x22; nop; .cfi_endproc",
    );
    let rules = [0, 1, 2].map(|offset| rule(&built, offset));
    let expected = [24, 40, 16].map(|offset| Rule::at(cfa::STACK_POINTER, offset));
    assert_eq!(rules, expected);
    assert_eq!(rule(&built, 3), Rule::NONE);
}

#[test]
fn a_factored_offset() {
    // DW_CFA_def_cfa_offset_sf: -3 times the factor, -8.
    let built = built(".cfi_startproc; .cfi_escape 0x13, 0x7d; nop; .cfi_endproc");
    assert_eq!(rule(&built, 0), Rule::at(cfa::STACK_POINTER, 24));
}

#[test]
fn ends_of_the_stack() {
    let built = built(
        ".cfi_startproc; .cfi_undefined rip; nop; .cfi_endproc
         .cfi_startproc; .cfi_def_cfa rsp, -16; nop; .cfi_endproc
         .cfi_startproc; .cfi_def_cfa rsp, 0; nop; .cfi_endproc
         .cfi_startproc; .cfi_def_cfa rbp, 0; nop; .cfi_endproc",
    );
    assert_eq!(rule(&built, 0), Rule::ROOT);
    assert_eq!(rule(&built, 1), Rule::ROOT);
    assert_eq!(rule(&built, 2), Rule::ROOT);
    assert_eq!(rule(&built, 3), Rule::at(cfa::FRAME_POINTER, 0));
}

#[test]
fn frame_pointers_that_cannot_be_told() {
    let built = built(
        ".cfi_startproc; .cfi_register rbp, rax; nop; .cfi_endproc
         .cfi_startproc; .cfi_offset rbp, -40000; nop; .cfi_endproc
         .cfi_startproc; .cfi_val_offset rbp, -16; nop; .cfi_endproc
         .cfi_startproc; .cfi_same_value rbp; nop; .cfi_undefined rbp; nop; .cfi_endproc
         .cfi_startproc; .cfi_offset rip, -16; nop; .cfi_endproc",
    );
    let lost = Rule {
        frame_pointer: frame_pointer::LOST,
        ..CALLED
    };
    assert_eq!([0, 1, 2].map(|offset| rule(&built, offset)), [lost; 3]);
    assert_eq!([3, 4].map(|offset| rule(&built, offset)), [CALLED; 2]);
    assert_eq!(rule(&built, 5), Rule::NONE);
}

/// What the assembler would never write: `.eh_frame` byte by byte. One common
/// entry, then descriptions of (start, length, instructions).
fn described(descriptions: &[(u64, u64, &str)]) -> Built {
    let mut source = String::from(
        ".fill 64, 1, 0x90
         .section .eh_frame, \"a\", @progbits
         .Lcommon: .long .Lcommon_end - .Lcommon - 4
         .long 0; .byte 1; .asciz \"\"; .uleb128 1; .sleb128 -8; .byte 16
         .byte 0x0c, 7, 8, 0x90, 1
         .Lcommon_end:\n",
    );
    for (index, (start, length, instructions)) in descriptions.iter().enumerate() {
        source += &format!(
            ".L{index}: .long .L{index}_end - .L{index} - 4
             .long . - .Lcommon; .quad {start:#x}; .quad {length:#x}
             {instructions}
             .L{index}_end:\n"
        );
    }
    built(&source)
}

#[test]
fn of_overlapping_descriptions_each_ends_where_the_next_begins() {
    let built = described(&[
        (TEXT + 16, 16, ".byte 0x0e, 24"),
        (TEXT, 64, ".byte 0x0e, 16"),
        (TEXT + 24, 4, ".byte 0x0e, 32"),
    ]);
    let offsets = [0, 15, 16, 23, 24, 27].map(|offset| rule(&built, offset).cfa_offset);
    assert_eq!(offsets, [16, 16, 24, 24, 32, 32]);
    assert_eq!(rule(&built, 28), Rule::NONE);
}

#[test]
fn descriptions_reach_no_further_than_the_code() {
    let built = described(&[
        (TEXT + 60, u64::MAX, ""),
        (0, 4096, ""),
        (u64::MAX - 8, 16, ""),
        (TEXT, 0, ".byte 0x0e, 16"),
        // Moves on past its end, and past the end of all addresses.
        (TEXT + 8, 8, ".byte 0x04; .long 0xffffffff; .byte 0x0e, 16"),
        (TEXT + 16, 8, ".byte 0x01; .quad -1; .byte 0x41, 0x0e, 16"),
    ]);
    assert_eq!(rule(&built, 0), Rule::NONE);
    assert_eq!(rule(&built, 60), Rule::NONE);
    assert_eq!(
        [8, 15, 16, 23].map(|offset| rule(&built, offset)),
        [CALLED; 4]
    );
    assert_eq!(rule(&built, 24), Rule::NONE);
    // Two that go round the end of the address space.
    assert_eq!(built.notes.unreadable, 2);
    assert_eq!(
        built
            .table
            .rules
            .iter()
            .filter(|rule| rule.cfa != cfa::NONE)
            .count(),
        1
    );
}

#[test]
fn instructions_without_meaning_end_a_description_there() {
    let built = described(&[
        (TEXT, 8, ".byte 0x44, 0x3f"),
        (TEXT + 8, 8, ".byte 0x44, 0x0b"),
        (TEXT + 16, 8, ".byte 0x44, 0x0e"),
        (TEXT + 24, 8, ""),
    ]);
    for start in [0, 8, 16] {
        assert_eq!(rule(&built, start + 3), CALLED);
        assert_eq!(rule(&built, start + 4), Rule::NONE);
    }
    assert_eq!(rule(&built, 24), CALLED);
    assert_eq!(built.notes.unreadable, 3);
}

/// The linker describes the table, with an expression.
#[test]
fn the_procedure_linkage_table() {
    let program = compile(
        "c",
        "int puts(const char *); int main(void) { return puts(\"\"); }",
        &["-Wl,-z,lazy", "-no-pie", "-fno-plt", "-fplt"],
    );
    let built = build(&program).unwrap();
    let entries: Vec<&Rule> = built
        .table
        .rules
        .iter()
        .filter(|rule| rule.cfa == cfa::PLT)
        .collect();
    assert_eq!(entries.len(), 1);
    assert!([9, 10, 11].contains(&entries[0].cfa_offset));
}

/// Programs of Go have `.debug_frame` alone, and compress it.
#[test]
fn debug_frame() {
    let program = |compress: &str| {
        let text = format!("-Wl,-Ttext={TEXT:#x}");
        let compress = format!("-Wl,--compress-debug-sections={compress}");
        // Many, as compressed sections that were not smaller are not kept.
        let source = "
            .cfi_sections .debug_frame; .globl _start; _start:
            .rept 64; .cfi_startproc; .cfi_def_cfa rsp, 40; nop; nop; .cfi_endproc; .endr";
        let options = ["-nostdlib", "-static", "-no-pie", &compress, &text];
        compile("assembler", source, &options)
    };
    let (plain, mut compressed) = (program("none"), program("zlib"));
    for program in [&plain, &compressed] {
        let built = build(program).unwrap();
        assert_eq!(rule(&built, 127), Rule::at(cfa::STACK_POINTER, 40));
        assert_eq!(rule(&built, 128), Rule::NONE);
    }
    let header = section_header(&compressed, ".debug_frame");
    assert_eq!(compressed[header + 9] & SHF_COMPRESSED, SHF_COMPRESSED);
    // Another algorithm than ELFCOMPRESS_ZLIB.
    let contents = number(&compressed, header + 24, 8);
    compressed[contents] = 2;
    let refused = build(&compressed);
    assert!(matches!(refused, Err(Error::Compressed { .. })));
}

/// The same expression, from 8 above the stack pointer and from 16.
#[test]
fn a_linkage_table_that_is_another() {
    let built = built(
        ".cfi_startproc
         .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22; nop
         .cfi_escape 0x0f, 11, 0x77, 16, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22; nop
         .cfi_endproc",
    );
    let rules = [0, 1].map(|offset| rule(&built, offset));
    assert_eq!(rules, [Rule::at(cfa::PLT, 10), Rule::NONE]);
}

/// As lld and mold link.
#[test]
fn a_linkage_table_that_nothing_describes() {
    let built = built(
        ".cfi_startproc; nop; .cfi_endproc
         .section .plt, \"ax\", @progbits; .balign 16
         push 0x2f42(%rip); jmp *0x2f44(%rip); .long 0x401f0f
         jmp *0x2f42(%rip); .byte 0x68; .long 0; .byte 0xe9; .long -32",
    );
    let entry = Rule::at(cfa::PLT, 11);
    assert!(built.table.rules.contains(&entry), "{:?}", built.table);
}

/// What debuggers go by alone matters only where programs have nothing else.
#[test]
fn a_debug_frame_that_cannot_be_read() {
    let compressed = |sections: &str| {
        let mut program = assemble(&format!(
            ".cfi_sections {sections}; .cfi_startproc; nop; .cfi_endproc"
        ));
        let header = section_header(&program, ".debug_frame");
        program[header + 9] |= SHF_COMPRESSED;
        build(&program)
    };
    let both = compressed(".eh_frame, .debug_frame").unwrap();
    assert_eq!(rule(&both, 0), CALLED);
    let alone = compressed(".debug_frame");
    assert!(matches!(alone, Err(Error::Compressed { .. })), "{alone:?}");
}

#[test]
fn descriptions_of_debug_frame_are_counted_too() {
    for (sections, descriptions) in [(".eh_frame, .debug_frame", 2), (".debug_frame", 1)] {
        let built = built(&format!(
            ".cfi_sections {sections}
             .cfi_startproc; nop; .cfi_escape 0x3f; nop; .cfi_endproc"
        ));
        // Of two for the same code the first is used.
        let expected = (descriptions, 1);
        assert_eq!((built.notes.descriptions, built.notes.unreadable), expected);
    }
}

/// In the second byte of a section's flags.
const SHF_COMPRESSED: u8 = 8;

/// The number in so many bytes of the file.
fn number(program: &[u8], at: usize, bytes: usize) -> usize {
    let bytes = program[at..at + bytes].iter().rev();
    bytes.fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// Where in the file the header of a section is.
fn section_header(program: &[u8], name: &str) -> usize {
    let header = |index: usize| number(program, 40, 8) + 64 * index;
    let names = number(program, header(number(program, 62, 2)) + 24, 8);
    let is_named = |header: &usize| {
        let own = &program[names + number(program, *header, 4)..];
        own.starts_with(format!("{name}\0").as_bytes())
    };
    let mut headers = (0..number(program, 60, 2)).map(header);
    headers.find(is_named).unwrap()
}

/// Where in the file the headers of what is loaded are (PT_LOAD).
fn loaded(program: &[u8]) -> Vec<usize> {
    let headers = (0..number(program, 56, 2)).map(|index| number(program, 32, 8) + 56 * index);
    headers
        .filter(|&header| number(program, header, 4) == 1)
        .collect()
}

#[test]
fn no_section_headers_are_needed() {
    let mut program = assemble(".cfi_startproc; nop; .cfi_def_cfa_offset 24; nop; .cfi_endproc");
    let whole = build(&program).unwrap();
    let eh_frame = section_header(&program, ".eh_frame");
    let (address, offset) = (
        number(&program, eh_frame + 16, 8),
        number(&program, eh_frame + 24, 8),
    );
    let loaded = loaded(&program);
    // e_shoff, and e_shnum with e_shstrndx.
    program[40..48].fill(0);
    program[60..64].fill(0);
    // Behind what is loaded nothing is read, descriptions or not.
    let ends = loaded.iter().map(|header| {
        let from = number(&program, header + 8, 8);
        from + number(&program, header + 32, 8)
    });
    let end = ends.max().unwrap();
    assert!(offset < end);
    for (at, byte) in program[end..].iter_mut().enumerate() {
        *byte = if at % 4 == 0 { 8 } else { 0 };
    }
    let stripped = build(&program).unwrap();
    assert_eq!(rule(&stripped, 1), Rule::at(cfa::STACK_POINTER, 24));
    assert_eq!(
        (stripped.table, stripped.notes),
        (whole.table.clone(), whole.notes)
    );

    // Something else that ends where it begins.
    let size = number(&program, loaded[0] + 32, 8);
    program[loaded[0] + 16..][..8].copy_from_slice(&(address - size).to_le_bytes());
    assert_eq!(build(&program).unwrap().table, whole.table);
}

/// A file that is read a few bytes at a time, and not at each attempt.
struct Halting<'a> {
    bytes: &'a [u8],
    attempts: Cell<u64>,
    fails_at: u64,
}

impl Source for Halting<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let attempt = self.attempts.get();
        self.attempts.set(attempt + 1);
        if attempt == self.fails_at {
            return Err(io::Error::other("it fails"));
        }
        if attempt.is_multiple_of(2) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let few = buffer.len().min(7);
        self.bytes.read_at(offset, &mut buffer[..few])
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

#[test]
fn what_is_read_in_pieces_is_whole_and_what_fails_is_said() {
    let program = assemble(".cfi_startproc; nop; .cfi_def_cfa_offset 24; nop; .cfi_endproc");
    let halting = |fails_at| Halting {
        bytes: &program,
        attempts: Cell::new(0),
        fails_at,
    };
    let whole = build(&program).unwrap();
    assert_eq!(build(&halting(u64::MAX)).unwrap().table, whole.table);
    assert!(matches!(build(&halting(2)), Err(Error::Read { .. })));
}

#[test]
fn section_headers_may_be_of_another_file() {
    let mut program = assemble(".cfi_startproc; nop; .cfi_def_cfa_offset 24; nop; .cfi_endproc");
    let whole = build(&program).unwrap();
    // SHT_NOBITS, as in files with debug information alone.
    let eh_frame = section_header(&program, ".eh_frame");
    program[eh_frame + 4] = 8;
    program[eh_frame + 24..][..8].fill(0);
    assert_eq!(build(&program).unwrap().table, whole.table);
}

#[test]
fn code_is_what_is_loaded_and_executable() {
    let mut program = assemble(".cfi_startproc; nop; .cfi_endproc");
    assert!(loaded(&program).len() > 1);
    let segments = build(&program).unwrap().segments;
    assert_eq!(segments.len(), 1, "{segments:?}");
    assert_eq!((segments[0].address, segments[0].size), (TEXT, 1));
    // e_phentsize and e_phnum: no program headers, and none to be of the wrong size.
    program[54..58].fill(0);
    assert_eq!(build(&program).unwrap().segments, []);
}

/// As in musl's libc.a, which has no call frame information at all.
#[test]
fn code_that_nothing_describes() {
    let built = built(
        ".size _start, 32; xor %ebp, %ebp; call function; hlt; .fill 24, 1, 0xcc
         .type function, @function
         function: push %rbx; sub $16, %rsp; nop; add $16, %rsp; pop %rbx; ret
         .size function, . - function; .fill 32, 1, 0xcc
         .cfi_startproc; nop; .cfi_endproc",
    );
    // The kernel starts the program at _start: nobody called it.
    assert_eq!(
        [0, 6, 31].map(|offset| rule(&built, offset)),
        [Rule::ROOT; 3]
    );
    let offsets = [32, 33, 37, 42, 43].map(|offset| rule(&built, offset));
    let at = |offset| Rule::at(cfa::STACK_POINTER, offset);
    assert_eq!(offsets, [at(8), at(16), at(32), at(16), at(8)]);
    assert_eq!(rule(&built, 44), Rule::NONE);
    assert_eq!(rule(&built, 76), CALLED);
}

#[test]
fn start_code_is_its_function_or_up_to_the_next() {
    let function = "push %rbx; pop %rbx; ret; .fill 13, 1, 0x90";
    let started = |start: &str, entry| {
        let source = format!(
            ".type before, @function; before: {function}; {start}
             .type after, @function; after: {function}
             .cfi_startproc; nop; .cfi_endproc"
        );
        build(&assemble_for(&source, TEXT + entry)).unwrap()
    };
    let root = |built: &Built| {
        let roots = (0..100).filter(|&at| rule(built, at) == Rule::ROOT);
        roots.collect::<Vec<_>>()
    };
    // It says how large it is.
    let start = ".globl start; start: .fill 40, 1, 0x90; .size start, 40; .fill 8, 1, 0x90";
    let built = started(start, 16);
    assert_eq!(root(&built), (16..56).collect::<Vec<_>>());
    for begin in [0, 64] {
        let within = [0, 1, 2].map(|into| rule(&built, begin + into).cfa_offset);
        assert_eq!(within, [8, 16, 8], "{begin}");
    }
    // It does not; or nothing says that it is there.
    let start = ".globl start; start: .fill 20, 1, 0x90";
    assert_eq!(root(&started(start, 16)), (16..36).collect::<Vec<_>>());
    let start = ".fill 20, 1, 0x90";
    assert_eq!(root(&started(start, 16)), (16..36).collect::<Vec<_>>());
}

/// What may be another compiler's is left alone: much of it, or much in a file that
/// is described for the rest.
#[test]
fn code_that_nothing_describes_is_not_looked_at_if_there_is_much_of_it() {
    const PART: usize = 256 << 10;
    const MOST: usize = 4 << 20;
    let is_analysed = |described: usize, not: usize| {
        let built = built(&format!(
            ".cfi_startproc; .fill {described}, 1, 0x90; .cfi_endproc
             .type function, @function; function: push %rbx; pop %rbx; ret
             .fill {not} - 3, 1, 0xcc
             .data; .fill {MOST}, 1, 0"
        ));
        assert_eq!(rule(&built, 0), CALLED);
        rule(&built, described as u64 + 1) == Rule::at(cfa::STACK_POINTER, 16)
    };
    assert!(is_analysed(1 << 20, PART));
    assert!(!is_analysed(1 << 20, PART + 1));
    assert!(is_analysed(PART + 2, PART + 2));
    assert!(!is_analysed(PART + 4, PART + 2));
    assert!(is_analysed(16, PART + 2));
    assert!(is_analysed(16, MOST));
    assert!(!is_analysed(16, MOST + 1));
    // Less than aligns functions.
    assert!(is_analysed(16, 16));
    assert!(!is_analysed(16, 15));
}

#[test]
fn functions_in_several_gaps() {
    let function = "push %rbx; pop %rbx; ret; .fill 13, 1, 0xcc";
    let described = ".cfi_startproc; .fill 16, 1, 0x90; .cfi_endproc";
    let built = built(&format!(
        "{described}
         .type one, @function; one: {function}
         {described}
         .type two, @function; two: {function}; .type three, @function; three: {function}
         {described}"
    ));
    for begin in [16, 48, 64] {
        let within = [0, 1, 2].map(|into| rule(&built, begin + into).cfa_offset);
        assert_eq!(within, [8, 16, 8], "{begin}");
        assert_eq!(rule(&built, begin + 3), Rule::NONE);
    }
}

/// Nobody calls them: only their symbols tell.
#[test]
fn functions_that_have_symbols() {
    let built = built(
        ".cfi_startproc; nop; .cfi_endproc; .fill 15, 1, 0xcc
         .type local, @function; local: push %rbx; pop %rbx; ret
         .size local, . - local; .fill 13, 1, 0xcc
         .globl untyped; untyped: push %rbx; pop %rbx; ret; .fill 13, 1, 0xcc
         label: push %rbx; pop %rbx; ret; .fill 13, 1, 0xcc
         .type resolver, @gnu_indirect_function; resolver: push %rbx; pop %rbx; ret
         .fill 13, 1, 0xcc
         .type moved.cold.1, @function; moved.cold.1: push %rbx; pop %rbx; ret",
    );
    let offset = |at| match rule(&built, at) {
        Rule::NONE => None,
        rule => Some(rule.cfa_offset),
    };
    for start in [16, 32, 64] {
        let within = [start, start + 1, start + 2].map(offset);
        assert_eq!(within, [Some(8), Some(16), Some(8)]);
        assert_eq!(offset(start + 3), None);
    }
    // Labels are within functions, and moved parts have a frame already.
    assert_eq!([48, 49, 80, 81].map(offset), [None; 4]);
}

/// Go's runtime by the names of its functions, and not only in programs of Go.
#[test]
fn where_go_changes_stacks() {
    let function = |name: &str, code: &str| {
        format!(".type {name}, @function; {name}: {code}; .size {name}, . - {name}")
    };
    let wait = "nop; .fill 7, 1, 0x90";
    let call = "push %rbp; mov %rsp, %rbp; mov %rdx, %rsp; nop; mov %rbp, %rsp; pop %rbp; ret";
    let source = [
        ".cfi_startproc; nop; .cfi_endproc".to_owned(),
        function("runtime.mcall", wait),
        ".fill 7, 1, 0xcc".to_owned(),
        function("runtime.sigreturn__sigaction", wait),
        ".fill 8, 1, 0xcc".to_owned(),
        function("runtime.mstart.abi0", wait),
        ".fill 7, 1, 0xcc".to_owned(),
        function("runtime.nanotime1", call),
        // Too large to be meant, and of no size.
        ".balign 16".to_owned(),
        function("runtime.systemstack", ".fill 4096, 1, 0x90; ret"),
        ".section .gopclntab, \"a\"; .quad 0".to_owned(),
    ]
    .join("\n");
    let go = built(&source);
    let signal = Rule::at(cfa::SIGNAL_FRAME, 40);
    // Each begins a byte early.
    for (start, end, expected) in [(1, 9, Rule::ROOT), (16, 24, signal), (32, 40, Rule::ROOT)] {
        assert_eq!([start - 1, end - 1].map(|at| rule(&go, at)), [expected; 2]);
        assert_eq!(rule(&go, end), Rule::NONE);
    }
    let kinds = [47, 48, 51, 54, 57, 58].map(|at| rule(&go, at).cfa);
    let (stack, switched) = (cfa::STACK_POINTER, cfa::SWITCHED_STACK);
    assert_eq!(kinds, [stack, stack, stack, switched, switched, stack]);
    assert_ne!(rule(&go, 80), Rule::ROOT);

    let other = built(&source.replace(".gopclntab", ".other"));
    assert!([1, 16, 32].iter().all(|&at| rule(&other, at) != Rule::ROOT));
    assert_ne!(rule(&other, 54).cfa, switched);
}

#[test]
fn start_code_of_unknown_size_is_short() {
    let built = built(".fill 200, 1, 0x90; .cfi_startproc; nop; .cfi_endproc");
    assert_eq!([0, 31].map(|offset| rule(&built, offset)), [Rule::ROOT; 2]);
    assert_ne!(rule(&built, 32), Rule::ROOT);
    assert_eq!(rule(&built, 200), CALLED);
}

/// An image in memory without a file: the kernel's vDSO.
#[test]
fn the_vdso() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
    // SAFETY: the mapping is readable and stays for as long as the process.
    let image = unsafe { std::slice::from_raw_parts(start as *const u8, end - start) };
    let built = build(image).unwrap();
    assert!(built.table.rows.len() > 4, "{:?}", built.notes);
    assert_eq!(built.segments.len(), 1);
}

#[test]
fn offsets_of_mappings_become_addresses() {
    let built = Built {
        segments: vec![unwind::Segment {
            offset: 0x1234,
            address: 0x40_2234,
            size: 0x2000,
        }],
        ..Built::default()
    };
    assert_eq!(built.address(0x1234), Some(0x40_2234));
    assert_eq!(built.address(0x3233), Some(0x40_4233));
    assert_eq!(built.address(0x3234), None);
    // The mapping begins with the page.
    assert_eq!(built.address(0x1000), Some(0x40_2000));
    assert_eq!(built.address(0xfff), None);
}

#[test]
fn what_is_no_program_for_this_processor_is_refused() {
    let unsupported = |bytes: &[u8]| matches!(build(bytes), Err(Error::Unsupported));
    assert!(unsupported(b""));
    assert!(unsupported(
        b"#!/bin/sh\nexec something, with a good many arguments to it\n"
    ));
    let program = assemble(".cfi_startproc; nop; .cfi_endproc");
    for (at, value) in [(0, 0), (4, 1), (5, 2), (18, 3)] {
        let mut other = program.clone();
        other[at] = value;
        assert!(unsupported(&other));
    }
}

#[test]
fn a_file_cut_off_anywhere_does_no_harm() {
    let program = assemble(".cfi_startproc; nop; .cfi_def_cfa_offset 24; nop; .cfi_endproc");
    for length in 0..program.len() {
        if let Ok(built) = build(&program[..length]) {
            assert!(built.table.rows.len() <= 4);
        }
    }
}
