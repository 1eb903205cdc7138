//! The walk along user stacks: `unwind.h`, `unwind_tables.h`, `arch_x86_64.h`.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

const WHERE_C_WAITS: &str = "timed::stacks::chains::where_c_waits_is_its_chain";
const IN_C: &str = "timed::stacks::chains::samples_anywhere_in_c_are_of_its_chain";
const GO: &str = "together::stacks::programs::a_go_program";
const BY_FRAME_POINTER: &str =
    "together::printed::symbols::code_made_at_run_time_is_named_by_its_map";
const WALKS: &str = "collect/walks::the_walks_in_bpf_in_rust_and_by_framehop_agree";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a return address is looked up less one",
        file: "include/stacks/unwind.h",
        change: ("address = walk->ip - !exact;", "address = walk->ip;"),
        expected: Caught(&[WHERE_C_WAITS]),
    },
    Mutant {
        rule: "below a signal frame the address itself is looked up",
        file: "include/stacks/unwind.h",
        change: ("walk->ip_is_exact = true;", "walk->ip_is_exact = false;"),
        expected: Caught(&[WHERE_C_WAITS]),
    },
    Mutant {
        rule: "an address that was interrupted is kept plus one",
        file: "include/stacks/unwind.h",
        change: ("walk->ip + (exact && !leaf);", "walk->ip;"),
        expected: Caught(&[WHERE_C_WAITS]),
    },
    Mutant {
        rule: "a signal's trampoline has no call before it",
        file: "include/stacks/unwind.h",
        change: ("= address + 2;", "= address + 1;"),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a signal frame has the registers of whom it interrupted",
        file: "include/arch_x86_64.h",
        change: ("#define SIGNAL_FRAME_SP 120", "#define SIGNAL_FRAME_SP 112"),
        expected: Caught(&[WHERE_C_WAITS]),
    },
    Mutant {
        rule: "so does its frame pointer",
        file: "include/arch_x86_64.h",
        change: ("#define SIGNAL_FRAME_BP 80", "#define SIGNAL_FRAME_BP 88"),
        expected: Caught(&[
            WHERE_C_WAITS,
            "timed::stacks::chains::where_cpp_waits_is_its_chain",
        ]),
    },
    Mutant {
        rule: "a walk ends at a rule that says so",
        file: "include/stacks/unwind.h",
        change: (
            "	case CFA_ROOT:
		return WALK_REACHED_ROOT;",
            "	case CFA_ROOT:
		return WALK_NO_RULE;",
        ),
        expected: Caught(&[WHERE_C_WAITS]),
    },
    Mutant {
        rule: "a walk ends at a return address of 0",
        file: "include/stacks/unwind.h",
        change: (
            "	if (!walk->ip)
		return WALK_REACHED_ROOT;",
            "	if (!walk->ip)
		return WALK_NO_RULE;",
        ),
        expected: Caught(&[GO, "together::stacks::programs::a_static_program_with_musl"]),
    },
    Mutant {
        rule: "a walk ends where code that keeps frame pointers has one of 0",
        file: "include/stacks/unwind.h",
        change: (
            "	if (!walk->bp && walk->by_frame_pointer)
		return WALK_REACHED_ROOT;
",
            "",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "1,024 frames are kept",
        file: "include/stacks/unwind.h",
        change: ("if (depth >= max_stack)", "if (depth >= max_stack - 1)"),
        expected: Caught(&["together::stacks::limits::more_levels_are_truncated_at_the_root"]),
    },
    Mutant {
        rule: "without a rule a frame is walked by its frame pointer",
        file: "include/stacks/unwind.h",
        change: ("end = step_by_frame_pointer(walk);", "end = WALK_NO_RULE;"),
        expected: Caught(&[BY_FRAME_POINTER]),
    },
    Mutant {
        rule: "by tables alone it is not",
        file: "include/stacks/unwind.h",
        change: (
            "	if (call_graph == CALL_GRAPH_DWARF)
		return WALK_NO_RULE;
",
            "",
        ),
        expected: Caught(&[
            "together::stacks::tables_alone::code_without_tables_is_known_at_the_leaf_alone",
        ]),
    },
    Mutant {
        rule: "by frame pointers alone the kernel's helper walks",
        file: "include/stacks/stack_capture.h",
        change: (
            "if (call_graph != CALL_GRAPH_FP && !is_32_bit(regs->cs))",
            "if (!is_32_bit(regs->cs))",
        ),
        expected: Caught(&[
            "together::stacks::limits::frame_pointers_alone_do_not_stop_at_programs_without",
        ]),
    },
    Mutant {
        rule: "frames lie ever higher",
        file: "include/stacks/unwind.h",
        change: (
            "	if (cfa < walk->sp || (cfa == walk->sp && !ip_is_known))
		return WALK_NO_RULE;
",
            "",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a stack that was switched may lie lower",
        file: "include/stacks/unwind.h",
        change: (
            "	if (rule->cfa == CFA_SWITCHED_STACK)
		walk->sp = 0;
",
            "",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a frame may lie by any register, at the leaf",
        file: "include/stacks/unwind.h",
        change: ("number = rule->cfa % 16;", "number = rule->cfa % 8;"),
        expected: Caught(&[IN_C, WALKS]),
    },
    Mutant {
        rule: "the other registers are known at the leaf only",
        file: "include/stacks/unwind.h",
        change: (
            "if (!walk->at_leaf || rule->cfa >= CFA_HANDED_OVER)",
            "if (rule->cfa >= CFA_HANDED_OVER)",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a new thread has no caller behind the system call that started it",
        file: "include/stacks/unwind.h",
        change: (
            "		if (!walk->registers.ax)
			return WALK_REACHED_ROOT;
",
            "",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "an entry of the linkage table has pushed its number or not yet",
        file: "include/arch_x86_64.h",
        change: ("(ip & 15) >= pushed", "(ip & 15) > pushed"),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "what is below the stack pointer was popped again",
        file: "include/stacks/unwind.h",
        change: ("		   saved < walk->sp) {", "		   !saved) {"),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a saved frame pointer is restored",
        file: "include/stacks/unwind.h",
        change: ("		bp = words[0];\n", ""),
        expected: Caught(&[WHERE_C_WAITS]),
    },
    Mutant {
        rule: "a frame pointer that is lost is none",
        file: "include/stacks/unwind.h",
        change: ("		bp = 1;\n", ""),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a row covers its own address and those up to the next",
        file: "include/stacks/unwind_tables.h",
        change: (
            "key = (u32)offset << 16 | 0xffff;",
            "key = (u32)offset << 16;",
        ),
        expected: Caught(&[IN_C, WALKS]),
    },
    Mutant {
        rule: "a mapping ends before its end",
        file: "include/stacks/unwind_tables.h",
        change: (
            "address < mapping->start || address >= mapping->end",
            "address < mapping->start || address > mapping->end",
        ),
        expected: SameHere("no code lies at the last address of a mapping, nor calls from there"),
    },
];
