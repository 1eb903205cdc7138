//! Walks that were made before: `unwind_cache.h`, and its use.

use crate::mutant::Expected::{Caught, SameHere};
use crate::mutant::Mutant;

const TOLD_APART: &str =
    "timed::stacks::unwind_cache::naps_that_differ_further_up_the_stack_alone_are_told_apart";
const CACHED: &str = "collect/unwind_cache::what_is_cached_is_what_a_walk_finds";

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        rule: "a stack is taken from the cache if all words are the same",
        file: "include/stacks/unwind_cache.h",
        change: (
            "		if (*(u64 *)(piece->bytes + offset) != walk->words[at].value)
			return false;
",
            "",
        ),
        expected: Caught(&[TOLD_APART, CACHED]),
    },
    Mutant {
        rule: "and the registers",
        file: "include/stacks/unwind_cache.h",
        change: (
            "walk->start.ip != start->ip || walk->start.sp != start->sp ||",
            "walk->start.sp != start->sp ||",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "and the frame pointer, if it was made use of",
        file: "include/stacks/unwind_cache.h",
        change: (
            "(walk->bp_matters && walk->start.bp != start->bp)",
            "(walk->bp_matters && !start->sp)",
        ),
        expected: Caught(&[TOLD_APART, CACHED]),
    },
    Mutant {
        rule: "and the program",
        file: "include/stacks/unwind_cache.h",
        change: (
            "walk->start.instance != start->instance",
            "!start->instance",
        ),
        expected: SameHere("no two programs' tables have the same number, which is compared, too"),
    },
    Mutant {
        rule: "and its tables",
        file: "include/stacks/unwind_cache.h",
        change: (
            "walk->start.generation != start->generation",
            "!start->instance",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "a saved frame pointer that was made use of is noted",
        file: "include/stacks/unwind_cache.h",
        change: ("note_word(notes, from, bp);", ";"),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "one that was not may change",
        file: "include/stacks/unwind.h",
        change: (
            "		ip_is_known = true;
		notes->bp_from = saved;",
            "		ip_is_known = true;
		note_bp(notes, bp);
		notes->bp_from = saved;",
        ),
        expected: SameHere("it costs time only: fewer walks are cached"),
    },
    Mutant {
        rule: "walks through signal frames are not remembered",
        file: "include/stacks/unwind.h",
        change: (
            "	walk->notes.complete = false;
	if (!read_user(&ip",
            "	if (!read_user(&ip",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "nor walks by other registers",
        file: "include/stacks/unwind.h",
        change: (
            "		notes->complete = false;
		cfa = dwarf",
            "		cfa = dwarf",
        ),
        expected: Caught(&["checks/walk::walks_in_bpf_and_in_rust_agree"]),
    },
    Mutant {
        rule: "nor stacks cut short",
        file: "include/stacks/stack_capture.h",
        change: (
            "	if ((end & 0xff) == WALK_REACHED_ROOT)
		cache_walk",
            "	if (end)
		cache_walk",
        ),
        expected: SameHere("the same words are cut short at the same place; it costs room"),
    },
    Mutant {
        rule: "nor threads interrupted in user space",
        file: "include/stacks/stack_capture.h",
        change: (
            "	if (!exact) {
		struct walk_start",
            "	if (true) {
		struct walk_start",
        ),
        expected: SameHere("a walk that depends on more than is compared is not complete"),
    },
    Mutant {
        rule: "a cached stack that was pushed out is sent again",
        file: "include/stacks/stack_capture.h",
        change: (
            "if (cached && !unseen(cached) && !dump_every_stack)",
            "if (cached && !dump_every_stack)",
        ),
        expected: Caught(&[
            "checks/stacks::a_stack_is_sent_once_and_again_when_another_pushed_it_out",
        ]),
    },
    Mutant {
        rule: "where the frame pointer at the leaf comes from is noted",
        file: "include/stacks/unwind_cache.h",
        change: (
            "notes->bp_from = BP_FROM_LEAF;",
            "notes->bp_from = BP_FROM_NOWHERE;",
        ),
        expected: Caught(&[TOLD_APART, CACHED]),
    },
];
